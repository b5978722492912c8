//! A list of operations, one line each, with the lanes that tell what was built on what.

use std::collections::{HashMap, HashSet};

use anstyle::Style;
use backout_model::{
    DependencyReason, Operation, OperationId, Status, Timestamp, TriggerKind, Verb,
};

use super::time::ago;
use crate::graph::{Gutter, draw};
use crate::paths::Here;
use crate::session::Session;
use crate::ui::{ACCENT, BAD, Cell, DIM, GOOD, PLAIN, WARN, printable, table};

/// Shows operations, newest first.
pub(crate) fn list(
    session: &mut Session,
    operations: &[Operation],
    now: Timestamp,
    is_drawn: bool,
) {
    if operations.is_empty() {
        session.ui.done("no operations\n");
        return;
    }
    let text = lines(operations, now, &session.here, session.ui.width(), is_drawn);
    session.ui.print(&text);
}

/// Makes the lines of a list.
pub(crate) fn lines(
    operations: &[Operation],
    now: Timestamp,
    here: &Here,
    width: Option<usize>,
    is_drawn: bool,
) -> String {
    let edges = if is_drawn {
        edges(operations)
    } else {
        vec![Vec::new(); operations.len()]
    };
    let gutters = if edges.iter().all(Vec::is_empty) {
        plain(operations.len())
    } else {
        draw(&edges)
    };
    let parted: HashSet<OperationId> = operations
        .iter()
        .filter(|operation| !operation.verb.is_reversal())
        .flat_map(|operation| &operation.depends_on)
        .filter(|edge| edge.reason == DependencyReason::Within)
        .map(|edge| edge.on)
        .collect();
    let rows = operations.iter().zip(gutters).map(|(operation, gutter)| {
        let (node, style) = node(operation);
        let summary = here.shorten(&printable(&operation.summary));
        let is_past = !operation.status.is_in_effect();
        vec![
            Cell::new(DIM, gutter.before)
                .and(style, node)
                .and(DIM, gutter.after),
            Cell::new(ACCENT, operation.id.short()),
            Cell::new(DIM, ago(now, operation.at)).right(),
            Cell::new(status_style(operation.status), operation.status.as_str()),
            Cell::plain(
                operation
                    .agent
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ),
            Cell::plain(
                operation
                    .task
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ),
            Cell::new(if is_past { DIM } else { PLAIN }, summary)
                .and(DIM, set_off(operation))
                .and(DIM, remark(operation, parted.contains(&operation.id))),
        ]
    });
    table(rows.collect(), width)
}

/// Numbers the edges by rows. An undo leads to what it took back.
fn edges(operations: &[Operation]) -> Vec<Vec<usize>> {
    let rows: HashMap<OperationId, usize> = operations
        .iter()
        .enumerate()
        .map(|(row, operation)| (operation.id, row))
        .collect();
    let edges = operations.iter().map(|operation| {
        let on = operation.depends_on.iter().map(|dependency| dependency.on);
        on.chain(operation.undoes)
            .filter_map(|id| rows.get(&id).copied())
            .collect()
    });
    edges.collect()
}

fn plain(rows: usize) -> Vec<Gutter> {
    vec![
        Gutter {
            before: String::new(),
            after: String::new()
        };
        rows
    ]
}

fn node(operation: &Operation) -> (&'static str, Style) {
    let undoes = operation.undoes.is_some();
    match operation.status {
        Status::InDoubt | Status::Failed => ("✗", BAD),
        Status::Armed
        | Status::Proposed
        | Status::Interrupted
        | Status::Applied
        | Status::Committed
        | Status::Refused
        | Status::Aborted
        | Status::Undone
            if undoes =>
        {
            ("◇", ACCENT)
        }
        Status::Armed | Status::Proposed | Status::Interrupted => ("●", WARN),
        Status::Applied | Status::Committed => ("●", GOOD),
        Status::Refused | Status::Aborted | Status::Undone => ("○", DIM),
    }
}

pub(super) const fn status_style(status: Status) -> Style {
    match status {
        Status::InDoubt | Status::Failed => BAD,
        Status::Armed | Status::Proposed | Status::Applied | Status::Interrupted => WARN,
        Status::Committed => PLAIN,
        Status::Refused | Status::Aborted | Status::Undone => DIM,
    }
}

/// Says in a word what set an undo off, unless it is what everybody expects.
fn set_off(operation: &Operation) -> String {
    match &operation.trigger {
        Some(trigger) if trigger.kind != TriggerKind::UserRequest => {
            format!("  ({})", trigger.kind)
        }
        Some(_) | None => String::new(),
    }
}

fn remark(operation: &Operation, has_parts: bool) -> &'static str {
    let has_ended = !matches!(operation.status, Status::Armed | Status::Proposed);
    if operation.status.is_in_effect() && !operation.retained {
        "  (no longer undoable)"
    } else if operation.is_partly_undone() {
        "  (in part undone)"
    } else if operation.verb == Verb::Run && operation.targets.is_empty() && has_ended {
        // Where nothing was changed there is nothing to decide about.
        if operation.status == Status::Interrupted || has_parts {
            "  (what it did stands by itself, and goes with it)"
        } else {
            "  (changed nothing)"
        }
    } else {
        ""
    }
}
