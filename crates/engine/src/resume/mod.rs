//! Going on where an agent was: the newest good checkpoint, the journal from its place on, and what was in flight taken back.
//!
//! - A checkpoint that cannot be used is skipped, with its reason; the one before it is used.
//! - In flight is what a task did after the checkpoint and nobody committed, and what was under way when the checkpoint was taken. It is
//!   undone under the guard, as one act, with a trigger; a redo brings it back. A conflict is an error, and nothing is guessed.
//! - An operation outside of a task is committed when it is written, so an agent without a task loses nothing but what died half-way.
//! - Whoever dies on the way asks again: what is done is done, the rest is found by the same question.
//!
//! The design is in `docs/design/resume.md`.

mod choose;
mod differs;
mod error;
mod mark;
mod redact;
mod view;

use std::time::{Duration, Instant};

use backout_crashpoint::crash_point;
use backout_model::ports::OnConflict;
use backout_model::{
    Checkpoint, CheckpointName, Operation, OperationId, PlanError, ResumePoint, Source, Status,
    Target, TaskId, TaskStatus, Trigger, TriggerAction, TriggerKind, Verb,
};
use backout_storage::Filter;
use serde::{Deserialize, Serialize};

use crate::{Engine, EngineError, UndoOptions, UndoReport, UndoWhat};

pub(crate) use choose::Scope;
pub use differs::{Differs, DiffersWhy};
pub use error::ResumeError;
pub use mark::{MarkRequest, Marked, NotDue};
pub use redact::redacted;
pub use view::{InTheWay, Resumed, Reverted, RevertedWhy, SkippedCheckpoint, Stays, StaysWhy};

/// How long to wait for processes that are about to end.
const DYING_MAX: Duration = Duration::from_secs(5);

/// How long to wait between two looks at them.
const DYING_PAUSE: Duration = Duration::from_millis(20);

/// From where to go on, and how.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct ResumeWhat {
    /// The task; none takes the caller's, or the only open one that has a checkpoint.
    pub task: Option<TaskId>,
    /// The checkpoint; none takes the newest good one.
    pub from: Option<CheckpointName>,
    /// What becomes of what was in flight; none asks `backout.toml`.
    pub in_flight: Option<TriggerAction>,
    /// What to do with targets that somebody else changed since.
    pub on_conflict: OnConflict,
    /// Whether the agent's process may still be alive.
    pub takeover: bool,
    /// Whether only the caller's own work may go, for an agent that asks from afar.
    pub own_only: bool,
    /// Whether what other agents built on it may go with it.
    pub others: bool,
    /// Only say what would happen.
    pub is_dry_run: bool,
}

impl Engine {
    /// Finds where an agent goes on, and makes the world what it was there.
    pub fn resume(&self, what: &ResumeWhat) -> Result<Resumed, EngineError> {
        let began = self.now();
        let scope = self.scope_of(what.task.as_ref())?;
        if !what.is_dry_run {
            self.recover_the_dead()?;
        }
        crash_point("resume.recovered");
        let choice = self.choose(&scope, what.from.as_ref())?;
        let checkpoint = choice.checkpoint;
        self.refuse_a_living(&checkpoint, what.takeover)?;
        let point = point_of(&checkpoint);
        if !what.is_dry_run {
            self.wait_for_the_dying(&scope, &point)?;
        }
        let since = self.since(&scope, &point)?;
        self.refuse_unsettled(&scope, &since, what.is_dry_run)?;
        let action = if let Some(action) = what.in_flight {
            action
        } else {
            let targets = since.iter().flat_map(|it| &it.targets);
            let targets: Vec<Target> = targets.map(|it| it.target.clone()).collect();
            self.action_on(TriggerKind::TransactionAbort, &targets)?
        };
        let mut resumed = Resumed::of(&scope, checkpoint, choice.skipped);
        resumed.action = action;
        resumed.is_dry_run = what.is_dry_run;
        resumed.checkpoints = choice.number;
        resumed.replayed = since.len();
        let back = UndoWhat::ToPlace {
            lsn: point.position,
            task: scope.task.clone(),
            agent: scope.agent.clone().filter(|_| scope.task.is_none()),
            known: point.known.clone(),
        };
        // Outside of a task everything is committed that was written.
        if scope.task.is_some() {
            self.take_back_in_flight(&scope, &back, what, &mut resumed)?;
        }
        crash_point("resume.reverted");
        self.tell_the_rest(&point, &since, &mut resumed)?;
        resumed.undone_since = self.undone_since(&back)?;
        (resumed.differs, resumed.is_more) = self.differs_since(&scope, &point)?;
        resumed.replay_ms = self.now().millis_since(began);
        if !what.is_dry_run {
            self.note_resumed(&scope, &resumed)?;
        }
        Ok(resumed)
    }

