//! Tasks and checkpoints.

use backout_model::{Checkpoint, OperationId, Task, TaskId, TaskStatus, Timestamp};

use super::time::{ago, size};
use super::{counted_of, typed};
use crate::session::Session;
use crate::ui::{ACCENT, Cell, DIM, GOOD, WARN, paint, table};

/// How much of an agent's state a list shows.
const STATE_CHARACTERS_MAX: usize = 60;

/// Says that a task began.
pub(super) fn begun(session: &mut Session, task: &Task) {
    session
        .ui
        .done(&format!("began task {}\n", paint(ACCENT, task.id.as_str())));
    let (keep, back) = (
        typed(&format!("commit {}", task.id)),
        typed(&format!("rollback {}", task.id)),
    );
    session.ui.hint(&format!(
        "write into it with `--task {}`; keep it with {keep}, or take it back with {back}",
        task.id
    ));
}

/// Lists tasks.
pub(super) fn list(session: &mut Session, tasks: &[Task], now: Timestamp) {
    if tasks.is_empty() {
        session.ui.done("no tasks\n");
        return;
    }
    let rows = tasks.iter().map(|task| {
        let style = match task.status {
            TaskStatus::Open => WARN,
            TaskStatus::Committed => GOOD,
            TaskStatus::RolledBack => DIM,
        };
        let owner = task
            .owner
            .as_ref()
            .map(|owner| format!("ends with process {}", owner.pid));
        vec![
            Cell::new(ACCENT, task.id.as_str()),
            Cell::new(style, task.status.as_str()),
            Cell::new(DIM, ago(now, task.began)).right(),
            Cell::plain(
                task.agent
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ),
            Cell::plain(
                owner
                    .filter(|_| task.status == TaskStatus::Open)
                    .unwrap_or_default(),
            ),
        ]
    });
    let text = table(rows.collect(), None);
    session.ui.print(&text);
}

/// Says that a task was committed.
pub(super) fn committed(session: &mut Session, task: &TaskId, operations: &[OperationId]) {
    let number = counted_of(operations, "operation");
    session.ui.done(&format!(
        "committed task {}: {number} kept\n",
        paint(ACCENT, task.as_str())
    ));
}

/// Says that a point was marked.
pub(super) fn marked(session: &mut Session, checkpoint: &Checkpoint) {
    let name = paint(ACCENT, checkpoint.name.as_str());
    let back = typed(&format!("rollback --to {}", checkpoint.name));
    session.ui.done(&format!(
        "marked checkpoint {name}  {}\n",
        paint(DIM, &format!("(return with {back})"))
    ));
}

/// Lists checkpoints.
pub(super) fn checkpoints(session: &mut Session, checkpoints: &[Checkpoint], now: Timestamp) {
    if checkpoints.is_empty() {
        session.ui.done("no checkpoints\n");
        return;
    }
    let rows = checkpoints.iter().map(|checkpoint| {
        let state = if checkpoint.state.is_null() {
            String::new()
        } else {
            checkpoint.state.to_string()
        };
        let short: String = state.chars().take(STATE_CHARACTERS_MAX).collect();
        let more = if short.len() < state.len() { "…" } else { "" };
        vec![
            Cell::new(ACCENT, checkpoint.name.as_str()),
            Cell::new(DIM, ago(now, checkpoint.at)).right(),
            Cell::new(DIM, format!("after record {}", checkpoint.lsn)),
            Cell::plain(
                checkpoint
                    .agent
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ),
            Cell::plain(
                checkpoint
                    .task
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ),
            Cell::plain(how_far(checkpoint)),
            Cell::plain(short + more),
        ]
    });
    let text = table(rows.collect(), None);
    session.ui.print(&text);
}

/// Tells how far an agent was, and how large its state is.
fn how_far(checkpoint: &Checkpoint) -> String {
    let Some(point) = &checkpoint.resume else {
        return String::new();
    };
    let size = size(point.bytes);
    match point.step {
        Some(step) => format!("step {step}, {size}"),
        None => size,
    }
}
