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

    /// Forgets the notes whose records were cut off, but for those that tell how each subject stood at the cut.
    pub(super) fn forget_notes(&mut self, up_to: Lsn) {
        let mut seen = HashSet::new();
        let mut kept: Vec<Arc<Note>> = Vec::new();
        for note in self.notes.iter().rev() {
            if note.lsn > up_to || seen.insert((note.topic, note.subject.clone())) {
                kept.push(Arc::clone(note));
            }
        }
        kept.reverse();
        self.notes = kept;
    }
}
