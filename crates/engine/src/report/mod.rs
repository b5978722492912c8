//! What people read when something did not work: what happened, why, what to do next.
//!
//! The conversions have no wildcard: a new error does not compile until somebody says what the user should do.

#![warn(clippy::wildcard_enum_match_arm)]

mod advice;
mod code;
mod drift;
mod gate;
mod graph;
mod ladder;
mod plan;
mod program;
mod resume;
mod rollout;
mod sandbox;
mod storage;
mod trial;
mod undecided;
mod workspace;

use backout_model::ports::{DriverError, LeftOver, Stopped};
pub use backout_model::report::{Call, ErrorCode, Next, Report, Severity, Typed, literal, quoted};
use backout_model::{AgentId, CheckpointName, Key, OperationId, TargetOutcome, TargetPath, TaskId};
use backout_storage::{RefError, StorageError};

use crate::{EngineError, GateError};
pub use advice::{advice, force_options, word_options};
pub use plan::redo_undone;

impl From<EngineError> for Report {
    fn from(error: EngineError) -> Self {
        let code = code::of(&error);
        told(error).code(code)
    }
}

/// Says what a driver could not do, in its own words if it has some.
fn driver(error: &DriverError) -> Report {
    let fault = error.fault();
    if let Some(report) = fault.report() {
        return report;
    }
    if fault.is_stop() {
        return Report::refused(Stopped.to_string());
    }
    let mut report = Report::refused(error.to_string()).because_of_causes(error);
    report.next.extend(fault.advice().map(Next::from));
    report
}

