//! What recovery did.

use backout_engine::{
    ActLeft, Along, RecoverReport, Recovered, RecoveredAs, TakeBack, TaskLeft, quoted,
};
use backout_model::{OutcomeKind, Status, TargetOutcome, Verb};

use super::list::{FINE_MAX, abridged, hidden_line};
use super::undo::{outcome_style, outcome_text};
use super::{counted_of, half_way, id, typed};
use crate::session::Session;
use crate::ui::{BAD, BOLD, Cell, GOOD, WARN, paint, printable, table};

/// Tells whether somebody has to look at it.
pub(super) const fn is_stuck(recovered: &Recovered) -> bool {
    matches!(recovered.status, Status::InDoubt | Status::Failed) || !recovered.doubts.is_empty()
}

/// Tells, in one line each, what was recovered on the way to something else.
pub(crate) fn on_the_way(session: &mut Session, recovered: &[Recovered], left: &[ActLeft]) {
    for recovered in recovered {
        let summary = session.here.shorten(&printable(&recovered.summary));
        let text = format!(
            "recovered {}  {summary}: {}",
            id(recovered.id),
            session.here.shorten(&said(recovered))
        );
        session.ui.note(&text);
        if !recovered.ended.is_empty() {
            session.ui.note(&ended_text(recovered));
        }
        for doubt in &recovered.doubts {
            let doubt = session.here.shorten(&printable(doubt));
            session.ui.note(&format!("in doubt: {doubt}"));
        }
    }
    half_way::notes(session, left);
}

/// Names the processes that were ended.
fn ended_text(recovered: &Recovered) -> String {
    let names = printable(&recovered.ended.join(", "));
    format!("ended what was left of it, since nobody watched it any more: {names}")
}

/// Says what recovery made of an operation, and the command that changes it.
fn said(recovered: &Recovered) -> String {
    if let Some(again) = recovered.again {
        let approve = typed(&format!("approve {}", again.short()));
        return format!(
            "its process died before it was done, and nothing of it is there; it waits for a decision again as {}: approve it with {approve}",
            again.short()
        );
    }
    let mut text = became(recovered);
    let is_overwritten = |it: &&TargetOutcome| matches!(it.kind, OutcomeKind::Overwritten { .. });
    let mut overwritten = recovered.outcomes.iter().filter(is_overwritten);
    // Of an undo or a redo that died no half comes back; what it replaced by force does.
    if let (Some(_), Some(by), Some(first)) = (recovered.subject, recovered.by, overwritten.next())
    {
        let more = match overwritten.count() {
            0 => String::new(),
            more => format!(", and so for {more} more"),
        };
        let path = first.target.to_string();
        let path = quoted(path.as_ref());
        let back = typed(&format!("restore {path} --from {}", by.short()));
        text.extend(["; what was overwritten comes back with ", &back, &more]);
    }
    text
}

fn became(recovered: &Recovered) -> String {
    let short = recovered.id.short();
    let undo = typed(&format!("undo {short}"));
    match recovered.became {
        RecoveredAs::NothingHappened => {
            "its process died before anything happened; nothing changed".to_owned()
        }
        RecoveredAs::Kept if recovered.status == Status::Aborted => format!(
            "what is there is kept; nothing is as this {} was to make it, so it counts as not done",
            recovered.verb
        ),
        RecoveredAs::Kept => match &recovered.lost {
            Some(why) => format!(
                "what is there is kept; nothing takes it back: {}",
                printable(why)
            ),
            None => format!("what is there is kept; undo with {undo}"),
        },
        RecoveredAs::TakenBack => taken_back(recovered),
        // Force does not help, or was tried.
        RecoveredAs::Interrupted if is_beyond_force(recovered) => format!(
            "its watcher died, and not all of it could be taken back. Put right what stands in the way and type {} again, \
             or keep what is there with {}",
            typed(&format!("recover --rollback {short}")),
            typed(&format!("recover --keep {short}"))
        ),
        RecoveredAs::Interrupted if !recovered.built_on.is_empty() => format!(
            "its watcher died, and it was not taken back, since this was built on it: {}. Keep what is there with {}, or take \
             all of it back with {}",
            listed(&recovered.built_on),
            typed(&format!("recover --keep {short}")),
            typed(&format!("recover --rollback {short} --force"))
        ),
        RecoveredAs::Interrupted if !recovered.outcomes.is_empty() => format!(
            "its watcher died, and it was not taken back. Keep what is there with {}, or take it back anyway with {}",
            typed(&format!("recover --keep {short}")),
            typed(&format!("recover --rollback {short} --force"))
        ),
        RecoveredAs::Interrupted => format!(
            "its watcher died; what it had done is kept. Keep it with {}, take it back with {}",
            typed(&format!("recover --keep {short}")),
            typed(&format!("recover --rollback {short}"))
        ),
        RecoveredAs::InDoubt if let Some(why) = &recovered.lost => format!(
            "it is not known whether it happened, and nothing takes it back: {}. Look yourself, and take it back by hand if it is \
             to go; then close it with {}",
            printable(why),
            typed(&format!("recover --keep {short}"))
        ),
        RecoveredAs::InDoubt => format!(
            "it was left half-way and cannot be taken back as it stands; nothing was touched. Keep what is there with {}, or \
             take it back anyway with {}",
            typed(&format!("recover --keep {short}")),
            typed(&format!("recover --rollback {short} --force"))
        ),
    }
}

