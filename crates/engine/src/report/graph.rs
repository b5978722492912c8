//! Reports of updates of the graph that were refused, and of evidence.

use backout_mplp::Refusal;

use super::{Call, Report};
use crate::{GraphError, StageStanding, StageView};

/// How many mistakes are told.
const TOLD_MAX: usize = 8;

/// Says what happened, why, and what to do.
pub(super) fn report(error: &GraphError) -> Report {
    match error {
        GraphError::Unreadable(cause) => Report::usage("the graph's file cannot be read")
            .because(cause)
            .next_call(
                "see what such a file looks like with {}",
                [Call::of("graph export")],
            ),
        GraphError::Refused { refusal, followed } => {
            let report = refused(refusal);
            match followed {
                Some(stage) => with_stage(report, stage),
                None => report,
            }
        }
        GraphError::NotAsThen { place, .. } => {
            Report::broken(format!("the graph is not what it was after record {place}"))
                .because("what was noted and what was there have other digests")
                .next_call("look at it with {}", [Call::of("graph show")])
                .next_call("check the store with {}", [Call::of("verify")])
        }
        GraphError::NoRecord { place } => Report::refused(format!("there is no record {place}"))
            .because("the journal has not come so far; nothing was changed")
            .next_call("see its records with {}", [Call::of("export")]),
        GraphError::Cut { place, first } => {
            let before = first.0.saturating_sub(1);
            Report::refused(format!(
                "nobody can tell how the graph was after record {place}"
            ))
            .because(format!(
                "the journal begins with record {first}; `gc` moved those before it to `audit/` in the state directory"
            ))
            .next(format!("name record {before} or a later one"))
        }
        GraphError::Pack {
            action,
            path,
            source,
        } => {
            let next = if *action == "read" {
                "name a directory that holds a whole pack"
            } else {
                "name a directory that is not there yet"
            };
            Report::refused(format!("could not {action} `{}`", path.display()))
                .because(source)
                .next(next)
        }
    }
}

/// Says what became of the stage that failed for it.
fn with_stage(report: Report, stage: &StageView) -> Report {
    let name = &stage.stage;
    let report = match stage.standing {
        StageStanding::RolledBack => report.because(format!(
            "`backout.toml` says that this is a rollback: the stage {name} was taken back, {} operations and {} targets",
            stage.reverted.len(),
            stage.targets
        )),
        StageStanding::Waits => report.because(format!(
            "`backout.toml` says that somebody decides: the stage {name} waits"
        )),
        StageStanding::Open | StageStanding::Done | StageStanding::Kept => report,
    };
    match stage.act {
        Some(act) => report.next_call(
            "bring the stage's work back with {}",
            [Call::of("redo").operations(&[act])],
        ),
        None => report.next_call("see the stages with {}", [Call::of("stage list")]),
    }
}

fn refused(refusal: &Refusal) -> Report {
    let report = Report::refused("the graph was not updated");
    match refusal {
        Refusal::Invalid { flaws, .. } => {
            let mut report = report.because(refusal);
            for flaw in flaws.iter().take(TOLD_MAX) {
                report = report.because(flaw);
            }
            report.next("put the object right and try again")
        }
        Refusal::Violated(written) => {
            let mut report = report.because(refusal);
            let broken = written.iter().flat_map(|node| {
                let broken = node.violations.iter();
                broken.map(|it| format!("{} {}: {} {}", node.kind, node.id, it.invariant, it.why))
            });
            for line in broken.take(TOLD_MAX) {
                report = report.because(line);
            }
            report
                .next("declare what it is bound to first, or in the same update")
                .next_call("see what is there with {}", [Call::of("graph show")])
        }
        Refusal::Conflict { .. } | Refusal::Unsaid { .. } => report.because(refusal).next_call(
            "see what is there now with {}, put your change into that, and import it; or say with `--expect` which version you follow",
            [Call::of("graph export")],
        ),
        Refusal::IsStep { .. } => report
            .because(refusal)
            .next("take the step out of its plan, and import the plan"),
        Refusal::Terminal { .. } => report
            .because(refusal)
            .next("make a new node; a rollback brings an old state back as a new version"),
        Refusal::ForeignEdge { .. } => report
            .because(refusal)
            .next("change the object that says so; edges follow from objects, but for PRODUCES"),
        Refusal::NoNode
        | Refusal::Duplicate { .. }
        | Refusal::KindChanged { .. }
        | Refusal::Unknown { .. }
        | Refusal::Cycle { .. }
        | Refusal::ForeignStep { .. }
        | Refusal::Dangling { .. }
        | Refusal::TooLarge => report
            .because(refusal)
            .next_call("see what is there with {}", [Call::of("graph show")]),
    }
}
