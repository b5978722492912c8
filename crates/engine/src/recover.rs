//! Recovery: what dead processes left unfinished is taken back, newest first, as an operation like any other.
//!
//! - It is guarded like an undo, keeps what it replaces, is journalled, and can itself be taken back. Whoever ran the
//!   command on the way of which it happened is told.
//! - An undo or a redo that died is taken back, too: nothing is continued behind anybody's back.
//! - A command whose watcher died is different: what it did is kept, as *interrupted*, until somebody decides; unless it
//!   was started with the word to roll back.
//! - After a restart of the machine the record of a commit may be lost although the write was acknowledged (outcome
//!   records ride with the next sync). If everything the operation wanted is in place, it is kept. The same holds if
//!   a repair had to leave later records out.
//! - What could not be settled is in doubt, with nothing touched. It is tried again whenever somebody asks for a recovery:
//!   the disk may have room again, or the file that stood in the way may be gone. And somebody can decide by hand.
//! - What somebody wrote since on top of it, through Backout, is never pulled away by itself.
//! - An operation is claimed before it is touched, so that two recoveries never meet on it.

use std::collections::HashSet;

use backout_crashpoint::crash_point;
use backout_model::ports::{Durability, Entry, OnConflict};
use backout_model::{
    Completion, DriverName, Effect, Event, History, Lsn, OnFailure, Operation, OperationId,
    OutcomeKind, PlanError, Source, Status, Strategy, Target, TargetOutcome, TaskStatus, Trigger,
    TriggerKind, Verb,
};
use backout_storage::OperationRef;

use crate::calls::{ArmedCall, call_in};
use crate::lifecycle::with_causes;
use crate::run::DeadCommand;
use crate::undo::{Act, Reversed, Work};
use crate::{
    Decide, Engine, EngineError, RecoverReport, Recovered, RecoveredAs, TaskLeft, UndoOptions,
    UndoWhat,
};

impl Engine {
    /// Settles what dead processes left behind, and says what that was.
    pub fn recover(&self, from: Option<Lsn>) -> Result<RecoverReport, EngineError> {
        let mut report = RecoverReport::default();
        for operation in self.store.armed()? {
            if from.is_some_and(|from| operation.lsn <= from) {
                continue;
            }
            match self.recover_one(&operation) {
                Ok(Some(recovered)) => report.operations.push(recovered),
                Ok(None) => report.running.push(operation.id),
                Err(error) if error.is_of_driver() && !error.is_stop() => {
                    report.operations.push(self.left_alone(&operation, &error)?);
                }
                Err(error) => return Err(error),
            }
        }
        let told: HashSet<OperationId> = report.operations.iter().map(|it| it.id).collect();
        for operation in self.store.stuck()? {
            let is_asked = from.is_none_or(|from| operation.lsn > from);
            let is_told = told.contains(&operation.id);
            if !is_asked || is_told {
                continue;
            }
            match operation.status {
                Status::InDoubt => report.operations.extend(self.recover_one(&operation)?),
                Status::Interrupted if self.is_refused(&operation)? => {
                    if self.store.is_alive(&operation.owner) {
                        report.running.push(operation.id);
                    } else if self.store.claim(&operation, &self.store.this_process())? {
                        let back = self.roll_back(operation.id, OnConflict::Refuse, None)?;
                        report.operations.push(back);
                    }
                }
                // It is settled, and still waits for a decision.
                Status::Interrupted => report.operations.push(self.recovered(
                    operation.id,
                    RecoveredAs::Interrupted,
                    None,
                    Vec::new(),
                )?),
                Status::Proposed
                | Status::Refused
                | Status::Armed
                | Status::Applied
                | Status::Committed
                | Status::Aborted
                | Status::Undone
                | Status::Failed => {}
            }
        }
        self.store.release_dead()?;
        self.recover_tasks(&mut report)?;
        self.add_acts_left(&mut report)?;
        report.sandboxes = self.settle_sandboxes()?;
        Ok(report)
    }

    /// Tells whether an operation is a write that was refused after it had happened, and nobody came to taking it back. What a
    /// command or an agent's tool did is no such write: it stays until somebody decides.
    fn is_refused(&self, operation: &Operation) -> Result<bool, EngineError> {
        let records = self.store.records_of(operation.id)?;
        let mut events = records.iter().map(|record| &record.event);
        let is_captured = events.any(|event| matches!(event, Event::Captured { .. }));
        let last = records.last().map(|record| &record.event);
        Ok(!is_captured && matches!(last, Some(Event::Interrupted { .. })))
    }

