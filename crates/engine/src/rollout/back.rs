//! Taking back what a rollout wrote, and ending it.

use backout_crashpoint::crash_point;
use backout_model::ports::{Durability, Entry};
use backout_model::{
    Event, OnWaveFailure, Operation, OperationId, RolloutEnd, RolloutMark, RolloutPlan, Source,
    Status, Trigger, TriggerKind,
};
use backout_storage::OperationRef;

use super::{RolloutView, key_of};
use crate::lifecycle::with_causes;
use crate::{Engine, EngineError, UndoOptions, UndoWhat};

/// Why a proposal of a rollout that failed is refused.
const STOPPED: &str = "its rollout was stopped";

impl Engine {
    /// Takes a wave back that failed, newest write first, and those before it if that was asked for. Then the rollout is over.
    pub(super) fn take_wave_back(
        &self,
        plan: &RolloutPlan,
        wave: u32,
        why: &str,
    ) -> Result<RolloutView, EngineError> {
        let first = match plan.on_failure {
            OnWaveFailure::Wave => wave,
            OnWaveFailure::All => 1,
        };
        self.withdraw(|it| it.task.as_ref() == Some(&plan.task), STOPPED)?;
        let mut left = Vec::new();
        let steps = (first..=wave).flat_map(|wave| plan.wave_steps(wave));
        for (number, _) in steps.rev() {
            let Some(operation) = self.step_operation(plan, number)? else {
                continue;
            };
            // One that stays does not keep the others.
            if is_left(operation.status)
                && let Err(error) = self.take_step_back(operation.id)
            {
                left.push(format!("{}: {}", operation.id.short(), with_causes(&error)));
            }
            crash_point("rollout.step-undone");
        }
        if !left.is_empty() {
            return self.left(plan.id, left.join("; "));
        }
        let (why, back) = (why.to_owned(), plan.on_failure);
        self.close(plan, RolloutEnd::Stopped { wave, why, back })
    }

    /// Takes one write back. What set it off is the failure of the plan.
    fn take_step_back(&self, id: OperationId) -> Result<(), EngineError> {
        let what = UndoWhat::Operations(vec![OperationRef::Prefix(id.to_string())]);
        let options = UndoOptions {
            trigger: Some(Trigger::new(TriggerKind::PlanFailure, Source::Command)),
            ..UndoOptions::default()
        };
        self.undo(&what, &options).map(drop)
    }

    /// Takes all of a rollout back because somebody wants that.
    pub(super) fn take_all_back(&self, plan: &RolloutPlan) -> Result<RolloutView, EngineError> {
        let what = UndoWhat::Task(plan.task.clone());
        match self.rollback(&what, &UndoOptions::default(), "its rollout was aborted") {
            Ok(_) => {
                crash_point("rollout.rolled-back");
                self.end_rollout(plan.id, RolloutEnd::Aborted)?;
                self.view_rollout(plan.id)
            }
            Err(EngineError::Storage(error)) => Err(error.into()),
            Err(error) => self.left(plan.id, with_causes(&error)),
        }
    }

    fn left(&self, id: OperationId, why: String) -> Result<RolloutView, EngineError> {
        self.mark_rollout(id, RolloutMark::Left { why })?;
        self.view_rollout(id)
    }

    /// Ends a rollout and its task at the same moment: what is in effect stays.
    pub(super) fn close(
        &self,
        plan: &RolloutPlan,
        end: RolloutEnd,
    ) -> Result<RolloutView, EngineError> {
        let id = plan.id;
        let mut is_something_kept = end == RolloutEnd::Done;
        for number in 0..plan.steps.len() {
            let operation = self.step_operation(plan, number)?;
            is_something_kept |= operation.is_some_and(|found| is_in_effect(found.status));
        }
        let task = plan.task.clone();
        let ended = Event::RolloutEnded { id, end };
        crash_point("rollout.before-end");
        if is_something_kept {
            match self.commit_with(&task, vec![ended]) {
                Ok(_) => {}
                Err(EngineError::Storage(error)) => return Err(error.into()),
                Err(error) => return self.left(id, with_causes(&error)),
            }
        } else {
            let why = STOPPED.to_owned();
            let entry = Entry::of(vec![Event::TaskRollback { task, why }, ended]);
            self.store.append(&entry, Durability::Power)?;
        }
        crash_point("rollout.ended");
        self.view_rollout(id)
    }

    /// Finds the operation that a step has become.
    pub(super) fn step_operation(
        &self,
        plan: &RolloutPlan,
        number: usize,
    ) -> Result<Option<Operation>, EngineError> {
        match self.store.answer_to(&key_of(plan, number))? {
            Some((id, _)) => Ok(self.store.operation(id)?),
            None => Ok(None),
        }
    }
}

/// Tells whether what an operation did is there.
pub(super) const fn is_in_effect(status: Status) -> bool {
    matches!(
        status,
        Status::Applied | Status::Committed | Status::Interrupted
    )
}

/// Tells whether something of an operation may have to be taken back.
const fn is_left(status: Status) -> bool {
    is_in_effect(status) || matches!(status, Status::InDoubt | Status::Failed | Status::Armed)
}
