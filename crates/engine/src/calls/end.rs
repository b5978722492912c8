//! When a call is over: what was done to the names is found by looking, whoever tells us, or nobody.

use backout_crashpoint::crash_point;
use backout_files::Settled;
use backout_model::ports::{Durability, Entry, Reason};
use backout_model::{CallKey, CommandEnd, Digest, Event, Intent, Operation, OperationId, Status};

use super::{ArmedCall, Caller};
use crate::{Engine, EngineError, RunReport};

/// What a call came to.
#[derive(Debug, Clone)]
pub struct CallEnded {
    /// The operation.
    pub id: OperationId,
    /// Its line for people.
    pub summary: String,
    /// Where it stands: committed, aborted if nothing changed, undone if a rule took it back.
    pub status: Status,
    /// What the checks found, as warnings.
    pub warnings: Vec<String>,
    /// Why it could not stay.
    pub reasons: Vec<String>,
    /// Whether it was over already.
    pub is_again: bool,
}

impl Engine {
    /// Ends a call that was told before. None if nobody told of it.
    pub fn end_call(
        &self,
        key: Option<&CallKey>,
        caller: &Caller,
        tool: &str,
        input: &Digest,
    ) -> Result<Option<CallEnded>, EngineError> {
        self.store.check_end()?;
        let id = if let Some(key) = key {
            self.store.answer_to(key)?.map(|(id, _)| id)
        } else {
            // No name: the oldest that fits.
            let fits = |call: &ArmedCall| {
                call.caller == *caller && call.tool == tool && call.input == *input
            };
            let mut calls = self.armed_calls()?.into_iter();
            calls.find(|(_, call)| fits(call)).map(|(id, _)| id)
        };
        match id {
            Some(id) => self.end_operation(id),
            None => Ok(None),
        }
    }

    /// Settles, by looking, the calls of a caller of which nobody says that they are over. Those of his sub-agents count only
    /// if `with_others`.
    pub fn settle_calls(
        &self,
        caller: &Caller,
        with_others: bool,
    ) -> Result<Vec<CallEnded>, EngineError> {
        let mut ended = Vec::new();
        for (id, call) in self.armed_calls()? {
            let is_meant = call.caller.session == caller.session
                && (with_others || call.caller.agent_id == caller.agent_id);
            if is_meant {
                ended.extend(self.end_operation(id)?);
            }
        }
        Ok(ended)
    }

    fn end_operation(&self, id: OperationId) -> Result<Option<CallEnded>, EngineError> {
        let Some(operation) = self.store.operation(id)? else {
            return Ok(None);
        };
        let ended = |status| CallEnded {
            id,
            summary: operation.summary.clone(),
            status,
            warnings: Vec::new(),
            reasons: Vec::new(),
            is_again: true,
        };
        if operation.status == Status::Aborted
            && let Some(call) = self.armed_call(id)?
            && let Some(late) = self.written_late(&operation, &call)?
        {
            return Ok(Some(late));
        }
        if operation.status != Status::Armed {
            return Ok(Some(ended(operation.status)));
        }
        // Whoever claims it first settles it.
        let is_ours = self.store.claim(&operation, &self.store.this_process())?;
        let call = self.armed_call(id)?.filter(|_| is_ours);
        match call {
            Some(call) => self.settle_call(id, &operation.summary, &call).map(Some),
            None => Ok(Some(ended(operation.status))),
        }
    }

    /// Records what a call did, by looking at the names that it was to write.
    pub(crate) fn settle_call(
        &self,
        id: OperationId,
        summary: &str,
        call: &ArmedCall,
    ) -> Result<CallEnded, EngineError> {
        let settled = self.commands.settle_looked(id, &call.found)?;
        crash_point("call.settled");
        let mut ended = CallEnded {
            id,
            summary: summary.to_owned(),
            status: Status::Aborted,
            warnings: Vec::new(),
            reasons: Vec::new(),
            is_again: false,
        };
        // That a directory was touched meanwhile is nobody's write.
        if settled.is_nothing || settled.targets.is_empty() {
            self.give_up(id, "nothing was changed");
            return Ok(ended);
        }
        let operation = self.store.operation(id)?;
        let mut notes = operation
            .map(|operation| operation.notes)
            .unwrap_or_default();
        let gated = self.ruled(summary, &settled, Vec::new())?;
        ended.warnings.clone_from(&gated.warnings);
        ended.reasons = Reason::told(gated.reasons());
        if gated.reasons().is_empty() {
            notes.extend(gated.warnings);
            self.keep_call(id, settled, notes)?;
            ended.status = self.status_when_done();
        } else {
            let reasons = gated.into_reasons();
            notes.extend(Reason::told(&reasons));
            ended.status = self.take_call_back((id, summary), settled, reasons, notes)?;
        }
        crash_point("call.committed");
        Ok(ended)
    }

    /// Records what a call did that was given up for one that did nothing, and wrote after all.
    fn written_late(
        &self,
        operation: &Operation,
        call: &ArmedCall,
    ) -> Result<Option<CallEnded>, EngineError> {
        let id = self.next_id();
        let settled = self.commands.settle_looked(id, &call.found)?;
        if settled.targets.is_empty() {
            return Ok(None);
        }
        let recipe = self.store.effect(operation.id)?.recipe;
        let intent = Intent {
            verb: operation.verb,
            decision: operation.decision.clone(),
            notes: operation.notes.clone(),
            prompt: operation.prompt.clone(),
            ..self.intent_of_a_run(id, operation.summary.clone(), recipe)
        };
        let event = Event::Intent(Box::new(intent));
        self.store
            .append(&Entry::of(vec![event]), Durability::Power)?;
        self.settle_call(id, &operation.summary, call).map(Some)
    }

    fn keep_call(
        &self,
        id: OperationId,
        settled: Settled,
        notes: Vec<String>,
    ) -> Result<(), EngineError> {
        let (end, completion) = (end_of(&settled), settled.completion.clone());
        let (captured, contents) = self.captured(id, settled, notes, end)?;
        let mut events = vec![captured, Event::Applied { id, completion }];
        if self.status_when_done() == Status::Committed {
            events.push(Event::Commit { id });
        }
        // What was there is durable since it was armed: after a crash a look tells the same again.
        self.store
            .append(&Entry { events, contents }, Durability::Process)?;
        Ok(())
    }

    /// Takes back what a rule says no to. Until that is done the call counts as interrupted, so that a death in between is told.
    fn take_call_back(
        &self,
        (id, summary): (OperationId, &str),
        settled: Settled,
        reasons: Vec<Reason>,
        notes: Vec<String>,
    ) -> Result<Status, EngineError> {
        let (end, completion) = (end_of(&settled), settled.completion.clone());
        let targets = settled.targets.clone();
        let (captured, contents) = self.captured(id, settled, notes, end.clone())?;
        let events = vec![captured, Event::Interrupted { id, completion }];
        let _held = self.lease_for_verdict(&targets);
        self.store
            .append(&Entry { events, contents }, Durability::Power)?;
        let mut report = RunReport {
            id,
            summary: summary.to_owned(),
            status: Status::Interrupted,
            mode: backout_model::CaptureMode::Scan,
            end,
            notes: Vec::new(),
            undone: None,
            reasons,
            is_stopped: false,
        };
        self.take_back_gated(&mut report, None)?;
        Ok(report.status)
    }
}

fn end_of(settled: &Settled) -> CommandEnd {
    CommandEnd {
        created: settled.counts.created,
        changed: settled.counts.changed,
        deleted: settled.counts.deleted,
        ..CommandEnd::default()
    }
}
