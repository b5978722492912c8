//! Sandboxes. What a command did is told on stderr: stdout belongs to the command.

use backout_engine::{
    SandboxAct, SandboxBatch, SandboxEntry, SandboxExported, SandboxPruned, SandboxRan,
    SandboxStanding, SandboxVerdict, SandboxView,
};
use backout_model::Timestamp;

use super::time::{ago, size};
use super::trial::counts;
use super::{counted, typed};
use crate::session::Session;
use crate::ui::{ACCENT, BAD, BOLD, DIM, WARN, paint, printable};

/// Tells what a command did.
pub(super) fn ran(session: &mut Session, ran: &SandboxRan) {
    for note in &ran.notes {
        session.ui.note(&printable(note));
    }
    let how = match ran.verdict {
        SandboxVerdict::Succeeded => "succeeded".to_owned(),
        SandboxVerdict::Failed => format!("failed with {}", ran.exit_code),
        SandboxVerdict::Killed => format!("ended by signal {}", ran.signal.unwrap_or_default()),
        SandboxVerdict::TimedOut => "ended, since its time was up".to_owned(),
        SandboxVerdict::Interrupted => "interrupted".to_owned(),
    };
    let what = counts(&ran.changes);
    let where_ = if ran.is_rolled_back {
        format!("reverted; still at checkpoint {}", ran.checkpoint)
    } else {
        format!("checkpoint {}", ran.checkpoint)
    };
    let command = paint(BOLD, &printable(&ran.command));
    session
        .ui
        .tell(&format!("{command} {how}: {what}; {where_}\n"));
    if ran.verdict != SandboxVerdict::Succeeded && !ran.is_rolled_back {
        let back = typed(&format!("sandbox rollback {} {}", ran.sandbox, ran.before));
        session
            .ui
            .hint(&format!("take back what it did with {back}"));
    }
}

/// Shows one.
pub(super) fn shown(session: &mut Session, view: &SandboxView, now: Timestamp) {
    for note in &view.notes {
        session.ui.note(&printable(note));
    }
    if view.checkpoints.is_empty() {
        let name = paint(ACCENT, &view.name);
        let number = view.checkpoint;
        let directory = session.here.show(view.directory.as_path());
        session.ui.done(&format!(
            "sandbox {name} is at checkpoint {number}, in {directory}\n"
        ));
        if let Some(before) = view.before {
            let again = typed(&format!("sandbox rollback {} {before}", view.name));
            session
                .ui
                .hint(&format!("go to checkpoint {before} again with {again}"));
        }
        return;
    }
    for entry in &view.log {
        let text = line(session, entry, now);
        session.ui.print(&text);
    }
    let aside: Vec<String> = view
        .checkpoints
        .iter()
        .filter(|it| it.is_aside)
        .map(|it| it.number.to_string())
        .collect();
    if !aside.is_empty() {
        let text = format!("set aside: {}\n", aside.join(", "));
        session.ui.print(&paint(DIM, &text));
    }
    session
        .ui
        .print(&format!("now at checkpoint {}\n", view.checkpoint));
    left(session, view);
}

fn line(session: &Session, entry: &SandboxEntry, now: Timestamp) -> String {
    let when = ago(now, entry.at);
    let number = entry.checkpoint;
    let directory = session.here.show(entry.directory.as_path());
    let (mark, what) = match (entry.act, entry.verdict) {
        (SandboxAct::Returned, _) => (number.to_string(), "went to this checkpoint".to_owned()),
        (SandboxAct::Applied, _) => (number.to_string(), "applied".to_owned()),
        (SandboxAct::AppliedInPart, _) => (number.to_string(), "applied in part".to_owned()),
        (SandboxAct::Ran, verdict) => {
            let mark = if entry.is_rolled_back {
                "-".to_owned()
            } else {
                number.to_string()
            };
            let verdict = match verdict {
                Some(SandboxVerdict::Succeeded) | None => String::new(),
                Some(SandboxVerdict::Interrupted) => paint(WARN, "  interrupted"),
                Some(SandboxVerdict::TimedOut) => paint(BAD, "  timed out"),
                Some(SandboxVerdict::Failed | SandboxVerdict::Killed) => {
                    let code = entry.exit_code.unwrap_or_default();
                    paint(BAD, &format!("  failed with {code}"))
                }
            };
            let changes = entry.changes.map_or_else(
                || "changes not counted".to_owned(),
                |changes| counted(changes, "change"),
            );
            let reverted = if entry.is_rolled_back {
                ", reverted"
            } else {
                ""
            };
            let detail = format!(
                "  {changes}{reverted}, {} ms, in {directory}",
                entry.took_ms
            );
            let command = printable(&entry.command);
            (mark, format!("{command}{verdict}{}", paint(DIM, &detail)))
        }
    };
    format!("{mark:>4}  {when}  {what}\n")
}