#[expect(clippy::too_many_lines, reason = "one arm per error")]
fn told(error: EngineError) -> Report {
    match error {
        EngineError::Storage(error)
        | EngineError::NotArmed(error @ StorageError::ContentGone { .. }) => {
            storage::report(&error)
        }
        EngineError::Driver(error) => driver(&error),
        EngineError::NoDriver { name } => Report::refused(format!(
            "this program has no driver `{name}`, so it cannot tell what there is to do"
        ))
        .because("nothing was changed; what the driver recorded stays kept")
        .next(format!(
            "use a program that has the driver `{name}` on the same state directory"
        )),
        EngineError::DriverTaken { name } => {
            Report::refused(format!("there is a driver `{name}` already"))
                .next("give the other one another name")
        }
        EngineError::NotArmed(error) => {
            let mut report = storage::report(&error);
            report.why.insert(0, report.what.clone());
            "nothing was written: the undo could not be recorded".clone_into(&mut report.what);
            report
        }
        EngineError::TakenBack { id, cause } => {
            if let EngineError::Driver(error) = &*cause
                && let Some(left) = error.fault().left_over()
            {
                return left_over(id, left);
            }
            let is_watched = matches!(*cause, EngineError::Gate(GateError::Failed { .. }));
            let mut report = Report::from(*cause);
            report.why.push(format!(
                "operation {} was put back: nothing of it stays",
                id.short()
            ));
            if is_watched {
                report = report.operation(id);
            }
            report
        }
        EngineError::NotRecorded { id, cause } => {
            let inner = storage::report(&cause);
            let mut report = Report::broken(format!(
                "operation {} happened, but could not be recorded",
                id.short()
            ))
            .because(inner.what);
            // That nothing happens without room is no reason for what has happened.
            if !cause.is_of_room() {
                report.why.extend(inner.why);
            }
            report.next = inner.next;
            report.next_call(
                "then run {}: it takes the operation back",
                [Call::of("recover")],
            )
        }
        EngineError::NotSettled { id, cause } => not_settled(id, *cause),
        EngineError::Stays {
            id,
            cause,
            why,
            is_told,
        } => {
            let (cause, why) = (Report::from(*cause), Report::from(*why));
            let mut report = Report::refused(format!(
                "{}, but operation {} stays",
                cause.what,
                id.short()
            ));
            report.why.extend(cause.why);
            report.why.push(why.what);
            report.why.extend(why.why);
            // What was just tried is no advice.
            report.next = why.next;
            if is_told {
                let advice = "until it is settled {} lists it, with what to do";
                report = report.next_call(advice, [Call::of("failed")]);
            }
            report
        }
        EngineError::HalfDone {
            id,
            cause,
            outcomes,
            lost,
            made: _,
        } => half_done(id, *cause, &outcomes, lost),
        EngineError::Refused { id, why } => Report::refused("nothing was written")
            .operation(id)
            .because(why)
            .next(format!("the journal has it as {}", id.short())),
        EngineError::Gate(GateError::WaitsAgain { again, cause }) => {
            gate::waits_again(told(*cause), again)
        }
        EngineError::Gate(error) => gate::report(&error),
        EngineError::Ladder(error) => ladder::report(&error),
        EngineError::NotSettledYet { id, verb } => plan::not_settled_yet(id, verb),
        error @ EngineError::BuiltOn { .. } => Report::refused(error.to_string()),
        EngineError::NotVerified { why } => {
            Report::refused("the check after the write said no").because(why)
        }
        EngineError::Busy { target, by, owner } => {
            Report::refused(format!("`{target}` was not written"))
                .because(format!(
                    "process {} has been writing it as operation {} all the while",
                    owner.pid,
                    by.short()
                ))
                .next("try again when it is done, or end that process: its work is then undone")
        }
        EngineError::BeingChecked {
            targets,
            by,
            summary,
        } => {
            let name = targets.first().map(ToString::to_string);
            Report::refused(format!("`{}` was not written", name.unwrap_or_default()))
                .because(format!(
                    "operation {} ({summary}) wrote it, and its checks still run: what they say comes first",
                    by.short()
                ))
                .next_call("try again when they are over; {} tells", [Call::show(by)])
        }
        EngineError::Ref(error) => reference(&error),
        EngineError::Plan(error) => plan::report(&error),
        EngineError::NeedsWord(view) => plan::needs_word(&view),
        EngineError::Conflicts { ref targets, .. } => plan::conflicts(&error, targets),
        EngineError::Partial(report) => plan::partial(&report),
        EngineError::Stopped(report) => plan::stopped(&report),
        EngineError::NothingBelow {
            below,
            elsewhere,
            at_work,
        } => plan::nothing_below(&below, elsewhere.as_ref(), at_work),
        EngineError::NewestExpired { id, summary, older } => {
            plan::newest_expired(id, &summary, &older)
        }
        EngineError::NewestLost { id, why, older } => plan::newest_lost(id, why, &older),
        EngineError::NothingOnPath {
            path,
            leads_to: Some(to),
            at_work,
            ..
        } => plan::nothing_on_link(&path, &to, at_work),
        EngineError::NothingOnPath {
            path,
            is_unknown: true,
            at_work,
            ..
        } => plan::nothing_known(&path, at_work),
        EngineError::NothingOnPath {
            path,
            inside: None,
            old_name: Some(old),
            at_work,
            ..
        } => plan::nothing_on_old_name(&path, &old, at_work),
        EngineError::NothingOnPath {
            path,
            since: Some(_),
            inside: None,
            other: None,
            at_work,
            ..
        } => plan::nothing_since(&path, at_work),
        EngineError::NothingOnPath {
            path,
            inside,
            at_work,
            other,
            ..
        } => plan::nothing_on_path(&path, inside, other.as_ref(), at_work),
        EngineError::NothingToRedo { id } => plan::nothing_to_redo(id),
        EngineError::Undecided { id, by, verb } => undecided::undecided(id, by, verb),
        EngineError::TakenBackBefore { id, again, by } => plan::taken_back_before(id, again, by),
        EngineError::NoUndo { recovered, swapped } => {
            plan::no_undo(recovered.as_ref(), swapped.as_ref())
        }
        EngineError::PutBack { id, again } => plan::put_back(id, &again),
        EngineError::Inseparable { id, way, tree } => plan::inseparable(id, way, tree.as_ref()),
        EngineError::NotTouched { target, id } => not_touched(&target, id),
        EngineError::NoRestore { driver, target, id } => {
            let target = target.map(|target| target.to_string()).unwrap_or_default();
            Report::refused(format!("`{target}` was not restored"))
                .because(format!("the driver `{driver}` restores nothing by itself"))
                .next_call(
                    "take back what the operation did to it with {}",
                    [Call::undo(&[id]).typed(Typed::default().and(&["--only", &target]))],
                )
        }
        EngineError::Unrestorable { path, why, undo } => unrestorable(&path, &why, undo),
        EngineError::NoHome {
            part,
            is_gone,
            why,
            from,
            is_after,
        } => no_home(&part, is_gone, &why, (from, is_after)),
        EngineError::NothingToDecide { id, status } => Report::refused(format!(
            "there is nothing to decide about operation {}",
            id.short()
        ))
        .because(format!("it is {status}"))
        .next_call(
            "see what waits for a decision with {}",
            [Call::of("status")],
        ),
        EngineError::AtWork { id, owner } => {
            Report::refused(format!("operation {} is still at work", id.short()))
                .because(format!("process {} does it", owner.pid))
                .next("wait for it, or end that process first")
        }
        EngineError::NoTask { .. }
        | EngineError::TaskEnded { .. }
        | EngineError::TaskOpen { .. }
        | EngineError::TaskWaits { .. }
        | EngineError::WhichTask { .. } => tasks(&error),
        EngineError::NoCheckpoint { name } => {
            Report::refused(format!("there is no checkpoint `{name}`"))
                .next_call("see them with {}", [Call::of("checkpoint").option("list")])
        }
        EngineError::UndoneSince { undone } => plan::undone_since(&undone),
        EngineError::CheckpointTaken { name, agent, task } => {
            checkpoint_taken(&name, agent.as_ref(), task.as_ref())
        }
        EngineError::NotOwn { id, agent, task } => not_own(id, agent.as_ref(), task.as_ref()),
        EngineError::NoProcess { pid } => Report::refused(format!("there is no process {pid}"))
            .next("give the number of a living process"),
        EngineError::NotStarted { program, source } => program::not_started(&program, &source),
        EngineError::NoCapture { source } => {
            Report::refused("the command was not started: it cannot be watched here")
                .because(source)
                .next_call(
                    "see which ways of watching work with {}",
                    [Call::of("doctor")],
                )
        }
        EngineError::Trial(error) => trial::report(&error),
        EngineError::Sandbox(error) => sandbox::report(&error),
        EngineError::Workspace(error) => workspace::report(error),
        EngineError::Rollout(error) => rollout::report(&error),
        EngineError::Resume(error) => resume::resume(&error),
        EngineError::Stage(error) => resume::stage(&error),
        EngineError::Drift(error) => drift::report(error),
        EngineError::Graph(error) => graph::report(&error),
        EngineError::Io { action, source } => {
            Report::refused(format!("could not {action}")).because(source)
        }
    }
}

