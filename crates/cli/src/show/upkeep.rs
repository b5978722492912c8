//! What checks of the store and of the machine found.

use backout_engine::DoctorReport;
use backout_model::OperationId;
use backout_storage::{VerifyFinding, VerifyReport};

use super::{counted, counted_of};
use crate::session::Session;
use crate::ui::{ACCENT, BAD, Cell, GOOD, paint, printable, table};

/// Shows what a check of the store found.
pub(super) fn verified(session: &mut Session, report: &VerifyReport) {
    let counts = format!(
        "{}, {} and {}",
        counted(report.records, "record"),
        counted(report.contents, "content"),
        counted(report.slots, "kept inode"),
    );
    if report.findings.is_empty() {
        session.ui.done(&format!(
            "checked {counts}: {}\n",
            paint(GOOD, "all as they must be")
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
    session.ui.print(&text);
}

fn finding_text(finding: &VerifyFinding) -> (String, String) {
    match finding {
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
        VerifyFinding::Slot { path, needed_by } => (
            "kept inode".to_owned(),
            format!("`{path}` is gone; {}", needed(&[*needed_by])),
        ),
    }
}

fn needed(by: &[OperationId]) -> String {
    let ids: Vec<String> = by.iter().map(|id| id.short()).collect();
    format!("needed to undo {}", ids.join(", "))
}

/// Shows what a check of the machine found.
pub(super) fn doctor(session: &mut Session, report: &DoctorReport) {
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
    let text = table(rows, None);
    session.ui.print(&text);
}