/// Lists all.
pub(super) fn list(session: &mut Session, sandboxes: &[SandboxView], now: Timestamp) {
    if sandboxes.is_empty() {
        session.ui.done("there is no sandbox\n");
        return;
    }
    for view in sandboxes {
        let name = paint(ACCENT, &view.name);
        let number = view.checkpoint;
        let when = ago(now, view.made);
        let pending = if view.is_pending { ", not applied" } else { "" };
        session
            .ui
            .print(&format!("{name}  {when}  checkpoint {number}{pending}\n"));
        left(session, view);
    }
}

/// Says what runs, or what a dead process left.
fn left(session: &mut Session, view: &SandboxView) {
    let command = printable(view.running.as_deref().unwrap_or_default());
    let text = match view.standing {
        SandboxStanding::Ready => return,
        SandboxStanding::Running => format!("`{command}` runs in it"),
        SandboxStanding::Interrupted => {
            format!("the owner of `{command}` died; the next command drops what it wrote")
        }
        SandboxStanding::Lost => {
            let end = typed(&format!("sandbox end {}", view.name));
            format!("lost when the machine was started anew; let it go with {end}")
        }
    };
    session.ui.note(&text);
}

/// Sums up what several commands did.
pub(super) fn batch(session: &mut Session, batch: &SandboxBatch) {
    let ran = counted(batch.ran.len() as u64, "command");
    let mut text = format!("{ran} ran, {} succeeded", batch.succeeded);
    if batch.not_run > 0 {
        let left = format!("; {} not begun", batch.not_run);
        text.push_str(&left);
    }
    session.ui.done(&format!("{text}\n"));
    if let Some(error) = &batch.error {
        session.ui.note(&printable(error));
    }
}

/// Says which checkpoints went.
pub(super) fn pruned(session: &mut Session, pruned: &SandboxPruned) {
    let all = |numbers: &[u64]| {
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        numbers.join(", ")
    };
    if pruned.folded.is_empty() && pruned.dropped.is_empty() {
        session.ui.done("no checkpoint goes\n");
    }
    let would = if pruned.is_dry_run { "would be " } else { "" };
    if !pruned.folded.is_empty() {
        let gone = all(&pruned.folded);
        let text = format!("{would}folded into the next: {gone}\n");
        session.ui.done(&text);
    }
    if !pruned.dropped.is_empty() {
        let gone = all(&pruned.dropped);
        let text = format!("{would}let go, set aside before: {gone}\n");
        session.ui.done(&text);
    }
    if !pruned.is_dry_run && pruned.bytes_after < pruned.bytes_before {
        let (before, after) = (size(pruned.bytes_before), size(pruned.bytes_after));
        let text = format!("the layers took {before} and take {after} now\n");
        session.ui.done(&text);
    }
    if !pruned.not_applied.is_empty() {
        let left = all(&pruned.not_applied);
        session.ui.note(&format!(
            "set aside and not applied, so they stay: {left}; `--discard` lets them go"
        ));
    }
}

/// Shows what was exported, or says where it is.
pub(super) fn exported(session: &mut Session, exported: &SandboxExported) {
    for note in &exported.notes {
        session.ui.note(&printable(note));
    }
    if let Some(text) = &exported.text {
        session.ui.print(text);
    }
    if let Some(path) = &exported.path {
        let path = session.here.show(path);
        let names = counted(exported.entries, "entry").replace("entrys", "entries");
        let digest = exported.digest.as_deref().unwrap_or_default();
        session
            .ui
            .done(&format!("wrote {path}: {names}, {digest}\n"));
    }
    if !exported.variables.is_empty() {
        let names = exported.variables.join(", ");
        session
            .ui
            .note(&format!("it contains these variables: {names}"));
    }
    if !exported.left_out.is_empty() {
        let names = exported.left_out.join(", ");
        session.ui.note(&format!(
            "these look like secrets and were left out: {names}; `--secrets` lets them go along"
        ));
    }
}

/// Says that one was let go.
pub(super) fn ended(session: &mut Session, name: &str) {
    session.ui.done(&format!("ended the sandbox {name}\n"));
}