fn not_touched(target: &Key, id: OperationId) -> Report {
    let report = Report::refused(format!("`{target}` was not restored"))
        .because(format!("operation {} did not touch it", id.short()));
    let see = "see which operations did with {}";
    if let Some(path) = target.file().filter(|_| target.parts().is_empty()) {
        return report.next_call(see, [Call::log_of(path)]);
    }
    let typed = Typed::default().and(&[&target.to_string()]);
    report.next_call(see, [Call::of("log").typed(typed)])
}

fn unrestorable(path: &str, why: &str, undo: Option<OperationId>) -> Report {
    let report = Report::refused(format!("`{path}` cannot be restored")).because(why);
    report.next(match (undo, TargetPath::new(path)) {
        (Some(id), _) => Next::naming("take the whole operation back with {}", [Call::undo(&[id])]),
        (None, Ok(path)) => Next::wrote_it(&path),
        (None, Err(_)) => Next::naming("see the operations with {}", [Call::of("log")]),
    })
}

fn no_home(part: &Key, is_gone: bool, why: &str, (from, is_after): (OperationId, bool)) -> Report {
    let report = Report::refused(format!("`{part}` was not restored")).because(why);
    match part.file() {
        Some(file) if is_gone => report.next_call(
            "bring the whole file back with {}",
            [whole_file(file, from, is_after)],
        ),
        _ => report.next("put the file right, then restore it again"),
    }
}

/// Gives the call that brings a file back as it was before or after an operation.
fn whole_file(file: &TargetPath, from: OperationId, is_after: bool) -> Call {
    let call = Call::of("restore").path(file).option("from");
    let call = call.operation(from);
    if is_after { call.option("after") } else { call }
}

fn not_own(id: OperationId, agent: Option<&AgentId>, task: Option<&TaskId>) -> Report {
    let whose = match (agent, task) {
        (Some(agent), Some(task)) => format!("it is the work of agent `{agent}` in task `{task}`"),
        (Some(agent), None) => format!("it is the work of agent `{agent}`"),
        (None, Some(task)) => format!("it belongs to task `{task}`"),
        (None, None) => "it is the work of no agent and no task".to_owned(),
    };
    Report::refused(format!("operation {} was left as it is", id.short()))
        .because(whose)
        .because("from inside of a command only the work of its own agent and task is taken back")
        .next("have it done outside of the command, by whoever started it")
}

