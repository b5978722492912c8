//! The port by which checkpoints keep directories.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use backout_files::{Difference, Differences, Directories, KeptRoot, Objects, Past, Walked};
use backout_model::ports::DriverError;
use backout_model::{Digest, TargetPath};

use super::differ::{Differ, pasts};
use super::index::index_tree;
use super::objects::{Looking, needed, write_out};
use crate::file::FileDriver;
use crate::file::error::FileError;

impl Directories for FileDriver {
    fn walk(
        &self,
        root: &TargetPath,
        objects: &mut dyn Objects,
        index: &Path,
    ) -> Result<Walked, DriverError> {
        Ok(self.walk_root(root, objects, index, true)?)
    }

    fn differences(
        &self,
        objects: &dyn Objects,
        roots: &[KeptRoot],
        is_fine: bool,
    ) -> Result<Differences, DriverError> {
        let mut looking = Looking::beside(objects);
        let mut now = Vec::new();
        for root in roots {
            match self.walk_root(&root.path, &mut looking, &root.index, false) {
                Ok(walked) => now.push(Some(walked.tree)),
                Err(FileError::NotFound { .. }) => now.push(None),
                Err(error) => return Err(error.into()),
            }
        }
        let mut differ = Differ::new(&looking, is_fine);
        for (root, now) in roots.iter().zip(&now) {
            differ.compare(&root.path, &root.tree, now.as_ref())?;
        }
        Ok(differ.end()?)
    }

    fn becoming(
        &self,
        objects: &dyn Objects,
        roots: &[KeptRoot],
        chosen: &[&Difference],
        at: &BTreeMap<Digest, PathBuf>,
    ) -> Result<Vec<Past>, DriverError> {
        Ok(pasts(objects, roots, chosen, at)?)
    }

    fn write_out(
        &self,
        objects: &dyn Objects,
        needs: &Digest,
        to: &Path,
        holes: &[(u64, u64)],
    ) -> Result<(), DriverError> {
        let mut from = objects.open(needs).map_err(FileError::Contents)?;
        write_out(&mut from, to, holes).map_err(|source| FileError::Io {
            path: to.display().to_string(),
            action: "write",
            source,
        })?;
        Ok(())
    }

    fn needed(
        &self,
        objects: &dyn Objects,
        tree: &Digest,
        all: &mut BTreeSet<Digest>,
    ) -> Result<(), DriverError> {
        Ok(needed(objects, tree, all)?)
    }

    fn index_tree(&self, index: &Path) -> Option<Digest> {
        index_tree(index)
    }
}