    /// Adds what was left between two steps. What was found on the way is told here.
    fn add_acts_left(&self, report: &mut RecoverReport) -> Result<(), EngineError> {
        self.tell_acts_left()?;
        let _told_here = self.take_acts_left();
        report.acts_left = self.acts_left()?;
        Ok(())
    }

    /// Recovers the commands that a process watched which has just died, and says what came of it.
    pub fn recover_watched_by(&self, pid: u32) -> Result<RecoverReport, EngineError> {
        let mut report = RecoverReport::default();
        for operation in self.store.armed()? {
            if operation.owner.pid != pid || operation.verb != Verb::Run {
                continue;
            }
            self.touch_log(operation.id);
            report.operations.extend(self.recover_one(&operation)?);
        }
        Ok(report)
    }

    /// What every write does first. Costs one query when nobody died.
    pub(crate) fn recover_the_dead(&self) -> Result<(), EngineError> {
        for operation in self.store.armed()? {
            match self.recover_one(&operation) {
                Ok(Some(recovered)) => self.note_recovered(recovered),
                // What cannot be looked at stays as it is for `recover`: nobody else's write has to wait for that.
                Ok(None) => {}
                Err(error) if error.is_of_driver() && !error.is_stop() => {}
                Err(error) => return Err(error),
            }
        }
        self.tell_acts_left()
    }

    /// Says of an operation that nobody could look at what stands in the way. It stays as it is.
    fn left_alone(
        &self,
        operation: &Operation,
        error: &EngineError,
    ) -> Result<Recovered, EngineError> {
        let why = if let EngineError::Driver(fault) = error
            && let Some(why) = fault.fault().out_of_reach()
        {
            format!("{error}: {why}")
        } else {
            with_causes(error)
        };
        Ok(Recovered {
            doubts: vec![why],
            ..self.recovered(operation.id, RecoveredAs::InDoubt, None, Vec::new())?
        })
    }

    /// Recovers an operation that stands in the way of a lease.
    pub(crate) fn recover_abandoned(&self, id: OperationId) -> Result<(), EngineError> {
        match self.store.operation(id)? {
            Some(operation) if operation.status == Status::Armed => {
                if let Some(recovered) = self.recover_one(&operation)? {
                    self.note_recovered(recovered);
                }
            }
            _ => self.store.release(id)?,
        }
        Ok(())
    }

    /// Tells whether somebody is at work on an operation.
    pub(crate) fn is_at_work(&self, operation: &Operation) -> bool {
        // Nobody is at work on what is in doubt, not even the process that left it so.
        let is_left = operation.status != Status::Armed || self.is_abandoned(operation.id);
        !is_left && self.store.is_alive(&operation.owner)
    }

    /// Takes an operation over whose process is dead, unless somebody else does, or nobody here understands it.
    fn claim(&self, operation: &Operation) -> Result<Option<Effect>, EngineError> {
        if self.is_at_work(operation) {
            return Ok(None);
        }
        let effect = self.store.effect(operation.id)?;
        if effect.recipe.driver != DriverName::COMMAND {
            self.driver_of(&effect)?;
        }
        let is_ours = self.store.claim(operation, &self.store.this_process())?;
        Ok(is_ours.then_some(effect))
    }

    /// Settles one armed operation, if its owner is dead and nobody else does it.
    fn recover_one(&self, operation: &Operation) -> Result<Option<Recovered>, EngineError> {
        let Some(effect) = self.claim(operation)? else {
            return Ok(None);
        };
        crash_point("recover.claimed");
        let recovered = if effect.recipe.driver == DriverName::COMMAND {
            if let Some(call) = call_in(&effect.recipe) {
                return self.recover_call(operation, &call).map(Some);
            }
            // What it wrote is only known now.
            let on_failure = self.store.on_failure(operation.id)?;
            let DeadCommand { doubts, ended } =
                self.settle_dead_command(operation.id, &effect.recipe, false)?;
            Recovered {
                doubts,
                ended,
                ..self.interrupted(operation, on_failure)?
            }
        } else {
            let driver = self.driver_of(&effect)?;
            let standing = operation.targets.iter();
            let targets: Vec<Target> = standing.map(|it| it.target.clone()).collect();
            // Of what is watched the end is on disk before anybody is told: what has none did not end.
            let is_acknowledged =
                self.is_acknowledged(operation)? && !self.is_watched(operation.verb, &targets);
            let is_answered = operation.undoes.is_some() && driver.keeps_undos_in_place();
            if (is_acknowledged || is_answered) && driver.is_in_place(&effect)? {
                self.keep(operation)?
            } else if let Some(completion) = self.finished(operation, &effect)? {
                self.keep_with(operation, completion)?
            } else {
                let recovered = self.take_back_unfinished(operation, OnConflict::Refuse)?;
                self.waiting_again(recovered)?
            }
        };
        crash_point("recover.settled");
        Ok(Some(recovered))
    }

