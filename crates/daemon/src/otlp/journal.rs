//! Spans of what is in the journal: operations, undos, and acts of several undos such as a rollback.
//!
//! An operation's span goes from its arm to its end: applied, committed, aborted or interrupted, whichever comes first. Times are those of
//! the records, to the millisecond. What began before the server did has no span.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backout_engine::{Engine, EngineError};
use backout_model::{
    AgentId, Event, Intent, Lsn, OperationId, Record, Status, TaskId, Timestamp, Verb,
};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::Telemetry;
use super::span::{Kind, Span, Trace, span_of, span_of_act, trace_of};
use crate::app::App;

/// How many records are read at a time.
const AT_A_TIME: usize = 200;

/// How many operations and acts under way are remembered.
const OPEN_MAX: usize = 65_536;

/// How long the next step of an act is waited for: some steps find nothing to do, and leave no record.
const ACT_PATIENCE: Duration = Duration::from_mins(1);

/// How long nothing is looked at if nothing is told.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Follows the journal from where it is now until it is over, and then to its end.
pub(super) fn follow(
    app: &Arc<App>,
    telemetry: &Telemetry,
    handle: &Handle,
    mut over: watch::Receiver<bool>,
) {
    let mut head = app.head.clone();
    let mut follower = Follower::at(Lsn(app.metrics.begun_at));
    loop {
        let is_over = *over.borrow();
        // What cannot be read now is read the next time.
        let _read = follower.read_on(&app.engine, telemetry);
        follower.end_acts(telemetry, is_over);
        if is_over {
            return;
        }
        handle.block_on(async {
            tokio::select! {
                _ = head.changed() => {}
                _ = over.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        });
    }
}

struct Follower {
    place: Lsn,
    open: HashMap<OperationId, Open>,
    acts: HashMap<OperationId, Act>,
    /// Rollbacks that took one operation back.
    lone: HashMap<TaskId, (Option<Trace>, OperationId, Timestamp)>,
}

/// An operation under way.
struct Open {
    span: Span,
    is_sampled: bool,
    targets: usize,
    act: Option<OperationId>,
    ended: Option<(Timestamp, &'static str)>,
    why: Option<String>,
}

/// An undo or a redo of several operations.
struct Act {
    span: Span,
    is_sampled: bool,
    steps: usize,
    done: usize,
    touched: Instant,
}

impl Follower {
    fn at(place: Lsn) -> Self {
        Self {
            place,
            open: HashMap::new(),
            acts: HashMap::new(),
            lone: HashMap::new(),
        }
    }

    fn read_on(&mut self, engine: &Engine, telemetry: &Telemetry) -> Result<(), EngineError> {
        loop {
            let records = engine.store().records_after(self.place, AT_A_TIME)?;
            let is_end = records.len() < AT_A_TIME;
            for record in records {
                self.place = record.lsn;
                self.hear(engine, telemetry, &record);
            }
            if is_end {
                break;
            }
        }
        // An end in two records, applied and committed, is told by the second.
        let ended = self.open.iter().filter(|(_, open)| open.ended.is_some());
        let ended: Vec<OperationId> = ended.map(|(id, _)| *id).collect();
        for id in ended {
            if let Some(open) = self.open.remove(&id) {
                self.end(telemetry, open);
            }
        }
        Ok(())
    }

    fn hear(&mut self, engine: &Engine, telemetry: &Telemetry, record: &Record) {
        let at = record.at;
        if let Event::Intent(intent) = &record.event {
            self.begin(engine, telemetry, intent, at);
            return;
        }
        if let Event::Captured(captured) = &record.event {
            if let Some(open) = self.open.get_mut(&captured.id) {
                open.targets = captured.targets.len();
            }
        } else if let Event::UndoFailed { id, .. } = &record.event {
            failed(telemetry, *id, at);
        } else if let Event::TaskRollback { task, .. } = &record.event {
            self.rolled_back(telemetry, task, at);
        }
        let Some((id, status)) = record.event.brings_to() else {
            return;
        };
        let why = why(status).map(str::to_owned);
        if let Some(begun) = record.event.begins() {
            let agent = begun.agent.cloned();
            let one = One::new(id, begun.verb, agent, None, begun.targets.len());
            one.leave(telemetry, at, status.as_str(), why);
        } else if let Some(open) = self.open.get_mut(&id) {
            open.ended = Some((at, status.as_str()));
            open.why = why;
        }
    }

    fn begin(&mut self, engine: &Engine, telemetry: &Telemetry, intent: &Intent, at: Timestamp) {
        if self.open.len() >= OPEN_MAX {
            self.open.clear();
        }
        let one = One::new(
            intent.id,
            intent.verb,
            intent.agent.clone(),
            intent.task.clone(),
            intent.targets.len(),
        );
        let mut trace = telemetry.made_by(intent.id);
        let act = intent.plan.as_ref().map(|_| intent.id).or(intent.group);
        if let (Some(act), Some(plan)) = (act, &intent.plan) {
            let name = match &plan.task {
                Some(_) => "rollback".to_owned(),
                None => intent.asked.as_ref().unwrap_or(&intent.verb).to_string(),
            };
            let act = self.begin_act(act, name, trace.as_ref(), at, plan.steps.len());
            if let Some(agent) = &intent.agent {
                act.span.text("backout.agent", agent);
            }
            if let Some(task) = &plan.task {
                act.span.text("backout.task", task);
            }
        }
        if let Some(known) = act.and_then(|act| self.acts.get(&act)) {
            trace = Some(known.as_parent());
        }
        let mut span = one.span(trace.as_ref(), at);
        if let Some(undoes) = intent.undoes {
            span.text("backout.undoes", undoes);
            // A rollback of one operation is told by one undo, which does not say so.
            let of = engine.store().operation(undoes).ok().flatten();
            if let (None, Some(task)) = (act, of.and_then(|of| of.task)) {
                if self.lone.len() >= OPEN_MAX {
                    self.lone.clear();
                }
                self.lone.insert(task, (trace.clone(), intent.id, at));
            }
        }
        let open = Open {
            is_sampled: trace.is_none_or(|trace| trace.is_sampled),
            span,
            targets: intent.targets.len(),
            act,
            ended: None,
            why: None,
        };
        self.open.insert(intent.id, open);
    }

    fn begin_act(
        &mut self,
        id: OperationId,
        name: String,
        trace: Option<&Trace>,
        at: Timestamp,
        steps: usize,
    ) -> &mut Act {
        if self.acts.len() >= OPEN_MAX {
            self.acts.clear();
        }
        let mut span = bare(id, name, trace, at);
        span.id = span_of_act(id);
        span.number("backout.operations", steps);
        let act = Act {
            span,
            is_sampled: trace.is_none_or(|trace| trace.is_sampled),
            steps,
            done: 0,
            touched: Instant::now(),
        };
        self.acts.entry(id).insert_entry(act).into_mut()
    }

    fn end(&mut self, telemetry: &Telemetry, open: Open) {
        let Some((at, status)) = open.ended else {
            return;
        };
        let mut span = open.span;
        span.end_ns = nanos(at).max(span.start_ns);
        span.number("backout.targets", open.targets);
        span.text("backout.status", status);
        span.error = open.why;
        if let Some(act) = open.act.and_then(|act| self.acts.get_mut(&act)) {
            act.span.end_ns = act.span.end_ns.max(span.end_ns);
            act.done += 1;
            act.touched = Instant::now();
            if span.error.is_some() {
                act.span.error = Some("a step was put back".to_owned());
            }
        }
        if open.is_sampled {
            telemetry.leave(span);
        }
    }

    /// Leaves acts that are done, that nobody goes on with, or all if it is over.
    fn end_acts(&mut self, telemetry: &Telemetry, is_over: bool) {
        let is_done =
            |act: &Act| is_over || act.done >= act.steps || act.touched.elapsed() > ACT_PATIENCE;
        let done = self.acts.extract_if(|_, act| is_done(act));
        for (_, mut act) in done {
            act.span.number("backout.operations.done", act.done);
            if act.is_sampled {
                telemetry.leave(act.span);
            }
        }
    }

    fn rolled_back(&mut self, telemetry: &Telemetry, task: &TaskId, at: Timestamp) {
        let Some((trace, undo, began)) = self.lone.remove(task) else {
            return;
        };
        // The undo is beside it, in the same trace: nobody knew before that it was a rollback.
        let mut span = bare(undo, "rollback".to_owned(), trace.as_ref(), began);
        span.id = span_of_act(undo);
        span.end_ns = nanos(at).max(span.start_ns);
        span.text("backout.task", task);
        span.number("backout.operations", 1);
        span.number("backout.operations.done", 1);
        if trace.is_none_or(|trace| trace.is_sampled) {
            telemetry.leave(span);
        }
    }
}

/// Says why a write that ended so is told as an error; nothing if it is none.
const fn why(status: Status) -> Option<&'static str> {
    match status {
        Status::Refused => Some("it was refused"),
        Status::Interrupted => Some("nobody answers for it"),
        Status::Aborted => Some("it was put back"),
        Status::Proposed
        | Status::Armed
        | Status::Applied
        | Status::Committed
        | Status::Undone
        | Status::InDoubt
        | Status::Failed => None,
    }
}

fn failed(telemetry: &Telemetry, id: OperationId, at: Timestamp) {
    let mut span = bare(id, "undo failed".to_owned(), None, at);
    span.id = span_of_act(id);
    span.text("backout.undoes", id);
    span.error = Some("an operation could not be taken back".to_owned());
    telemetry.leave(span);
}

impl Act {
    fn as_parent(&self) -> Trace {
        Trace {
            id: self.span.trace,
            span: self.span.id,
            state: self.span.state.clone(),
            is_sampled: self.is_sampled,
            start_ns: self.span.start_ns,
        }
    }
}

/// What is told of every operation.
struct One {
    id: OperationId,
    verb: Verb,
    agent: Option<AgentId>,
    task: Option<TaskId>,
    targets: usize,
}

impl One {
    fn new(
        id: OperationId,
        verb: Verb,
        agent: Option<AgentId>,
        task: Option<TaskId>,
        targets: usize,
    ) -> Self {
        Self {
            id,
            verb,
            agent,
            task,
            targets,
        }
    }

    fn span(&self, trace: Option<&Trace>, at: Timestamp) -> Span {
        let mut span = bare(self.id, self.verb.to_string(), trace, at);
        span.text("backout.operation", self.id);
        span.text("backout.verb", self.verb);
        if let Some(agent) = &self.agent {
            span.text("backout.agent", agent);
        }
        if let Some(task) = &self.task {
            span.text("backout.task", task);
        }
        span
    }

    /// Leaves the span of what was over at once.
    fn leave(
        self,
        telemetry: &Telemetry,
        at: Timestamp,
        status: &'static str,
        why: Option<String>,
    ) {
        let trace = telemetry.made_by(self.id);
        if trace.as_ref().is_some_and(|trace| !trace.is_sampled) {
            return;
        }
        let mut span = self.span(trace.as_ref(), at);
        span.number("backout.targets", self.targets);
        span.text("backout.status", status);
        span.error = why;
        telemetry.leave(span);
    }
}

fn bare(id: OperationId, name: String, trace: Option<&Trace>, at: Timestamp) -> Span {
    // Records tell milliseconds: a child does not begin before its parent because of that.
    let began = nanos(at);
    let start_ns = trace.map_or(began, |trace| began.max(trace.start_ns));
    Span {
        trace: trace.map_or_else(|| trace_of(id), |trace| trace.id),
        id: span_of(id),
        parent: trace.map(|trace| trace.span),
        is_remote: false,
        state: trace.and_then(|trace| trace.state.clone()),
        name,
        kind: Kind::Internal,
        start_ns,
        end_ns: start_ns,
        attributes: Vec::new(),
        error: None,
    }
}

fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.0)
        .unwrap_or_default()
        .saturating_mul(1_000_000)
}
