//! Undo and redo: decide with a pure plan, look before touching anything, then take back step by step.
//!
//! - A plan with a conflict is refused whole, unless the caller asks for its independent parts.
//! - Each step is an operation of its own, armed and journalled, so that an undo survives being killed and can itself
//!   be undone.
//! - A step that fails does not stop the independent ones; what it stands on is left alone.

mod goal;
mod preview;

use std::time::Duration;

use backout_crashpoint::crash_point;
use backout_drivers::file::FileError;
use backout_model::ports::{Driver as _, Durability, Entry, Journal as _, OnConflict};
use backout_model::{
    Event, History, LeftAlone, Operation, OperationId, OutcomeKind, Target, TargetOutcome,
    UndoPlan, UndoStep, Verb,
};
use backout_storage::OperationRef;

use crate::lifecycle::{Head, with_causes};
use crate::{Engine, EngineError, PlanView, UndoOptions, UndoReport, UndoWhat, UndoneStep};
use preview::conflicts;

/// Pauses before a step that failed for a passing reason is tried again.
const RETRY_PAUSES_MS: [u64; 3] = [50, 200, 800];

impl Engine {
    /// Takes operations back.
    pub fn undo(&self, what: &UndoWhat, options: UndoOptions) -> Result<UndoReport, EngineError> {
        self.recover_the_dead()?;
        let (history, plan) = self.plan(what, options)?;
        self.carry_out(&history, plan, options)
    }

    /// Shows what an undo would do.
    pub fn preview_undo(
        &self,
        what: &UndoWhat,
        options: UndoOptions,
    ) -> Result<PlanView, EngineError> {
        let (history, plan) = self.plan(what, options)?;
        self.view(&history, &plan, options)
    }

    /// Takes undos back.
    pub fn redo(
        &self,
        what: Option<&OperationRef>,
        options: UndoOptions,
    ) -> Result<UndoReport, EngineError> {
        self.recover_the_dead()?;
        let (history, plan) = self.plan_redo(what, options)?;
        self.carry_out(&history, plan, options)
    }

    /// Shows what a redo would do.
    pub fn preview_redo(
        &self,
        what: Option<&OperationRef>,
        options: UndoOptions,
    ) -> Result<PlanView, EngineError> {
        let (history, plan) = self.plan_redo(what, options)?;
        self.view(&history, &plan, options)
    }

    /// Executes exactly the plan.
    fn carry_out(
        &self,
        history: &History,
        plan: UndoPlan,
        options: UndoOptions,
    ) -> Result<UndoReport, EngineError> {
        let view = self.view(history, &plan, options)?;
        if !view.needs_committed.is_empty() {
            return Err(EngineError::NeedsCommitted(Box::new(view)));
        }
        if !view.is_executable {
            return Err(EngineError::Conflicts {
                targets: conflicts(&view),
            });
        }
        let mut steps: Vec<UndoneStep> = Vec::with_capacity(plan.steps.len());
        let mut group = None;
        for step in &plan.steps {
            let Some(operation) = history.get(step.id) else {
                continue;
            };
            let stands_on_failed = history.dependents(step.id).any(|(dependent, _)| {
                steps
                    .iter()
                    .any(|s| s.id == dependent.id && !s.is_complete())
            });
            let undone = if stands_on_failed {
                skipped(operation)
            } else {
                self.take_back(operation, step, group, options.on_conflict)?
            };
            group = group.or(undone.by);
            steps.push(undone);
        }
        let report = UndoReport {
            steps,
            left_alone: visible(plan.left_alone),
        };
        if report.is_complete() {
            Ok(report)
        } else {
            Err(EngineError::Partial(Box::new(report)))
        }
    }

    /// Takes one operation back, trying again when the reason may pass.
    fn take_back(
        &self,
        operation: &Operation,
        step: &UndoStep,
        group: Option<OperationId>,
        on_conflict: OnConflict,
    ) -> Result<UndoneStep, EngineError> {
        let mut pauses = RETRY_PAUSES_MS.iter();
        loop {
            let error = match self.try_take_back(operation, step, group, on_conflict) {
                Ok(undone) => return Ok(undone),
                Err(error) => error,
            };
            if let Some(&pause) = pauses.next().filter(|_| may_pass(&error)) {
                std::thread::sleep(Duration::from_millis(pause));
                continue;
            }
            if let EngineError::Storage(error) = error {
                return Err(error.into());
            }
            let why = with_causes(&error);
            let outcomes = match error {
                EngineError::HalfDone { outcomes, .. } => {
                    let event = Event::UndoFailed {
                        id: step.id,
                        outcomes: outcomes.clone(),
                    };
                    self.store
                        .append(&Entry::of(vec![event]), Durability::Process)?;
                    outcomes
                }
                _ => all(operation, &OutcomeKind::Failed { why }),
            };
            return Ok(UndoneStep {
                id: step.id,
                summary: operation.summary.clone(),
                by: None,
                outcomes,
                notes: Vec::new(),
            });
        }
    }

