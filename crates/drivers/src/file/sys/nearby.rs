//! The directory that was opened last. Names that follow each other mostly lie in one, and need not be found anew.
//!
//! A descriptor stays with the directory that it was opened for, wherever that goes. So it is kept for one pass over names
//! only, and whoever moves or replaces a directory on the way forgets it.

use std::sync::Arc;

use backout_model::TargetPath;

use super::{Dir, Place};
use crate::file::error::FileError;

/// One open directory at most.
#[derive(Debug, Default)]
pub(crate) struct Nearby {
    last: Option<Arc<Dir>>,
}

impl Nearby {
    /// Gives a name in its open directory, as [`Dir::of`] does.
    pub(crate) fn of(&mut self, path: &TargetPath) -> Result<Place, FileError> {
        let known = self.last.as_ref();
        let known = known.filter(|dir| path.as_path().parent() == Some(dir.path().as_path()));
        if let (Some(dir), Some(name)) = (known, path.file_name()) {
            return Ok(dir.place(name));
        }
        // The old one is let go first: there is never more than one.
        self.forget();
        let place = Dir::of(path)?;
        self.last = Some(Arc::clone(&place.dir));
        Ok(place)
    }

    /// Lets the directory go.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_forgotten_is_found_anew() {
        let world = tempfile::tempdir().unwrap();
        let root = TargetPath::new(world.path().canonicalize().unwrap()).unwrap();
        let (dir, away) = (root.join("d".as_ref()), root.join("away".as_ref()));
        let file = dir.join("f".as_ref());
        std::fs::create_dir(dir.as_path()).unwrap();
        std::fs::write(file.as_path(), "x").unwrap();
        let mut nearby = Nearby::default();
        assert!(nearby.of(&file).unwrap().node().unwrap().is_some());
        std::fs::rename(dir.as_path(), away.as_path()).unwrap();
        assert!(nearby.of(&file).is_ok(), "it holds on to what it opened");
        nearby.forget();
        assert!(matches!(nearby.of(&file), Err(FileError::NotFound { .. })));
    }
}
