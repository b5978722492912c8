//! What becomes of a write that was armed and must not stay: its effect failed, or something that looked at it said no.
//!
//! - What is there is looked at before anything is said of it.
//! - Whoever dies here leaves what a recovery takes back.

use backout_crashpoint::crash_point;
use backout_model::ports::{Durability, Entry, Examined, State};
use backout_model::{
    Completion, Effect, Event, OperationId, OutcomeKind, Source, TargetOutcome, Trigger,
    TriggerKind,
};
use backout_storage::OperationRef;

use crate::causes::{failed_everywhere, with_causes};
use crate::window::told_with;
use crate::{Engine, EngineError, UndoOptions, UndoWhat};

impl Engine {
    /// Looks at an effect that failed and records what is there. Gives the error to return.
    pub(crate) fn did_not_happen(
        &self,
        id: OperationId,
        effect: &Effect,
        cause: EngineError,
    ) -> EngineError {
        let is_half_done =
            matches!(&cause, EngineError::Driver(error) if error.fault().is_half_done());
        let driver = match self.driver_of(effect) {
            Ok(driver) => driver,
            Err(error) => return error,
        };
        let mut made = Vec::new();
        let outcomes: Vec<_> = match driver.examine(effect, true) {
            // If all was put back, what is not as before is what somebody else made of it: that is not ours to settle.
            Ok(examined) => examined
                .into_iter()
                .filter(|it| is_half_done || !matches!(it.state, State::Other { .. }))
                .inspect(|it| made.extend((it.state == State::After).then(|| it.target.clone())))
                .map(outcome_of)
                .collect(),
            Err(error) => match driver.outline(effect) {
                Ok(outline) => failed_everywhere(&outline.targets, &error),
                Err(error) => return error.into(),
            },
        };
        crash_point("engine.reverted");
        let event = Event::Abort {
            id,
            why: with_causes(&cause),
            outcomes: outcomes.clone(),
            trigger: Some(put_back_by(&cause)),
        };
        // If the record fails, a recovery finds the targets as before and writes it.
        let _recorded = self
            .store
            .append(&Entry::of(vec![event]), Durability::Process);
        let cause = Box::new(cause);
        if outcomes.iter().all(|outcome| outcome.kind.is_taken_back()) {
            EngineError::TakenBack { id, cause }
        } else {
            EngineError::HalfDone {
                id,
                cause,
                outcomes,
                made,
                lost: driver.no_way_back(effect).unwrap_or_default(),
            }
        }
    }

    /// Takes back an effect that happened and must not stay: unless `trigger` says more, a check of it said no. Gives the error
    /// to return.
    pub(crate) fn take_back_applied(
        &self,
        id: OperationId,
        completion: Completion,
        cause: EngineError,
        trigger: Option<Trigger>,
    ) -> EngineError {
        // Until it is undone it counts as interrupted: a recovery that finds it so takes it back.
        let refused = Event::Interrupted {
            id,
            completion: completion.clone(),
        };
        let recorded = self
            .store
            .append(&Entry::of(vec![refused]), Durability::Process);
        crash_point("engine.refused");
        let reference = OperationRef::Prefix(id.to_string());
        let what = UndoWhat::Operations(vec![reference]);
        let set_off_by = || {
            // Who stops the watch wants the write back, and nothing was found to be wrong with it.
            if cause.is_stop() {
                return put_back_by(&cause);
            }
            let rule = "verification".to_owned();
            let trigger = Trigger::new(TriggerKind::PolicyViolation, Source::Gate { rule });
            trigger.because(with_causes(&cause))
        };
        let trigger = trigger.unwrap_or_else(set_off_by);
        let options = UndoOptions {
            trigger: Some(trigger.clone()),
            ..UndoOptions::default()
        };
        let undone = match recorded {
            // Who wants to stop wants it back.
            Ok(_) => self.watch.going_back(|| self.undo(&what, &options)),
            Err(error) => Err(error.into()),
        };
        let cause = Box::new(told_with(cause, &undone));
        match undone {
            Ok(_) => EngineError::TakenBack { id, cause },
            Err(EngineError::Partial(report)) => EngineError::HalfDone {
                id,
                cause,
                outcomes: report
                    .steps
                    .into_iter()
                    .flat_map(|step| step.outcomes)
                    .collect(),
                made: Vec::new(),
                lost: None,
            },
            Err(error) => {
                // It is in effect, and told as one that could not be taken back.
                let applied = Entry::of(vec![Event::Applied { id, completion }]);
                let _recorded = self.store.append(&applied, Durability::Process);
                EngineError::Stays {
                    id,
                    cause,
                    is_told: self.tell_it_stays(id, trigger, &error),
                    why: Box::new(error),
                }
            }
        }
    }
}

/// Says what set it off that what had happened of a write was put back.
fn put_back_by(cause: &EngineError) -> Trigger {
    if cause.is_stop() {
        Trigger::new(TriggerKind::ManualAbort, Source::Person)
    } else {
        Trigger::new(TriggerKind::TransactionAbort, Source::Recovery)
    }
}

/// Says how a target of an effect that failed stands.
fn outcome_of(examined: Examined) -> TargetOutcome {
    let kind = match examined.state {
        State::Before => OutcomeKind::AlreadyGone,
        State::After => OutcomeKind::Failed {
            why: "it is as the operation made it".to_owned(),
        },
        State::Other { why } => OutcomeKind::Failed { why },
    };
    TargetOutcome::new(examined.target, kind)
}
