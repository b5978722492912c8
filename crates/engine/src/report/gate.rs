//! Reports of what gates turned away, and of what waits for a decision.

use backout_model::ports::Reason;
use backout_model::{CallKey, OperationId, Status, TaskId};

use super::{Call, Next, Report};
use crate::GateError;

pub(super) fn report(error: &GateError) -> Report {
    match error {
        GateError::Denied { id, reasons } => {
            let report = reasoned(Report::refused("nothing was written"), reasons);
            let report = report.operation(*id);
            report.next(format!("the journal has it as {}", id.short()))
        }
        GateError::DeniedNow { id, reasons } => denied_now(*id, reasons),
        GateError::Failed { reasons } => reasoned(
            Report::refused("the check after the write said no"),
            reasons,
        ),
        GateError::RunDenied {
            id,
            by,
            is_partial,
            reasons,
        } => run_denied(*id, *by, *is_partial, reasons),
        GateError::Waits { proposal, untold } => {
            let report = waits(proposal.id, &proposal.reasons);
            untold.iter().fold(report, |report, said| {
                report.because(format!("nobody may have heard that it waits: {said}"))
            })
        }
        GateError::NotProposed { id, status } => not_proposed(*id, *status),
        GateError::NothingDone { id, status } => nothing_done(*id, *status),
        GateError::TaskWaits { task, id } => task_waits(task, *id),
        GateError::WaitsAgain { again, cause } => {
            waits_again(Report::refused(cause.to_string()), *again)
        }
        GateError::Expired { id } => not_approved(*id)
            .because("nobody decided in time, so it is refused")
            .next("whoever proposed it has to ask again"),
        GateError::Stale { id, why } => stale(*id, why),
        GateError::BeingDecided { id } => being_decided(*id),
        GateError::Own { id } => not_approved(*id)
            .because("who proposed a change cannot approve it, nor can a command under `run`")
            .next("ask a person, or another agent, to decide"),
        GateError::KeyTaken { key, id, is_older } => key_taken(key, *id, *is_older),
        GateError::Answered(finished) => {
            let id = finished.id.map(OperationId::short).unwrap_or_default();
            Report::refused("nothing was staged")
                .because(format!("this call was answered before, as operation {id}"))
        }
        GateError::RefusedBefore { id, why } => refused_before(*id, why),
        GateError::UndoneSince { id, by } => undone_since(*id, by),
        GateError::Unclear { id } => unclear(*id),
    }
}

fn key_taken(key: &CallKey, id: OperationId, is_older: bool) -> Report {
    let name = id.short();
    let why = if is_older {
        format!(
            "the key `{key}` stands for {name}, of an older program, and what was asked then cannot be compared"
        )
    } else {
        format!("the key `{key}` was given to another request, which is operation {name}")
    };
    Report::refused("nothing was written")
        .because(why)
        .next("give each request a key of its own")
}

fn denied_now(id: OperationId, reasons: &[Reason]) -> Report {
    reasoned(not_approved(id), reasons).next_call(
        "it still waits: then approve it with {}, or refuse it with {}",
        [approve(id), reject(id)],
    )
}

fn run_denied(
    id: OperationId,
    by: Option<OperationId>,
    is_partial: bool,
    reasons: &[Reason],
) -> Report {
    let part = if is_partial { " in part" } else { "" };
    let what = match by {
        Some(by) => format!(
            "what the command wrote was taken back{part}, as {}",
            by.short()
        ),
        None => "what the command wrote must not stay, and could not be taken back".to_owned(),
    };
    let report = reasoned(Report::refused(what).operation(id), reasons);
    let report = match by {
        Some(by) => report.next_call(
            "what it wrote comes back with {}, and no gate looks at it then",
            [Call::redo(&[by])],
        ),
        None => report,
    };
    if is_partial {
        report.next_call("see what stays with {}", [Call::show(id)])
    } else {
        report
    }
}

