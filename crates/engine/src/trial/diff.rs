//! What a trial would change, name by name.

use backout_files::{FileChange, Was};

use super::manifest::TrialChange;
use crate::{DiffFile, Engine, EngineError};

impl Engine {
    /// Compares what each name is now with what it would become.
    pub(super) fn trial_diff(
        &self,
        changes: &[&TrialChange],
        is_brief: bool,
    ) -> Result<Vec<DiffFile>, EngineError> {
        let mut all = Vec::new();
        for change in changes {
            let after = match change.source() {
                Some(source) => self.files.now(source)?,
                None => None,
            };
            if let Some(from) = change.from() {
                all.push(FileChange {
                    path: change.path.clone(),
                    from: Some(from.clone()),
                    before: self.files.now(from)?,
                    after: self.files.now(from)?,
                    is_as_now: false,
                });
                continue;
            }
            // A directory that becomes something else takes all below it along.
            let is_gone = !after.as_ref().is_some_and(Was::is_directory);
            let before = self.files.now(&change.path)?;
            all.push(FileChange::new(change.path.clone(), before, after));
            if is_gone {
                let inside = self.files.below(&change.path)?.into_iter();
                all.extend(inside.map(|past| FileChange::new(past.path, past.was, None)));
            }
        }
        self.compare(&all, None, is_brief)
    }
}
