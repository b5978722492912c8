//! Reports of what gates turned away, and of what waits for a decision.

use backout_model::ports::Reason;
use backout_model::{OperationId, Status};

use super::Report;
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
            .next(format!(
                "see what it would do now with `backout pending {}`",
                id.short()
            ))
            .next(format!(
                "reject it with `backout reject {}`; whoever proposed it has to ask again",
                id.short()
            )),
        GateError::BeingDecided { id } => {
            Report::refused(format!("nothing was decided about {}", id.short()))
                .because("somebody else is deciding about it")
                .next(format!(
                    "see what came of it with `backout show {}`",
                    id.short()
                ))
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
        .next(format!(
            "go on with other work; `backout show {name}` says what was decided"
        ))
        .next(format!(
            "a person decides with `backout approve {name}` or `backout reject {name}`"
        ))
}

fn not_proposed(id: OperationId, status: Status) -> Report {
    let id = id.short();
    let report = Report::refused(format!("there is nothing to decide about operation {id}"))
        .because(format!("it is {status}"));
    report.next("see what waits for a decision with `backout pending`")
}

/// Says what the gates found, and what would make it pass.
fn reasoned(mut report: Report, reasons: &[Reason]) -> Report {
    for reason in reasons {
        report = report.because(reason);
    }
    for remedy in reasons.iter().filter_map(|reason| reason.remedy.as_ref()) {
        if !report.next.contains(remedy) {
            report = report.next(remedy);
        }
    }
    report
}
