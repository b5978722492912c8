//! What a layer was made over: every name is looked at again before anything is planned, and most of them are new.

use std::io;
use std::path::Path;

use backout_files::{BaseChanged, Baseline, LayerEntry, LayerState};
use backout_model::TargetPath;

use super::Planner;
use crate::file::error::FileError;
use crate::file::resolve::{Last, refuse_ours};

impl Planner<'_> {
    /// Refuses the whole if a name is not what it was, and says which are not. What is not there is remembered: that a name is
    /// free is made sure of once more when it is taken.
    pub(super) fn refuse_changed(&mut self, entries: &[LayerEntry]) -> Result<(), FileError> {
        let mut paths = Vec::new();
        for entry in entries {
            let looks = match &entry.becomes {
                LayerState::Moved { from, baseline } => Some((from, baseline)),
                LayerState::Nothing | LayerState::Like(_) | LayerState::Linked(_) => None,
            };
            for (path, baseline) in [(&entry.path, &entry.baseline)].into_iter().chain(looks) {
                if !self.still_holds(path, baseline)? {
                    paths.push(path.display().to_string());
                }
            }
        }
        if paths.is_empty() {
            return Ok(());
        }
        Err(BaseChanged { paths }.into())
    }

    fn still_holds(&mut self, path: &Path, baseline: &Baseline) -> Result<bool, FileError> {
        if *baseline == Baseline::Absent && self.is_missing(path) {
            self.absent.insert(path.to_path_buf());
            return Ok(true);
        }
        baseline.still_holds(path).map_err(|source| FileError::Io {
            path: path.display().to_string(),
            action: "look at",
            source,
        })
    }

    /// Tells whether there is no such name. What lies in a directory that is not there is not there either.
    fn is_missing(&self, path: &Path) -> bool {
        let is_nothing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
        let above = path.parent();
        above.is_some_and(|above| self.absent.contains(above))
            || path.symlink_metadata().is_err_and(is_nothing)
    }

    /// Gives a name of the layer. No link was on its way when the layer was made: one that is there now leads elsewhere.
    pub(super) fn unlinked(&mut self, path: &Path) -> Result<TargetPath, FileError> {
        if let Some(found) = self.beside_others(path) {
            refuse_ours(self.context, &found)?;
            self.untangle(&found)?;
            return Ok(found);
        }
        let found = self.resolve(path, Last::Itself)?;
        if found.as_path() != path {
            let path = path.display().to_string();
            return Err(FileError::ThroughSymlink { path });
        }
        if let Some(parent) = found.parent() {
            self.straight.insert(parent.as_path().to_path_buf(), parent);
        }
        Ok(found)
    }

    /// Gives a name in a directory that no link leads to, if that is known. Whoever opens it later follows none.
    fn beside_others(&self, path: &Path) -> Option<TargetPath> {
        let is_free = self.within.is_none();
        let dir = self.straight.get(path.parent()?).filter(|_| is_free)?;
        Some(dir.join(path.file_name()?))
    }
}
