//! What an undo, a redo or a rollback would do, and what to type next.

use backout_engine::{Engine, PlanView, PlannedStep, PlannedTarget, TakeBack, TargetState};
use backout_model::Chosen;

use super::undo::{Asked, abridged, hidden_line, left_alone};
use super::{counted_of, id, typed};
use crate::paths::Here;
use crate::session::Session;
use crate::ui::{BAD, BOLD, Cell, DIM, GOOD, WARN, paint, printable, table};

/// Shows what would happen, and what to type next.
pub(crate) fn plan(session: &mut Session, engine: &Engine, plan: &PlanView, asked: &Asked) {
    let number = counted_of(&plan.steps, "operation");
    let order = if plan.steps.len() > 1 {
        ", newest first"
    } else {
        ""
    };
    let chosen = asked.chosen.as_ref();
    let chosen = chosen.map(|chosen| paint(DIM, &format!("  ({chosen})")));
    let mut text = format!(
        "{} {number}{order}:{}\n",
        asked.words.would(),
        chosen.unwrap_or_default()
    );
    let is_mixed = plan.steps.iter().any(|step| step.way != plan.steps[0].way);
    for step in &plan.steps {
        text.push_str(&planned(step, plan, is_mixed, &session.here));
    }
    text.push_str(&left_alone(
        engine,
        &plan.left_alone,
        &session.here,
        "would stay",
    ));
    session.ui.print(&text);
    for hint in next(plan, asked) {
        session.ui.hint(&hint);
    }
}

fn planned(step: &PlannedStep, plan: &PlanView, is_mixed: bool, here: &Here) -> String {
    let why = match &step.chosen {
        Chosen::Named => String::new(),
        Chosen::DependsOn { on, reason } => format!("depends on {}: {reason}", on.short()),
        Chosen::DependencyOf { of, reason } => format!("{} depends on it: {reason}", of.short()),
    };
    let mut text = format!("  {}", id(step.id));
    if is_mixed {
        let way = match step.way {
            TakeBack::Undo => "undo",
            TakeBack::Redo => "redo",
        };
        text.push_str(&format!("  {way}"));
    }
    let summary = here.shorten(&printable(&step.summary));
    text.push_str(&format!("  {}", paint(BOLD, &summary)));
    if !why.is_empty() {
        text.push_str(&paint(DIM, &format!("  {why}")));
    }
    for (ids, needs) in [
        (
            &plan.needs_committed,
            "  of a committed task: needs --committed",
        ),
        (&plan.needs_others, "  another agent's: needs --others"),
    ] {
        if ids.contains(&step.id) {
            text.push_str(&paint(WARN, needs));
        }
    }
    text.push('\n');
    text.push_str(&targets(&step.targets, here, step.way));
    text
}

/// Shows how targets stand against what an undo expects.
fn targets(targets: &[PlannedTarget], here: &Here, way: TakeBack) -> String {
    let is_fine = |planned: &PlannedTarget| planned.state.hindrance().is_none();
    let (shown, hidden) = abridged(targets, is_fine);
    let rows = shown.into_iter().map(|planned| {
        let path = here.show(planned.target.path().as_path());
        let (style, said) = match &planned.state {
            TargetState::ComesBack if way == TakeBack::Redo => {
                (GOOD, "will be changed again".to_owned())
            }
            TargetState::ComesBack => (GOOD, "will be as before".to_owned()),
            TargetState::AlreadyBefore if way == TakeBack::Redo => {
                (DIM, "is so already".to_owned())
            }
            TargetState::AlreadyBefore => (DIM, "is as before already".to_owned()),
            TargetState::AfterNewerStep if way == TakeBack::Redo => {
                (GOOD, "will be changed again, after a step above".to_owned())
            }
            TargetState::AfterNewerStep => {
                (GOOD, "will be as before, after a step above".to_owned())
            }
            TargetState::Merges => (GOOD, "merges: only this change is taken out".to_owned()),
            TargetState::Overwritten { why } => {
                (WARN, format!("will be overwritten: {}", printable(why)))
            }
            TargetState::Conflict { why } => (BAD, format!("conflict: {}", printable(why))),
            TargetState::CannotComeBack { why } => {
                (BAD, format!("cannot be brought back: {}", printable(why)))
            }
        };
        vec![
            Cell::plain("          "),
            Cell::plain(path),
            Cell::new(style, said),
        ]
    });
    table(rows.collect(), None) + &hidden_line("            ", hidden)
}

fn next(plan: &PlanView, asked: &Asked) -> Vec<String> {
    let command = |flag: &str| typed(&asked.command(&plan.named, flag));
    if plan.is_executable {
        return vec![format!("do it with {}", command(""))];
    }
    let mut hints = Vec::new();
    let mut flags = String::new();
    if !plan.needs_committed.is_empty() {
        flags.push_str(" --committed");
    }
    if !plan.needs_others.is_empty() {
        flags.push_str(" --others");
    }
    if !flags.is_empty() {
        hints.push(format!("take them back as well with {}", command(&flags)));
    }
    let is_conflict = |target: &PlannedTarget| matches!(target.state, TargetState::Conflict { .. });
    let targets = || plan.steps.iter().flat_map(|step| &step.targets);
    if !targets().any(is_conflict) {
        if targets().any(|target| target.state.hindrance().is_some()) {
            hints.push(format!("take back the rest with {}", command(" --partial")));
        }
    } else {
        if !asked.flags.contains("--merge") {
            hints.push(format!(
                "take out only this change with {}",
                command(" --merge")
            ));
        }
        hints.push(format!("take back the rest with {}", command(" --partial")));
        hints.push(format!(
            "restore anyway, keeping what is there now, with {}",
            command(" --force").replace(" --merge", "")
        ));
    }
    hints
}
