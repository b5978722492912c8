//! What a command did.

use std::io::IsTerminal as _;

use backout_engine::RunReport;
use backout_model::OperationId;

use super::{id, typed};
use crate::session::Session;
use crate::ui::{DIM, paint, printable};

/// Shows what a command did, where it does not get in the way of the command's own output: on a terminal, or if asked.
pub(crate) fn finished(session: &mut Session, report: &RunReport) {
    if report.end.timed_out {
        session.ui.note("its time was up, so it was ended");
    }
    for note in &report.notes {
        let note = session.here.shorten(&printable(note));
        session.ui.note(&note);
    }
    if !std::io::stderr().is_terminal() {
        return;
    }
    let undo = if is_nothing(report) {
        String::new()
    } else {
        let command = typed(&format!("undo {}", report.id.short()));
        format!(", undo with {command}")
    };
    let how = format!(
        "({}, {} capture{undo})",
        id(report.id),
        report.mode.as_str()
    );
    let text = format!("{}  {}", counts(report), paint(DIM, &how));
    session.ui.aside(&text);
}

/// Says that what a command did was taken back.
pub(crate) fn taken_back(session: &mut Session, report: &RunReport, act: Option<OperationId>) {
    let back = act.map(|act| typed(&format!("redo {}", act.short())));
    let back = back.map(|command| format!(", bring it back with {command}"));
    let text = format!(
        "it failed, and what it did was undone  ({}{})",
        report.id.short(),
        back.unwrap_or_default()
    );
    session.ui.aside(&text);
}

const fn is_nothing(report: &RunReport) -> bool {
    let end = &report.end;
    end.created + end.changed + end.deleted == 0
}

/// Says how many files changed.
pub(crate) fn counts(report: &RunReport) -> String {
    let end = &report.end;
    let parts = [
        (end.created, "created"),
        (end.changed, "changed"),
        (end.deleted, "deleted"),
    ];
    let said: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if said.is_empty() {
        "nothing changed".to_owned()
    } else {
        said.join(", ")
    }
}
