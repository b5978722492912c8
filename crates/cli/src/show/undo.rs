//! What an undo, a redo or a rollback did.

use std::fmt::Write as _;
use std::io;

use backout_engine::{
    Call, Engine, EngineError, Next, Report, TakeBack, Typed, UndoReport, UndoneStep, advice,
    redo_undone,
};
use backout_model::ports::Guarantee;
use backout_model::{
    AgentId, Climbed, LeftAlone, OperationId, OutcomeKind, PlanError, TargetOutcome, TargetPath,
    Tried,
};

use super::list::{FINE_MAX, abridged, hidden_line};
use super::{counted_of, failed, id, typed};
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
    /// How the operation was chosen, if nobody named it.
    pub(crate) chosen: Option<String>,
    /// Who asked, and how that is said where the operations are others' and were brought back by them.
    pub(crate) brought: Option<(AgentId, String)>,
    /// Which part was chosen, and other options that say what is meant.
    pub(crate) part: Typed,
    /// How a merge was asked for, and what else is to be done about what stands in the way.
    pub(crate) flags: Vec<String>,
    /// A name that is none of an operation: a task, a checkpoint.
    pub(crate) name: Option<Typed>,
    /// The command, if it is none of the three and takes work back on its way.
    pub(crate) command: Option<&'static str>,
}

/// Options that only an undo has.
const ONLY_UNDO: [&str; 3] = ["partial", "diff", "committed"];

impl Asked {
    /// An undo of whatever is newest.
    pub(crate) fn undo() -> Self {
        Self {
            words: Words::Undo,
            chosen: None,
            brought: None,
            part: Typed::default(),
            flags: Vec::new(),
            name: None,
            command: None,
        }
    }

    /// A command that takes work back on its way, with what was typed behind it.
    pub(crate) fn of_command(command: &'static str, typed: Typed) -> Self {
        Self {
            words: Words::Rollback,
            name: Some(typed),
            command: Some(command),
            ..Self::undo()
        }
    }

    /// The same of these operations: an agent's newest act may be to have brought back the work of others.
    pub(crate) fn about(&self, engine: &Engine, ids: impl Iterator<Item = OperationId>) -> Self {
        let mut asked = self.clone();
        if let Some((agent, brought)) = &self.brought {
            let operation = |id| engine.store().operation(id).ok().flatten();
            let mut found = ids.filter_map(operation);
            if !found.any(|it| it.agent.as_ref() == Some(agent)) {
                asked.chosen = Some(brought.clone());
            }
        }
        asked
    }

    /// Says how the operation was chosen, if nobody named it: it may be outside of what lies below a directory.
    pub(super) fn chosen_from(&self, is_outside: bool) -> Option<String> {
        let chosen = self.chosen.as_ref()?;
        Some(if is_outside && chosen.contains(" below ") {
            format!("{chosen} or outside of files")
        } else {
            chosen.clone()
        })
    }

    /// Gives the call that does the same to these operations, and to no others, whatever is newest then.
    pub(super) fn call(&self, ids: &[OperationId], options: &[&'static str]) -> Call {
        let verb = match self.words {
            _ if let Some(command) = self.command => command,
            Words::Undo => "undo",
            Words::Redo => "redo",
            Words::Rollback => "rollback",
        };
        let is_of_undo = options.iter().any(|it| ONLY_UNDO.contains(it));
        if self.command.is_some() && is_of_undo {
            return Call::of("undo").operations(ids).options(options);
        }
        let call = match &self.name {
            Some(name) => Call::of(verb).typed(name.clone()),
            None => Call::of(verb).operations(ids),
        };
        let is_forced = options.contains(&"force");
        let flags = self.flags.iter().map(String::as_str);
        let flags = flags.filter(|flag| !(is_forced && *flag == "--merge"));
        let flags: Vec<&str> = flags.collect();
        let typed = self.part.clone();
        let typed = if flags.is_empty() {
            typed
        } else {
            typed.and(&flags)
        };
        call.typed(typed).options(options)
    }
}

impl Words {
    /// Says what would be done, or would be refused as things stand.
    pub(super) const fn would(self, is_executable: bool) -> &'static str {
        match (self, is_executable) {
            (Self::Undo, true) => "would undo",
            (Self::Undo, false) => "would not undo",
            (Self::Redo, true) => "would redo",
            (Self::Redo, false) => "would not redo",
            (Self::Rollback, true) => "would roll back",
            (Self::Rollback, false) => "would not roll back",
        }
    }

