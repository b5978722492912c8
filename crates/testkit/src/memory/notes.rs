//! Notes: facts that are no operation's.

use std::collections::HashSet;
use std::sync::Arc;

use backout_model::{Lsn, Note};

use super::state::{At, State};

impl State {
    pub(super) fn noted(&mut self, at: At, note: &Note) {
        self.notes.push(Arc::new(Note {
            lsn: at.lsn,
            at: at.now,
            ..note.clone()
        }));
    }

    /// Forgets the notes whose records were cut off, but for the newest of each subject.
    pub(super) fn forget_notes(&mut self, up_to: Lsn) {
        let mut seen = HashSet::new();
        let mut kept: Vec<Arc<Note>> = Vec::new();
        for note in self.notes.iter().rev() {
            let is_newest = seen.insert((note.topic, note.subject.clone()));
            if is_newest || note.lsn > up_to {
                kept.push(Arc::clone(note));
            }
        }
        kept.reverse();
        self.notes = kept;
    }
}
