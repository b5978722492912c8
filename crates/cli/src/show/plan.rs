//! What an undo, a redo or a rollback would do, and what to type next.

use std::collections::HashSet;

use backout_engine::{
    Engine, PlanView, PlannedStep, PlannedTarget, TakeBack, TargetState, force_options,
    word_options,
};
use backout_model::Chosen;
use backout_model::ports::Guarantee;

use super::diff::full;
use super::list::{FINE_MAX, abridged, hidden_line};
use super::undo::{Asked, hint_undone, left_alone};
use super::values::Between;
use super::{counted_of, id, typed};
use crate::paths::Here;
use crate::session::Session;
use crate::ui::{BAD, BOLD, Cell, DIM, GOOD, WARN, paint, printable, table};

/// Shows what would happen, and what to type next.
pub(crate) fn plan(session: &mut Session, engine: &Engine, plan: &PlanView, asked: &Asked) {
    let steps = by_operation(&plan.steps);
    if steps.is_empty() {
        session.ui.done("there is nothing to take back\n");
        return;
    }
    let number = counted_of(&steps, "operation");
    let is_undo = |step: &PlannedStep| step.way == TakeBack::Undo;
    let order = match steps.len() {
        0 | 1 => "",
        _ if steps.iter().all(is_undo) => ", newest first",
        _ => ", in this order",
    };
    let mut targets = steps.iter().flat_map(|step| &step.targets);
    let is_outside = targets.any(|it| it.target.file().is_none());
    let chosen = asked.chosen_from(is_outside);
    let chosen = chosen.map(|chosen| paint(DIM, &format!("  ({chosen})")));
    let mut text = format!(
        "{} {number}{order}:{}\n",
        asked.words.would(does_something(plan)),
        chosen.unwrap_or_default()
    );
    let first = steps.first().map(|step| step.way);
    let is_mixed = steps.iter().any(|step| Some(step.way) != first);
    let fine_max = session.listed(FINE_MAX);
    for step in &steps {
        text.push_str(&planned(step, plan, is_mixed, &session.here, fine_max));
    }
    text.push_str(&left_alone(
        engine,
        &plan.left_alone,
        &session.here,
        "would stay",
    ));
    if let Some(diff) = &plan.diff {
        let is_seen = session.ui.is_terminal();
        let is_all = session.global.verbose;
        for (title, files, between) in [
            ("would change back:", &diff.back, Between::NowAndThen),
            (
                "somebody else changed since:",
                &diff.theirs,
                Between::LeftAndNow,
            ),
        ] {
            if !files.is_empty() {
                text.extend(["\n", &paint(BOLD, title), "\n"]);
                text.push_str(&full(files, &session.here, is_seen, (between, is_all)));
            }
        }
    }
    session.ui.page();
    session.ui.print(&text);
    for hint in next(plan, asked) {
        session.ui.hint(&hint);
    }
    hint_undone(session, &plan.left_alone);
}

/// Puts the steps of one operation together: it may have been brought back in several parts.
fn by_operation(planned: &[PlannedStep]) -> Vec<PlannedStep> {
    let mut steps: Vec<PlannedStep> = Vec::with_capacity(planned.len());
    for step in planned {
        let is_same = |other: &&mut PlannedStep| (other.id, other.way) == (step.id, step.way);
        match steps.last_mut().filter(is_same) {
            Some(last) => last.targets.extend(step.targets.iter().cloned()),
            None => steps.push(step.clone()),
        }
    }
    for step in &mut steps {
        step.targets
            .sort_by(|one, other| one.target.cmp(&other.target));
    }
    steps
}

fn planned(
    step: &PlannedStep,
    plan: &PlanView,
    is_mixed: bool,
    here: &Here,
    fine_max: usize,
) -> String {
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
        text.extend(["  ", way]);
    }
    let summary = here.shorten(&printable(&step.summary));
    text.extend(["  ", &paint(BOLD, &summary)]);
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
    text.push_str(&targets(step, here, fine_max));
    if let Some(who) = &step.seen_by_others {
        let line = format!("            may have been seen by {}", printable(who));
        text.extend([paint(DIM, &line), "\n".to_owned()]);
    }
    text
}

