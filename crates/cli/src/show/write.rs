//! What a write did.

use backout_drivers::file::FileRequest;
use backout_engine::Finished;
use backout_model::Status;

use super::{id, typed};
use crate::paths::Here;
use crate::session::Session;
use crate::ui::{DIM, paint, printable};

/// How many parts of a batch are named.
const PARTS_MAX: usize = 3;

/// Says a request as if it had happened.
pub(crate) fn past(request: &FileRequest, here: &Here) -> String {
    let show = |path: &std::path::Path| here.show(path);
    match request {
        FileRequest::Write { path, .. } => format!("wrote {}", show(path)),
        FileRequest::Append { path, .. } => format!("added to {}", show(path)),
        FileRequest::Edit { path, .. } => format!("edited {}", show(path)),
        FileRequest::Patch { base, .. } => format!("patched {}", show(base)),
        FileRequest::Remove { path, .. } => format!("removed {}", show(path)),
        FileRequest::Move { from, to, .. } => format!("moved {} to {}", show(from), show(to)),
        FileRequest::Copy { from, to, .. } => format!("copied {} to {}", show(from), show(to)),
        FileRequest::Mkdir { path, .. } => format!("made {}", show(path)),
        FileRequest::Symlink { path, to, .. } => {
            format!(
                "linked {} to {}",
                show(path),
                printable(&to.display().to_string())
            )
        }
        FileRequest::HardLink { path, to } => format!("linked {} to {}", show(path), show(to)),
        FileRequest::Chmod { path, mode, .. } => {
            format!("changed the mode of {} to {mode}", show(path))
        }
        FileRequest::Chown { path, .. } => format!("changed the owner of {}", show(path)),
        FileRequest::Batch(requests) => {
            let mut parts: Vec<String> = requests
                .iter()
                .take(PARTS_MAX)
                .map(|request| past(request, here))
                .collect();
            if requests.len() > PARTS_MAX {
                parts.push(format!("{} more", requests.len() - PARTS_MAX));
            }
            parts.join(", ")
        }
    }
}

/// Shows a finished write; `said` is it in the past tense.
pub(crate) fn finished(session: &mut Session, finished: &Finished, said: &str) {
    let Some(operation) = finished.id else {
        session
            .ui
            .done("nothing to do: everything is already as asked\n");
        return;
    };
    let task = match (&finished.status, &session.task) {
        (Some(Status::Applied), Some(task)) => format!(" in task {task}"),
        _ => String::new(),
    };
    let undo = typed(&format!("undo {}", operation.short()));
    let how = format!("({}{task}, undo with {undo})", id(operation));
    session.ui.done(&format!("{said}  {}\n", paint(DIM, &how)));
    for note in &finished.notes {
        let note = session.here.shorten(&printable(note));
        session.ui.note(&note);
    }
}
