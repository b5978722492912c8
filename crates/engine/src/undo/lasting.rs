//! What an undo does not take back, although the command did it.

use backout_model::{Event, Operation};

use super::preview::way_of;
use crate::{Engine, EngineError, TakeBack};

/// How a note ends of what a command was let do and nobody kept. Records of older programs say it in no other way.
const LASTS: &str = "is not undone";

impl Engine {
    /// Repeats what was said when a command did something that taking it back does not undo.
    pub(super) fn lasting(&self, operation: &Operation) -> Result<Vec<String>, EngineError> {
        if way_of(operation) == TakeBack::Redo {
            return Ok(Vec::new());
        }
        let Operation { id, mut notes, .. } = self.subject_of(operation)?;
        if notes.is_empty() {
            return Ok(Vec::new());
        }
        // It is taken back by now: a record that cannot be read does not make that fail.
        let records = self.store.records_of(id).unwrap_or_default();
        let lasting = records.into_iter().find_map(|record| {
            if let Event::Captured(captured) = record.event {
                Some(captured.lasting)
            } else {
                None
            }
        });
        match lasting {
            Some(lasting) if !lasting.is_empty() => Ok(lasting),
            Some(_) | None => {
                notes.retain(|note| note.ends_with(LASTS));
                Ok(notes)
            }
        }
    }
}
