//! What an undo, a redo or a rollback did.

use std::fmt::Write as _;

use backout_engine::{Engine, EngineError, Report, UndoReport};
use backout_model::{LeftAlone, OperationId, OutcomeKind, PlanError, TargetOutcome};

use super::{counted_of, id, typed};
use crate::paths::Here;
use crate::session::Session;
use crate::ui::{ACCENT, BAD, BOLD, Cell, DIM, GOOD, PLAIN, WARN, paint, printable, table};

/// How many operations that stay are named.
const LEFT_ALONE_MAX: usize = 5;

/// How many targets that are in order are named for one operation.
const TARGETS_MAX: usize = 10;

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
    pub(super) const fn would(self) -> &'static str {
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
    pub(super) fn summary(self, summary: &str, here: &Here) -> String {
        let summary = match self {
            Self::Redo => summary.strip_prefix("undo of ").unwrap_or(summary),
            Self::Undo | Self::Rollback => summary,
        };
        here.shorten(&printable(summary))
    }
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

/// A redo takes an undo back, but is about what that had undone.
pub(super) fn subject(engine: &Engine, id: OperationId, words: Words) -> OperationId {
    let undo = match words {
        Words::Redo => engine.store().operation(id).ok().flatten(),
        Words::Undo | Words::Rollback => None,
    };
    undo.and_then(|undo| undo.undoes).unwrap_or(id)
}

/// Reports what went wrong in the words of what was asked: the engine speaks of undoing operations.
pub(crate) fn report(error: EngineError, asked: &Asked) -> Report {
    let not_done = match asked.words {
        Words::Undo => return Report::from(error),
        Words::Redo => "nothing was redone",
        Words::Rollback => "nothing was rolled back",
    };
    let command = |flag: &str| format!("`backout {} {flag}`", asked.typed);
    let next = match &error {
        EngineError::Conflicts { .. } => vec![
            format!("take out only this change with {}", command("--merge")),
            format!(
                "restore anyway with {} (what is there now is kept)",
                command("--force")
            ),
            format!("see the plan with {}", command("--dry-run")),
        ],
        EngineError::NeedsCommitted(_) => vec![
            format!("take them back as well with {}", command("--committed")),
            format!("see the plan with {}", command("--dry-run")),
        ],
        EngineError::Plan(PlanError::Nothing) if asked.words == Words::Redo => {
            let report = Report::refused("there is nothing to redo");
            return report.next("see what was undone with `backout log`");
        }
        _ => return Report::from(error),
    };
    Report {
        what: not_done.to_owned(),
        next,
        ..Report::from(error)
    }
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
        let (shown, hidden) = abridged(&step.outcomes, |outcome| outcome.kind.is_settled());
        let rows = shown.into_iter().map(|outcome| {
            let path = here.show(outcome.target.path().as_path());
            let said = outcome_text(outcome, here, words);
            vec![
                Cell::plain(format!("  {path}")),
                Cell::new(outcome_style(&outcome.kind), said),
            ]
        });
        text.push_str(&table(rows.collect(), None));
        text.push_str(&hidden_line("  ", hidden));
        for note in &step.notes {
            let _written = writeln!(text, "  note: {}", here.shorten(note));
        }
    }
    text
}

/// Chooses what of a long list is shown: everything that is out of order, and of the rest the first few.
pub(super) fn abridged<T>(items: &[T], is_fine: impl Fn(&T) -> bool) -> (Vec<&T>, usize) {
    let mut fine = 0;
    let shown: Vec<&T> = items
        .iter()
        .filter(|item| {
            fine += usize::from(is_fine(item));
            !is_fine(item) || fine <= TARGETS_MAX
        })
        .collect();
    let hidden = items.len() - shown.len();
    (shown, hidden)
}

/// Counts what is not shown.
pub(super) fn hidden_line(indent: &str, hidden: usize) -> String {
    if hidden == 0 {
        String::new()
    } else {
        format!("{indent}and {hidden} more like these (all of them with `--json`)\n")
    }
}

/// Says an outcome. A restored target that is not there is one that the operation had made.
pub(super) fn outcome_text(outcome: &TargetOutcome, here: &Here, words: Words) -> String {
    let is_there = outcome.target.path().as_path().symlink_metadata().is_ok();
    match (&outcome.kind, words, is_there) {
        (OutcomeKind::Restored, Words::Redo, true) => "changed again".to_owned(),
        (OutcomeKind::Restored, Words::Redo, false) => "gone again".to_owned(),
        (OutcomeKind::Restored, _, false) => "gone, as before".to_owned(),
        (kind, _, _) => here.shorten(&printable(&kind.to_string())),
    }
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

/// Lists what stays.
pub(super) fn left_alone(engine: &Engine, left: &[LeftAlone], here: &Here, stay: &str) -> String {
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