fn task_waits(task: &TaskId, id: OperationId) -> Report {
    let name = id.short();
    Report::refused(format!("the task `{task}` was not committed"))
        .because(format!("a write of it waits for a decision as {name}"))
        .next_call(
            "let it happen with {}, or refuse it with {}",
            [approve(id), reject(id)],
        )
}

fn stale(id: OperationId, why: &str) -> Report {
    not_approved(id)
        .because(why)
        .next_call("see what it would do now with {}", [pending(id)])
        .next_call(
            "reject it with {}; whoever proposed it has to ask again",
            [reject(id)],
        )
}

fn being_decided(id: OperationId) -> Report {
    Report::refused(format!("nothing was decided about {}", id.short()))
        .because("somebody else is deciding about it")
        .next_call("see what came of it with {}", [Call::show(id)])
}

fn refused_before(id: OperationId, why: &str) -> Report {
    let name = id.short();
    Report::refused("nothing was written")
        .operation(id)
        .because(why)
        .because(format!("this call was answered so before, as {name}"))
        .next("if it is to be asked again, give it another key")
}

fn unclear(id: OperationId) -> Report {
    let name = id.short();
    Report::refused("nothing was written")
        .operation(id)
        .because(format!(
            "this call was made before, as {name}, and nobody can tell whether that happened"
        ))
        .next_call(
            "see what is known, and decide, with {}",
            [Call::of("recover")],
        )
}

fn undone_since(id: OperationId, by: &[OperationId]) -> Report {
    let name = id.short();
    let report = Report::refused("nothing was written").operation(id);
    let (by, redo) = if let [only] = by {
        (format!(", by {}", only.short()), *only)
    } else {
        (String::new(), id)
    };
    let report = report.because(format!(
        "this call was done before, as {name}, and undone since{by}"
    ));
    report
        .next_call("bring it back with {}", [Call::redo(&[redo])])
        .next("to have it done anew, give it another key")
}

fn approve(id: OperationId) -> Call {
    Call::of("approve").operation(id)
}

fn reject(id: OperationId) -> Call {
    Call::of("reject").operation(id)
}

fn pending(id: OperationId) -> Call {
    Call::of("pending").operation(id)
}

fn not_approved(id: OperationId) -> Report {
    Report::refused(format!(
        "{} was not approved, and nothing was written",
        id.short()
    ))
}

fn waits(id: OperationId, reasons: &[Reason]) -> Report {
    let name = id.short();
    let what = format!("nothing was written yet: it waits for a decision as {name}");
    reasoned(Report::refused(what), reasons)
        .operation(id)
        .next_call(
            "go on with other work; {} says what was decided",
            [Call::show(id)],
        )
        .next_call("a person decides with {} or {}", [approve(id), reject(id)])
}

/// Says where to find what somebody approved in vain.
pub(super) fn waits_again(report: Report, again: OperationId) -> Report {
    let name = again.short();
    let advice = format!("it waits for a decision again, as {name}: ") + "approve it with {}";
    report.next_call(advice, [approve(again)])
}

fn nothing_done(id: OperationId, status: Status) -> Report {
    let name = id.short();
    let report = Report::refused(format!("operation {name} changed nothing"));
    if status == Status::Proposed {
        report
            .because("it waits for a decision")
            .next_call("see what it would change with {}", [pending(id)])
    } else {
        report
            .because("it was refused")
            .next_call("see why with {}", [Call::show(id)])
    }
}

fn not_proposed(id: OperationId, status: Status) -> Report {
    let id = id.short();
    let report = Report::refused(format!("there is nothing to decide about operation {id}"))
        .because(format!("it is {status}"));
    report.next_call(
        "see what waits for a decision with {}",
        [Call::of("pending")],
    )
}

/// Says what the gates found, and what would make it pass.
fn reasoned(mut report: Report, reasons: &[Reason]) -> Report {
    for told in Reason::told(reasons) {
        report = report.because(told);
    }
    for remedy in reasons.iter().filter_map(|reason| reason.remedy.as_ref()) {
        if !report.next.contains(&Next::from(remedy)) {
            report = report.next(remedy);
        }
    }
    report.reasons = reasons.to_vec();
    report
}
