//! Undos that failed: what was tried, and what to do next.

use std::fmt::Write as _;

use backout_engine::{FailedUndo, TakeBack};
use backout_model::{Climbed, OperationId, Rung, TargetOutcome, Timestamp, Tried};

use super::list::hidden_line;
use super::time::ago;
use super::{command_line, counted, id, typed};
use crate::paths::Here;
use crate::session::Session;
use crate::ui::{BAD, BOLD, DIM, paint, printable};

/// How many targets of one operation are named.
const TARGETS_MAX: usize = 5;

/// Lists undos that failed.
pub(super) fn list(session: &mut Session, failed: &[FailedUndo], now: Timestamp) {
    if failed.is_empty() {
        session.ui.done("no undo waits for a person\n");
        return;
    }
    let most = session.listed(TARGETS_MAX);
    let each = failed.iter().map(|one| text(one, &session.here, most, now));
    let text: Vec<String> = each.collect();
    session.ui.print(&text.join("\n"));
}

fn text(failed: &FailedUndo, here: &Here, most: usize, now: Timestamp) -> String {
    let what = match failed.way {
        TakeBack::Undo => "the undo failed",
        TakeBack::Redo => "the redo failed",
    };
    let summary = here.shorten(&printable(&failed.summary));
    let mut text = format!(
        "{}  {}  {}\n",
        id(failed.id),
        paint(BOLD, &summary),
        paint(BAD, what)
    );
    // Writing to a string cannot fail.
    for target in failed.targets.iter().take(most) {
        let TargetOutcome { target, kind } = target;
        let kind = here.shorten(&printable(&kind.to_string()));
        let _written = writeln!(text, "  {}  {}", here.target(target), paint(BAD, &kind));
    }
    text.push_str(&hidden_line(
        "  ",
        failed.targets.len().saturating_sub(most),
    ));
    let trigger = printable(&failed.trigger.to_string());
    let _written = writeln!(text, "  by {}; set off: {trigger}", failed.strategy);
    for line in tried(&failed.tried, here, failed.is_climbing) {
        let _written = writeln!(text, "  tried: {line}");
    }
    if let Some(last) = failed.tried.last() {
        let when = format!("  last {}", ago(now, last.at));
        let _written = writeln!(text, "{}", paint(DIM, &when));
    }
    for next in failed.advice() {
        let next = next.worded(|call| format!("`{}`", command_line(&call.line())));
        let _written = writeln!(text, "  next: {}", here.shorten(&printable(&next.text)));
    }
    text
}

/// Says what was tried, a line for each rung.
pub(super) fn tried(tried: &[Tried], here: &Here, is_climbing: bool) -> Vec<String> {
    let line = |tried: &Tried| {
        let rung = match tried.rung {
            Rung::Retry => "the same again".to_owned(),
            Rung::Fallback => "the same bytes from elsewhere".to_owned(),
            Rung::Restore => "the hook that restores the environment".to_owned(),
            Rung::Alert => "telling a person".to_owned(),
            Rung::Accept => "accepting what is left".to_owned(),
        };
        let times = match tried.times {
            0 => String::new(),
            times => format!(", {}", counted(times.into(), "time")),
        };
        let came = match &tried.climbed {
            Climbed::Began if is_climbing => "under way".to_owned(),
            Climbed::Began => {
                "it began, and whoever called it died; nobody knows what came of it".to_owned()
            }
            Climbed::Helped => "done".to_owned(),
            Climbed::DidNotHelp { why } => format!("did not help: {why}"),
            Climbed::NotPossible { why } => format!("not possible: {why}"),
        };
        here.shorten(&printable(&format!("{rung}{times}: {came}")))
    };
    tried.iter().map(line).collect()
}

/// Says that what is left of an operation was accepted.
pub(super) fn accepted(session: &mut Session, operation: OperationId) {
    let text = format!("what is left of {} stays as it is\n", id(operation));
    session.ui.done(&text);
    let show = typed(&format!("show {}", operation.short()));
    session.ui.hint(&format!("see who accepted it with {show}"));
}
