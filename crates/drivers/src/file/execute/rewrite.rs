//! Writing into a file that has several names: the one change that is not one step.
//!
//! Both sides are kept by value before it begins, so whatever is in the inode after a crash can be written over.

use backout_model::TargetPath;

use super::swap::changed;
use super::{Done, Purpose, Run, Seen};
use crate::file::compare::Current;
use crate::file::error::FileError;
use crate::file::recipe::{Kind, Written};
use crate::file::sys::{Dir, meta};
use crate::file::written::open_to_write;

impl Run<'_> {
    pub(super) fn rewrite(
        &mut self,
        index: usize,
        path: &TargetPath,
        after: &Written,
        seen: Seen,
    ) -> Result<(), FileError> {
        let place = Dir::of(path)?;
        let node = self
            .check_seen(&place, seen, true)?
            .ok_or_else(|| changed(path))?;
        self.done.push(Done::Rewritten(index));
        self.rewritten.insert(node.identity.ino);
        let file = open_to_write(&place, &node)?;
        self.context.reach("file.rewrite")?;
        // Only what is around the bytes may have changed.
        if !after.is_in(&place)? {
            after.pour(self.context, &file, path, &|| {
                self.context.reach("file.rewriting")
            })?;
        }
        self.context.reach("file.rewritten")?;
        let gaps = meta::write(&file, Kind::File, &after.meta, path)?;
        if !gaps.is_empty() {
            return Err(FileError::Permission {
                path: path.to_string(),
                action: "change",
            });
        }
        self.context.syncs.file(&file, path, self.sync_name(true))?;
        // Read back at once: a later step may take it elsewhere.
        match Current::at(path)?.differs(&after.image(), None)? {
            Some(why) if self.purpose != Purpose::Apply => Err(FileError::Damaged {
                path: path.to_string(),
                why,
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Writes what was in a file into it again.
    pub(super) fn put_back_written(
        &self,
        path: &TargetPath,
        before: &Written,
    ) -> Result<(), FileError> {
        let place = Dir::of(path)?;
        let node = place.node()?.ok_or_else(|| changed(path))?;
        let file = open_to_write(&place, &node)?;
        if !before.is_in(&place)? {
            before.pour(self.context, &file, path, &|| Ok(()))?;
        }
        meta::write(&file, Kind::File, &before.meta, path)?;
        self.context.syncs.file(&file, path, self.sync_name(true))
    }
}
