//! What an undo, a redo or a rollback would do, and what it did.

use std::fmt::Write as _;

use backout_engine::{Engine, PlanView, PlannedStep, PlannedTarget, TargetState, UndoReport};
use backout_model::{Chosen, LeftAlone, OperationId, OutcomeKind};

use super::{counted_of, id, typed};
use crate::paths::Here;
use crate::session::Session;
use crate::ui::{ACCENT, BAD, BOLD, Cell, DIM, GOOD, PLAIN, WARN, paint, printable, table};

/// How many operations that stay are named.
const LEFT_ALONE_MAX: usize = 5;

/// Which of the three was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// Take operations back.
    Undo,
    /// Bring back what was taken back.
    Redo,
    /// Take back a task, or down to a checkpoint.
    Rollback,
}

/// What was asked, and how it was typed, without the dry run.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Which of the three.
    pub(crate) words: Words,
    /// The command line without `backout` and `--dry-run`.
    pub(crate) typed: String,
}

impl Asked {
    /// An undo of whatever is newest.
    pub(crate) fn undo() -> Self {
        Self {
            words: Words::Undo,
            typed: "undo".to_owned(),
        }
    }
}

impl Words {
    const fn would(self) -> &'static str {
        match self {
            Self::Undo => "would undo",
            Self::Redo => "would redo",
            Self::Rollback => "would roll back",
        }
    }

    const fn did(self) -> &'static str {
        match self {
            Self::Undo => "undid",
            Self::Redo => "redid",
            Self::Rollback => "rolled back",
        }
    }

    const fn did_not(self) -> &'static str {
        match self {
            Self::Undo => "did not undo",
            Self::Redo => "did not redo",
            Self::Rollback => "did not roll back",
        }
    }

    /// The undo that a redo takes back is no news: what was undone is.
    fn summary(self, summary: &str, here: &Here) -> String {
        let summary = match self {
            Self::Redo => summary.strip_prefix("undo of ").unwrap_or(summary),
            Self::Undo | Self::Rollback => summary,
        };
        here.shorten(&printable(summary))
    }
}

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

/// A redo takes an undo back, but is about what that had undone.
fn subject(engine: &Engine, id: OperationId, words: Words) -> OperationId {
    let undo = match words {
        Words::Redo => engine.store().operation(id).ok().flatten(),
        Words::Undo | Words::Rollback => None,
    };
    undo.and_then(|undo| undo.undoes).unwrap_or(id)
}

/// Shows how targets stand against what an undo expects.
fn targets(targets: &[PlannedTarget], here: &Here, words: Words) -> String {
    let rows = targets.iter().map(|planned| {
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
    table(rows.collect(), None)
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

/// Shows what happened.
pub(crate) fn undone(session: &mut Session, engine: &Engine, report: &UndoReport, words: Words) {
    if report.steps.is_empty() {
        session.ui.done("there was nothing to take back\n");
        return;
    }
    let mut text = steps(engine, report, &session.here, words);
    text.push_str(&left_alone(
        engine,
        &report.left_alone,
        &session.here,
        "stayed",
    ));
    session.ui.done(&text);
    let back = match words {
        Words::Undo | Words::Rollback => "redo",
        Words::Redo => "undo",
    };
    session
        .ui
        .hint(&format!("take this back with {}", typed(back)));
}

/// Says what became of each operation and of each of its targets.
pub(crate) fn steps(engine: &Engine, report: &UndoReport, here: &Here, words: Words) -> String {
    let mut text = String::new();
    for step in &report.steps {
        let (style, did) = match step.by {
            Some(_) => (PLAIN, words.did()),
            None => (BAD, words.did_not()),
        };
        let summary = words.summary(&step.summary, here);
        // Writing to a string cannot fail.
        let _written = writeln!(
            text,
            "{} {}  {}",
            paint(style, did),
            id(subject(engine, step.id, words)),
            paint(BOLD, &summary)
        );
        let rows = step.outcomes.iter().map(|outcome| {
            let path = here.show(outcome.target.path().as_path());
            let said = here.shorten(&printable(&outcome.kind.to_string()));
            vec![
                Cell::plain(format!("  {path}")),
                Cell::new(outcome_style(&outcome.kind), said),
            ]
        });
        text.push_str(&table(rows.collect(), None));
    }
    text
}

/// The colour of an outcome.
pub(super) const fn outcome_style(kind: &OutcomeKind) -> anstyle::Style {
    match kind {
        OutcomeKind::Restored | OutcomeKind::Compensated | OutcomeKind::Merged => GOOD,
        OutcomeKind::AlreadyGone => DIM,
        OutcomeKind::Skipped { .. } => WARN,
        OutcomeKind::Conflict { .. } | OutcomeKind::Failed { .. } | OutcomeKind::InDoubt { .. } => {
            BAD
        }
    }
}

fn left_alone(engine: &Engine, left: &[LeftAlone], here: &Here, stay: &str) -> String {
    // What is undone already is no news.
    let stays = |left: &&LeftAlone| !matches!(left, LeftAlone::NotInEffect { .. });
    let left: Vec<&LeftAlone> = left.iter().filter(stays).collect();
    if left.is_empty() {
        return String::new();
    }
    let mut text = format!("{} {stay}:\n", counted_of(&left, "later operation"));
    let rows = left.iter().take(LEFT_ALONE_MAX).map(|left| {
        let operation = engine.store().operation(left.id()).ok().flatten();
        let summary = operation
            .map(|operation| operation.summary)
            .unwrap_or_default();
        vec![
            Cell::plain("  ").and(ACCENT, left.id().short()),
            Cell::plain(here.shorten(&printable(&summary))),
            Cell::new(DIM, left.to_string()),
        ]
    });
    text.push_str(&table(rows.collect(), None));
    if left.len() > LEFT_ALONE_MAX {
        let _written = writeln!(text, "  and {} more", left.len() - LEFT_ALONE_MAX);
    }
    text
}
