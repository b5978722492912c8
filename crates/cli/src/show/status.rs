//! Where things stand.

use backout_engine::StatusReport;
use backout_model::{Operation, Task, Timestamp};

use super::time::{ago, size};
use super::{counted, log, typed};
use crate::session::Session;
use crate::ui::{BAD, BOLD, Cell, DIM, WARN, paint, table};

/// Shows where things stand: first what waits for somebody, then what is new, then the store.
pub(super) fn status(session: &mut Session, status: &StatusReport) {
    let width = session.ui.width();
    let now = status.now;
    let mut text = String::new();
    let list = |operations: &[Operation]| log::lines(operations, now, &session.here, width, false);
    if !status.stuck.is_empty() {
        text.push_str(&heading("needs somebody to look at it", BAD));
        text.push_str(&list(&status.stuck));
    }
    if !status.unfinished.is_empty() {
        text.push_str(&heading(
            "being written, or left behind by a dead process",
            WARN,
        ));
        text.push_str(&list(&status.unfinished));
    }
    if !status.open_tasks.is_empty() {
        text.push_str(&heading("open tasks", WARN));
        text.push_str(&open_tasks(&status.open_tasks, now));
    }
    if !status.newest.is_empty() {
        text.push_str(&heading("newest", BOLD));
        text.push_str(&log::lines(&status.newest, now, &session.here, width, true));
    }
    text.push_str(&heading("store", BOLD));
    text.push_str(&table(store(status), width));
    session.ui.print(&text);
    hints(session, status);
}

fn heading(text: &str, style: anstyle::Style) -> String {
    format!("{}\n", paint(style, &format!("{text}:")))
}

fn open_tasks(tasks: &[Task], now: Timestamp) -> String {
    let rows = tasks.iter().map(|task| {
        vec![
            Cell::plain(format!("  {}", task.id)),
            Cell::plain(
                task.agent
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ),
            Cell::new(DIM, format!("began {}", ago(now, task.began))),
        ]
    });
    table(rows.collect(), None)
}

fn store(status: &StatusReport) -> Vec<Vec<Cell>> {
    let summary = &status.summary;
    let total = summary.operations.iter().map(|(_, number)| number).sum();
    let parts: Vec<String> = summary
        .operations
        .iter()
        .filter(|(_, number)| *number > 0)
        .map(|(status, number)| format!("{number} {status}"))
        .collect();
    let operations = match parts.as_slice() {
        [] => "none yet".to_owned(),
        parts => format!("{}: {}", counted(total, "operation"), parts.join(", ")),
    };
    let kept = format!(
        "{} of {}",
        size(status.stored.total),
        size(status.cap_bytes)
    );
    let label = |text: &str| Cell::new(DIM, format!("  {text}"));
    vec![
        vec![label("journal"), Cell::plain(operations)],
        vec![label("images"), Cell::plain(kept)],
        vec![
            label("directory"),
            Cell::plain(status.state_dir.display().to_string()),
        ],
    ]
}

fn hints(session: &mut Session, status: &StatusReport) {
    if let Some(stuck) = status.stuck.first() {
        let command = typed(&format!("show {}", stuck.id.short()));
        session
            .ui
            .hint(&format!("see what is known of it with {command}"));
    }
    if let [task] = status.open_tasks.as_slice() {
        let (keep, back) = (
            typed(&format!("commit {}", task.id)),
            typed(&format!("rollback {}", task.id)),
        );
        session.ui.hint(&format!(
            "keep the task with {keep}, or take it back with {back}"
        ));
    }
}
