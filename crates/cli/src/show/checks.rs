//! What checks of the store and of the machine found, and what a repair did.

use backout_engine::{DoctorReport, RepairReport};
use backout_model::{Gap, OperationId};
use backout_storage::{
    ChangedSince, NotUndoable, OfOtherDriver, OutOfReach, RepairSeen, Salvage, VerifyFinding,
    VerifyReport,
};

use super::{counted, counted_of, typed};
use crate::session::Session;
use crate::ui::{ACCENT, BAD, Cell, GOOD, WARN, paint, printable, table};

/// So many operations are named one by one.
const NAMED_MAX: usize = 20;

/// Shows what a check of the store found.
pub(super) fn verified(session: &mut Session, report: &VerifyReport) {
    let counts = format!(
        "{}, {} and {}",
        counted(report.records, "record"),
        counted(report.contents, "content"),
        counted(report.slots, "kept inode"),
    );
    let mut repairs = String::new();
    for seen in &report.repairs {
        repairs.push_str(&repair_seen(seen));
    }
    let there = away_text(&report.out_of_reach) + &changed_text(&report.changed);
    let is_all_there = there.is_empty() && report.not_undoable.is_empty();
    if report.findings.is_empty() && !is_all_there {
        let left = still_undoable(report);
        let text = format!("checked {counts}\n{there}{repairs}{left}");
        session.ui.print(&text);
        return;
    }
    if report.findings.is_empty() {
        session.ui.done(&format!(
            "checked {counts}: {}\n{repairs}{}",
            paint(GOOD, "all as they must be"),
            of_other_drivers(&report.others)
        ));
        return;
    }
    let number = counted_of(&report.findings, "finding");
    let mut text = format!("checked {counts}: {}\n", paint(BAD, &number));
    let rows = report.findings.iter().map(|finding| {
        let (what, detail) = finding_text(finding);
        vec![
            Cell::plain(format!("  {what}")),
            Cell::plain(printable(&detail)),
        ]
    });
    text.push_str(&table(rows.collect(), None));
    text.push_str(&there);
    text.push_str(&repairs);
    text.push_str(&still_undoable(report));
    session.ui.print(&text);
    let repair = typed("doctor --repair");
    session
        .ui
        .hint(&format!("save what can be saved with {repair}"));
}

/// Says what nobody can look at now, and what helps.
fn away_text(away: &[OutOfReach]) -> String {
    if away.is_empty() {
        return String::new();
    }
    let number = paint(WARN, &counted_of(away, "kept inode"));
    let mut text = format!("{number} out of reach; nothing is given up\n");
    let rows = away.iter().take(NAMED_MAX).map(|it| {
        vec![
            Cell::plain(format!("  {}", it.needed_by.short())),
            Cell::plain(printable(&it.why)),
        ]
    });
    text.push_str(&table(rows.collect(), None));
    text
}

/// Says what was changed after it was kept, and that it is there.
fn changed_text(changed: &[ChangedSince]) -> String {
    if changed.is_empty() {
        return String::new();
    }
    let number = paint(WARN, &counted_of(changed, "kept inode"));
    let mut text = format!(
        "{number} changed after being kept; nothing is given up: with `--force` it comes back as it is now\n"
    );
    let rows = changed.iter().take(NAMED_MAX).map(|it| {
        vec![
            Cell::plain(format!("  {}", it.needed_by.short())),
            Cell::plain(printable(&it.why)),
        ]
    });
    text.push_str(&table(rows.collect(), None));
    text
}

fn still_undoable(report: &VerifyReport) -> String {
    let mut text = format!(
        "{} can still be undone{}\n",
        counted_of(&report.undoable, "operation"),
        named(&report.undoable),
    );
    if !report.not_undoable.is_empty() {
        text.push_str(&cannot_be_undone(&report.not_undoable));
    }
    text.push_str(&of_other_drivers(&report.others));
    text
}

/// Lists what only another program understands.
pub(super) fn of_other_drivers(others: &[OfOtherDriver]) -> String {
    if others.is_empty() {
        return String::new();
    }
    let number = paint(WARN, &counted_of(others, "operation"));
    let mut text = format!("{number} of drivers that this program does not have; all stays kept\n");
    let rows = others.iter().take(NAMED_MAX).map(|other| {
        vec![
            Cell::plain(format!("  {}", other.id.short())),
            Cell::plain(printable(other.driver.as_str())),
        ]
    });
    text.push_str(&table(rows.collect(), None));
    text
}

fn named(ids: &[OperationId]) -> String {
    if ids.is_empty() {
        return String::new();
    }
    let mut names: Vec<String> = ids.iter().take(NAMED_MAX).map(|id| id.short()).collect();
    if ids.len() > NAMED_MAX {
        names.push("…".to_owned());
    }
    format!(": {}", names.join(", "))
}

fn cannot_be_undone(operations: &[NotUndoable]) -> String {
    let number = counted_of(operations, "operation");
    let mut text = format!("{} cannot be undone any more\n", paint(BAD, &number));
    let rows = operations.iter().take(NAMED_MAX).map(|hurt| {
        vec![
            Cell::plain(format!("  {}", hurt.id.short())),
            Cell::plain(printable(&hurt.why)),
        ]
    });
    text.push_str(&table(rows.collect(), None));
    text
}

