//! Checkpoints that keep directories, and the way back to them.

use backout_engine::{TrialWhat, WorkspaceChange, WorkspaceKept, WorkspacePlan};
use backout_model::{CheckpointName, Timestamp};

use super::list::FINE_MAX;
use super::time::{ago, size};
use super::{counted, counted_of, typed};
use crate::session::Session;
use crate::ui::{ACCENT, BAD, DIM, GOOD, WARN, paint, printable};

/// Says that directories were kept.
pub(super) fn kept(session: &mut Session, kept: &WorkspaceKept) {
    let Some(checkpoint) = &kept.checkpoint else {
        return;
    };
    let name = paint(ACCENT, checkpoint.name.as_str());
    let back = typed(&format!("rollback --to {}", checkpoint.name));
    let names = counted(kept.names, "name");
    let read = counted(kept.read, "file");
    let bytes = size(kept.stored_bytes);
    session.ui.done(&format!(
        "kept checkpoint {name}: {names}, {read} read, {bytes} more stored  {}\n",
        paint(DIM, &format!("(return with {back})"))
    ));
    for it in &kept.not_kept {
        let path = session.here.show(it.path.as_path());
        let why = printable(&it.why);
        session
            .ui
            .note(&format!("`{path}` is not part of the checkpoint: {why}"));
    }
    for gone in &kept.let_go {
        let (name, why) = (&gone.name, &gone.why);
        session.ui.note(&format!(
            "the files of checkpoint {name} were let go: {why}"
        ));
    }
}

/// Shows what going back would change.
pub(super) fn plan(session: &mut Session, plan: &WorkspacePlan, now: Timestamp) {
    let name = paint(ACCENT, plan.checkpoint.as_str());
    let when = ago(now, plan.at);
    if plan.changes.is_empty() {
        session.ui.done(&format!(
            "nothing has changed since checkpoint {name}, {when}\n"
        ));
    } else {
        let number = counted_of(&plan.changes, "name");
        let were = match plan.changes.as_slice() {
            [_] => "it was",
            _ => "they were",
        };
        session.ui.print(&format!(
            "{number} would become what {were} at checkpoint {name}, {when}\n"
        ));
        for change in plan.changes.iter().take(FINE_MAX) {
            let text = line(session, change);
            session.ui.print(&text);
        }
        if plan.changes.len() > FINE_MAX {
            let more = plan.changes.len() - FINE_MAX;
            session
                .ui
                .print(&paint(DIM, &format!("  and {more} more\n")));
        }
    }
    for path in &plan.stay {
        let path = session.here.show(path.as_path());
        session.ui.note(&format!(
            "`{path}` is not part of the checkpoint and stays as it is"
        ));
    }
    if plan.elsewhere > 0 {
        let number = counted(plan.elsewhere, "operation");
        session.ui.note(&format!(
            "{number} since then wrote elsewhere: not a part of this"
        ));
    }
    if !plan.others.is_empty() {
        let number = counted_of(&plan.others, "operation");
        session.ui.note(&format!(
            "{number} of other agents would be overwritten; that needs `--others`"
        ));
    }
    for id in &plan.may_be_of {
        let short = id.short();
        session.ui.note(&format!(
            "{short} has not ended, and may have written what no operation did"
        ));
    }
    if let Some(why) = &plan.refused {
        let why = session.here.shorten(&printable(why));
        session
            .ui
            .note(&format!("as things stand it would be refused: {why}"));
    }
}

fn line(session: &Session, change: &WorkspaceChange) -> String {
    let path = session.here.show(change.path.as_path());
    let (mark, style, what) = match change.what {
        TrialWhat::Created => ('-', BAD, "came since, would go"),
        TrialWhat::Deleted => ('+', GOOD, "went since, would come back"),
        TrialWhat::Changed | TrialWhat::Moved => ('~', WARN, "changed since"),
        TrialWhat::Metadata => ('~', WARN, "mode, owner, attributes or time changed since"),
    };
    let by = match &change.by {
        Some(by) => {
            let agent = by.agent.as_ref().map(|agent| format!(" of {agent}"));
            let since = if by.is_changed_since {
                ", and by somebody else after it"
            } else {
                ""
            };
            format!("by {}{}{since}", by.id.short(), agent.unwrap_or_default())
        }
        None => "not by an operation".to_owned(),
    };
    let detail = paint(DIM, &format!("{what}, {by}"));
    format!("  {} {path}  {detail}\n", paint(style, &mark.to_string()))
}

/// Says that the files of a checkpoint were let go.
pub(super) fn dropped(session: &mut Session, name: &CheckpointName, bytes: u64) {
    let name = paint(ACCENT, name.as_str());
    let bytes = size(bytes);
    session.ui.done(&format!(
        "let the files of checkpoint {name} go: {bytes} given back\n"
    ));
}