/// Names what was built on something.
fn listed(built: &[Along]) -> String {
    let all = built.iter();
    let all = all.map(|it| format!("{} {}", it.id.short(), printable(&it.summary)));
    all.collect::<Vec<_>>().join(", ")
}

fn is_beyond_force(recovered: &Recovered) -> bool {
    let mut kinds = recovered.outcomes.iter().map(|outcome| &outcome.kind);
    kinds.any(|kind| matches!(kind, OutcomeKind::Failed { .. }))
}

/// An undo or a redo is done again; anything else is brought back.
fn taken_back(recovered: &Recovered) -> String {
    if let Some(again) = &recovered.do_again {
        let ids: Vec<String> = again.operations.iter().map(|id| id.short()).collect();
        let again = typed(&format!("{} {}", again.verb, ids.join(" ")));
        return format!(
            "its process died half-way, and what it had done was put back; do it again with {again}"
        );
    }
    let who = if recovered.verb == Verb::Run {
        "its watcher died"
    } else {
        "its process died half-way"
    };
    // A command that did nothing itself is not undone: what was done within it is, by that act.
    let did_nothing = recovered.status == Status::Undone && recovered.along.is_empty();
    let undo = recovered.by.filter(|_| !did_nothing);
    let back = typed(&format!("redo {}", undo.unwrap_or(recovered.id).short()));
    // A redo brings back what the recovery took, and what was never done no recovery has.
    let mut kinds = recovered.outcomes.iter().map(|outcome| &outcome.kind);
    let along = listed(&recovered.along);
    let built = if along.is_empty() {
        String::new()
    } else {
        format!(", with what was built on it: {along}")
    };
    if kinds.any(|kind| *kind == OutcomeKind::AlreadyGone) {
        return format!(
            "{who}, and the part that it had done was taken back{built}. Do all of it again, or bring back that part with {back}"
        );
    }
    let all = if along.is_empty() { "it" } else { "all of it" };
    format!("{who}, and what it had done was taken back{built}; bring {all} back with {back}")
}

/// Says what became of sandboxes that a dead process left.
fn settled(session: &mut Session, report: &RecoverReport) {
    for settled in &report.sandboxes {
        let text = format!("sandbox {}: {}\n", settled.name, printable(&settled.what));
        session.ui.done(&text);
    }
}

/// Shows what recovery did.
pub(super) fn recovered(session: &mut Session, report: &RecoverReport) {
    let is_nothing = report.operations.is_empty()
        && report.tasks.is_empty()
        && report.tasks_left.is_empty()
        && report.acts_left.is_empty()
        && report.sandboxes.is_empty()
        && report.running.is_empty();
    if is_nothing {
        session.ui.done("nothing was left unfinished\n");
    }
    settled(session, report);
    let here = session.here.clone();
    let fine_max = session.listed(FINE_MAX);
    for recovered in &report.operations {
        let summary = here.shorten(&printable(&recovered.summary));
        let style = match recovered.became {
            RecoveredAs::InDoubt => BAD,
            RecoveredAs::Interrupted => WARN,
            RecoveredAs::NothingHappened | RecoveredAs::Kept | RecoveredAs::TakenBack => GOOD,
        };
        let mut text = format!(
            "{}  {}  now {}\n",
            id(recovered.id),
            paint(BOLD, &summary),
            paint(style, recovered.status.as_str())
        );
        let (shown, hidden) = abridged(&recovered.outcomes, fine_max, |it| it.kind.to_string());
        let rows = shown.into_iter().map(|outcome| {
            let said = outcome_text(outcome, &here, TakeBack::Undo);
            let path = here.target(&outcome.target);
            vec![
                Cell::plain(format!("  {path}")),
                Cell::new(outcome_style(&outcome.kind), said),
            ]
        });
        text.push_str(&table(rows.collect(), None));
        text.push_str(&hidden_line("  ", hidden));
        if !recovered.ended.is_empty() {
            text.extend(["  ", &ended_text(recovered), "\n"]);
        }
        for doubt in &recovered.doubts {
            let doubt = here.shorten(&printable(doubt));
            text.extend(["  ", &paint(BAD, "in doubt"), ": ", &doubt, "\n"]);
        }
        text.extend(["  ", &here.shorten(&said(recovered)), "\n"]);
        session.ui.done(&text);
    }
    for task in &report.tasks {
        session
            .ui
            .done(&format!("rolled back task {task}: its owner died\n"));
    }
    for TaskLeft { task, why } in &report.tasks_left {
        let command = typed(&format!("rollback {task} --dry-run"));
        session.ui.note(&format!(
            "the owner of task {task} died, and it was not rolled back: {}; see {command}",
            here.shorten(&printable(why))
        ));
    }
    for left in &report.acts_left {
        session.ui.done(&format!("{}\n", half_way::text(left)));
    }
    if !report.running.is_empty() {
        let number = counted_of(&report.running, "operation");
        session.ui.note(&format!(
            "{number} left alone: the process that writes is alive"
        ));
    }
}
