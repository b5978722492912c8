//! When a call is over: what was done to the names is found by looking, whoever tells us, or nobody.

use backout_crashpoint::crash_point;
use backout_files::Settled;
use backout_model::ports::{AppliedChange, Durability, Entry, Reason};
use backout_model::{
    CallKey, CommandEnd, Digest, Event, Intent, Lsn, Operation, OperationId, Status, Target, Verb,
};

use super::{ArmedCall, Caller};
use crate::{Engine, EngineError, GateError, RunReport};

/// What a call came to.
#[derive(Debug, Clone)]
pub struct CallEnded {
    /// The one that was begun when the call was told.
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

    pub(super) fn end_operation(&self, id: OperationId) -> Result<Option<CallEnded>, EngineError> {
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
            Some(call) => self
                .settle_call((id, operation.lsn), &operation.summary, &call)
                .map(Some),
            None => Ok(Some(ended(operation.status))),
        }
    }

    /// Records what a call did, by looking at the names that it was to write since its place in the journal.
    pub(crate) fn settle_call(
        &self,
        (id, begun): (OperationId, Lsn),
        summary: &str,
        call: &ArmedCall,
    ) -> Result<CallEnded, EngineError> {
        let settled = self.look_at_call(id, begun, call)?;
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
        let verb = operation.as_ref().map_or(Verb::Write, |it| it.verb);
        let mut notes = operation.map(|it| it.notes).unwrap_or_default();
        let gated = self.ruled((verb, summary), &settled, Vec::new())?;
        ended.warnings.clone_from(&gated.warnings);
        notes.extend(Reason::told(gated.reasons()));
        if gated.is_done() {
            notes.extend(gated.warnings);
            self.keep_call(id, settled, notes)?;
            ended.status = self.status_when_done();
        } else {
            notes.extend(gated.warnings.iter().cloned());
            let report =
                self.judge_call((id, summary, verb), settled, gated.into_reasons(), notes)?;
            ended.reasons = Reason::told(&report.reasons);
            ended.status = report.status;
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
        let settled = self.look_at_call(operation.id, operation.lsn, call)?;
        if settled.targets.is_empty() {
            return Ok(None);
        }
        let id = self.next_id();
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
        self.settle_call((id, operation.lsn), &operation.summary, call)
            .map(Some)
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

    /// Has the gates look at the world after a call, unless they said no to it already, and takes it back if they say no then.
    /// Until that is over the call counts as interrupted, so that a death in between is told.
    fn judge_call(
        &self,
        (id, summary, verb): (OperationId, &str, Verb),
        settled: Settled,
        reasons: Vec<Reason>,
        notes: Vec<String>,
    ) -> Result<RunReport, EngineError> {
        let (end, completion) = (end_of(&settled), settled.completion.clone());
        let targets = settled.targets.clone();
        let (captured, contents) = self.captured(id, settled, notes, end.clone())?;
        let interrupted = Event::Interrupted {
            id,
            completion: completion.clone(),
        };
        let events = vec![captured, interrupted];
        let _held = self.lease_for_verdict(&targets);
        self.store
            .append(&Entry { events, contents }, Durability::Power)?;
        crash_point("call.judged");
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
        if report.reasons.is_empty() {
            report.reasons = self.watch_call(&report, verb, &targets)?;
        }
        if !report.reasons.is_empty() {
            self.take_back_gated(&mut report, None)?;
            return Ok(report);
        }
        report.status = self.status_when_done();
        let done = if report.status == Status::Committed {
            Event::Commit { id }
        } else {
            Event::Applied { id, completion }
        };
        self.store
            .append(&Entry::of(vec![done]), Durability::Power)?;
        Ok(report)
    }

    /// Gives what is wrong with the world after a call. Who stops the look has found nothing out, and what nobody has looked at
    /// does not stay.
    fn watch_call(
        &self,
        report: &RunReport,
        verb: Verb,
        targets: &[Target],
    ) -> Result<Vec<Reason>, EngineError> {
        let change = AppliedChange {
            id: report.id,
            verb,
            summary: &report.summary,
            agent: self.context.agent.as_ref(),
            task: self.context.task.as_ref(),
            targets,
        };
        match self.watched(&change) {
            Ok(()) => Ok(Vec::new()),
            Err(EngineError::Gate(GateError::Failed { reasons })) => Ok(reasons),
            Err(error) if error.is_stop() => {
                let found = "somebody stopped it before the watch was over";
                Ok(vec![Reason::new("Ctrl-C", found)])
            }
            Err(error) => Err(error),
        }
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
