//! One operation with all that is known of it.

use std::collections::HashMap;

use backout_engine::{PlannedTarget, Shown, TargetState};
use backout_model::{
    CaptureLevel, Climbed, CommandEnd, Cost, Event, Key, Operation, OperationId, Status, Timestamp,
    Verb,
};

use super::list::hidden_text;
use super::log::status_style;
use super::time::{ago, exactly, size};
use super::values::{Between, is_row, values};
use super::{failed, id, typed};
use crate::paths::Here;
use crate::session::Session;
use crate::ui::{BAD, BOLD, Cell, DIM, GOOD, PLAIN, paint, printable, table};

/// How many targets are named.
const TARGETS_MAX: usize = 20;

/// Shows an operation.
pub(super) fn shown(session: &mut Session, shown: &Shown, now: Timestamp) {
    let operation = &shown.operation;
    let summary = session.here.shorten(&printable(&operation.summary));
    let mut text = format!("{}  {}\n", id(operation.id), paint(BOLD, &summary));
    let mut rows = head(operation, now);
    rows.extend(command(shown, &session.here));
    rows.extend(decided(shown));
    rows.extend(escalated(shown, &session.here));
    rows.extend(shown.compensation.as_ref().map(|it| {
        let said = format!("{} ({})", it.compensation_action, it.status.as_str());
        row("answered by", Cell::plain(printable(&said)))
    }));
    let most = session.listed(TARGETS_MAX);
    rows.extend(targets(shown, &session.here, most));
    rows.extend(relations(shown));
    rows.extend(decision(operation, &session.here));
    let records = shown
        .records
        .iter()
        .map(|record| format!("{} {}", record.lsn, record.event.kind()));
    rows.push(row(
        "journal",
        Cell::plain(records.collect::<Vec<_>>().join(", ")),
    ));
    for note in &operation.notes {
        rows.push(row(
            "note",
            Cell::plain(session.here.shorten(&printable(note))),
        ));
    }
    text.push_str(&table(rows, None));
    let told: Vec<_> = shown
        .values
        .iter()
        .filter(|it| is_row(it))
        .take(most)
        .collect();
    text.push_str(&values(
        &told,
        Between::BeforeAndAfter,
        session.global.verbose,
    ));
    session.ui.print(&text);
    hints(session, operation);
}

fn row(label: &str, cell: Cell) -> Vec<Cell> {
    vec![Cell::new(DIM, format!("  {label}")), cell]
}

fn head(operation: &Operation, now: Timestamp) -> Vec<Vec<Cell>> {
    let mut status = Cell::new(status_style(operation.status), operation.status.as_str());
    let names = |ids: Vec<OperationId>| {
        let names: Vec<String> = ids.into_iter().map(OperationId::short).collect();
        names.join(", ")
    };
    let undos = operation.undos();
    if operation.is_partly_undone() {
        let gone = operation.targets.len() - operation.in_effect().count();
        let of = operation.targets.len();
        let how = if undos.is_empty() {
            "not done when its process died".to_owned()
        } else {
            format!("taken back by {}", names(undos))
        };
        status = status.and(PLAIN, format!(", {gone} of {of} targets {how}"));
    } else if !undos.is_empty() {
        status = status.and(PLAIN, format!(" by {}", names(undos)));
    }
    let mut redos = operation.holders();
    redos.retain(|holder| *holder != operation.id);
    if !redos.is_empty() {
        status = status.and(PLAIN, format!(", brought back by {}", names(redos)));
    }
    if operation.status.is_in_effect() && !operation.retained {
        status = status.and(BAD, ", no longer undoable: its images are no longer kept");
    }
    let when = format!("{} ({})", exactly(operation.at), ago(now, operation.at));
    let mut rows = vec![
        row("id", Cell::plain(operation.id.to_string())),
        row("status", status),
        row("when", Cell::plain(when)),
    ];
    rows.extend(
        operation
            .agent
            .as_ref()
            .map(|agent| row("agent", Cell::plain(agent.as_str()))),
    );
    rows.extend(
        operation
            .task
            .as_ref()
            .map(|task| row("task", Cell::plain(task.as_str()))),
    );
    rows.extend(
        operation
            .prompt
            .as_ref()
            .map(|prompt| row("prompt", Cell::plain(prompt.as_str()))),
    );
    rows.extend(
        operation
            .undoes
            .map(|undone| row("takes back", Cell::plain(undone.short()))),
    );
    let trigger = operation.trigger.as_ref();
    rows.extend(
        trigger.map(|trigger| row("set off", Cell::plain(printable(&trigger.to_string())))),
    );
    rows
}