    fn try_take_back(
        &self,
        operation: &Operation,
        step: &UndoStep,
        group: Option<OperationId>,
        on_conflict: OnConflict,
    ) -> Result<UndoneStep, EngineError> {
        let effect = self.store.effect(step.with)?;
        let mut lease = self.lease(&operation.targets)?;
        let id = lease.id;
        let undone = |by, outcomes| UndoneStep {
            id: step.id,
            summary: operation.summary.clone(),
            by,
            outcomes,
            notes: Vec::new(),
        };
        // Another process may have been faster: look again now that the targets are ours.
        let now = self.store.operation(step.id)?;
        if now.as_ref().map(|op| (op.status, op.redone_by))
            != Some((operation.status, operation.redone_by))
        {
            let why = "another process changed its status at the same moment".to_owned();
            return Ok(undone(None, all(operation, &OutcomeKind::Skipped { why })));
        }
        let ready = self.files.prepare_undo(id, &effect, on_conflict)?;
        crash_point("engine.undo-prepared");
        let is_foreseen_whole = ready
            .outcomes
            .iter()
            .all(|outcome| outcome.kind.is_settled());
        if !is_foreseen_whole && on_conflict != OnConflict::Force {
            return Ok(undone(None, ready.outcomes));
        }
        let verb = if operation.verb.is_reversal() {
            Verb::Redo
        } else {
            Verb::Undo
        };
        let head = Head {
            verb,
            summary: format!("{verb} of {}", of_what(operation)),
            decision: operation.decision.clone(),
            undoes: Some(step.id),
            group: Some(group.unwrap_or(id)),
        };
        let targets = ready.prepared.targets.clone();
        let notes = ready.prepared.notes.clone();
        let armed = self.arm(id, head, &self.settings.context, ready.prepared)?;
        lease.is_ended_by_a_record();
        let completion = self.apply(armed, &targets)?;
        let mut events = vec![Event::Applied { id, completion }, Event::Commit { id }];
        events.extend(what_follows(operation, step, id, &ready.outcomes));
        crash_point("engine.undo-applied");
        // What was restored stays restored, also when power fails right after the answer.
        self.store.append(&Entry::of(events), Durability::Process)?;
        crash_point("engine.undone");
        Ok(UndoneStep {
            notes,
            ..undone(Some(id), ready.outcomes)
        })
    }
}

/// What the journal says when an undo or redo has ended: who is undone, who is back.
pub(crate) fn what_follows(
    operation: &Operation,
    step: &UndoStep,
    by: OperationId,
    outcomes: &[TargetOutcome],
) -> Vec<Event> {
    let mut events = vec![Event::Undone {
        id: step.id,
        by,
        outcomes: outcomes.to_vec(),
    }];
    if step.with != step.id {
        events.push(Event::Undone {
            id: step.with,
            by,
            outcomes: Vec::new(),
        });
    }
    if let (Verb::Undo, Some(back)) = (operation.verb, operation.undoes) {
        events.push(Event::Redone { id: back, by });
    }
    events
}

fn of_what(operation: &Operation) -> String {
    match operation.verb {
        Verb::Undo | Verb::Redo => operation.summary.trim_start_matches("undo of ").to_owned(),
        _ => operation.summary.clone(),
    }
}

fn skipped(operation: &Operation) -> UndoneStep {
    let why = "something built on it could not be taken back".to_owned();
    UndoneStep {
        id: operation.id,
        summary: operation.summary.clone(),
        by: None,
        outcomes: all(operation, &OutcomeKind::Skipped { why }),
        notes: Vec::new(),
    }
}

fn all(operation: &Operation, kind: &OutcomeKind) -> Vec<TargetOutcome> {
    let outcome = |target: &Target| TargetOutcome::new(target.clone(), kind.clone());
    operation.targets.iter().map(outcome).collect()
}

/// What is undone already is no news.
fn visible(left_alone: Vec<LeftAlone>) -> Vec<LeftAlone> {
    left_alone
        .into_iter()
        .filter(|left| !matches!(left, LeftAlone::NotInEffect { .. }))
        .collect()
}

/// Tells whether the same step may work a moment later.
fn may_pass(error: &EngineError) -> bool {
    match error {
        EngineError::Busy { .. } => true,
        EngineError::File(error) => is_passing(error),
        EngineError::TakenBack { cause, .. } => may_pass(cause),
        _ => false,
    }
}

fn is_passing(error: &FileError) -> bool {
    use std::io::ErrorKind as Kind;
    let FileError::Io { source, .. } = error else {
        return false;
    };
    matches!(
        source.kind(),
        Kind::Interrupted | Kind::WouldBlock | Kind::ResourceBusy
    )
}