fn checkpoint_taken(
    name: &CheckpointName,
    agent: Option<&AgentId>,
    task: Option<&TaskId>,
) -> Report {
    let whose = match (agent, task) {
        (Some(agent), Some(task)) => format!("agent `{agent}` made it in task `{task}`"),
        (Some(agent), None) => format!("agent `{agent}` made it"),
        (None, Some(task)) => format!("it was made in task `{task}`"),
        (None, None) => "it was made without `--agent` and `--task`".to_owned(),
    };
    Report::refused(format!("there is a checkpoint `{name}` already"))
        .because(whose)
        .because("its owner could not return to it any more")
        .next("choose another name")
}

/// A command ran; only the record of it is missing.
fn not_settled(id: OperationId, cause: EngineError) -> Report {
    let inner = if let EngineError::NotArmed(error) = &cause {
        storage::report(error)
    } else {
        Report::from(cause)
    };
    let mut report = Report::refused("the command ran, but what it did is not recorded yet")
        .because(inner.what)
        .because("what it replaced is kept, and its log tells what it did");
    report.next = inner.next;
    let advice = "then run {}: it settles operation ".to_owned() + &id.short();
    report.next_call(advice, [Call::of("recover")])
}

/// Says that every target is as before, but that something of ours is left.
fn left_over(id: OperationId, left: LeftOver) -> Report {
    left.began_by
        .because(format!(
            "operation {} was taken back: every target is as it was before",
            id.short()
        ))
        .because(format!("but something of ours is left: {}", left.what))
}

fn half_done(
    id: OperationId,
    cause: EngineError,
    outcomes: &[TargetOutcome],
    lost: Option<String>,
) -> Report {
    let inner = Report::from(cause);
    let mut report = Report::refused(format!("operation {} is half done", id.short()));
    report = report.because(inner.what);
    report.why.extend(inner.why);
    for outcome in outcomes
        .iter()
        .filter(|outcome| !outcome.kind.is_taken_back())
    {
        report = report.because(format!("`{}`: {}", outcome.target, outcome.kind));
    }
    if let Some(why) = lost {
        return report
            .because(format!("nothing takes it back: {why}"))
            .next_call(
                "look yourself, and take it back by hand if it is to go; then close it with {}",
                [Call::keep(id)],
            );
    }
    report
        .next_call("see what is kept with {}", [Call::show(id)])
        .next_call(
            "take back what can be with {}, or accept what is there with {}",
            [Call::roll_back(id), Call::keep(id)],
        )
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the caller has listed the others"
)]
fn tasks(error: &EngineError) -> Report {
    match error {
        EngineError::NoTask { id } => Report::refused(format!("there is no task `{id}`"))
            .next_call("see them with {}", [Call::of("task list")])
            .next_call("begin it with {}", [Call::of("task begin").task(id)]),
        EngineError::TaskEnded { id } => Report::refused(format!("the task `{id}` has ended"))
            .because("a task that was committed or rolled back takes no more operations")
            .next_call(
                "begin another with {}",
                [Call::of("task begin").blank("NAME")],
            ),
        EngineError::TaskOpen { id } => Report::refused(format!("the task `{id}` is open already"))
            .next(format!("write into it with `--task {id}`"))
            .next_call(
                "end it with {} or {}",
                [Call::of("commit").task(id), Call::of("rollback").task(id)],
            ),
        EngineError::TaskWaits { task, id } => {
            Report::refused(format!("the task `{task}` was not committed"))
                .because(format!("operation {} waits for a decision", id.short()))
                .next_call("keep what is there with {}", [Call::keep(*id)])
                .next_call("or take it back with {}", [Call::roll_back(*id)])
        }
        EngineError::WhichTask { open: 0 } => Report::refused("no task is open")
            .next_call("begin one with {}", [Call::of("task begin").blank("NAME")]),
        EngineError::WhichTask { open } => Report::usage("it is not clear which task is meant")
            .because(format!("{open} tasks are open"))
            .next_call("name one; see them with {}", [Call::of("task list")]),
        other => Report::refused(other.to_string()),
    }
}

fn reference(error: &RefError) -> Report {
    let list = Next::naming("see the operations with {}", [Call::of("log")]);
    match error {
        RefError::Malformed { text } => {
            Report::usage(format!("`{text}` does not name an operation"))
                .because(
                    "an operation is named by the beginning of its id, `@`, or `@-1` and so on",
                )
                .next(list)
        }
        RefError::Unknown { text } => {
            Report::refused(format!("there is no operation `{text}`")).next(list)
        }
        RefError::Ambiguous { text, candidates } => {
            let mut report = Report::refused(format!("`{text}` names more than one operation"));
            for candidate in candidates {
                report = report.because(format!("it could be {candidate}"));
            }
            report.next("give more digits")
        }
        RefError::Storage(error) => storage::report(error),
    }
}
