//! What an undo does not take back, although the command did it.

use backout_model::Operation;

use super::preview::way_of;
use crate::{Engine, EngineError, TakeBack};

/// How the notes end of what a command was let do, and what nobody kept.
const LASTS: &str = "is not undone";

impl Engine {
    /// Repeats what was said when a command did something that taking it back does not undo.
    pub(super) fn lasting(&self, operation: &Operation) -> Result<Vec<String>, EngineError> {
        if way_of(operation) == TakeBack::Redo {
            return Ok(Vec::new());
        }
        let mut notes = self.subject_of(operation)?.notes;
        notes.retain(|note| note.ends_with(LASTS));
        Ok(notes)
    }
}
