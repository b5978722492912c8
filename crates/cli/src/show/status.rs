//! Where things stand.

use backout_engine::{SandboxStanding, SandboxView, StatusReport, TrialStanding, TrialView};
use backout_model::{Operation, Status, Task, Timestamp};

use super::time::{ago, size};
use super::{counted, half_way, log, proposal, rollout, typed};
use crate::paths::Here;
use crate::session::Session;
use crate::ui::{ACCENT, BAD, BOLD, Cell, DIM, WARN, paint, printable, table};

/// For how many operations it is said how to decide.
const DECISIONS_MAX: usize = 5;

/// Shows where things stand: first what waits for somebody, then what is new, then the store.
pub(super) fn status(session: &mut Session, status: &StatusReport) {
    let width = session.ui.width();
    let now = status.now;
    let mut text = String::new();
    let list = |operations: &[Operation]| log::lines(operations, now, &session.here, width, false);
    if !status.stuck.is_empty() {
        text.push_str(&heading("waits for your decision", BAD));
        text.push_str(&list(&status.stuck));
    }
    if !status.failed.is_empty() {
        text.push_str(&heading("undos that failed and wait for a person", BAD));
        for failed in &status.failed {
            text.extend(["  ", &paint(ACCENT, &failed.short()), "\n"]);
        }
    }
    if status.drifted > 0 {
        let targets = counted(status.drifted, "target");
        let heading = heading("not as recorded any more", WARN);
        text.extend([&heading, "  ", &targets, "; see `backout drift`\n"]);
    }
    if !status.acts_left.is_empty() {
        text.push_str(&heading("left half-way", WARN));
        for left in &status.acts_left {
            text.extend(["  ", &half_way::text(left), "\n"]);
        }
    }
    let is_at_work = |operation: &&Operation| status.at_work.contains(&operation.id);
    let (at_work, left): (Vec<&Operation>, Vec<&Operation>) =
        status.unfinished.iter().partition(is_at_work);
    if !at_work.is_empty() {
        text.push_str(&heading("at work now", BOLD));
        text.push_str(&workers(&at_work, now, &session.here));
    }
    if !left.is_empty() {
        text.push_str(&heading("left behind by a dead process", WARN));
        let left: Vec<Operation> = left.into_iter().cloned().collect();
        text.push_str(&list(&left));
    }
    if !status.proposals.is_empty() {
        text.push_str(&heading("proposals that wait for a decision", WARN));
        text.push_str(&proposal::rows(session, &status.proposals, now));
    }
    if !status.trials.is_empty() {
        text.push_str(&heading("trials that wait for a decision", WARN));
        text.push_str(&trials(&status.trials, now));
    }
    if !status.sandboxes.is_empty() {
        text.push_str(&heading("sandboxes", WARN));
        text.push_str(&sandboxes(&status.sandboxes, now));
    }
    if !status.rollouts.is_empty() {
        text.push_str(&heading("rollouts that are not over", WARN));
        text.push_str(&rollout::rows("  ", &status.rollouts, now));
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

pub(super) fn heading(text: &str, style: anstyle::Style) -> String {
    format!("{}\n", paint(style, &format!("{text}:")))
}

/// Says who does what, and since when.
fn workers(operations: &[&Operation], now: Timestamp, here: &Here) -> String {
    let rows = operations.iter().map(|operation| {
        let agent = operation.agent.as_ref().map(ToString::to_string);
        let process = format!("process {}", operation.owner.pid);
        vec![
            Cell::plain("  ").and(ACCENT, operation.id.short()),
            Cell::plain(here.shorten(&printable(&operation.summary))),
            Cell::plain(agent.unwrap_or_default()),
            Cell::new(DIM, format!("{process}, began {}", ago(now, operation.at))),
        ]
    });
    table(rows.collect(), None)
}

pub(super) fn trials(trials: &[TrialView], now: Timestamp) -> String {
    let rows = trials.iter().map(|trial| {
        vec![
            Cell::plain("  ").and(ACCENT, trial.id.short()),
            Cell::plain(printable(&trial.line())),
            Cell::plain(super::trial::waits_with(trial)),
            Cell::new(DIM, ago(now, trial.made)),
        ]
    });
    table(rows.collect(), None)
}

fn sandboxes(sandboxes: &[SandboxView], now: Timestamp) -> String {
    let rows = sandboxes.iter().map(|view| {
        let pending = if view.is_pending { ", not applied" } else { "" };
        let how = match view.standing {
            SandboxStanding::Ready => "",
            SandboxStanding::Running => ", a command runs in it",
            SandboxStanding::Interrupted => ", left by a dead process",
            SandboxStanding::Lost => ", lost when the machine was started anew",
        };
        vec![
            Cell::plain("  ").and(ACCENT, view.name.clone()),
            Cell::plain(format!("checkpoint {}{pending}{how}", view.checkpoint)),
            Cell::new(DIM, ago(now, view.made)),
        ]
    });
    table(rows.collect(), None)
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
    let total = summary.operations.values().sum();
    let parts: Vec<String> = summary
        .operations
        .iter()
        .filter(|(_, number)| **number > 0)
        .map(|(status, number)| format!("{number} {status}"))
        .collect();
    let operations = match parts.as_slice() {
        [] => "no operations yet".to_owned(),
        parts => format!(
            "{}: {}; {}",
            counted(total, "operation"),
            parts.join(", "),
            size(status.journal_bytes)
        ),
    };
    let kept = format!(
        "{}{} of {}",
        if status.is_unweighed {
            "more than "
        } else {
            ""
        },
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
    for stuck in status.stuck.iter().take(DECISIONS_MAX) {
        let short = stuck.id.short();
        let keep = typed(&format!("recover --keep {short}"));
        let back = typed(&format!("recover --rollback {short}"));
        // What is in doubt could not be taken back without it.
        let by_force = if stuck.status == Status::InDoubt {
            "; that needs `--force` while what stands in the way is there"
        } else {
            "; that needs `--force` if something was built on it since"
        };
        session.ui.hint(&format!(
            "keep what {short} did with {keep}, or take it back with {back}{by_force}"
        ));
    }
    if !status.failed.is_empty() {
        let command = typed("failed");
        session
            .ui
            .hint(&format!("see why, and what to do about it, with {command}"));
    }
    if status.unfinished.len() > status.at_work.len() {
        let command = typed("recover");
        session
            .ui
            .hint(&format!("settle what was left behind with {command}"));
    }
    proposal::hint(session, &status.proposals);
    let is_left = |trial: &&TrialView| {
        matches!(
            trial.standing,
            TrialStanding::Interrupted | TrialStanding::Lost
        )
    };
    if let Some(trial) = status.trials.iter().find(is_left) {
        let command = typed(&format!("try --discard {}", trial.id.short()));
        session.ui.hint(&format!(
            "let the trial go that came to no end with {command}"
        ));
    }
    let is_pending = |trial: &&TrialView| trial.standing == TrialStanding::Pending;
    if let Some(trial) = status.trials.iter().find(is_pending) {
        let way = |what: &str| typed(&format!("try --{what} {}", trial.id.short()));
        session.ui.hint(&format!(
            "apply the trial with {}, look with {}, or let it go with {}",
            way("apply"),
            way("diff"),
            way("discard")
        ));
    }
    let held = status.rollouts.iter().find_map(rollout::hint);
    if let Some(hint) = held {
        session.ui.hint(&hint);
        return;
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
