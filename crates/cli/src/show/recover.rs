//! What recovery did.

use backout_engine::{RecoverReport, Recovered};
use backout_model::Status;

use super::log::status_style;
use super::undo::{Words, outcome_style, outcome_text};
use super::{counted_of, id, typed};
use crate::session::Session;
use crate::ui::{BOLD, Cell, paint, printable, table};

/// Tells whether somebody has to look at it.
pub(super) const fn is_stuck(recovered: &Recovered) -> bool {
    matches!(recovered.status, Status::InDoubt | Status::Failed)
}

/// Shows what recovery did.
pub(super) fn recovered(session: &mut Session, report: &RecoverReport) {
    if report.operations.is_empty() && report.tasks.is_empty() && report.running.is_empty() {
        session.ui.done("nothing was left unfinished\n");
    }
    let here = session.here.clone();
    for recovered in &report.operations {
        let summary = here.shorten(&printable(&recovered.summary));
        let status = paint(status_style(recovered.status), recovered.status.as_str());
        let mut text = format!(
            "{}  {}  now {status}\n",
            id(recovered.id),
            paint(BOLD, &summary)
        );
        let rows = recovered.outcomes.iter().map(|outcome| {
            let said = outcome_text(outcome, &here, Words::Undo);
            let path = here.show(outcome.target.path().as_path());
            vec![
                Cell::plain(format!("  {path}")),
                Cell::new(outcome_style(&outcome.kind), said),
            ]
        });
        text.push_str(&table(rows.collect(), None));
        session.ui.done(&text);
    }
    for task in &report.tasks {
        session
            .ui
            .done(&format!("rolled back task {task}: its owner died\n"));
    }
    if !report.running.is_empty() {
        let number = counted_of(&report.running, "operation");
        session.ui.note(&format!(
            "{number} left alone: the process that writes is alive"
        ));
    }
    if let Some(stuck) = report
        .operations
        .iter()
        .find(|recovered| is_stuck(recovered))
    {
        let command = typed(&format!("show {}", stuck.id.short()));
        session
            .ui
            .hint(&format!("see what is known of it with {command}"));
    }
}
