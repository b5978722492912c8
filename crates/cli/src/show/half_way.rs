//! Undos, redos and rollbacks of several operations that were left between two of them.

use backout_engine::ActLeft;
use backout_model::Verb;

use super::{counted, typed};
use crate::session::Session;

/// How many names a command that goes on may have.
const NAMES_MAX: usize = 8;

/// Tells of each, in one line.
pub(super) fn notes(session: &mut Session, acts: &[ActLeft]) {
    for act in acts {
        session.ui.note(&text(act));
    }
}

/// Says how far an act came, and what can be done about it.
pub(super) fn text(left: &ActLeft) -> String {
    let (planned, done) = (left.planned, left.done);
    let operations = counted(planned as u64, "operation");
    let act = left.act.short();
    let way = if left.verb == Verb::Redo {
        "undo"
    } else {
        "redo"
    };
    let back = typed(&format!("{way} {act}"));
    let keep = typed(&format!("recover --keep {act}"));
    let ways = format!("take it back with {back}, or keep it so with {keep}");
    match &left.task {
        Some(task) if left.rest.is_empty() => format!(
            "the rollback of task {task} took back all of it, and its process died before the task was ended. End it with {}, {ways}",
            typed(&format!("rollback {task}"))
        ),
        Some(task) => format!(
            "the rollback of task {task} was left half-way: its process died after {done} of {operations}. Go on with {}, {ways}",
            typed(&format!("rollback {task}"))
        ),
        None => format!(
            "the {} of {operations} was left half-way: its process died after {done} of them. {}, {ways}",
            left.verb,
            on(left)
        ),
    }
}

fn on(left: &ActLeft) -> String {
    let names = left.rest.iter().take(NAMES_MAX);
    let names = names.map(|id| format!(" {}", id.short()));
    let command = typed(&format!("{}{}", left.verb, names.collect::<String>()));
    let more = match left.rest.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more that {} names", typed("status --json")),
    };
    let paths = if left.is_part {
        " and the paths that were chosen (`--only`)"
    } else {
        ""
    };
    format!("Go on with {command}{more}{paths}")
}
