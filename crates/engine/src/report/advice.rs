//! What to do about an undo that stopped before it began. What was just tried, or would not help, is no advice.

use backout_model::OperationId;
use backout_model::ports::OnConflict;

use super::{Call, Next};
use crate::{EngineError, Forcing, PlanView};

/// Gives a call for some operations, with options.
pub(super) type Commander<'c> = &'c dyn Fn(&[OperationId], &[&'static str]) -> Call;

/// Gives what to do about a conflict or a plan that needs a word, best first; none for other errors. `command` gives the
/// same call once more, with options.
pub fn advice(
    error: &EngineError,
    command: &dyn Fn(&[OperationId], &[&'static str]) -> Call,
) -> Option<Vec<Next>> {
    if let EngineError::NeedsWord(view) = error {
        return Some(word_advice(view, command));
    }
    let EngineError::Conflicts {
        targets,
        named,
        tried,
        is_mergeable,
        force,
        has_rest,
    } = error
    else {
        return None;
    };
    let say = |text: &str, options: &[&'static str]| Next::naming(text, [command(named, options)]);
    let mut next = Vec::new();
    let is_lost = targets.iter().all(|target| target.is_lost);
    if !is_lost {
        next.push(say(
            "see what would change back, and what others changed, with {}",
            &["dry-run", "diff"],
        ));
    }
    let mut wholes = targets.iter().filter_map(|target| target.whole_by);
    let whole_by = wholes.next();
    if let Some(whole) = whole_by {
        next.push(Next::naming(
            "take that back first with {}",
            [Call::undo(&[whole])],
        ));
    }
    if *is_mergeable {
        next.push(say("take out only this change with {}", &["merge"]));
    }
    if *has_rest {
        next.push(say("do the rest with {}", &["partial"]));
    }
    if let Some(options) = force_options(*force).filter(|_| *tried != OnConflict::Force) {
        next.push(say(
            "do it anyway with {} (what is there now is kept)",
            options,
        ));
    } else if !is_lost && !is_mergeable && whole_by.is_none() {
        next.push(say("put right what stands in the way, then {} again", &[]));
    }
    if let Some(tree) = targets.iter().find(|target| target.is_taken) {
        let call = Call::of("restore");
        let call = match tree.target.file() {
            Some(path) => call.path(path),
            None => call,
        };
        let call = call.option("from").operation(tree.id).option("after");
        next.push(Next::naming(
            "put what is in it beside what is there with {}",
            [call],
        ));
    }
    if let (true, Some(id)) = (next.is_empty(), targets.first().map(|target| target.id)) {
        next.push(Next::naming(
            "see what the journal still knows with {}",
            [Call::show(id)],
        ));
    }
    Some(next)
}

/// Gives the options that get past what stands in the way of a plan, as far as anything does.
pub const fn force_options(force: Option<Forcing>) -> Option<&'static [&'static str]> {
    match force {
        Some(Forcing::All) => Some(&["force"]),
        Some(Forcing::Part) => Some(&["force", "partial"]),
        None => None,
    }
}

/// Gives what to do about a plan that needs a word.
pub(super) fn word_advice(view: &PlanView, command: Commander<'_>) -> Vec<Next> {
    // What needs a word needs it whatever else is said.
    let words = word_options(view);
    let say = |text: &str, options: &[&'static str]| {
        Next::naming(text, [command(&view.named, &[&words, options].concat())])
    };
    let has_conflict = view.hindrances().next().is_some();
    let mut next = Vec::new();
    if !has_conflict || view.force.is_none() && !view.has_rest && !view.is_mergeable {
        next.push(say("take them back as well with {}", &[]));
    }
    if view.is_mergeable {
        let call = command(&view.named, &["merge"]);
        next.push(Next::naming("take out only this change with {}", [call]));
    }
    if has_conflict && view.has_rest {
        next.push(say("do the rest with {}", &["partial"]));
    }
    if let Some(options) = force_options(view.force) {
        next.push(say(
            "do it anyway with {} (what is there now is kept)",
            options,
        ));
    }
    let call = command(&view.named, &["dry-run"]);
    next.push(Next::naming("see the plan with {}", [call]));
    next
}

/// Gives the options that say the words which a plan needs.
pub fn word_options(view: &PlanView) -> Vec<&'static str> {
    let committed = (!view.needs_committed.is_empty()).then_some("committed");
    let others = (!view.needs_others.is_empty()).then_some("others");
    committed.into_iter().chain(others).collect()
}

/// Gives an undo of operations.
pub(super) fn undo(ids: &[OperationId], options: &[&'static str]) -> Call {
    Call::undo(ids).options(options)
}
