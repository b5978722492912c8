//! Reports of what gates turned away, and of what waits for a decision.

use backout_model::ports::Reason;
use backout_model::{OperationId, Status};

use super::{Call, Next, Report};
use crate::GateError;

pub(super) fn report(error: &GateError) -> Report {
    match error {
        GateError::Denied { id, reasons } => {
            let report = reasoned(Report::refused("nothing was written"), reasons);
            let report = report.operation(*id);
            report.next(format!("the journal has it as {}", id.short()))
        }
        GateError::Waits(proposal) => waits(proposal.id, &proposal.reasons),
        GateError::NotProposed { id, status } => not_proposed(*id, *status),
        GateError::Expired { id } => not_approved(*id)
            .because("nobody decided in time, so it is refused")
            .next("whoever proposed it has to ask again"),
        GateError::Stale { id, why } => not_approved(*id)
            .because(why)
            .next_call(
                "see what it would do now with {}",
                [Call::of("pending").operation(*id)],
            )
            .next_call(
                "reject it with {}; whoever proposed it has to ask again",
                [Call::of("reject").operation(*id)],
            ),
        GateError::BeingDecided { id } => {
            Report::refused(format!("nothing was decided about {}", id.short()))
                .because("somebody else is deciding about it")
                .next_call("see what came of it with {}", [Call::show(*id)])
        }
        GateError::Own { id } => not_approved(*id)
            .because("who proposed a change cannot approve it, nor can a command under `run`")
            .next("ask a person, or another agent, to decide"),
        GateError::KeyTaken { key, id } => Report::refused("nothing was written")
            .because(format!(
                "the key `{key}` was given to another request, which is operation {}",
                id.short()
            ))
            .next("give each request a key of its own"),
    }
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
        .next_call(
            "a person decides with {} or {}",
            [
                Call::of("approve").operation(id),
                Call::of("reject").operation(id),
            ],
        )
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
    for reason in reasons {
        report = report.because(reason);
    }
    for remedy in reasons.iter().filter_map(|reason| reason.remedy.as_ref()) {
        if !report.next.contains(&Next::from(remedy)) {
            report = report.next(remedy);
        }
    }
    report
}