fn repair_seen(seen: &RepairSeen) -> String {
    let gaps = if seen.gaps.is_empty() {
        "no record was lost".to_owned()
    } else {
        gaps_text(&seen.gaps)
    };
    format!(
        "the journal was repaired at record {}: {gaps}; the damaged one is `{}` in the state directory\n",
        seen.lsn,
        printable(&seen.evidence)
    )
}

fn gaps_text(gaps: &[Gap]) -> String {
    let each = |gap: &Gap| {
        if gap.first == gap.last {
            format!("{}", gap.first)
        } else {
            format!("{}–{}", gap.first, gap.last)
        }
    };
    let list: Vec<String> = gaps.iter().map(each).collect();
    let one = list.len() == 1 && gaps.iter().all(|gap| gap.first == gap.last);
    let (noun, verb) = if one {
        ("record", "is")
    } else {
        ("records", "are")
    };
    format!("{noun} {} {verb} lost", list.join(", "))
}

fn finding_text(finding: &VerifyFinding) -> (String, String) {
    match finding {
        VerifyFinding::Database { detail } => ("journal".to_owned(), detail.clone()),
        VerifyFinding::Record { lsn, detail } => (format!("record {lsn}"), detail.clone()),
        VerifyFinding::Operation { id, detail } => {
            (format!("operation {}", id.short()), detail.clone())
        }
        VerifyFinding::Content {
            digest,
            detail,
            needed_by,
        } => {
            let digest: String = digest.to_string().chars().take(16).collect();
            (
                format!("content {digest}"),
                format!("{detail}; {}", needed(needed_by)),
            )
        }
        VerifyFinding::Slot {
            path,
            needed_by,
            detail,
        } => (
            "kept inode".to_owned(),
            format!("`{path}` {detail}; {}", needed(&[*needed_by])),
        ),
    }
}

fn needed(by: &[OperationId]) -> String {
    let ids: Vec<String> = by.iter().map(|id| id.short()).collect();
    format!("needed to undo {}", ids.join(", "))
}

/// Shows what a check of the machine found, and before that what was repaired.
pub(super) fn doctor(session: &mut Session, report: &DoctorReport) {
    let mut text = report.repair.as_ref().map(repaired).unwrap_or_default();
    let mut rows = Vec::new();
    for finding in &report.findings {
        let mark = if finding.is_good {
            Cell::new(GOOD, "ok")
        } else {
            Cell::new(BAD, "bad")
        };
        let detail = session.here.shorten(&printable(&finding.detail));
        rows.push(vec![
            mark,
            Cell::plain(finding.check.clone()),
            Cell::plain(detail),
        ]);
        if let Some(advice) = &finding.advice {
            let next = Cell::new(ACCENT, "next: ").and(crate::ui::PLAIN, printable(advice));
            rows.push(vec![Cell::plain(""), Cell::plain(""), next]);
        }
    }
    text.push_str(&table(rows, None));
    session.ui.print(&text);
}

fn repaired(report: &RepairReport) -> String {
    let mut lines: Vec<String> = report.journal.iter().flat_map(salvaged).collect();
    if report.packs.found > 0 || report.packs.lost > 0 {
        lines.push(format!(
            "large images: {} found again, {} lost\n",
            counted(report.packs.found, "chunk"),
            report.packs.lost
        ));
    }
    let there = away_text(&report.out_of_reach) + &changed_text(&report.changed);
    if !there.is_empty() {
        lines.push(there);
    }
    if !report.not_undoable.is_empty() {
        lines.push(cannot_be_undone(&report.not_undoable));
    }
    let (operations, tasks) = (&report.recovered.operations, &report.recovered.tasks);
    if !operations.is_empty() || !tasks.is_empty() {
        lines.push(format!(
            "settled {} and rolled back {} of dead processes\n",
            counted_of(operations, "operation"),
            counted_of(tasks, "task")
        ));
    }
    if lines.is_empty() {
        return "nothing needed repair\n".to_owned();
    }
    let number = counted(report.undoable as u64, "operation");
    lines.push(format!("{number} can be undone\n"));
    lines.concat()
}

fn salvaged(salvage: &Salvage) -> Vec<String> {
    let mut lines = vec![format!(
        "the journal was put together again: {} and {} saved, {} lost\n",
        counted(salvage.records, "record"),
        counted(salvage.contents, "content"),
        counted(salvage.lost_records(), "record"),
    )];
    if !salvage.gaps.is_empty() {
        lines.push(format!("  {}\n", gaps_text(&salvage.gaps)));
    }
    for (ids, what) in [
        (
            &salvage.lost,
            "lost with their records, and unknown from now on",
        ),
        (
            &salvage.unlinked,
            "known, but not undoable: nothing vouches for their record",
        ),
        (
            &salvage.assumed,
            "with an outcome taken from a table, not from a record",
        ),
    ] {
        if !ids.is_empty() {
            let number = counted_of(ids, "operation");
            lines.push(format!("  {number} {what}{}\n", named(ids)));
        }
    }
    let kept = salvage.evidence.display().to_string();
    lines.push(format!(
        "  the damaged journal is kept as `{}`\n",
        printable(&kept)
    ));
    lines
}