    /// Says that a step was done. A plan may go both ways: a redo takes back what was written since.
    const fn did(self, way: TakeBack) -> &'static str {
        match (self, way) {
            (Self::Rollback, TakeBack::Undo) => "rolled back",
            (_, TakeBack::Undo) => "undid",
            (_, TakeBack::Redo) => "redid",
        }
    }

    const fn did_not(self, way: TakeBack) -> &'static str {
        match (self, way) {
            (Self::Rollback, TakeBack::Undo) => "did not roll back",
            (_, TakeBack::Undo) => "did not undo",
            (_, TakeBack::Redo) => "did not redo",
        }
    }
}

/// Shows what happened.
pub(crate) fn undone(session: &mut Session, engine: &Engine, report: &UndoReport, asked: &Asked) {
    if report.steps.is_empty() {
        session.ui.done("there was nothing to take back\n");
        return;
    }
    let fine_max = session.listed(FINE_MAX);
    let mut text = steps(report, &session.here, asked, fine_max);
    text.push_str(&left_alone(
        engine,
        &report.left_alone,
        &session.here,
        "stayed",
    ));
    session.ui.done(&text);
    let back = match asked.words {
        Words::Undo | Words::Rollback => "redo",
        Words::Redo => "undo",
    };
    // What found everything as it had to be has no way back.
    let mut outcomes = report.steps.iter().flat_map(|step| &step.outcomes);
    let is_change = |outcome: &TargetOutcome| match outcome.kind {
        OutcomeKind::AlreadyGone | OutcomeKind::Left { .. } => false,
        OutcomeKind::Restored
        | OutcomeKind::Compensated
        | OutcomeKind::Merged
        | OutcomeKind::Overwritten { .. }
        | OutcomeKind::Incomplete { .. }
        | OutcomeKind::Overtaken { .. }
        | OutcomeKind::Failed { .. }
        | OutcomeKind::Conflict { .. }
        | OutcomeKind::Skipped { .. }
        | OutcomeKind::InDoubt { .. } => true,
    };
    if let Some(act) = report.act.filter(|_| outcomes.any(is_change)) {
        let command = typed(&format!("{back} {}", act.short()));
        session.ui.hint(&format!("take this back with {command}"));
    }
    hint_undone(session, &report.left_alone);
}

/// Names the command that brings back what was undone since a checkpoint.
pub(super) fn hint_undone(session: &mut Session, left: &[LeftAlone]) {
    if let Some(call) = redo_undone(left) {
        let command = typed(&call.line());
        let hint = format!("bring back what was undone since with {command}");
        session.ui.hint(&hint);
    }
}

