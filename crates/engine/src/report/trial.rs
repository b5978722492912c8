//! Reports of what can be wrong with trials. Nothing real was changed.

use backout_capture::overlay::OverlayError;
use backout_model::OperationId;

use super::{Call, Next, Report, program};
use crate::TrialError;

/// What works where layers do not.
fn run() -> Next {
    Next::naming(
        "run it for real, with every change recorded before it happens: {}",
        [Call::of("run").blank("-- COMMAND")],
    )
}

/// What to do where the kernel or its settings say no.
const ALLOW: &str = "allow user namespaces (sysctl user.max_user_namespaces), or try it as root";

pub(super) fn report(error: &TrialError) -> Report {
    match error {
        TrialError::Layers(error) => layers(error),
        TrialError::NotStarted { program, source } => program::not_started(program, source),
        TrialError::Which { name, found } => which(name.as_deref(), *found),
        TrialError::Lost { id } => lost(*id),
        TrialError::Unfinished { id, is_running } => unfinished(*id, *is_running),
        TrialError::Unreadable { id, why } => unreadable(*id, why),
        TrialError::AllReal { .. } => all_real(),
        TrialError::NothingChosen { id } => nothing_chosen(*id),
    }
}

fn layers(error: &OverlayError) -> Report {
    let report = Report::refused("the command was not run").because(error);
    let report = report.because_of_causes(error);
    match error {
        OverlayError::Impossible { .. } => report.next(run()).next(ALLOW),
        OverlayError::NoPlace { tried } => tried
            .iter()
            .fold(report, Report::because)
            .next("put the state directory on a disk or a tmpfs with `--state-dir`")
            .next(run()),
        OverlayError::Unreadable { .. }
        | OverlayError::Unmakable { .. }
        | OverlayError::NotStarted { .. }
        | OverlayError::Lost { .. } => report.next(run()),
    }
}

fn which(name: Option<&str>, found: usize) -> Report {
    let list = Next::naming("see them with {}", [Call::of("try").option("list")]);
    match (name, found) {
        (None, 0) => Report::refused("no trial waits for a decision").next_call(
            "try a command with {}",
            [Call::of("try").blank("-- COMMAND")],
        ),
        (None, found) => Report::usage("it is not clear which trial is meant")
            .because(format!("{found} trials wait for a decision"))
            .next(list),
        (Some(name), 0) => Report::refused(format!("there is no trial `{name}`")).next(list),
        (Some(name), _) => Report::usage(format!("`{name}` names more than one trial"))
            .next("give more digits")
            .next(list),
    }
}

fn lost(id: OperationId) -> Report {
    Report::refused(format!("the trial {} cannot be used any more", id.short()))
        .because("the machine was started anew, and what a trial writes is not synced")
        .next(discard(id))
        .next("run the command again")
}

fn unfinished(id: OperationId, is_running: bool) -> Report {
    let report = Report::refused(format!("the trial {} has not ended", id.short()));
    if is_running {
        report
            .because("its command still runs")
            .next("wait for it, or end it")
    } else {
        report
            .because("its process died, and nobody saw the end of the command")
            .next(discard(id))
    }
}

fn unreadable(id: OperationId, why: &str) -> Report {
    Report::refused(format!("the trial {} cannot be read", id.short()))
        .because(why)
        .next(discard(id))
}

fn all_real() -> Report {
    Report::refused("there is nothing left to apply, and the trial is over")
        .because("all that it changed is real already")
        .next_call("see what made it so with {}", [Call::of("log")])
}

fn nothing_chosen(id: OperationId) -> Report {
    Report::refused("nothing was applied")
        .because("no change matches what was chosen")
        .next_call(
            "see what there is with {}",
            [Call::of("try").option("show").operation(id)],
        )
}

fn discard(id: OperationId) -> Next {
    let call = Call::of("try").option("discard").operation(id);
    Next::naming("let it go with {}", [call])
}
