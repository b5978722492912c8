//! Directories that stay open while settling looks at names in them: names come sorted, and slots are in few depots.
//!
//! That a directory is not there is remembered as well. Settling makes none, and what somebody else makes at that moment
//! could as well come after it.

use std::collections::HashMap;
use std::sync::Arc;

use backout_model::{Slot, TargetPath};

use super::settle::Settling;
use crate::file::error::FileError;
use crate::file::sys::{Dir, Node, Place};

/// The directories that are open.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// The one that was last asked for; nothing if it is not there.
    last: Option<(TargetPath, Option<Arc<Dir>>)>,
    depots: HashMap<TargetPath, Arc<Dir>>,
}

impl Opened {
    fn dir(&mut self, path: TargetPath) -> Result<Option<Arc<Dir>>, FileError> {
        if let Some((last, dir)) = &self.last
            && *last == path
        {
            return Ok(dir.clone());
        }
        let dir = match Dir::open(&path) {
            Ok(dir) => Some(dir),
            Err(error) if error.leads_nowhere() => None,
            Err(error) => return Err(error),
        };
        self.last = Some((path, dir.clone()));
        Ok(dir)
    }

    fn depot(&mut self, path: &TargetPath) -> Result<Arc<Dir>, FileError> {
        if let Some(depot) = self.depots.get(path) {
            return Ok(Arc::clone(depot));
        }
        let depot = Dir::open(path)?;
        self.depots.insert(path.clone(), Arc::clone(&depot));
        Ok(depot)
    }
}

impl Settling<'_> {
    /// Finds a name in its open directory; nothing if there is no such directory.
    pub(super) fn place(&mut self, path: &TargetPath) -> Result<Option<Place>, FileError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        let dir = self.opened.dir(parent)?;
        Ok(dir.map(|dir| dir.place(name)))
    }

    /// Looks at a name.
    pub(super) fn node(&mut self, path: &TargetPath) -> Result<Option<Node>, FileError> {
        match self.place(path)? {
            Some(place) => place.node(),
            None => Ok(None),
        }
    }

    /// Finds a slot in its open depot.
    pub(super) fn slot(&mut self, slot: &Slot) -> Result<Place, FileError> {
        let depot = self.opened.depot(&slot.depot)?;
        Ok(depot.place(slot.name.as_ref()))
    }
}