    /// Finishes a write that nothing takes back, and that its target knows again. An undo or a redo is never finished so.
    fn finished(
        &self,
        operation: &Operation,
        effect: &Effect,
    ) -> Result<Option<Completion>, EngineError> {
        let is_last = operation.decision.strategy == Strategy::Irreversible;
        if operation.undoes.is_some() || !is_last {
            return Ok(None);
        }
        Ok(self.driver_of(effect)?.finish(effect)?)
    }

    /// Settles a call whose agent died, by looking: what it wrote stays and can be undone.
    fn recover_call(
        &self,
        operation: &Operation,
        call: &ArmedCall,
    ) -> Result<Recovered, EngineError> {
        let ended = self.settle_call((operation.id, operation.lsn), &operation.summary, call)?;
        crash_point("recover.settled");
        let became = match ended.status {
            Status::Aborted => RecoveredAs::NothingHappened,
            Status::Undone => RecoveredAs::TakenBack,
            Status::Proposed
            | Status::Refused
            | Status::Armed
            | Status::Applied
            | Status::Committed
            | Status::Interrupted
            | Status::InDoubt
            | Status::Failed => RecoveredAs::Kept,
        };
        self.recovered(operation.id, became, None, Vec::new())
    }

    /// Tells whether an operation may have been acknowledged although no record says so.
    fn is_acknowledged(&self, operation: &Operation) -> Result<bool, EngineError> {
        Ok(self
            .store
            .is_from_another_boot(&self.store.first_owner(operation.id)?)
            || self.store.has_gap_after(operation.lsn)?)
    }

    /// Takes back what an operation did that was never finished.
    fn take_back_unfinished(
        &self,
        operation: &Operation,
        on_conflict: OnConflict,
    ) -> Result<Recovered, EngineError> {
        let work = self.whole_work(operation)?;
        if on_conflict != OnConflict::Force
            && let Some(outcomes) = self.built_upon(&work)?
        {
            return self.not_taken_back(operation, outcomes);
        }
        let trigger = Trigger::new(TriggerKind::TransactionAbort, Source::Recovery);
        let act = Act {
            verb: Verb::Recover,
            asked: Verb::Recover,
            group: None,
            plan: None,
            on_conflict,
            is_partial: false,
            trigger: &trigger,
        };
        let reversed = self
            .lease(&work.step.targets, &self.unfinished_chain(operation)?)
            .and_then(|lease| self.reverse(lease, &work, act));
        let outcomes = match reversed {
            Ok(Reversed::Done { by, outcomes, .. }) => {
                self.tell_taken_back(&work.step.targets);
                return self.recovered(operation.id, RecoveredAs::TakenBack, Some(by), outcomes);
            }
            // Somebody removed what it had brought: that is as if nothing had happened, and is not.
            Ok(Reversed::Nothing(outcomes)) if self.was_removed_since(&work, &outcomes)? => {
                return self.keep(operation);
            }
            Ok(Reversed::Nothing(outcomes)) | Err(EngineError::HalfDone { outcomes, .. }) => {
                outcomes
            }
            // Whoever stops a recovery has not found out that it is impossible.
            Err(error @ (EngineError::Driver(_) | EngineError::TakenBack { .. }))
                if !error.is_stop() =>
            {
                let why = with_causes(&error);
                let failed = OutcomeKind::Failed { why };
                let targets = work.step.targets.iter().cloned();
                targets
                    .map(|target| TargetOutcome::new(target, failed.clone()))
                    .collect()
            }
            Err(error) => return Err(error),
        };
        crash_point("recover.looked");
        self.not_taken_back(operation, outcomes)
    }

