//! Every sync the driver makes: counted, named, and left out where a test wants to see what then breaks.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use backout_model::TargetPath;

use super::Dir;
use crate::file::error::{FileError, Naming as _};

/// Makes and counts syncs.
#[derive(Debug, Default)]
pub(crate) struct Syncs {
    count: AtomicU64,
}

impl Syncs {
    /// Tells how many were made.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Makes a file's bytes and metadata durable.
    pub(crate) fn file(
        &self,
        file: impl AsFd,
        path: &TargetPath,
        name: &'static str,
    ) -> Result<(), FileError> {
        if self.is_wanted(name) {
            rustix::fs::fsync(file).naming(path, "sync")?;
        }
        Ok(())
    }

    /// Makes a directory's entries durable.
    pub(crate) fn dir(&self, dir: &Dir, name: &'static str) -> Result<(), FileError> {
        if self.is_wanted(name) {
            if dir.is_readable() {
                rustix::fs::fsync(dir).naming(dir.path(), "sync")?;
            } else {
                // A directory that may be walked but not read cannot be synced alone.
                rustix::fs::sync();
            }
        }
        Ok(())
    }

    /// Makes a whole file system durable: cheaper than many single files.
    pub(crate) fn file_system(&self, dir: &Dir, name: &'static str) -> Result<(), FileError> {
        if self.is_wanted(name) {
            if dir.is_readable() {
                rustix::fs::syncfs(dir).naming(dir.path(), "sync")?;
            } else {
                rustix::fs::sync();
            }
        }
        Ok(())
    }

    fn is_wanted(&self, name: &'static str) -> bool {
        if backout_crashpoint::sync_is_skipped(name) {
            return false;
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        true
    }
}
