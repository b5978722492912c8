//! What an undo or a redo would do, told without doing it.
//!
//! An undo settles first what dead processes left, and plans then. A dry run settles nothing, so where that would change the
//! plan it says that there is none yet, instead of another one.

use backout_model::{Operation, Verb};

use super::preview::{Planned, Planner};
use crate::{Engine, EngineError, PlanView, RedoWhat, UndoOptions, UndoWhat};

impl Engine {
    /// Shows what an undo would do.
    pub fn preview_undo(
        &self,
        what: &UndoWhat,
        options: &UndoOptions,
    ) -> Result<PlanView, EngineError> {
        self.foretell(Verb::Undo, &|options| self.plan(what, options), options)
    }

    /// Shows what a redo would do.
    pub fn preview_redo(
        &self,
        what: &RedoWhat,
        options: &UndoOptions,
    ) -> Result<PlanView, EngineError> {
        let make = |options: &UndoOptions| self.plan_redo(what, options);
        self.foretell(Verb::Redo, &make, options)
    }

    /// Shows what an undo would do to whoever settles what dead processes left.
    pub(crate) fn preview_settling(
        &self,
        what: &UndoWhat,
        options: &UndoOptions,
    ) -> Result<PlanView, EngineError> {
        let (_, view) = self.look(&|options| self.plan(what, options), options)?;
        Ok(view)
    }

    fn foretell(
        &self,
        verb: Verb,
        make: Planner<'_>,
        options: &UndoOptions,
    ) -> Result<PlanView, EngineError> {
        let dead = self.not_settled()?;
        let looked = self.look(make, options);
        let in_the_way = match &looked {
            // What cannot be found or read is not there either when all is settled.
            Err(EngineError::Ref(_) | EngineError::Storage(_)) => None,
            Err(_) => dead.first(),
            Ok((planned, _)) => dead.iter().find(|dead| changes_plan(dead, planned)),
        };
        if let Some(dead) = in_the_way {
            return Err(EngineError::NotSettledYet { id: dead.id, verb });
        }
        Ok(looked?.1)
    }

    /// Lists what dead processes left and the next write settles, newest first. What a recovery took over and did not settle is
    /// not part of it: nobody can look at that at this moment, and the next write leaves it as well.
    fn not_settled(&self) -> Result<Vec<Operation>, EngineError> {
        let mut left = Vec::new();
        for operation in self.store.armed()? {
            let is_taken_over = self.store.first_owner(operation.id)? != operation.owner;
            if !self.is_at_work(&operation) && !is_taken_over {
                left.push(operation);
            }
        }
        Ok(left)
    }
}

/// Tells whether a plan may be another one when something is settled. What a command did is only known then.
fn changes_plan(dead: &Operation, planned: &Planned) -> bool {
    let is_meant = planned.named.is_empty() || planned.named.contains(&dead.id);
    let mut targets = planned.plan.steps.iter().flat_map(|step| &step.targets);
    let is_touched = targets.any(|target| {
        let mut theirs = dead.targets.iter();
        theirs.any(|theirs| theirs.target.overlap(target).is_some())
    });
    dead.verb == Verb::Run || dead.targets.is_empty() || is_meant || is_touched
}