    /// Says which targets were written since by what is in effect, if any were. Whoever did that was told that it is so:
    /// recovery does not pull it away from below, also where nothing seems to stand in the way.
    fn built_upon(&self, work: &Work<'_>) -> Result<Option<Vec<TargetOutcome>>, EngineError> {
        let id = work.operation.id;
        let history = History::new(self.store.connected(&[id])?);
        let later: Vec<&Operation> = history
            .dependents(id)
            .filter(|(later, reason)| reason.is_of_targets() && !later.verb.is_reversal())
            .map(|(later, _)| later)
            .filter(|later| later.status.is_in_effect())
            .collect();
        let mut is_built_upon = false;
        let outcomes = work.step.targets.iter().map(|target| {
            let touches = |later: &&&Operation| {
                let mut theirs = later.in_effect().map(|standing| &standing.target);
                theirs.any(|theirs| theirs.overlap(target).is_some())
            };
            let kind = match later.iter().find(touches) {
                Some(later) => {
                    is_built_upon = true;
                    let (id, summary) = (later.id.short(), &later.summary);
                    let why = format!("{id} was done since: {summary}");
                    OutcomeKind::Conflict { why }
                }
                None => OutcomeKind::Skipped {
                    why: "another target cannot be taken back, so nothing was".to_owned(),
                },
            };
            TargetOutcome::new(target.clone(), kind)
        });
        let outcomes = outcomes.collect();
        Ok(is_built_upon.then_some(outcomes))
    }

    /// Names an unfinished operation, and the unfinished one that it was to take back, and so on: their leases are ours.
    fn unfinished_chain(&self, operation: &Operation) -> Result<Vec<OperationId>, EngineError> {
        let mut chain = vec![operation.id];
        let mut next = operation.undoes;
        while let Some(id) = next {
            let found = self.store.operation(id)?;
            let found = found.filter(|found| found.status.is_unfinished());
            chain.extend(found.as_ref().map(|found| found.id));
            next = found.and_then(|found| found.undoes);
        }
        Ok(chain)
    }

    /// Records that nothing had happened, or that it cannot be settled.
    fn not_taken_back(
        &self,
        operation: &Operation,
        outcomes: Vec<TargetOutcome>,
    ) -> Result<Recovered, EngineError> {
        let is_nothing = outcomes.iter().all(|outcome| outcome.kind.is_taken_back());
        let (became, why) = if is_nothing {
            (
                RecoveredAs::NothingHappened,
                "its process died before anything happened",
            )
        } else {
            (
                RecoveredAs::InDoubt,
                "its process died, and it cannot be taken back",
            )
        };
        // What is in doubt already stays so without another word.
        if is_nothing || operation.status != Status::InDoubt {
            let event = Event::Abort {
                id: operation.id,
                why: why.to_owned(),
                outcomes: outcomes.clone(),
                trigger: None,
            };
            self.store
                .append(&Entry::of(vec![event]), Durability::Power)?;
        }
        self.recovered(operation.id, became, None, outcomes)
    }

    /// Says what became of a command whose watcher died, and takes it back if it was started so.
    fn interrupted(
        &self,
        operation: &Operation,
        on_failure: OnFailure,
    ) -> Result<Recovered, EngineError> {
        let id = operation.id;
        let what = UndoWhat::Operations(vec![OperationRef::Prefix(id.to_string())]);
        let planned = self.preview_settling(&what, &UndoOptions::default());
        let is_nothing = matches!(
            planned,
            Err(EngineError::Plan(PlanError::ChangedNothing { .. })
                | EngineError::UndoneSince { .. })
        );
        if is_nothing && let Some(operation) = self.store.operation(id)? {
            // Then nobody has to decide.
            return Ok(Recovered {
                became: RecoveredAs::NothingHappened,
                ..self.keep(&operation)?
            });
        }
        if on_failure == OnFailure::Keep {
            return self.recovered(id, RecoveredAs::Interrupted, None, Vec::new());
        }
        let trigger = Trigger::new(TriggerKind::PlanFailure, Source::Recovery);
        self.roll_back(id, OnConflict::Refuse, Some(trigger))
    }

    pub(crate) fn recovered(
        &self,
        id: OperationId,
        became: RecoveredAs,
        by: Option<OperationId>,
        outcomes: Vec<TargetOutcome>,
    ) -> Result<Recovered, EngineError> {
        let unknown = backout_model::PlanError::Unknown { id };
        let operation = self.store.operation(id)?.ok_or(unknown)?;
        let subject = match operation.undoes {
            Some(_) => self.subject(operation.clone())?,
            None => None,
        };
        // Of an act with several steps, only the one that was under way is put back.
        let mut stays = Vec::new();
        if subject.is_some() && became != RecoveredAs::Kept {
            stays = self.members(&operation)?;
        }
        let do_again = match (subject, became) {
            (Some(_), RecoveredAs::TakenBack) => Some(self.do_again(&operation)?),
            _ => None,
        };
        Ok(Recovered {
            lost: self.no_way_back(&operation)?,
            id,
            stays,
            verb: operation.verb,
            summary: operation.summary,
            subject,
            do_again,
            became,
            status: operation.status,
            by,
            outcomes,
            doubts: Vec::new(),
            ended: Vec::new(),
            again: None,
            along: Vec::new(),
            built_on: Vec::new(),
        })
    }