/// Says who decided about it, if it was a proposal, and why.
fn decided(shown: &Shown) -> Option<Vec<Cell>> {
    let (word, decided) = shown
        .records
        .iter()
        .find_map(|record| match &record.event {
            Event::Intent(intent) => Some(("approved by", intent.approval.as_ref()?)),
            Event::Refused(refusal) => Some(("rejected by", refusal.decided.as_ref()?)),
            _ => None,
        })?;
    let why = decided.why.as_ref().map(|why| format!(": {why}"));
    let said = format!("{}{}", decided.by, why.unwrap_or_default());
    Some(row(word, Cell::plain(printable(&said))))
}

/// Says what was done about an undo of it that failed, and who accepted what is left of it.
fn escalated(shown: &Shown, here: &Here) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for record in &shown.records {
        let Event::Escalated(escalated) = &record.event else {
            continue;
        };
        let mut outcomes = escalated.outcomes.iter();
        let failed = outcomes.find(|it| !it.kind.is_complete());
        if let Some(outcome) = failed.filter(|_| escalated.is_first) {
            let kind = here.shorten(&printable(&outcome.kind.to_string()));
            let cell = Cell::plain(here.target(&outcome.target));
            rows.push(row("undo failed", cell.and(BAD, format!("  {kind}"))));
        }
        if matches!(escalated.climbed, Climbed::NotPossible { .. }) {
            continue;
        }
        let by = escalated.decided.as_ref().map(|decided| {
            let why = decided.why.as_ref().map(|why| format!(": {why}"));
            format!(", by {}{}", decided.by, why.unwrap_or_default())
        });
        let said = failed::tried(&[escalated.tried(record.at)], here, false);
        let said = said.concat() + &by.unwrap_or_default();
        rows.push(row("tried", Cell::plain(printable(&said))));
    }
    rows
}

/// Says how a command was started and what became of it.
fn command(shown: &Shown, here: &Here) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for record in &shown.records {
        match &record.event {
            Event::Intent(intent) => {
                let Some(start) = &intent.command else {
                    continue;
                };
                let directory = here.show(start.directory.as_path());
                rows.push(row("directory", Cell::plain(directory)));
                let environment = start.environment.short();
                rows.push(row("environment", Cell::plain(environment)));
                let capture = format!(
                    "{}, safe against {}",
                    start.mode.as_str(),
                    survives(start.level)
                );
                rows.push(row("capture", Cell::plain(capture)));
            }
            // A call of an agent's own tool is no command, and nobody saw it end.
            Event::Captured(_) if shown.operation.verb != Verb::Run => {}
            Event::Captured(captured) => rows.push(row("ended", Cell::plain(ended(&captured.end)))),
            _ => {}
        }
    }
    rows
}

const fn survives(level: CaptureLevel) -> &'static str {
    match level {
        CaptureLevel::Process => "the death of any process",
        CaptureLevel::Power => "loss of power",
    }
}

