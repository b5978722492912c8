//! Workspaces: the files that checkpoints keep, apart from the journal and its images.
//!
//! ```text
//! workspaces/lock             held while a checkpoint is made or let go; shared while one is read
//! workspaces/held.json        which checkpoints there are; whole and synced
//! workspaces/store/           files and trees, a store like the first, without operations
//! workspaces/index/ROOT       what the last walk of a root saw; a cache
//! workspaces/back/ID/N        files that wait for the write that brings them back
//! ```

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use backout_model::OperationId;
use rustix::fs::FlockOperation;

use crate::StorageError;
use crate::state_dir::sync_directory;

const HELD: &str = "held.json";
const NOTE: &str = "owner.json";

/// The directory with the workspaces of a state directory.
#[derive(Debug, Clone)]
pub struct Workspaces {
    top: PathBuf,
}

impl Workspaces {
    /// Finds it, there or not.
    pub fn of(state_dir: &Path) -> Self {
        Self {
            top: state_dir.join("workspaces"),
        }
    }

    /// Tells whether nothing was ever kept.
    pub fn is_absent(&self) -> bool {
        !self.top.join(HELD).exists()
    }

    /// Gives where files and trees are.
    pub fn store(&self) -> PathBuf {
        self.top.join("store")
    }

    /// Gives where the index of a root is.
    pub fn index(&self, mark: &str) -> PathBuf {
        self.top.join("index").join(mark)
    }

    /// Lists the indexes of roots.
    pub fn indexes(&self) -> Vec<PathBuf> {
        let listing = fs::read_dir(self.top.join("index"));
        let entries = listing.into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Removes the index of a root: the next walk reads everything.
    pub fn remove_index(&self, path: &Path) -> Result<(), StorageError> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(path, "remove", error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Makes the directory of files that wait to be brought back.
    pub fn make_back(&self, id: OperationId) -> Result<PathBuf, StorageError> {
        let path = self.back(id);
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path);
        made.map_err(|source| failed(&path, "create", source))?;
        Ok(path)
    }

    /// Removes a directory of files that waited to be brought back.
    pub fn remove_back(&self, path: &Path) -> Result<(), StorageError> {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(path, "remove", error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Notes in such a directory who waits for it.
    pub fn note_back(&self, path: &Path, note: &[u8]) -> Result<(), StorageError> {
        let path = path.join(NOTE);
        fs::write(&path, note).map_err(|source| failed(&path, "write", source))
    }

    /// Reads who waits for it; nothing if that is not known.
    pub fn read_back(&self, path: &Path) -> Option<Vec<u8>> {
        fs::read(path.join(NOTE)).ok()
    }

    /// Gives where files wait to be brought back.
    pub fn back(&self, id: OperationId) -> PathBuf {
        self.top.join("back").join(id.to_string())
    }

    /// Lists where files wait to be brought back.
    pub fn backs(&self) -> Vec<PathBuf> {
        let listing = fs::read_dir(self.top.join("back"));
        let entries = listing.into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Makes the directories, and keeps others out; without `is_alone`, only those who keep others out.
    pub fn hold(&self, is_alone: bool) -> Result<File, StorageError> {
        let path = self.top.join("lock");
        let hold = || {
            for directory in ["index", "back"] {
                fs::DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(self.top.join(directory))?;
            }
            let mut options = File::options();
            options.write(true).create(true).truncate(false).mode(0o600);
            let file = options.open(&path)?;
            let how = if is_alone {
                FlockOperation::LockExclusive
            } else {
                FlockOperation::LockShared
            };
            rustix::fs::flock(&file, how)?;
            Ok(file)
        };
        hold().map_err(|source| failed(&path, "lock", source))
    }

    /// Reads which checkpoints there are; nothing if none was ever made.
    pub fn read_held(&self) -> Result<Option<Vec<u8>>, StorageError> {
        let path = self.top.join(HELD);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(failed(&path, "read", source)),
        }
    }

    /// Writes which checkpoints there are, durably.
    pub fn write_held(&self, bytes: &[u8]) -> Result<(), StorageError> {
        let path = self.top.join(HELD);
        let waiting = path.with_extension("new");
        let write = || {
            let mut options = File::options();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&waiting)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&waiting, &path)?;
            sync_directory(&self.top)
        };
        write().map_err(|source| failed(&path, "write", source))
    }
}

fn failed(path: &Path, action: &'static str, source: io::Error) -> StorageError {
    StorageError::StateDir {
        path: path.to_path_buf(),
        action,
        source,
    }
}