    /// Decides by hand about operations that wait for it.
    pub fn decide(
        &self,
        operations: &[OperationRef],
        decide: Decide,
    ) -> Result<RecoverReport, EngineError> {
        let mut report = RecoverReport::default();
        for reference in operations {
            let id = self.store.resolve(reference)?;
            let unknown = backout_model::PlanError::Unknown { id };
            let operation = self.store.operation(id)?.ok_or(unknown)?;
            report.operations.push(self.decide_one(&operation, decide)?);
        }
        self.add_acts_left(&mut report)?;
        Ok(report)
    }

    fn decide_one(&self, operation: &Operation, decide: Decide) -> Result<Recovered, EngineError> {
        let (id, status) = (operation.id, operation.status);
        match status {
            Status::Armed | Status::InDoubt | Status::Failed | Status::Interrupted => {}
            _ if decide == Decide::Keep && self.keep_act(id)? => {
                return self.recovered(id, RecoveredAs::Kept, None, Vec::new());
            }
            Status::Proposed
            | Status::Refused
            | Status::Applied
            | Status::Committed
            | Status::Aborted
            | Status::Undone => return Err(EngineError::NothingToDecide { id, status }),
        }
        let Some(effect) = self.claim(operation)? else {
            let owner = operation.owner.clone();
            return Err(EngineError::AtWork { id, owner });
        };
        let is_command = effect.recipe.driver == DriverName::COMMAND;
        if is_command && let Some(call) = call_in(&effect.recipe) {
            let recovered = self.recover_call(operation, &call)?;
            return match decide {
                Decide::Rollback { on_conflict } if recovered.status.is_in_effect() => {
                    self.roll_back(id, on_conflict, None)
                }
                Decide::Keep | Decide::Rollback { .. } => Ok(recovered),
            };
        }
        let DeadCommand { doubts, ended } = if is_command {
            self.settle_dead_command(id, &effect.recipe, true)?
        } else {
            DeadCommand::default()
        };
        let unknown = backout_model::PlanError::Unknown { id };
        let operation = self.store.operation(id)?.ok_or(unknown)?;
        let recovered = self.decided(&operation, decide)?;
        Ok(Recovered {
            doubts,
            ended,
            ..recovered
        })
    }

    fn decided(&self, operation: &Operation, decide: Decide) -> Result<Recovered, EngineError> {
        let id = operation.id;
        match decide {
            Decide::Keep => self.keep(operation),
            // A command that changed nothing itself: what was done within it may have to be taken back.
            Decide::Rollback { on_conflict }
                if operation.status == Status::Interrupted
                    && operation.in_effect().next().is_none() =>
            {
                let parts = self.roll_back(id, on_conflict, None)?;
                match parts.became {
                    RecoveredAs::Interrupted if !parts.outcomes.is_empty() => Ok(parts),
                    RecoveredAs::TakenBack => Ok(Recovered {
                        status: self.keep(operation)?.status,
                        ..parts
                    }),
                    RecoveredAs::NothingHappened
                    | RecoveredAs::Kept
                    | RecoveredAs::Interrupted
                    | RecoveredAs::InDoubt => Ok(Recovered {
                        became: RecoveredAs::NothingHappened,
                        ..self.keep(operation)?
                    }),
                }
            }
            Decide::Rollback { on_conflict } if operation.status == Status::Interrupted => {
                self.roll_back(id, on_conflict, None)
            }
            Decide::Rollback { on_conflict } => {
                let recovered = self.take_back_unfinished(operation, on_conflict)?;
                self.waiting_again(recovered)
            }
        }
    }

    /// Rolls back the open tasks whose owner died.
    fn recover_tasks(&self, report: &mut RecoverReport) -> Result<(), EngineError> {
        for task in self.store.tasks()? {
            let has_died = |owner| !self.store.is_alive(owner);
            if task.status != TaskStatus::Open || !task.owner.as_ref().is_some_and(has_died) {
                continue;
            }
            let what = UndoWhat::Task(task.id.clone());
            let trigger = Trigger::new(TriggerKind::TransactionAbort, Source::Recovery);
            let options = UndoOptions {
                trigger: Some(trigger.because("its owner died")),
                ..UndoOptions::default()
            };
            match self.rollback(&what, &options, "its owner died") {
                Ok(_) => report.tasks.push(task.id),
                Err(EngineError::Storage(error)) => return Err(error.into()),
                Err(error) => report.tasks_left.push(TaskLeft {
                    task: task.id,
                    why: with_causes(&error),
                }),
            }
        }
        Ok(())
    }
}
