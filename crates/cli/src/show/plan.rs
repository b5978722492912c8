//! What an undo, a redo or a rollback would do, and what to type next.

use backout_engine::{Engine, PlanView, PlannedStep, PlannedTarget, TargetState};
use backout_model::Chosen;

use super::undo::{Asked, Words, abridged, hidden_line, left_alone, subject};
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
    let mut text = format!("{} {number}{order}:\n", asked.words.would());
    for step in &plan.steps {
        text.push_str(&planned(engine, step, plan, asked.words, &session.here));
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

fn planned(
    engine: &Engine,
    step: &PlannedStep,
    plan: &PlanView,
    words: Words,
    here: &Here,
) -> String {
    let why = match &step.step.chosen {
        Chosen::Named => String::new(),
        Chosen::DependsOn { on, reason } => format!("depends on {}: {reason}", on.short()),
        Chosen::DependencyOf { of, reason } => format!("{} depends on it: {reason}", of.short()),
    };
    let needs = plan.needs_committed.contains(&step.step.id);
    let committed = if needs {
        paint(WARN, "  committed: needs --committed")
    } else {
        String::new()
    };
    let summary = words.summary(&step.summary, here);
    let mut text = format!(
        "  {}  {}",
        id(subject(engine, step.step.id, words)),
        paint(BOLD, &summary)
    );
    if !why.is_empty() {
        text.push_str(&paint(DIM, &format!("  {why}")));
    }
    text.push_str(&committed);
    text.push('\n');
    text.push_str(&targets(&step.targets, here, words));
    text
}

/// Shows how targets stand against what an undo expects.
fn targets(targets: &[PlannedTarget], here: &Here, words: Words) -> String {
    let is_fine = |planned: &PlannedTarget| !matches!(planned.state, TargetState::Conflict { .. });
    let (shown, hidden) = abridged(targets, is_fine);
    let rows = shown.into_iter().map(|planned| {
        let path = here.show(planned.target.path().as_path());
        let (style, said) = match &planned.state {
            TargetState::ComesBack if words == Words::Redo => {
                (GOOD, "will be changed again".to_owned())
            }
            TargetState::ComesBack => (GOOD, "will be as before".to_owned()),
            TargetState::AlreadyBefore if words == Words::Redo => {
                (DIM, "is changed already".to_owned())
            }
            TargetState::AlreadyBefore => (DIM, "is as before already".to_owned()),
            TargetState::AfterNewerStep => {
                (GOOD, "will be as before, after the step above".to_owned())
            }
            TargetState::Merges => (GOOD, "merges: only this change is taken out".to_owned()),
            TargetState::Overwritten { why } => {
                (WARN, format!("will be overwritten: {}", printable(why)))
            }
            TargetState::Conflict { why } => (BAD, format!("conflict: {}", printable(why))),
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
    let command = |flag: &str| typed(&format!("{}{flag}", asked.typed));
    if plan.is_executable {
        return vec![format!("do it with {}", command(""))];
    }
    let mut hints = Vec::new();
    if !plan.needs_committed.is_empty() {
        hints.push(format!(
            "take the committed operations back as well with {}",
            command(" --committed")
        ));
    }
    let is_conflict = |target: &PlannedTarget| matches!(target.state, TargetState::Conflict { .. });
    if plan
        .steps
        .iter()
        .any(|step| step.targets.iter().any(is_conflict))
    {
        hints.push(format!(
            "take out only this change with {}",
            command(" --merge")
        ));
        hints.push(format!(
            "restore anyway, keeping what is there now, with {}",
            command(" --force")
        ));
        if plan.steps.len() > 1 {
            hints.push(format!(
                "take back what can be with {}",
                command(" --partial")
            ));
        }
    }
    hints
}
