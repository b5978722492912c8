//! Sandboxes: one directory each, with files that the engine writes about them. Their layers are elsewhere.
//!
//! ```text
//! sandboxes/.lock             held while sandboxes are begun, forked or ended
//! sandboxes/NAME/lock         held by whoever uses the sandbox
//! sandboxes/NAME/FILE         whole or not there; not synced, since the layers are not either
//! ```

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::StorageError;

const SANDBOXES: &str = "sandboxes";
const LOCK: &str = "lock";

/// The directory with all sandboxes of a store.
#[derive(Debug, Clone)]
pub struct Sandboxes {
    top: PathBuf,
}

impl Sandboxes {
    /// Finds it in a state directory, there or not.
    pub fn of(state_dir: &Path) -> Self {
        Self {
            top: state_dir.join(SANDBOXES),
        }
    }

    /// Gives the directory of one.
    pub fn directory(&self, name: &str) -> PathBuf {
        self.top.join(name)
    }

    /// Lists those that have a directory, sorted.
    pub fn names(&self) -> Result<Vec<String>, StorageError> {
        let listing = match fs::read_dir(&self.top) {
            Ok(listing) => listing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failed(&self.top, "read", source)),
        };
        let names = listing.flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> = names
            .filter_map(|name| name.into_string().ok())
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort();
        Ok(names)
    }

    /// Waits until nobody else begins, forks or ends a sandbox, and keeps others from it.
    pub fn hold(&self) -> Result<File, StorageError> {
        let path = self.top.join(format!(".{LOCK}"));
        let hold = || {
            make(&self.top)?;
            let file = open(&path)?;
            rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        hold().map_err(|source| failed(&path, "lock", source))
    }

    /// Keeps others from one sandbox; none if somebody uses it.
    pub fn take(&self, name: &str) -> Result<Option<File>, StorageError> {
        let path = self.directory(name).join(LOCK);
        let take = || {
            let file = open(&path)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Ok(Some(file)),
                Err(Errno::WOULDBLOCK) => Ok(None),
                Err(errno) => Err(io::Error::from(errno)),
            }
        };
        take().map_err(|source| failed(&path, "lock", source))
    }

    /// Makes the directory of a new one. Tells whether it was not there.
    pub fn make(&self, name: &str) -> Result<bool, StorageError> {
        let path = self.directory(name);
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(source) => Err(failed(&path, "create", source)),
        }
    }

    /// Writes a file of a sandbox: whole, or not at all.
    pub fn write(&self, name: &str, file: &str, bytes: &[u8]) -> Result<(), StorageError> {
        let path = self.directory(name).join(file);
        let waiting = self.directory(name).join(format!(".{file}.new"));
        let write = || {
            let mut options = File::options();
            options.write(true).create(true).truncate(true).mode(0o600);
            options.open(&waiting)?.write_all(bytes)?;
            fs::rename(&waiting, &path)
        };
        write().map_err(|source| {
            // On a full disk every byte counts.
            let _removed = fs::remove_file(&waiting);
            failed(&path, "write", source)
        })
    }

    /// Reads a file of a sandbox; nothing if it is not there.
    pub fn read(&self, name: &str, file: &str) -> Result<Option<Vec<u8>>, StorageError> {
        let path = self.directory(name).join(file);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(failed(&path, "read", source)),
        }
    }

    /// Removes a file of a sandbox, if it is there.
    pub fn remove_file(&self, name: &str, file: &str) -> Result<(), StorageError> {
        let path = self.directory(name).join(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(&path, "remove", error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Removes the directory of a sandbox.
    pub fn remove(&self, name: &str) -> Result<(), StorageError> {
        let path = self.directory(name);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(&path, "remove", error))
            }
            _ => Ok(()),
        }
    }
}

fn make(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(path)
}

fn failed(path: &Path, action: &'static str, source: io::Error) -> StorageError {
    StorageError::StateDir {
        path: path.to_path_buf(),
        action,
        source,
    }
}
