//! Every sync the driver makes: counted, named, and left out where a test wants to see what then breaks.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use backout_model::TargetPath;
use rustix::io::Errno;

use super::Dir;
use crate::file::error::FileError;

/// How many files are synced at once.
const AT_ONCE: usize = 8;

/// A file, where it is, and what its sync is called in tests.
pub(crate) type ToSync = (OwnedFd, TargetPath, &'static str);

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
            rustix::fs::fsync(file).map_err(not_synced(path))?;
        }
        Ok(())
    }

    /// Makes several files durable, some at a time: the file system then writes its own journal once for many of them.
    pub(crate) fn files(&self, files: &[ToSync]) -> Result<(), FileError> {
        let each = |files: &[ToSync]| {
            let mut files = files.iter();
            files.try_for_each(|(file, path, name)| self.file(file, path, name))
        };
        if files.len() <= AT_ONCE {
            return each(files);
        }
        std::thread::scope(|scope| {
            let parts = files.chunks(files.len().div_ceil(AT_ONCE));
            let threads: Vec<_> = parts.map(|part| scope.spawn(move || each(part))).collect();
            let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            // Everybody is waited for before the first failure is told.
            let results: Vec<_> = ended.collect();
            results.into_iter().try_for_each(|result| {
                result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })
    }

    /// Makes a directory's entries durable.
    pub(crate) fn dir(&self, dir: &Dir, name: &'static str) -> Result<(), FileError> {
        if self.is_wanted(name) {
            if dir.is_readable() {
                rustix::fs::fsync(dir).map_err(not_synced(dir.path()))?;
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
                rustix::fs::syncfs(dir).map_err(not_synced(dir.path()))?;
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

fn not_synced(path: &TargetPath) -> impl FnOnce(Errno) -> FileError {
    move |errno| FileError::NotSynced {
        path: path.to_string(),
        source: errno.into(),
    }
}