/// Shows how targets stand against what an undo expects.
fn targets(step: &PlannedStep, here: &Here, fine_max: usize) -> String {
    let way = step.way;
    let is_answered = step.guarantee == Guarantee::Compensating;
    let said = |planned: &PlannedTarget| planned.state.hindrance().cloned().unwrap_or_default();
    let (shown, hidden) = abridged(&step.targets, fine_max, said);
    let shown_why = |why: &str| here.shorten(&printable(why));
    // A name and the tree that it leads to are two targets, and one line.
    let mut told = HashSet::new();
    let rows = shown.into_iter().filter_map(|planned| {
        let path = here.target(&planned.target);
        let (style, said) = match &planned.state {
            TargetState::ComesBack if is_answered => (GOOD, "will be compensated".to_owned()),
            TargetState::AfterNewerStep if is_answered => {
                (GOOD, "will be compensated, after a step above".to_owned())
            }
            TargetState::ComesBack if way == TakeBack::Redo && planned.goes => {
                (GOOD, "will be gone again".to_owned())
            }
            TargetState::AfterNewerStep if way == TakeBack::Redo && planned.goes => {
                (GOOD, "will be gone again, after a step above".to_owned())
            }
            TargetState::Overwritten { why } if planned.goes => {
                (WARN, format!("will be removed: {}", shown_why(why)))
            }
            TargetState::ComesBack if way == TakeBack::Redo => {
                (GOOD, "will be changed again".to_owned())
            }
            TargetState::ComesBack => (GOOD, "will be as before".to_owned()),
            TargetState::AlreadyBefore if way == TakeBack::Redo => {
                (DIM, "is so already".to_owned())
            }
            TargetState::AlreadyBefore => (DIM, "is as before already".to_owned()),
            TargetState::Left { why } => {
                (WARN, format!("will be left as it is: {}", shown_why(why)))
            }
            TargetState::AfterNewerStep if way == TakeBack::Redo => {
                (GOOD, "will be changed again, after a step above".to_owned())
            }
            TargetState::AfterNewerStep => {
                (GOOD, "will be as before, after a step above".to_owned())
            }
            TargetState::Merges => (GOOD, "merges: only this change is taken out".to_owned()),
            TargetState::Overwritten { why } => {
                (WARN, format!("will be overwritten: {}", shown_why(why)))
            }
            TargetState::Incomplete { why } => {
                (WARN, format!("will be as before, but {}", shown_why(why)))
            }
            TargetState::Conflict { why } => (BAD, format!("conflict: {}", shown_why(why))),
            TargetState::CannotComeBack { why } => {
                (BAD, format!("cannot be brought back: {}", shown_why(why)))
            }
        };
        let is_new = told.insert((path.clone(), said.clone()));
        is_new.then(|| {
            vec![
                Cell::plain("          "),
                Cell::plain(path),
                Cell::new(style, said),
            ]
        })
    });
    table(rows.collect(), None) + &hidden_line("            ", hidden)
}

/// Tells whether a plan can be carried out, and not only as far as nothing of it.
fn does_something(plan: &PlanView) -> bool {
    let mut targets = plan.steps.iter().flat_map(|step| &step.targets).peekable();
    let is_free = |target: &PlannedTarget| target.state.hindrance().is_none();
    plan.is_executable && (targets.peek().is_none() || targets.any(is_free))
}

fn next(plan: &PlanView, asked: &Asked) -> Vec<String> {
    let command = |options: &[&'static str]| typed(&asked.call(&plan.named, options).line());
    if does_something(plan) {
        return vec![format!("do it with {}", command(&[]))];
    }
    let mut hints = Vec::new();
    // What needs a word needs it whatever else is said.
    let words = word_options(plan);
    let with = |options: &[&'static str]| command(&[&words, options].concat());
    let is_conflict = |target: &PlannedTarget| matches!(target.state, TargetState::Conflict { .. });
    let targets = || plan.steps.iter().flat_map(|step| &step.targets);
    let has_conflict = targets().any(is_conflict);
    if !words.is_empty() && !has_conflict {
        hints.push(format!("take them back as well with {}", with(&[])));
    }
    if plan.is_mergeable {
        hints.push(format!(
            "take out only this change with {}",
            command(&["merge"])
        ));
    }
    let is_lost =
        |target: &PlannedTarget| matches!(target.state, TargetState::CannotComeBack { .. });
    let has_lost = targets().any(is_lost);
    if (has_conflict || has_lost) && plan.has_rest {
        hints.push(format!("do the rest with {}", with(&["partial"])));
    }
    if let Some(options) = force_options(plan.force) {
        hints.push(format!(
            "do it anyway, keeping what is there now, with {}",
            with(options)
        ));
    }
    if hints.is_empty() && !words.is_empty() {
        hints.push(format!("take them back as well with {}", with(&[])));
    }
    hints
}
