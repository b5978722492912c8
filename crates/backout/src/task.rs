//! A task: writes that are kept together or not at all.

use backout_engine::{Context, UndoOptions, UndoWhat};
use backout_model::{OperationId, Source, TaskId, Trigger, TriggerKind};

use crate::{Backout, Failure, usage};

/// An open task. Dropping it, or the death of its process, rolls it back.
#[derive(Debug)]
#[must_use = "commit it, or it is rolled back"]
pub struct Task {
    backout: Backout,
    id: TaskId,
    is_over: bool,
}

impl Task {
    pub(crate) fn begin(backout: &Backout, name: &str) -> Result<Self, Failure> {
        let id: TaskId = name.parse().map_err(|error| usage(&error))?;
        backout
            .engine
            .begin(Some(id.clone()), Some(std::process::id()))?;
        let context = Context {
            task: Some(id.clone()),
            ..backout.engine.context().clone()
        };
        Ok(Self {
            backout: backout.for_caller(context),
            id,
            is_over: false,
        })
    }

    /// Gives the handle through which the task's writes go.
    pub const fn backout(&self) -> &Backout {
        &self.backout
    }

    /// Keeps everything the task wrote, durably.
    pub fn commit(mut self) -> Result<Vec<OperationId>, Failure> {
        let operations = self.backout.engine.commit(&self.id)?;
        self.is_over = true;
        Ok(operations)
    }

    /// Takes back everything the task wrote, newest first.
    pub fn rollback(mut self) -> Result<(), Failure> {
        self.roll_back(TriggerKind::UserRequest, "the program asked for it")?;
        self.is_over = true;
        Ok(())
    }

    fn roll_back(&self, kind: TriggerKind, why: &str) -> Result<(), Failure> {
        let what = UndoWhat::Task(self.id.clone());
        let options = UndoOptions {
            committed: true,
            trigger: Some(Trigger::new(kind, Source::Program).because(why)),
            ..UndoOptions::default()
        };
        self.backout.engine.rollback(&what, &options, why)?;
        Ok(())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if !self.is_over {
            // If this fails, the next recovery finds a task whose owner is gone.
            let kind = TriggerKind::TransactionAbort;
            let _rolled_back = self.roll_back(kind, "it was dropped without a commit");
        }
    }
}
