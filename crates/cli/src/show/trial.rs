//! What a tried command changed. It is told on stderr: stdout belongs to the command.

use backout_engine::{Finished, TrialChangeView, TrialStanding, TrialView, TrialWhat};
use backout_model::{OperationId, Timestamp};

use super::time::{ago, size};
use super::{counted, id, typed};
use crate::session::Session;
use crate::ui::{ACCENT, BAD, BOLD, DIM, GOOD, WARN, paint, printable};

/// How many changes are listed unless all are asked for.
const LISTED_MAX: usize = 40;

/// Tells what a command changed: how it ended, how much, and which.
pub(crate) fn summary(session: &mut Session, view: &TrialView, is_whole: bool) {
    let text = summary_text(session, view, is_whole);
    session.ui.tell(&text);
}

/// Shows a trial that was asked for.
pub(crate) fn shown(session: &mut Session, view: &TrialView) {
    let text = summary_text(session, view, true);
    session.ui.print(&text);
}

fn summary_text(session: &Session, view: &TrialView, is_whole: bool) -> String {
    let command = printable(&view.line());
    let ended = match view.ended {
        Some(ended) if ended.signal.is_some() => {
            format!("ended by signal {}", ended.signal.unwrap_or_default())
        }
        Some(ended) if ended.code != 0 => format!("failed with {}", ended.code),
        Some(_) => "succeeded".to_owned(),
        None => standing(view.standing).to_owned(),
    };
    let mut text = format!(
        "{} {}: {}\n",
        paint(BOLD, &command),
        ended,
        counts(&view.changes)
    );
    for note in &view.notes {
        let note = session.here.shorten(&printable(note));
        text.extend([&paint(WARN, "note:"), " ", &note, "\n"]);
    }
    let most = if is_whole { usize::MAX } else { LISTED_MAX };
    for change in view.changes.iter().take(most) {
        text.push_str(&line(session, change));
    }
    let more = view.changes.len().saturating_sub(most);
    if more > 0 {
        let all = typed(&format!("try --show {}", view.id.short()));
        text.extend([
            "  and ",
            &more.to_string(),
            " more; see all with ",
            &all,
            "\n",
        ]);
    }
    text
}

fn line(session: &Session, change: &TrialChangeView) -> String {
    let path = session.here.show(change.path.as_path());
    let (mark, style) = match change.what {
        TrialWhat::Created => ("+", GOOD),
        TrialWhat::Changed | TrialWhat::Metadata => ("~", WARN),
        TrialWhat::Deleted => ("-", BAD),
        TrialWhat::Moved => (">", ACCENT),
    };
    let mut detail = match (change.what, change.size_before, change.size_after) {
        (TrialWhat::Metadata, _, _) => "mode, owner or attributes".to_owned(),
        (TrialWhat::Moved, _, _) => {
            let from = change
                .from
                .as_ref()
                .map(|from| session.here.show(from.as_path()));
            format!("was {}", from.unwrap_or_default())
        }
        (_, Some(before), Some(after)) if before != after => {
            format!("{} -> {}", size(before), size(after))
        }
        (_, Some(same), _) | (_, None, Some(same)) => size(same),
        (_, None, None) => String::new(),
    };
    if let Some(below) = change.gone_below {
        let inside = format!("{} in it", counted(below, "name"));
        detail = match change.what {
            TrialWhat::Deleted => format!("a directory, with {inside}"),
            TrialWhat::Created | TrialWhat::Changed | TrialWhat::Metadata | TrialWhat::Moved => {
                format!("was a directory, with {inside}; {detail}")
            }
        };
        detail.truncate(detail.trim_end_matches("; ").len());
    }
    let detail = if detail.is_empty() {
        detail
    } else {
        format!(" {}", paint(DIM, &format!("({detail})")))
    };
    let conflict = if change.is_conflict {
        format!(" {}", paint(BAD, "somebody else changed it meanwhile"))
    } else {
        String::new()
    };
    format!("  {} {path}{detail}{conflict}\n", paint(style, mark))
}

/// Counts what changed, by kind.
pub(crate) fn counts(changes: &[TrialChangeView]) -> String {
    let words = [
        (TrialWhat::Created, "created"),
        (TrialWhat::Changed, "changed"),
        (TrialWhat::Metadata, "with other mode, owner or attributes"),
        (TrialWhat::Moved, "moved"),
        (TrialWhat::Deleted, "deleted"),
    ];
    let said: Vec<String> = words
        .iter()
        .filter_map(|(what, word)| {
            let count = changes.iter().filter(|change| change.what == *what).count();
            (count > 0).then(|| format!("{count} {word}"))
        })
        .collect();
    let below: u64 = changes.iter().filter_map(|change| change.gone_below).sum();
    match (said.is_empty(), below) {
        (true, _) => "nothing changed".to_owned(),
        (false, 0) => said.join(", "),
        (false, below) => {
            let below = counted(below, "name");
            format!("{}, and {below} in directories that go", said.join(", "))
        }
    }
}

/// Says how a trial that waits can be decided.
pub(crate) fn how_to_go_on(session: &mut Session, view: &TrialView) {
    let verdict = |what: &str| typed(&format!("try --{what} {}", view.id.short()));
    let text = format!(
        "nothing was changed; apply it with {}, look with {}, or let it go with {}",
        verdict("apply"),
        verdict("diff"),
        verdict("discard")
    );
    session.ui.hint(&text);
}

/// Says that a trial became real.
pub(crate) fn applied(session: &mut Session, finished: &Finished) {
    let Some(operation) = finished.id else {
        return super::write::finished(session, finished, "applied");
    };
    let undo = typed(&format!("undo {}", operation.short()));
    let how = format!("({}, undo with {undo})", id(operation));
    session.ui.tell(&format!("applied  {}\n", paint(DIM, &how)));
    super::write::notes(session, finished);
}

/// Says that a trial was let go.
pub(super) fn discarded(session: &mut Session, trial: OperationId, is_rest: bool) {
    let trial = trial.short();
    session.ui.done(&if is_rest {
        format!("discarded the rest of the trial {trial}; what was applied before stays as it is\n")
    } else {
        format!("discarded the trial {trial}; nothing was changed\n")
    });
}

/// Lists trials.
pub(super) fn list(session: &mut Session, trials: &[TrialView], now: Timestamp) {
    if trials.is_empty() {
        session.ui.done("no trial waits for a decision\n");
        return;
    }
    for trial in trials {
        let command = printable(&trial.line());
        let what = waits_with(trial);
        let when = ago(now, trial.made);
        let text = format!(
            "{}  {when}  {command}  {}\n",
            id(trial.id),
            paint(DIM, &what)
        );
        session.ui.print(&text);
    }
}

/// Says how many changes wait, or why none do.
pub(super) fn waits_with(trial: &TrialView) -> String {
    match trial.standing {
        TrialStanding::Pending => counted(trial.changes.len() as u64, "change"),
        other @ (TrialStanding::Running
        | TrialStanding::Empty
        | TrialStanding::Interrupted
        | TrialStanding::Lost
        | TrialStanding::Applied
        | TrialStanding::Discarded) => standing(other).to_owned(),
    }
}

const fn standing(standing: TrialStanding) -> &'static str {
    match standing {
        TrialStanding::Running => "still running",
        TrialStanding::Empty => "nothing changed",
        TrialStanding::Pending => "waits for a decision",
        TrialStanding::Interrupted => "interrupted",
        TrialStanding::Lost => "lost when the machine was started anew",
        TrialStanding::Applied => "applied",
        TrialStanding::Discarded => "discarded",
    }
}
