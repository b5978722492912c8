//! Recovery: what dead processes left unfinished is taken back, newest first.
//!
//! - An operation that is armed and whose owner is dead did not commit: rollback is the default.
//! - After a restart of the machine the record of a commit may be lost although the write was acknowledged (outcome
//!   records ride with the next sync). If everything the operation wanted is in place, it is kept. The same holds if
//!   a repair had to leave later records out.
//! - An interrupted undo is finished: somebody asked for it, and undoing is repeatable.
//! - What could not be settled is in doubt, and tried again whenever somebody asks for a recovery: the disk may have
//!   room again, or the file that stood in the way may be gone.
//! - An operation is claimed before it is touched, so that two recoveries never meet on it.

use backout_crashpoint::crash_point;
use backout_model::ports::{Driver as _, Durability, Entry, Journal as _};
use backout_model::{
    Chosen, Completion, DriverKind, Effect, Event, Lsn, Operation, OperationId, Status, Target,
    TargetOutcome, TaskStatus, UndoStep,
};
use backout_storage::{is_alive, is_from_another_boot, this_process};

use crate::lifecycle::failed_everywhere;
use crate::undo::what_follows;
use crate::{Engine, EngineError, RecoverReport, Recovered, UndoOptions, UndoWhat};

impl Engine {
    /// Finishes what dead processes left behind, and says what that was.
    pub fn recover(&self, from: Option<Lsn>) -> Result<RecoverReport, EngineError> {
        let mut report = RecoverReport::default();
        for operation in self.store.armed()? {
            if from.is_some_and(|from| operation.lsn <= from) {
                continue;
            }
            match self.recover_one(&operation)? {
                Some(recovered) => report.operations.push(recovered),
                None => report.running.push(operation.id),
            }
        }
        for operation in self.store.stuck()? {
            let is_asked = from.is_none_or(|from| operation.lsn > from);
            if operation.status == Status::InDoubt && is_asked {
                report.operations.extend(self.recover_one(&operation)?);
            }
        }
        self.store.release_dead()?;
        self.recover_tasks(&mut report)?;
        Ok(report)
    }

    /// What every write does first. Costs one query when nobody died.
    pub(crate) fn recover_the_dead(&self) -> Result<(), EngineError> {
        for operation in self.store.armed()? {
            self.recover_one(&operation)?;
        }
        Ok(())
    }

    /// Recovers an operation that stands in the way of a lease.
    pub(crate) fn recover_abandoned(&self, id: OperationId) -> Result<(), EngineError> {
        match self.store.operation(id)? {
            Some(operation) if operation.status == Status::Armed => {
                self.recover_one(&operation)?;
            }
            _ => self.store.release(id)?,
        }
        Ok(())
    }

    /// Settles one armed operation, if its owner is dead and nobody else does it.
    fn recover_one(&self, operation: &Operation) -> Result<Option<Recovered>, EngineError> {
        // Nobody is at work on what is in doubt, not even the process that left it so.
        let is_at_work = operation.status == Status::Armed && is_alive(&operation.owner);
        if is_at_work || !self.store.claim(operation, &this_process())? {
            return Ok(None);
        }
        crash_point("recover.claimed");
        let (status, outcomes) = match operation.undoes {
            Some(undone) => self.finish_undo(operation, undone)?,
            None => self.settle(operation)?,
        };
        crash_point("recover.settled");
        Ok(Some(Recovered {
            id: operation.id,
            summary: operation.summary.clone(),
            status,
            outcomes,
        }))
    }

    fn settle(&self, operation: &Operation) -> Result<(Status, Vec<TargetOutcome>), EngineError> {
        let id = operation.id;
        let effect = self.store.effect(id)?;
        if effect.recipe.driver == DriverKind::Command {
            // What it wrote is only known now.
            let (effect, targets) = self.settle_dead_command(id, &effect.recipe)?;
            return self.take_back_unfinished(operation, &targets, &effect);
        }
        let lost_record = is_from_another_boot(&self.store.first_owner(id)?)
            || self.store.has_gap_after(operation.lsn)?;
        if lost_record && self.files.is_in_place(&effect)? {
            let mut events = vec![Event::Applied {
                id,
                completion: Completion::default(),
            }];
            let status = if operation.task.is_some() {
                Status::Applied
            } else {
                events.push(Event::Commit { id });
                Status::Committed
            };
            self.store.append(&Entry::of(events), Durability::Power)?;
            return Ok((status, Vec::new()));
        }
        self.take_back_unfinished(operation, &operation.targets, &effect)
    }

    /// Puts back what an operation did that was never finished, and records that.
    fn take_back_unfinished(
        &self,
        operation: &Operation,
        targets: &[Target],
        effect: &Effect,
    ) -> Result<(Status, Vec<TargetOutcome>), EngineError> {
        let id = operation.id;
        let outcomes = self.revert(targets, effect);
        crash_point("recover.reverted");
        let status = settled_as(&outcomes, Status::Aborted);
        if status == operation.status {
            return Ok((status, outcomes)); // still in doubt, as the journal says already
        }
        let why = "its process died before it was finished".to_owned();
        let event = Event::Abort {
            id,
            why,
            outcomes: outcomes.clone(),
        };
        self.store
            .append(&Entry::of(vec![event]), Durability::Power)?;
        self.forget_log(id);
        Ok((status, outcomes))
    }

    fn finish_undo(
        &self,
        undo: &Operation,
        undone: OperationId,
    ) -> Result<(Status, Vec<TargetOutcome>), EngineError> {
        let id = undo.id;
        let effect = self.store.effect(id)?;
        let outcomes = self
            .files
            .finish(&effect)
            .unwrap_or_else(|error| failed_everywhere(&undo.targets, &error));
        crash_point("recover.finished");
        let status = settled_as(&outcomes, Status::Committed);
        if status == undo.status {
            return Ok((status, outcomes));
        }
        let is_done = status == Status::Committed;
        let events = if let Some(operation) = self.store.operation(undone)?.filter(|_| is_done) {
            let step = UndoStep {
                id: undone,
                with: operation.redone_by.unwrap_or(undone),
                strategy: operation.decision.strategy,
                chosen: Chosen::Named,
            };
            let mut events = vec![
                Event::Applied {
                    id,
                    completion: Completion::default(),
                },
                Event::Commit { id },
            ];
            events.extend(what_follows(&operation, &step, id, &outcomes));
            events
        } else {
            let why = "its process died, and it could not be finished".to_owned();
            vec![Event::Abort {
                id,
                why,
                outcomes: outcomes.clone(),
            }]
        };
        self.store.append(&Entry::of(events), Durability::Power)?;
        Ok((status, outcomes))
    }

    /// Rolls back the open tasks whose owner died.
    fn recover_tasks(&self, report: &mut RecoverReport) -> Result<(), EngineError> {
        for task in self.store.tasks()? {
            let is_orphan = task.status == TaskStatus::Open
                && task.owner.as_ref().is_some_and(|owner| !is_alive(owner));
            if is_orphan {
                self.rollback(
                    &UndoWhat::Task(task.id.clone()),
                    UndoOptions::default(),
                    "its owner died",
                )?;
                report.tasks.push(task.id);
            }
        }
        Ok(())
    }
}

fn settled_as(outcomes: &[TargetOutcome], good: Status) -> Status {
    let all_settled = outcomes.iter().all(|outcome| outcome.kind.is_settled());
    if all_settled { good } else { Status::InDoubt }
}