    /// Takes back what was in flight, or says what that would be.
    fn take_back_in_flight(
        &self,
        scope: &Scope,
        back: &UndoWhat,
        what: &ResumeWhat,
        resumed: &mut Resumed,
    ) -> Result<(), EngineError> {
        let name = &resumed.checkpoint.name;
        let why = format!("the agent goes on from the checkpoint {name}");
        let trigger = Trigger::new(TriggerKind::TransactionAbort, Source::Recovery).because(why);
        let mut options = UndoOptions {
            on_conflict: what.on_conflict,
            others: what.others,
            trigger: Some(trigger),
            ..UndoOptions::default()
        };
        if what.own_only {
            self.narrow_to_own(back, &mut options)?;
        }
        if what.is_dry_run || resumed.action != TriggerAction::Rollback {
            let plan = match self.preview_undo(back, &options) {
                Err(error) if is_nothing(&error) => return Ok(()),
                plan => plan?,
            };
            let is_rollback = resumed.action == TriggerAction::Rollback;
            resumed.is_refused = is_rollback && !plan.is_executable;
            if is_rollback {
                for step in &plan.steps {
                    resumed.in_the_way.extend(InTheWay::of(step));
                    let (id, summary) = (step.id, step.summary.clone());
                    resumed.reverted.push(self.reverted(scope, id, summary)?);
                }
            }
            resumed.waits = resumed.action == TriggerAction::Ask && !plan.steps.is_empty();
            return Ok(());
        }
        let report = match self.undo(back, &options) {
            Err(error) if is_nothing(&error) => UndoReport::default(),
            report => report?,
        };
        resumed.act = report.act;
        resumed.overwritten = report.overwritten().cloned().collect();
        for step in report.steps {
            let reverted = self.reverted(scope, step.id, step.summary)?;
            resumed.reverted.push(reverted);
        }
        Ok(())
    }

    /// Says why an operation goes with the work: as a part of it, or because it was built on it.
    fn reverted(
        &self,
        scope: &Scope,
        id: OperationId,
        summary: String,
    ) -> Result<Reverted, EngineError> {
        let operation = self.store.operation(id)?;
        let other = operation.filter(|it| !scope.has(it));
        let why = match other {
            Some(_) => RevertedWhy::BuiltOn,
            None => RevertedWhy::AfterCheckpoint,
        };
        Ok(Reverted {
            id,
            summary,
            why,
            agent: other.and_then(|it| it.agent),
        })
    }

    /// Says of each operation since the checkpoint what became of it.
    fn tell_the_rest(
        &self,
        point: &ResumePoint,
        since: &[Operation],
        resumed: &mut Resumed,
    ) -> Result<(), EngineError> {
        for reverted in &mut resumed.reverted {
            if point.in_flight.contains(&reverted.id) {
                reverted.why = RevertedWhy::UnderWay;
            }
        }
        for operation in since {
            let (id, summary) = (operation.id, operation.summary.clone());
            if operation.verb.is_reversal() || resumed.reverted.iter().any(|it| it.id == id) {
                continue;
            }
            let Some(now) = self.store.operation(id)? else {
                continue;
            };
            match now.status {
                Status::Undone if self.is_recovered(&now)? => {
                    resumed.reverted.push(Reverted::died(id, summary));
                }
                Status::Armed if !self.store.is_alive(&now.owner) => {
                    resumed.reverted.push(Reverted::died(id, summary));
                }
                status if status.is_in_effect() => {
                    let why = match (status, resumed.action) {
                        (Status::Committed, _) => StaysWhy::Committed,
                        _ if differs::stood(operation, point) => StaysWhy::StoodThen,
                        (_, TriggerAction::Ask) => StaysWhy::Waits,
                        (_, TriggerAction::Keep | TriggerAction::Rollback) => StaysWhy::Kept,
                    };
                    resumed.stays.push(Stays { id, summary, why });
                }
                Status::Proposed
                | Status::Refused
                | Status::Armed
                | Status::Applied
                | Status::Committed
                | Status::Interrupted
                | Status::Aborted
                | Status::Undone
                | Status::InDoubt
                | Status::Failed => {}
            }
        }
        Ok(())
    }