fn ended(end: &CommandEnd) -> String {
    let how = match (end.exit_code, end.signal) {
        (Some(code), _) => format!("with code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "without being seen".to_owned(),
    };
    let late = if end.timed_out {
        ", its time was up"
    } else {
        ""
    };
    let (created, changed, deleted) = (end.created, end.changed, end.deleted);
    format!(
        "{how}{late} after {} ms; {created} created, {changed} changed, {deleted} deleted",
        end.duration_ms
    )
}

fn targets(shown: &Shown, here: &Here, most: usize) -> Vec<Vec<Cell>> {
    let planned: HashMap<&Key, &PlannedTarget> = shown
        .targets
        .iter()
        .map(|planned| (planned.target.key(), planned))
        .collect();
    let all = &shown.operation.targets;
    let targets = all.iter().take(most).map(|standing| {
        let cell = Cell::plain(here.target(&standing.target));
        let said = match (standing.undone_by, planned.get(standing.target.key())) {
            (Some(by), _) if by == shown.operation.id => {
                Some((DIM, "  not done when its process died".to_owned()))
            }
            (Some(by), _) => Some((DIM, format!("  taken back by {}", by.short()))),
            (None, Some(planned)) => Some(match &planned.state {
                TargetState::ComesBack | TargetState::AfterNewerStep => {
                    (GOOD, "  as this operation left it".to_owned())
                }
                TargetState::AlreadyBefore | TargetState::Left { .. } => {
                    (DIM, "  as before this operation".to_owned())
                }
                TargetState::Merges => (DIM, "  changed since".to_owned()),
                TargetState::Conflict { why }
                | TargetState::Overwritten { why }
                | TargetState::Incomplete { why } => {
                    (BAD, format!("  {}", here.shorten(&printable(why))))
                }
                TargetState::CannotComeBack { why } => {
                    let why = here.shorten(&printable(why));
                    (BAD, format!("  cannot be brought back: {why}"))
                }
            }),
            (None, None) => None,
        };
        match said {
            Some((style, said)) => row("target", cell.and(style, said)),
            None => row("target", cell),
        }
    });
    let hidden = all.len().saturating_sub(most);
    let more = (hidden > 0).then(|| row("", Cell::new(DIM, hidden_text(hidden))));
    targets.chain(more).collect()
}

fn relations(shown: &Shown) -> Vec<Vec<Cell>> {
    let on = shown.operation.depends_on.iter().map(|dependency| {
        let reason = format!("  {}", dependency.reason);
        row(
            "built on",
            Cell::plain(dependency.on.short()).and(DIM, reason),
        )
    });
    let under = shown
        .dependents
        .iter()
        .map(|dependent| row("base of", Cell::plain(dependent.short())));
    on.chain(under).collect()
}

/// Says what was asked for, what keeps the way back, why, and what that cost.
fn decision(operation: &Operation, here: &Here) -> Vec<Vec<Cell>> {
    let decision = &operation.decision;
    let (asked, used) = (
        decision.asked.unwrap_or(decision.strategy),
        decision.strategy,
    );
    let reason = format!("  {}", printable(&decision.reason));
    let mut rows = Vec::new();
    if asked == used {
        rows.push(row(
            "strategy",
            Cell::plain(used.to_string()).and(DIM, reason),
        ));
    } else {
        rows.push(row(
            "asked for",
            Cell::plain(asked.to_string()).and(DIM, reason),
        ));
        for tried in &decision.not_prepared {
            let why = format!("  {}", here.shorten(&printable(&tried.why)));
            rows.push(row(
                "not possible",
                Cell::plain(tried.strategy.to_string()).and(DIM, why),
            ));
        }
        rows.push(row("strategy", Cell::plain(used.to_string())));
    }
    rows.extend(
        decision
            .cost
            .map(|cost| row("cost", Cell::plain(said_of_cost(cost)))),
    );
    rows
}

fn said_of_cost(cost: Cost) -> String {
    let stored = format!("{} stored", size(cost.stored_bytes));
    match cost.kept_bytes {
        0 => stored,
        kept => format!("{stored}, {} kept as they are", size(kept)),
    }
}

fn hints(session: &mut Session, operation: &Operation) {
    let short = operation.id.short();
    let is_over = operation.status != Status::Armed;
    if operation.status.is_in_effect() && is_over && operation.retained {
        let diff = typed(&format!("diff {short}"));
        let undo = typed(&format!("undo {short} --dry-run"));
        session.ui.hint(&format!("see what it changed with {diff}"));
        session
            .ui
            .hint(&format!("see what an undo would do with {undo}"));
    }
}
