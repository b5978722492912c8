//! What waits for a decision, and what was decided.

use std::collections::BTreeMap;

use backout_engine::{ProposalView, TrialView};
use backout_model::ports::Reason;
use backout_model::{OperationId, Proposal, Timestamp};

use super::diff::{self, Style};
use super::time::{exactly, size};
use super::{id, status, typed};
use crate::session::Session;
use crate::ui::{ACCENT, BAD, BOLD, Cell, DIM, PLAIN, WARN, paint, printable, table};

/// How many names of what moves or goes as one are told.
const INSIDE_MAX: usize = 20;

/// Lists what waits.
pub(super) fn list(
    session: &mut Session,
    proposals: &[Proposal],
    (trials, untold): (&[TrialView], &BTreeMap<OperationId, Vec<String>>),
    now: Timestamp,
) {
    if proposals.is_empty() && trials.is_empty() {
        session.ui.done("nothing waits for a decision\n");
        return;
    }
    let mut text = String::new();
    if !proposals.is_empty() {
        text.push_str(&status::heading("proposals", WARN));
        text.push_str(&rows(session, proposals, now));
    }
    for (id, said) in untold {
        for said in said {
            text.push_str(&not_heard(&id.short(), said));
        }
    }
    if !trials.is_empty() {
        text.push_str(&status::heading("trials", WARN));
        text.push_str(&status::trials(trials, now));
    }
    session.ui.print(&text);
    hint(session, proposals);
}

/// Says that somebody may not have heard of a proposal.
fn not_heard(id: &str, said: &str) -> String {
    let said = printable(said);
    format!("  {id}: nobody may have heard that it waits: {said}\n")
}

/// Shows each proposal in a line.
pub(super) fn rows(session: &Session, proposals: &[Proposal], now: Timestamp) -> String {
    let rows = proposals.iter().map(|proposal| {
        let agent = proposal.agent.as_ref().map(ToString::to_string);
        let left = proposal.expires.map(|expires| left(now, expires));
        vec![
            Cell::plain("  ").and(ACCENT, proposal.id.short()),
            Cell::plain(session.here.shorten(&printable(&proposal.summary))),
            Cell::plain(agent.unwrap_or_default()),
            Cell::new(DIM, left.unwrap_or_else(|| "waits for ever".to_owned())),
        ]
    });
    table(rows.collect(), None)
}

/// Says how to decide about the oldest one.
pub(super) fn hint(session: &mut Session, proposals: &[Proposal]) {
    let Some(oldest) = proposals.first() else {
        return;
    };
    let command = |word: &str| typed(&format!("{word} {}", oldest.id.short()));
    session.ui.hint(&format!(
        "look at it with {}, then decide with {} or {}",
        command("pending"),
        command("approve"),
        command("reject")
    ));
}

/// Says how long somebody may still decide.
fn left(now: Timestamp, expires: Timestamp) -> String {
    let minutes = expires.millis_since(now) / 60_000;
    match minutes {
        ..1 => "less than a minute left".to_owned(),
        1..120 => format!("{minutes} min left"),
        120..2880 => format!("{} h left", minutes / 60),
        _ => format!("{} days left", minutes / 1440),
    }
}

/// Shows one proposal with what it would change.
pub(super) fn shown(session: &mut Session, view: &ProposalView, now: Timestamp) {
    let proposal = &view.proposal;
    let summary = session.here.shorten(&printable(&proposal.summary));
    let mut text = format!("{}  {}\n", id(proposal.id), paint(BOLD, &summary));
    if let Some(agent) = &proposal.agent {
        text.extend(["  asked by ", agent.as_str(), "\n"]);
    }
    for said in &view.untold {
        text.push_str(&not_heard(&proposal.id.short(), said));
    }
    for reason in Reason::told(&proposal.reasons) {
        let reason = session.here.shorten(&printable(&reason));
        text.extend(["  ", &reason, "\n"]);
    }
    if let Some(expires) = proposal.expires {
        let (until, left) = (exactly(expires), left(now, expires));
        text.extend(["  until ", &until, " (", &left, ")\n"]);
    }
    if let Some(stale) = &view.stale {
        let stale = session.here.shorten(&printable(stale));
        let cannot = paint(BAD, "it cannot be approved any more:");
        text.extend(["  ", &cannot, " ", &stale, "\n"]);
    }
    session.ui.print(&text);
    if !view.files.is_empty() {
        diff::files(session, &view.files, Style::Full);
    }
    inside(session, view);
    let command = |word: &str| typed(&format!("{word} {}", proposal.id.short()));
    let decide = if view.stale.is_some() {
        format!("refuse it with {}", command("reject"))
    } else {
        format!(
            "decide with {} or {}",
            command("approve"),
            command("reject")
        )
    };
    session.ui.hint(&decide);
}

/// Lists what is in the trees that would move or go as one.
fn inside(session: &mut Session, view: &ProposalView) {
    if view.inside.is_empty() {
        return;
    }
    let listed = session.listed(INSIDE_MAX);
    let rows = view.inside.iter().take(listed).map(|name| {
        let size = name.size.map(size);
        vec![
            Cell::plain("  ").and(PLAIN, session.here.show(name.path.as_path())),
            Cell::new(DIM, size.unwrap_or_else(|| name.kind.clone())),
        ]
    });
    let mut text = "with all that is in it:\n".to_owned();
    text.push_str(&table(rows.collect(), None));
    let more = view.inside.len().saturating_sub(listed) + view.inside_more;
    if more > 0 {
        text.extend(["  and ", &more.to_string(), " more\n"]);
    }
    session.ui.print(&text);
}

/// Says that a proposal was refused.
pub(super) fn rejected(session: &mut Session, proposal: OperationId) {
    let text = format!("rejected {}; nothing was written\n", id(proposal));
    session.ui.done(&text);
}