    /// Tells whether a recovery took an operation back.
    fn is_recovered(&self, operation: &Operation) -> Result<bool, EngineError> {
        for undo in operation.undos() {
            let undo = self.store.operation(undo)?;
            if undo.is_some_and(|undo| undo.verb == Verb::Recover) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lists what was done since a checkpoint and its state does not know, the oldest first.
    fn since(&self, scope: &Scope, point: &ResumePoint) -> Result<Vec<Operation>, EngineError> {
        let filter = Filter {
            placed_after: Some(point.position),
            ..scope.filter()
        };
        let mut since = self.store.operations(&filter)?;
        since.retain(|it| scope.has(it) && !point.known.contains(&it.id));
        since.reverse();
        Ok(since)
    }

    /// Says no while the agent that took the checkpoint is alive and is not the one that asks.
    fn refuse_a_living(&self, checkpoint: &Checkpoint, takeover: bool) -> Result<(), EngineError> {
        let process = checkpoint.resume.as_ref();
        let Some(process) = process.and_then(|point| point.process.clone()) else {
            return Ok(());
        };
        let is_own = self
            .context
            .forebears
            .iter()
            .any(|it| it.process == process)
            || self.store.this_process() == process;
        if takeover || is_own || !self.store.is_alive(&process) {
            return Ok(());
        }
        let pid = process.pid;
        Err(ResumeError::Alive { pid }.into())
    }

    /// Says no while something of it is at work, or nobody can tell what it did.
    fn refuse_unsettled(
        &self,
        scope: &Scope,
        since: &[Operation],
        is_dry_run: bool,
    ) -> Result<(), EngineError> {
        for operation in since {
            match operation.status {
                Status::Armed if Some(operation.id) == self.context.within => {}
                Status::Armed if self.store.is_alive(&operation.owner) => {
                    return Err(self.unfinished(operation));
                }
                Status::Armed if is_dry_run => {}
                Status::Armed | Status::InDoubt | Status::Failed => {
                    let id = operation.id;
                    let whose = scope.to_string();
                    return Err(ResumeError::Unsettled { whose, id }.into());
                }
                Status::Proposed
                | Status::Refused
                | Status::Applied
                | Status::Committed
                | Status::Interrupted
                | Status::Aborted
                | Status::Undone => {}
            }
        }
        Ok(())
    }

    /// Waits a moment for what is at work: whoever killed an agent and starts it again at once comes upon processes that are about to end.
    fn wait_for_the_dying(&self, scope: &Scope, point: &ResumePoint) -> Result<(), EngineError> {
        let began = Instant::now();
        while began.elapsed() < DYING_MAX {
            let at_work = self.since(scope, point)?.into_iter().any(|it| {
                let is_own = Some(it.id) == self.context.within;
                it.status == Status::Armed && !is_own && self.store.is_alive(&it.owner)
            });
            if !at_work {
                return Ok(());
            }
            std::thread::sleep(DYING_PAUSE);
            self.recover_the_dead()?;
        }
        Ok(())
    }

    /// Sees to it that nothing but the caller's own work goes, or says whose else would.
    pub(crate) fn narrow_to_own(
        &self,
        back: &UndoWhat,
        options: &mut UndoOptions,
    ) -> Result<(), EngineError> {
        let plan = match self.preview_undo(back, options) {
            Err(error) if is_nothing(&error) => return Ok(()),
            plan => plan?,
        };
        let mut only = Vec::new();
        for step in plan.steps {
            let id = step.id;
            let found = self.store.operation(id)?;
            let (agent, task) = found.map_or((None, None), |it| (it.agent, it.task));
            if agent.is_none() || agent != self.context.agent {
                return Err(EngineError::NotOwn { id, agent, task });
            }
            only.push(id);
        }
        options.only = Some(only);
        Ok(())
    }

    /// Tells what a trigger does with work on some targets.
    pub(crate) fn action_on(
        &self,
        kind: TriggerKind,
        targets: &[Target],
    ) -> Result<TriggerAction, EngineError> {
        let said = match &self.settings.triggers {
            Some(rules) => rules.action(kind, targets).map_err(ResumeError::Rules)?,
            None => None,
        };
        Ok(said.unwrap_or_default())
    }

    /// Finds the task that is meant, or the agent outside of one.
    fn scope_of(&self, task: Option<&TaskId>) -> Result<Scope, EngineError> {
        let agent = self.context.agent.clone();
        if let Some(id) = task.or(self.context.task.as_ref()) {
            let found = self.store.task(id)?;
            let found = found.ok_or_else(|| EngineError::NoTask { id: id.clone() })?;
            if found.status != TaskStatus::Open {
                return Err(EngineError::TaskEnded { id: id.clone() });
            }
            return Ok(Scope {
                task: Some(id.clone()),
                agent,
            });
        }
        let (mut open, mut unmarked) = (Vec::new(), None);
        for task in self.store.tasks()? {
            let is_theirs = agent.is_none() || task.agent == agent;
            if task.status == TaskStatus::Open && is_theirs {
                let scope = Scope {
                    task: Some(task.id),
                    agent: agent.clone(),
                };
                if self.has_marks(&scope)? {
                    open.push(scope);
                } else {
                    unmarked = unmarked.or(Some(scope));
                }
            }
        }
        match <[Scope; 1]>::try_from(open) {
            Ok([only]) => Ok(only),
            Err(none) if none.is_empty() && agent.is_some() => Ok(Scope { task: None, agent }),
            Err(none) if none.is_empty() => match unmarked {
                Some(scope) => Ok(scope),
                None => Err(EngineError::WhichTask { open: 0 }),
            },
            Err(open) => Err(EngineError::WhichTask { open: open.len() }),
        }
    }
}

/// Gives what a checkpoint says of the agent. One of an older program says that all before it is known.
fn point_of(checkpoint: &Checkpoint) -> ResumePoint {
    let said = checkpoint.resume.as_deref().cloned();
    said.unwrap_or_else(|| ResumePoint {
        position: checkpoint.lsn,
        ..ResumePoint::default()
    })
}

/// Tells whether an undo was refused because there is nothing to undo.
pub(crate) const fn is_nothing(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Plan(PlanError::Nothing) | EngineError::UndoneSince { .. }
    )
}

/// Names operations, for a record.
fn ids(reverted: &[Reverted]) -> Vec<OperationId> {
    reverted.iter().map(|it| it.id).collect()
}
