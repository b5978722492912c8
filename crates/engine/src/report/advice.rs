//! What to do about an undo that stopped before it began. What was just tried, or would not help, is no advice.

use backout_model::OperationId;
use backout_model::ports::OnConflict;

use super::quoted;
use crate::{EngineError, Forcing, PlanView};

/// Says a command for some operations, with a flag.
pub(super) type Commander<'c> = &'c dyn Fn(&[OperationId], &str) -> String;

/// Gives what to do about a conflict or a plan that needs a word, best first; none for other errors. `command` says the
/// same command once more, with a flag.
pub fn advice(
    error: &EngineError,
    command: &dyn Fn(&[OperationId], &str) -> String,
) -> Option<Vec<String>> {
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
    let command = |flag: &str| command(named, flag);
    let mut next = Vec::new();
    let is_lost = targets.iter().all(|target| target.is_lost);
    if !is_lost {
        next.push(format!(
            "see what would change back, and what others changed, with {}",
            command(" --dry-run --diff")
        ));
    }
    if *is_mergeable {
        next.push(format!(
            "take out only this change with {}",
            command(" --merge")
        ));
    }
    if *has_rest {
        next.push(format!("do the rest with {}", command(" --partial")));
    }
    if let Some(flag) = force_flag(*force).filter(|_| *tried != OnConflict::Force) {
        next.push(format!(
            "do it anyway with {} (what is there now is kept)",
            command(flag)
        ));
    } else if !is_lost && !is_mergeable {
        next.push(format!(
            "put right what stands in the way, then {} again",
            command("")
        ));
    }
    if let Some(tree) = targets.iter().find(|target| target.is_taken) {
        let path = tree.target.file().map(|path| path.as_path().as_os_str());
        next.push(format!(
            "put what is in it beside what is there with `backout restore {} --from {} --after`",
            quoted(path.unwrap_or_default()),
            tree.id.short()
        ));
    }
    if let (true, Some(id)) = (next.is_empty(), targets.first().map(|target| target.id)) {
        next.push(format!(
            "see what the journal still knows with `backout show {}`",
            id.short()
        ));
    }
    Some(next)
}

/// Gives the flags that get past what stands in the way of a plan, as far as anything does.
pub const fn force_flag(force: Option<Forcing>) -> Option<&'static str> {
    match force {
        Some(Forcing::All) => Some(" --force"),
        Some(Forcing::Part) => Some(" --force --partial"),
        None => None,
    }
}

/// Gives what to do about a plan that needs a word.
pub(super) fn word_advice(view: &PlanView, command: Commander<'_>) -> Vec<String> {
    let mut flags = String::new();
    if !view.needs_committed.is_empty() {
        flags.push_str(" --committed");
    }
    if !view.needs_others.is_empty() {
        flags.push_str(" --others");
    }
    let mut next = vec![format!(
        "take them back as well with {}",
        command(&view.named, &flags)
    )];
    if view.is_mergeable {
        next.push(format!(
            "take out only this change with {}",
            command(&view.named, " --merge")
        ));
    }
    next.push(format!(
        "see the plan with {}",
        command(&view.named, " --dry-run")
    ));
    next
}

/// Says an undo of operations.
pub(super) fn undo(ids: &[OperationId], flag: &str) -> String {
    let names: Vec<String> = ids.iter().map(|id| id.short()).collect();
    format!("`backout undo {}{flag}`", names.join(" "))
}
