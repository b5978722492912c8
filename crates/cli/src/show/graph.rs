//! The project's state graph: drawn, updated, checked; and evidence.

use std::collections::HashMap;
use std::fmt::Write as _;

use anstyle::Style;
use backout_engine::{EvidenceView, GraphChecked, GraphUpdated, GraphView};
use backout_model::Severity;
use backout_mplp::{Drawn, EdgeKind, EvidenceFlaw, NodeKind};

use super::{counted, counted_of, typed};
use crate::graph::draw;
use crate::session::Session;
use crate::ui::{ACCENT, BAD, Cell, DIM, GOOD, PLAIN, WARN, paint, printable, table};

/// How much of an id is shown: enough to tell two apart.
const ID_CHARACTERS: usize = 8;

/// Draws the graph, each node above what it leads to.
pub(super) fn shown(session: &mut Session, view: &GraphView) {
    if view.nodes.is_empty() {
        session.ui.done("the graph is empty\n");
        return;
    }
    let rows: HashMap<&str, usize> = view
        .nodes
        .iter()
        .enumerate()
        .map(|(row, node)| (node.id.as_str(), row))
        .collect();
    let edges: Vec<Vec<usize>> = view
        .nodes
        .iter()
        .map(|node| {
            let leads = node.leads.iter();
            leads
                .filter_map(|(_, to)| rows.get(to.as_str()).copied())
                .collect()
        })
        .collect();
    let cells = view.nodes.iter().zip(draw(&edges)).map(|(node, gutter)| {
        let (sign, style) = sign(node);
        let version = match node.kind {
            NodeKind::Step => String::new(),
            NodeKind::Context
            | NodeKind::Plan
            | NodeKind::Trace
            | NodeKind::Confirm
            | NodeKind::Role
            | NodeKind::Collab
            | NodeKind::Dialog
            | NodeKind::Extension
            | NodeKind::Network => format!("v{}", node.version),
        };
        vec![
            Cell::new(DIM, gutter.before)
                .and(style, sign)
                .and(DIM, gutter.after),
            Cell::new(ACCENT, short(&node.id)),
            Cell::plain(node.kind.as_str()),
            Cell::new(style, node.status.clone().unwrap_or_default()),
            Cell::new(DIM, version),
            Cell::plain(printable(&node.title)).and(DIM, leads(node)),
        ]
    });
    let mut text = table(cells.collect(), session.ui.width());
    for violated in &view.violated {
        let _written = writeln!(
            text,
            "{} {} {}: {} ({})",
            paint(weight(violated.violation.severity), "!"),
            violated.kind,
            short(&violated.node),
            printable(&violated.violation.why),
            violated.violation.invariant,
        );
    }
    session.ui.print(&text);
}

/// Says what is not drawn by lines alone: who does it, what it tells of, what came of it.
fn leads(node: &Drawn) -> String {
    let said = node.leads.iter().filter(|(kind, _)| {
        matches!(
            kind,
            EdgeKind::AssignedTo | EdgeKind::Traces | EdgeKind::Confirms | EdgeKind::Produces
        )
    });
    said.fold(String::new(), |mut text, (kind, to)| {
        let _written = write!(text, "  {} {}", kind.as_str(), short(to));
        text
    })
}

fn sign(node: &Drawn) -> (&'static str, Style) {
    let status = node.status.as_deref().unwrap_or_default();
    match status {
        "failed" | "rejected" => ("✗", BAD),
        "in_progress" | "running" | "active" | "approved" => ("●", GOOD),
        "blocked" | "suspended" | "degraded" => ("●", WARN),
        _ if node.kind.is_terminal(status) => ("○", DIM),
        _ => ("○", PLAIN),
    }
}

const fn weight(severity: Severity) -> Style {
    match severity {
        Severity::Low => DIM,
        Severity::Medium => WARN,
        Severity::High | Severity::Critical => BAD,
    }
}

fn short(id: &str) -> String {
    id.chars().take(ID_CHARACTERS).collect()
}

