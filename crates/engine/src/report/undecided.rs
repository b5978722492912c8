//! Reports of what was begun before, and of which nobody but a person can tell whether it happened.

use backout_model::{OperationId, Verb};

use super::{Call, Report};

/// Says that it was begun before, and that somebody has to tell whether it happened.
pub(super) fn undecided(id: OperationId, by: OperationId, verb: Verb) -> Report {
    let (id, verb) = (id.short(), if verb == Verb::Redo { "redo" } else { "undo" });
    let report = Report::refused(format!("the {verb} of {id} before this one is in doubt"))
        .because("once more could do it twice");
    decide(report, by)
}

/// Says how somebody decides about what nobody can look at.
pub(super) fn decide(report: Report, by: OperationId) -> Report {
    report
        .next_call(
            "look yourself; if it happened, keep it with {}",
            [Call::keep(by)],
        )
        .next_call(
            "else let it be taken back with {}",
            [Call::roll_back(by).option("force")],
        )
}
