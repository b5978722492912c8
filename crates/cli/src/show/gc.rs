//! What was let go.

use std::collections::BTreeMap;

use backout_engine::GcOutcome;

use super::checks::of_other_drivers;
use super::time::size;
use super::{counted, counted_of};
use crate::session::Session;
use crate::ui::{Cell, DIM, printable, table};

/// Shows what was let go, or would be.
pub(super) fn collected(session: &mut Session, outcome: &GcOutcome) {
    let report = &outcome.collected;
    let would = if report.is_dry_run {
        "would let"
    } else {
        "let"
    };
    let number = counted_of(&report.expired, "operation");
    let mut text = if report.expired.is_empty() {
        "no image is past its retention\n".to_owned()
    } else {
        format!("{would} the images of {number} go: they can no longer be undone\n")
    };
    let mut reasons = BTreeMap::<&str, u64>::new();
    for (_, reason) in &report.expired {
        *reasons.entry(reason.as_str()).or_default() += 1;
    }
    let mut rows: Vec<Vec<Cell>> = reasons
        .into_iter()
        .map(|(reason, number)| row(&counted(number, "operation"), reason.to_owned()))
        .collect();
    if let Some(compacted) = outcome
        .compacted
        .as_ref()
        .filter(|compacted| compacted.rewritten > 0)
    {
        let (before, after) = (size(compacted.bytes_before), size(compacted.bytes_after));
        let packed = format!(
            "{} from {before} to {after}",
            counted(compacted.rewritten, "content")
        );
        rows.push(row("packed", packed));
    }
    if let Some(file) = &outcome.audit_file {
        rows.push(row(
            "old records",
            format!("moved to {}", session.here.show(file)),
        ));
    }
    let after = if report.is_dry_run {
        "would then hold"
    } else {
        "holds now"
    };
    let sizes = format!(
        "held {}, {after} {}",
        size(report.before.total),
        size(report.after.total)
    );
    rows.push(row("store", sizes));
    text.push_str(&table(rows, None));
    text.push_str(&of_other_drivers(&report.others));
    text.push_str(&checkpoints(outcome, would));
    session.ui.done(&text);
    for left in &report.left {
        let place = session.here.show(&left.path);
        session.ui.note(&format!(
            "`{place}` could not be removed: {}",
            printable(&left.why)
        ));
    }
    if report.is_busy {
        session
            .ui
            .note("somebody reads or writes packs without end; they were left as they are");
    }
}

/// Names the checkpoints whose files go.
fn checkpoints(outcome: &GcOutcome, would: &str) -> String {
    let each = outcome.workspaces.iter().map(|gone| {
        let (name, why) = (&gone.name, &gone.why);
        format!("{would} the files of checkpoint {name} go: {why}\n")
    });
    each.collect()
}

fn row(label: &str, text: String) -> Vec<Cell> {
    vec![Cell::new(DIM, format!("  {label}")), Cell::plain(text)]
}
