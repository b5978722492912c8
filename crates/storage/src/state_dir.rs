//! The state directory: where it is, who may see it, what lies in it.
//!
//! Everything in it is private (directories 0700, files 0600): images hold secrets.
//!
//! ```text
//! journal.sqlite (+ -wal, -shm)   records, small images, leases
//! contents/NUMBER.pack            chunks of large images
//! depot/ID-N                      whole inodes of this file system, kept by link or rename
//! staging/ID/N                    what could not be staged beside its target
//! lock                            taken while the store is made or migrated
//! ```

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use crate::StorageError;

pub(crate) const JOURNAL: &str = "journal.sqlite";
pub(crate) const CONTENTS: &str = "contents";
pub(crate) const DEPOT: &str = "depot";
pub(crate) const STAGING: &str = "staging";
const LOCK: &str = "lock";

/// An existing state directory that belongs to us.
#[derive(Debug, Clone)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    /// Opens the directory, making it and its parts if they are not there.
    pub fn open(path: &Path) -> Result<Self, StorageError> {
        let failed = |action| {
            move |source| StorageError::StateDir {
                path: path.to_path_buf(),
                action,
                source,
            }
        };
        let absolute = std::path::absolute(path).map_err(failed("find"))?;
        let is_new = !absolute.exists();
        make_private(&absolute).map_err(failed("create"))?;
        let canonical = fs::canonicalize(&absolute).map_err(failed("find"))?;
        let metadata = fs::metadata(&canonical).map_err(failed("look at"))?;
        let uid = rustix::process::geteuid().as_raw();
        if metadata.uid() != uid {
            return Err(StorageError::NotOurs {
                path: canonical,
                uid: metadata.uid(),
            });
        }
        if metadata.mode() & 0o077 != 0 {
            let private = fs::Permissions::from_mode(0o700);
            fs::set_permissions(&canonical, private).map_err(failed("make private"))?;
        }
        for part in [CONTENTS, DEPOT, STAGING] {
            make_private(&canonical.join(part)).map_err(failed("create"))?;
        }
        if is_new {
            sync_directory(&canonical).map_err(failed("sync"))?;
            if let Some(parent) = canonical.parent() {
                sync_directory(parent).map_err(failed("sync"))?;
            }
        }
        Ok(Self { path: canonical })
    }

    /// Gives the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }

    /// The log that SQLite writes before the database.
    pub(crate) fn journal_log(&self) -> PathBuf {
        self.path.join(format!("{JOURNAL}-wal"))
    }

    /// Makes the names in it durable.
    pub(crate) fn sync(&self) -> Result<(), StorageError> {
        sync_directory(&self.path).map_err(|source| StorageError::StateDir {
            path: self.path.clone(),
            action: "sync",
            source,
        })
    }

    /// Takes the lock under which a store is made or migrated. Dropping the file gives it back.
    pub(crate) fn lock(&self) -> Result<File, StorageError> {
        let path = self.path.join(LOCK);
        let failed = |source| StorageError::StateDir {
            path: path.clone(),
            action: "lock",
            source,
        };
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|errno| failed(errno.into()))?;
        Ok(file)
    }
}

/// Makes the entries of a directory durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes a private directory, and public ones above it where they are missing.
fn make_private(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.exists()) {
        fs::create_dir_all(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        result => result,
    }
}
