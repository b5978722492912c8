//! What a write did.

use backout_drivers::config::{ConfigEdit, ConfigRequest};
use backout_drivers::file::FileRequest;
use backout_engine::Finished;
use backout_model::Status;

use super::{counted, id, typed};
use crate::paths::Here;
use crate::session::Session;
use crate::ui::{DIM, paint, printable};

/// How many parts of a batch are named.
const PARTS_MAX: usize = 3;

/// Says a request as if it had happened.
pub(crate) fn past(request: &FileRequest, here: &Here) -> String {
    let (FileRequest::Batch(requests) | FileRequest::Within { requests, .. }) = request else {
        let (verb, object) = parts(request, here);
        return format!("{verb} {object}");
    };
    let mut said = String::new();
    let mut last = "";
    for request in requests.iter().take(PARTS_MAX) {
        let (verb, object) = parts(request, here);
        let comma = if said.is_empty() { "" } else { ", " };
        // The same verb is not said twice in a row.
        let verb_once = if verb == last { "" } else { verb };
        let blank = if verb_once.is_empty() { "" } else { " " };
        said.extend([comma, verb_once, blank, &object]);
        last = verb;
    }
    let more = requests.len().saturating_sub(PARTS_MAX);
    if more > 0 {
        format!("{said} and {more} more")
    } else {
        said
    }
}

fn parts(request: &FileRequest, here: &Here) -> (&'static str, String) {
    let show = |path: &std::path::Path| here.show(path);
    match request {
        FileRequest::Write { path, .. } => ("wrote", show(path)),
        FileRequest::Append { path, .. } => ("added to", show(path)),
        FileRequest::Edit { path, .. } => ("edited", show(path)),
        FileRequest::Patch { base, .. } => ("applied the patch in", show(base)),
        FileRequest::Remove { path, .. } => ("removed", show(path)),
        FileRequest::Move { from, to, .. } => ("moved", format!("{} to {}", show(from), show(to))),
        FileRequest::Copy { from, to, .. } => ("copied", format!("{} to {}", show(from), show(to))),
        FileRequest::Mkdir { path, .. } => ("made", show(path)),
        FileRequest::Symlink { path, to, .. } => {
            let to = printable(&to.display().to_string());
            ("linked", format!("{} to {to}", show(path)))
        }
        FileRequest::HardLink { path, to } => ("linked", format!("{} to {}", show(path), show(to))),
        FileRequest::Chmod { path, mode, .. } => {
            ("changed the mode of", format!("{} to {mode}", show(path)))
        }
        FileRequest::Chown { path, .. } => ("changed the owner of", show(path)),
        FileRequest::Restore { names, .. } => ("restored", format!("{} names", names.len())),
        FileRequest::Layer { entries, .. } => ("made", format!("{} changes", entries.len())),
        FileRequest::Batch(requests) | FileRequest::Within { requests, .. } => {
            ("made", format!("{} changes", requests.len()))
        }
    }
}

/// Says a change of keys as if it had happened.
pub(crate) fn keys(request: &ConfigRequest, here: &Here) -> String {
    let path = here.show(&request.path);
    match &request.edit {
        ConfigEdit::Restore { summary, .. } => summary.replacen("restore", "restored", 1),
        ConfigEdit::Set { key, .. } => format!("set {key} in {path}"),
        ConfigEdit::Unset { key } => format!("took {key} out of {path}"),
        ConfigEdit::Merge { .. } => format!("merged keys into {path}"),
    }
}

/// Shows a finished write; `said` is it in the past tense.
pub(crate) fn finished(session: &mut Session, finished: &Finished, said: &str) {
    let Some(operation) = finished.id else {
        session
            .ui
            .done("nothing to do: everything is already as asked\n");
        notes(session, finished);
        return;
    };
    let task = match (&finished.status, &session.task) {
        (Some(Status::Applied), Some(task)) => format!(" in task {task}"),
        _ => String::new(),
    };
    let undo = typed(&format!("undo {}", operation.short()));
    let undo = if finished.is_lost {
        String::new()
    } else {
        format!(", undo with {undo}")
    };
    let how = format!("({}{task}{undo})", id(operation));
    let before = format!("done before: {}", finished.summary);
    let said = if finished.is_again { &before } else { said };
    let said = session.here.shorten(&printable(said));
    session.ui.done(&format!("{said}  {}\n", paint(DIM, &how)));
    notes(session, finished);
}

/// Says what is worth knowing beside a finished write.
pub(super) fn notes(session: &mut Session, finished: &Finished) {
    for note in &finished.notes {
        let note = session.here.shorten(&printable(note));
        session.ui.note(&note);
    }
    if let Some(left) = finished.left {
        let way = |what: &str| typed(&format!("try --{what} {}", left.trial.short()));
        let number = counted(left.changes as u64, "change");
        session.ui.note(&format!(
            "{number} left out and still waiting; apply with {}, look with {}, or let go with {}",
            way("apply"),
            way("diff"),
            way("discard")
        ));
    }
}