/// Reports what went wrong in the words of what was asked: the engine speaks of undoing operations.
pub(crate) fn report(error: EngineError, asked: &Asked) -> Report {
    let not_done = match asked.words {
        Words::Undo => "nothing was undone",
        Words::Redo => "nothing was redone",
        Words::Rollback => "nothing was rolled back",
    };
    let command = |ids: &[OperationId], options: &[&'static str]| asked.call(ids, options);
    let is_nothing_chosen = matches!(&error, EngineError::Plan(PlanError::NothingChosen { .. }));
    let Some(mut next) = advice(&error, &command) else {
        let mut report = Report::from(error);
        if is_nothing_chosen {
            not_done.clone_into(&mut report.what);
        }
        return report;
    };
    if asked.command == Some("resume") {
        next.push(Next::naming(
            "keep what was in flight with {}",
            [asked.call(&[], &["keep"])],
        ));
    }
    Report {
        what: not_done.to_owned(),
        next,
        ..Report::from(error)
    }
}

/// Tells whether nothing of a step is known to have happened, and nobody can look.
fn is_unseen(step: &UndoneStep) -> bool {
    let is_taken = |outcome: &TargetOutcome| outcome.kind.is_taken_back();
    step.guarantee == Guarantee::Compensating && !step.outcomes.iter().any(is_taken)
}

/// Says what became of each operation and of each of its targets.
pub(crate) fn steps(report: &UndoReport, here: &Here, asked: &Asked, fine_max: usize) -> String {
    let mut text = String::new();
    let steps = by_operation(report);
    for (number, step) in steps.iter().enumerate() {
        let (style, did) = match step.by {
            Some(_) => (PLAIN, asked.words.did(step.way).to_owned()),
            None if step.half_done.is_some() && is_unseen(step) => {
                (BAD, format!("perhaps {}", asked.words.did(step.way)))
            }
            None if step.half_done.is_some() => {
                (BAD, format!("{} a part of", asked.words.did(step.way)))
            }
            None => (BAD, asked.words.did_not(step.way).to_owned()),
        };
        let summary = here.shorten(&printable(&step.summary));
        let is_outside = |outcome: &TargetOutcome| outcome.target.file().is_none();
        let chosen = asked.chosen_from(step.outcomes.iter().any(is_outside));
        let chosen = chosen.filter(|_| number == 0);
        let chosen = chosen.map(|chosen| paint(DIM, &format!("  ({chosen})")));
        // Writing to a string cannot fail.
        let _written = writeln!(
            text,
            "{} {}  {}{}",
            paint(style, &did),
            id(step.id),
            paint(BOLD, &summary),
            chosen.unwrap_or_default()
        );
        let said = |outcome: &TargetOutcome| outcome.kind.to_string();
        let (shown, hidden) = abridged(&step.outcomes, fine_max, said);
        let rows = shown.into_iter().map(|outcome| {
            let path = here.target(&outcome.target);
            // What a later step touches again cannot be looked at any more.
            let later = steps.iter().skip(number + 1);
            let mut later = later.flat_map(|step| &step.outcomes);
            let is_touched = later.any(|it| it.target.overlap(&outcome.target).is_some());
            let is_restored = matches!(outcome.kind, OutcomeKind::Restored);
            let (is_touched, is_gone) = (
                is_restored && is_touched,
                is_restored && is_part_gone(step, outcome),
            );
            let said = match step.way {
                TakeBack::Undo if is_touched => "taken back".to_owned(),
                TakeBack::Redo if is_touched => "brought back".to_owned(),
                TakeBack::Undo if is_gone => "gone, as before".to_owned(),
                TakeBack::Redo if is_gone => "gone again".to_owned(),
                TakeBack::Undo | TakeBack::Redo => outcome_text(outcome, here, step.way),
            };
            vec![
                Cell::plain(format!("  {path}")),
                Cell::new(outcome_style(&outcome.kind), said),
            ]
        });
        text.push_str(&table(rows.collect(), None));
        text.push_str(&hidden_line("  ", hidden));
        if let Some(who) = &step.seen_by_others {
            let _written = writeln!(text, "  may have been seen by {}", printable(who));
        }
        for note in &step.notes {
            let _written = writeln!(text, "  note: {}", here.shorten(note));
        }
        // That there was nothing to try is told by `failed`.
        let is_tried = |it: &&Tried| !matches!(it.climbed, Climbed::NotPossible { .. });
        let tried: Vec<Tried> = step.tried.iter().filter(is_tried).cloned().collect();
        for line in failed::tried(&tried, here, false) {
            let _written = writeln!(text, "  tried: {line}");
        }
    }
    for note in &report.notes {
        let _written = writeln!(text, "note: {}", here.shorten(&printable(note)));
    }
    text
}

/// Tells whether a key, a row or another part of something is not there any more.
fn is_part_gone(step: &UndoneStep, outcome: &TargetOutcome) -> bool {
    let target = &outcome.target;
    let is_file = target.file().is_some() && target.key().parts().is_empty();
    !is_file && step.gone.contains(target)
}

/// Puts the steps of one operation together: it may have been brought back in several parts.
fn by_operation(report: &UndoReport) -> Vec<UndoneStep> {
    let mut steps: Vec<UndoneStep> = Vec::new();
    for step in &report.steps {
        let is_same = |other: &&mut UndoneStep| (other.id, other.way) == (step.id, step.way);
        match steps.last_mut().filter(is_same) {
            Some(last) if last.by.is_some() == step.by.is_some() => {
                last.outcomes.extend(step.outcomes.iter().cloned());
                last.notes.extend(step.notes.iter().cloned());
                last.tried.extend(step.tried.iter().cloned());
                last.gone.extend(step.gone.iter().cloned());
            }
            _ => steps.push(step.clone()),
        }
    }
    for step in &mut steps {
        step.outcomes
            .sort_by(|one, other| one.target.cmp(&other.target));
        // A file and the tree that took its place are one name to whoever reads it.
        step.outcomes.dedup_by(|one, other| {
            one.target.key() == other.target.key() && one.kind == other.kind
        });
    }
    steps
}

/// Says an outcome, by a look at the target: a restored file that is not there is one that the operation had made.
pub(super) fn outcome_text(outcome: &TargetOutcome, here: &Here, way: TakeBack) -> String {
    let is_there = match (outcome.target.file(), outcome.target.key().parts()) {
        (Some(path), []) => is_there(path),
        _ => Ok(true),
    };
    let Ok(is_there) = is_there else {
        return here.shorten(&printable(&outcome.kind.to_string()));
    };
    match (&outcome.kind, way, is_there) {
        (OutcomeKind::Restored, TakeBack::Redo, true) => "changed again".to_owned(),
        (OutcomeKind::Restored, TakeBack::Redo, false) => "gone again".to_owned(),
        (OutcomeKind::Restored, TakeBack::Undo, false) => "gone, as before".to_owned(),
        (OutcomeKind::AlreadyGone, TakeBack::Redo, _) => "already so".to_owned(),
        (OutcomeKind::Overwritten { why }, TakeBack::Undo | TakeBack::Redo, false) => {
            let why = here.shorten(&printable(why));
            format!("removed over a later change: {why}")
        }
        (OutcomeKind::Overwritten { why }, TakeBack::Redo, true) => {
            let why = here.shorten(&printable(why));
            format!("changed again over a later change: {why}")
        }
        (kind, _, _) => here.shorten(&printable(&kind.to_string())),
    }
}

/// Tells whether a name stands for something. Below a file or a link it does not: a target's path has no links in it.
fn is_there(path: &TargetPath) -> io::Result<bool> {
    let look = |path: &TargetPath| match path.as_path().symlink_metadata() {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let mut above: Vec<_> = path.ancestors().collect();
    while let Some(name) = above.pop() {
        if !look(&name)?.is_some_and(|found| found.is_dir()) {
            return Ok(false);
        }
    }
    Ok(look(path)?.is_some())
}

/// The colour of an outcome.
pub(super) const fn outcome_style(kind: &OutcomeKind) -> anstyle::Style {
    match kind {
        OutcomeKind::Restored | OutcomeKind::Compensated | OutcomeKind::Merged => GOOD,
        OutcomeKind::AlreadyGone => DIM,
        OutcomeKind::Overwritten { .. }
        | OutcomeKind::Incomplete { .. }
        | OutcomeKind::Overtaken { .. }
        | OutcomeKind::Left { .. }
        | OutcomeKind::Skipped { .. } => WARN,
        OutcomeKind::Conflict { .. } | OutcomeKind::Failed { .. } | OutcomeKind::InDoubt { .. } => {
            BAD
        }
    }
}

/// Lists what stays.
pub(super) fn left_alone(engine: &Engine, left: &[LeftAlone], here: &Here, stay: &str) -> String {
    let (mut later, mut undone) = (Vec::new(), Vec::new());
    for left in left {
        match left {
            LeftAlone::Independent { .. }
            | LeftAlone::Merges { .. }
            | LeftAlone::Depends { .. }
            | LeftAlone::ReadsTheSame { .. }
            | LeftAlone::GoesAgain { .. } => later.push(left),
            LeftAlone::UndoneSince { .. } => undone.push(left),
            // What is undone already is no news.
            LeftAlone::NotInEffect { .. } => {}
        }
    }
    let later = listed(engine, &later, here, ("later operation", stay));
    let undone = listed(
        engine,
        &undone,
        here,
        ("older operation", &format!("{stay} undone")),
    );
    later + &undone
}

fn listed(engine: &Engine, left: &[&LeftAlone], here: &Here, (what, stay): (&str, &str)) -> String {
    if left.is_empty() {
        return String::new();
    }
    let mut text = format!("{} {stay}:\n", counted_of(left, what));
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
