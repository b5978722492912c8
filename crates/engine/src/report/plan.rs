//! Reports of undos that cannot be planned, or not wholly carried out.

use backout_model::PlanError;

use super::Report;
use crate::{PlanView, RefusedTarget, UndoReport};

/// How many lines of the same kind are told before the rest is counted.
const LINES_MAX: usize = 8;

pub(super) fn report(error: &PlanError) -> Report {
    match error {
        PlanError::Unknown { id } => Report::refused(format!("there is no operation {id}"))
            .next("see the operations with `backout log`"),
        PlanError::AlreadyUndone { id, by } => {
            let report = Report::refused(format!("operation {} is already undone", id.short()));
            let report = match by {
                Some(by) => report.because(format!("{} took it back", by.short())),
                None => report,
            };
            report.next(format!("bring it back with `backout redo {}`", id.short()))
        }
        PlanError::NeverHappened { id, status } => Report::refused(format!(
            "there is nothing to undo in operation {}",
            id.short()
        ))
        .because(format!("it was {status}, so it changed nothing")),
        PlanError::Unfinished { id } => {
            Report::refused(format!("operation {} is not finished", id.short()))
                .because("its process is still at work, or died and nobody recovered it yet")
                .next("run `backout recover` if nobody is at work")
        }
        PlanError::Expired { id, for_sake_of } => {
            let what = match for_sake_of {
                None => format!("operation {} can no longer be undone", id.short()),
                Some(other) => format!("operation {} cannot be undone", other.short()),
            };
            let report = Report::refused(what);
            let report = match for_sake_of {
                None => report,
                Some(_) => report.because(format!("operation {} was built on it", id.short())),
            };
            report
                .because(format!(
                    "the images of {} are past their retention",
                    id.short()
                ))
                .next(format!(
                    "see what the journal still knows with `backout show {}`",
                    id.short()
                ))
        }
        PlanError::Irreversible { id } => {
            Report::refused(format!("operation {} is irreversible", id.short()))
                .next("a person has to decide what to do about it")
        }
        PlanError::Nothing => Report::refused("there is nothing to undo")
            .next("see the operations with `backout log`"),
    }
}

pub(super) fn needs_committed(view: &PlanView) -> Report {
    let named = view
        .steps
        .last()
        .map(|step| step.step.id.short())
        .unwrap_or_default();
    let number = view.needs_committed.len();
    let (operations, them) = if number == 1 {
        ("operation", "it")
    } else {
        ("operations", "them")
    };
    let mut report = Report::refused(format!("operation {named} was not undone")).because(format!(
        "{number} committed {operations} would have to go with it"
    ));
    for step in view
        .steps
        .iter()
        .filter(|s| view.needs_committed.contains(&s.step.id))
        .take(LINES_MAX)
    {
        report = report.because(format!("{} {}", step.step.id.short(), step.summary));
    }
    report
        .next(format!(
            "undo {them} as well with `backout undo {named} --committed`"
        ))
        .next(format!(
            "take out only this change with `backout undo {named} --merge`"
        ))
        .next(format!(
            "see the plan with `backout undo {named} --dry-run`"
        ))
}

pub(super) fn conflicts(targets: &[RefusedTarget]) -> Report {
    let id = targets
        .first()
        .map(|target| target.id.short())
        .unwrap_or_default();
    let mut report = Report::refused(format!("operation {id} was not undone"));
    for refused in targets.iter().take(LINES_MAX) {
        report = report.because(format!(
            "`{}` changed since: {}",
            refused.target, refused.why
        ));
    }
    if let Some(more) = targets
        .len()
        .checked_sub(LINES_MAX)
        .filter(|more| *more > 0)
    {
        report = report.because(format!("and {more} more"));
    }
    report
        .next(format!(
            "see what the operation changed with `backout diff {id}`"
        ))
        .next(format!(
            "take out only this change with `backout undo {id} --merge`"
        ))
        .next(format!(
            "restore it anyway with `backout undo {id} --force` (what is there now is kept)"
        ))
}

pub(super) fn partial(report: &UndoReport) -> Report {
    let failed: Vec<_> = report
        .steps
        .iter()
        .filter(|step| !step.is_complete())
        .collect();
    let back = report.steps.len() - failed.len();
    let mut told = Report::refused(format!(
        "{} of {} operations could not be taken back",
        failed.len(),
        report.steps.len()
    ));
    for step in failed.iter().take(LINES_MAX) {
        for outcome in step
            .outcomes
            .iter()
            .filter(|outcome| !outcome.kind.is_settled())
        {
            told = told.because(format!(
                "{} `{}`: {}",
                step.id.short(),
                outcome.target,
                outcome.kind
            ));
        }
    }
    if back > 0 {
        told = told.because(format!("{back} came back"));
    }
    let id = failed
        .first()
        .map(|step| step.id.short())
        .unwrap_or_default();
    told.next(format!(
        "put right what stands in the way, then `backout undo {id}` again"
    ))
}
