//! Calls that have a key: the same call is answered once, however often it is made.
//!
//! - A key promises *at most once in effect*. It stands for an operation that is in effect, waits, or was decided about. From one
//!   that did not come to pass, it moves on to the next attempt.
//! - What was asked is compared before anybody looks at the world: the first call has changed it.
//!
//! Design: `docs/design/gates.md`.

use std::time::{Duration, Instant};

use backout_model::ports::{Driver, Request};
use backout_model::{Asked, CallKey, Operation, OperationId, PlanError, Status, TriggerKind, Verb};

use crate::lease::LEASE_POLL;
use crate::{Context, Engine, EngineError, Finished, GateError};

/// What is said of a call that is made again.
const AGAIN: &str = "this call was answered before, so nothing was written again";

/// What a call with a key has come to.
#[derive(Debug, Default)]
pub(crate) struct Call {
    /// The call, if it has a key.
    pub(crate) asked: Option<Asked>,
    /// An earlier operation for the same call, which did not come to pass.
    pub(crate) failed: Option<OperationId>,
}

/// What is known of a call.
pub(crate) enum Answer {
    /// It was answered.
    Before(Box<Finished>),
    /// It is to be carried out.
    Not(Call),
}

impl Call {
    /// Says that an earlier attempt came to nothing.
    pub(crate) fn note(&self) -> Option<String> {
        let failed = self.failed?.short();
        Some(format!(
            "the same call was made before as {failed}, which did not come to pass; so it is carried out now"
        ))
    }
}

impl Engine {
    /// Gives the answer that the caller got before, if his call has a key and he says in words of his own what he asks.
    pub fn answer(&self) -> Result<Option<Finished>, EngineError> {
        let (Some(key), Some(request)) = (self.context.key.clone(), self.context.asked) else {
            return Ok(None);
        };
        self.recover_the_dead()?;
        Ok(match self.answer_to(Asked::new(key, request))? {
            Answer::Before(finished) => Some(*finished),
            Answer::Not(_) => None,
        })
    }

    /// Finds what a call has come to that is asked by a request.
    pub(crate) fn answered(
        &self,
        context: &Context,
        driver: &dyn Driver,
        request: &dyn Request,
    ) -> Result<Answer, EngineError> {
        let Some(key) = context.key.clone() else {
            return Ok(Answer::Not(Call::default()));
        };
        let request = match context.asked {
            Some(asked) => asked,
            None => driver.asked(request)?,
        };
        self.answer_to(Asked::new(key, request))
    }

    fn answer_to(&self, asked: Asked) -> Result<Answer, EngineError> {
        let Some((operation, before)) = self.operation_for(&asked.key)? else {
            let (asked, failed) = (Some(asked), None);
            return Ok(Answer::Not(Call { asked, failed }));
        };
        let id = operation.id;
        if self.did_not_happen_at_all(&operation)? {
            let (asked, failed) = (Some(asked), Some(id));
            return Ok(Answer::Not(Call { asked, failed }));
        }
        if before.request != asked.request {
            let is_older = before.way != asked.way;
            let key = asked.key;
            return Err(GateError::KeyTaken { key, id, is_older }.into());
        }
        self.answer_again(operation)
            .map(Box::new)
            .map(Answer::Before)
    }

    /// Finds the operation that a key stands for. One that somebody is carrying out is waited for.
    fn operation_for(&self, key: &CallKey) -> Result<Option<(Operation, Asked)>, EngineError> {
        let deadline = Instant::now() + Duration::from_millis(self.settings.lease_wait_ms);
        loop {
            let Some((id, before)) = self.store.answer_to(key)? else {
                return Ok(None);
            };
            let operation = self.store.operation(id)?.ok_or(PlanError::Unknown { id })?;
            let is_at_work =
                operation.status == Status::Armed && self.store.is_alive(&operation.owner);
            if !is_at_work || Instant::now() >= deadline {
                return Ok(Some((operation, before)));
            }
            if self.is_stopped() {
                return Err(backout_model::ports::Stopped.into());
            }
            std::thread::sleep(LEASE_POLL);
        }
    }

    /// Tells whether an operation was put back before it was finished: by itself, by whoever stopped it, or by a recovery.
    fn did_not_happen_at_all(&self, operation: &Operation) -> Result<bool, EngineError> {
        if operation.status == Status::Aborted {
            return Ok(true);
        }
        if operation.status != Status::Undone {
            return Ok(false);
        }
        let undos = operation.undos();
        for undo in &undos {
            let undo = self.store.operation(*undo)?;
            let is_stop = |undo: &Operation| {
                // Whoever undoes it later is another process.
                let trigger = undo.trigger.as_ref();
                undo.owner == operation.owner
                    && trigger.is_some_and(|trigger| trigger.kind == TriggerKind::ManualAbort)
            };
            if undo.is_none_or(|undo| undo.verb != Verb::Recover && !is_stop(&undo)) {
                return Ok(false);
            }
        }
        Ok(!undos.is_empty())
    }

    /// Gives the answer that a call got before, as far as it is still true.
    fn answer_again(&self, operation: Operation) -> Result<Finished, EngineError> {
        let id = operation.id;
        match operation.status {
            Status::Proposed => match self.store.proposal(id)? {
                Some(proposal) if proposal.is_expired(self.now()) => {
                    self.expire(&proposal)?;
                    Err(GateError::Expired { id }.into())
                }
                Some(proposal) => Err(GateError::Waits {
                    proposal: Box::new(proposal),
                    untold: Vec::new(),
                }
                .into()),
                None => Err(PlanError::Unknown { id }.into()),
            },
            Status::Refused => Err(GateError::RefusedBefore {
                id,
                why: operation.decision.reason,
            }
            .into()),
            Status::Armed => Err(self.unfinished(&operation)),
            Status::InDoubt | Status::Failed => Err(GateError::Unclear { id }.into()),
            Status::Undone | Status::Aborted => Err(GateError::UndoneSince {
                id,
                by: operation.undos(),
            }
            .into()),
            status @ (Status::Applied | Status::Committed | Status::Interrupted) => {
                let mut notes = operation.notes.clone();
                notes.push(AGAIN.to_owned());
                if operation.is_partly_undone() {
                    notes.push("a part of it was undone since".to_owned());
                }
                Ok(Finished {
                    is_lost: self.no_way_back(&operation)?.is_some(),
                    id: Some(id),
                    summary: operation.summary,
                    status: Some(status),
                    strategy: Some(operation.decision.strategy),
                    decision: Some(operation.decision),
                    notes,
                    left: None,
                    is_again: true,
                })
            }
        }
    }
}