/// Says what an update came to.
pub(super) fn updated(session: &mut Session, updated: &GraphUpdated) {
    let count = counted_of(&updated.written, "node");
    let said = match (
        updated.is_dry_run,
        updated.restored,
        updated.written.is_empty(),
    ) {
        (_, None, true) => "the graph is so already\n".to_owned(),
        (_, Some(lsn), true) => format!("the graph is as it was after record {lsn} already\n"),
        (true, _, false) => format!("{count} would get a new version\n"),
        (false, None, false) if updated.written.iter().all(|node| node.removed) => {
            format!("{count} taken out of the graph\n")
        }
        (false, None, false) => format!("{count} of the graph updated\n"),
        (false, Some(lsn), false) => {
            format!("the graph is as it was after record {lsn}: {count} in a new version\n")
        }
    };
    session.ui.done(&said);
    for node in &updated.written {
        for violation in &node.violations {
            session.ui.note(&format!(
                "{} {} breaks {} ({}): {}",
                node.kind,
                short(&node.id),
                violation.invariant,
                violation.severity,
                printable(&violation.why)
            ));
        }
    }
    if let Some(before) = updated.before {
        let back = typed(&format!("graph restore --at {before}"));
        session.ui.hint(&format!("take this back with {back}"));
    }
    for id in &updated.kept {
        session.ui.note(&format!(
            "{} was not there then and stays: a trace, a confirmation or a dialog tells of it",
            short(id)
        ));
    }
}

/// Says what is wrong.
pub(super) fn checked(session: &mut Session, checked: &GraphChecked) {
    let looked = format!(
        "looked at {} by {}",
        counted(checked.objects, "object"),
        counted(checked.rules, "rule")
    );
    if checked.flaws.is_empty() {
        session.ui.print(&format!("{looked}: all is well\n"));
        return;
    }
    let cells = checked.flaws.iter().map(|flaw| {
        let kind = flaw.kind.map_or("object", backout_mplp::Kind::as_str);
        vec![
            Cell::new(weight(flaw.severity), flaw.severity.as_str()),
            Cell::plain(kind),
            Cell::new(ACCENT, short(&flaw.id)),
            Cell::plain(
                flaw.invariant
                    .clone()
                    .unwrap_or_else(|| "schema".to_owned()),
            ),
            Cell::plain(printable(&format!("{} {}", flaw.place, flaw.what))),
        ]
    });
    let text = table(cells.collect(), session.ui.width());
    let count = counted_of(&checked.flaws, "finding");
    session.ui.print(&format!("{text}{looked}: {count}\n"));
}

/// Gives the exit code for evidence that does not hold: the journal is another one, or only the pack is.
pub(super) fn evidence_code(view: &EvidenceView) -> u8 {
    let is_of_journal = |flaw: &EvidenceFlaw| {
        matches!(flaw, EvidenceFlaw::Other { .. } | EvidenceFlaw::Gone { .. })
    };
    if view.flaws.iter().any(is_of_journal) {
        3
    } else {
        1
    }
}

/// Says what became of evidence.
pub(super) fn evidence(session: &mut Session, view: &EvidenceView) {
    let what = format!(
        "{} and {}, up to record {}",
        counted(view.records, "record"),
        counted(view.events, "event"),
        view.last
    );
    if view.flaws.is_empty() {
        let cut = match view.cut {
            0 => String::new(),
            cut => format!("; {} cut from the journal since", counted(cut, "record")),
        };
        session.ui.print(&format!("evidence of {what}{cut}\n"));
        if view.is_graph_unknown {
            session.ui.note(
                "the objects of the graph were not compared: the journal does not reach back to where the pack begins",
            );
        }
        return;
    }
    let lines = view
        .flaws
        .iter()
        .map(|flaw| format!("{} {flaw}\n", paint(BAD, "✗")));
    let lines: String = lines.collect();
    let count = counted_of(&view.flaws, "finding");
    session
        .ui
        .print(&format!("{lines}the evidence does not hold: {count}\n"));
}
