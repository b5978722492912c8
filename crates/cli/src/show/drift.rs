//! What has drifted, and what was decided about it.

use std::fmt::Write as _;

use backout_engine::{DriftDecided, DriftHistory, DriftReport, DriftView, Round};
use backout_model::drift::{Drift, DriftNote, HowResolved, Resolved, Who};
use backout_model::{Severity, Timestamp};

use super::list::hidden_line;
use super::time::ago;
use super::{counted, id};
use crate::paths::Here;
use crate::session::Session;
use crate::ui::{BAD, BOLD, DIM, WARN, paint, printable};

/// How many are listed.
const LISTED_MAX: usize = 50;

/// Lists what has drifted. With `is_noticed`, nobody went to look at everything.
pub(crate) fn list(session: &mut Session, report: &DriftReport, is_noticed: bool) {
    let most = session.listed(LISTED_MAX);
    let mut text = String::new();
    for view in report.open.iter().take(most) {
        text.push_str(&one(view, &session.here, report.now));
    }
    text.push_str(&hidden_line("", report.open.len().saturating_sub(most)));
    if !report.history.is_empty() {
        text.push_str(&paint(BOLD, "noted before:"));
        text.push('\n');
        for line in report.history.iter().take(most) {
            text.push_str(&past(line, &session.here, report.now));
        }
    }
    if report.open.is_empty() {
        session.ui.done(if is_noticed && report.targets == 0 {
            "nothing was noticed; look with `backout watch --once`\n"
        } else {
            "nothing has drifted\n"
        });
    }
    session.ui.print(&text);
    if report.deferred > 0 {
        let names = counted(report.deferred as u64, "name");
        session.ui.note(&format!(
            "{names} may be the work of a command that is under way"
        ));
    }
    for it in &report.unanswered {
        let why = session.here.shorten(&printable(&it.why));
        let short = it.operation.short();
        session
            .ui
            .note(&format!("what {short} wrote could not be looked at: {why}"));
    }
    if !report.ignored.is_empty() {
        let patterns: Vec<String> = report.ignored.iter().map(|it| printable(it)).collect();
        session
            .ui
            .note(&format!("left alone: {}", patterns.join(", ")));
    }
}

fn one(view: &DriftView, here: &Here, now: Timestamp) -> String {
    let drift = &view.drift;
    let mut text = line(drift, here);
    let by = match &drift.expected.agent {
        Some(agent) => format!("{}, by {agent}", id(drift.expected.by)),
        None => id(drift.expected.by),
    };
    // Writing to a string cannot fail.
    let _written = writeln!(
        text,
        "  recorded: {} ({by})",
        printable(&drift.expected.what)
    );
    let _written = writeln!(
        text,
        "  found:    {}{}",
        here.shorten(&printable(&drift.found.what)),
        who(&drift.who)
    );
    for example in &drift.examples {
        let _written = writeln!(text, "    {}", here.target(example));
    }
    let shown = u64::try_from(drift.examples.len()).unwrap_or_default();
    if shown > 0 {
        let rest = usize::try_from(drift.count - shown).unwrap_or_default();
        text.push_str(&hidden_line("    ", rest));
    }
    let choices: Vec<&str> = drift.choices.iter().map(|it| it.as_str()).collect();
    let since = format!(
        "  last right {}, seen {}; to decide: {}",
        ago(now, drift.since.right),
        ago(now, drift.since.seen),
        choices.join(", ")
    );
    let _written = writeln!(text, "{}", paint(DIM, &since));
    text
}

/// Says what has drifted and how, in one line.
fn line(drift: &Drift, here: &Here) -> String {
    let style = match drift.severity {
        Severity::High | Severity::Critical => BAD,
        Severity::Low | Severity::Medium => WARN,
    };
    let kind = match drift.count {
        1 => drift.kind.to_string(),
        count => format!("{}, {} names", drift.kind, count),
    };
    format!(
        "{}  {}  {}\n",
        paint(BOLD, &here.target(&drift.target)),
        paint(style, &kind),
        paint(DIM, drift.severity.as_str())
    )
}

fn who(who: &Who) -> String {
    match who {
        Who::Unknown => String::new(),
        Who::Operation { id: by, agent } => match agent {
            Some(agent) => format!(", perhaps by {} of {agent}", id(*by)),
            None => format!(", perhaps by {}", id(*by)),
        },
        Who::Process { pid, name } if name.is_empty() => {
            format!(", by process {pid}, which has ended")
        }
        Who::Process { pid, name } => format!(", by {} (process {pid})", printable(name)),
    }
}

fn past(line: &DriftHistory, here: &Here, now: Timestamp) -> String {
    let when = paint(DIM, &ago(now, line.at));
    let what = match &line.note {
        DriftNote::Detected(drift) => {
            format!("{}  {}", here.target(&drift.target), drift.kind)
        }
        DriftNote::Resolved(end) => over(end, here),
        DriftNote::Ignoring { pattern } => format!("{}  left alone", printable(pattern)),
        DriftNote::Heeding { pattern } => format!("{}  looked at again", printable(pattern)),
    };
    format!("  {what}  {when}\n")
}

/// Says how a drift ended.
fn over(end: &Resolved, here: &Here) -> String {
    let target = here.target(&end.target);
    match &end.how {
        HowResolved::Accepted { by } => said(&target, "accepted as it is", *by),
        HowResolved::Restored { by } => said(&target, "made what was recorded", *by),
        HowResolved::Merged { by } => said(&target, "merged with what was recorded", *by),
        HowResolved::Ignored { pattern } => {
            format!("{target}  left alone by {}", printable(pattern))
        }
        HowResolved::WentAway => format!("{target}  as recorded again"),
        HowResolved::Recorded { by } => said(&target, "written since", Some(*by)),
        HowResolved::Joined { into } => {
            format!("{target}  told with {}", printable(&into.to_string()))
        }
    }
}

fn said(target: &str, what: &str, by: Option<backout_model::OperationId>) -> String {
    match by {
        Some(by) => format!("{target}  {what} ({})", id(by)),
        None => format!("{target}  {what}"),
    }
}

/// Says what was decided.
pub(super) fn decided(session: &mut Session, decided: &DriftDecided) {
    let mut text = String::new();
    for end in &decided.resolved {
        text.extend([over(end, &session.here), "\n".to_owned()]);
    }
    if let Some(pattern) = &decided.ignoring {
        let pattern = printable(pattern);
        let _written = writeln!(text, "what {pattern} matches is left alone");
    }
    if let Some(pattern) = &decided.heeding {
        let pattern = printable(pattern);
        let _written = writeln!(text, "what {pattern} matches is looked at again");
    }
    session.ui.done(&text);
    for note in &decided.notes {
        let note = session.here.shorten(&printable(note));
        session.ui.note(&note);
    }
}

/// Tells what a round of a watch found, line by line, or as JSON lines.
pub(crate) fn news(session: &mut Session, round: &Round, _now: Timestamp) {
    if session.ui.is_json() {
        for note in &round.news {
            if let Ok(line) = serde_json::to_string(note) {
                session.ui.print_line(&line);
            }
        }
    } else {
        let mut text = String::new();
        for note in &round.news {
            match note {
                DriftNote::Detected(drift) => text.push_str(&line(drift, &session.here)),
                DriftNote::Resolved(end) => {
                    let _written = writeln!(text, "{}", over(end, &session.here));
                }
                DriftNote::Ignoring { .. } | DriftNote::Heeding { .. } => {}
            }
        }
        session.ui.print(&text);
    }
    session.ui.flush();
}
