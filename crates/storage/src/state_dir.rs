//! The state directory: where it is, who may see it, what lies in it.
//!
//! Everything in it is private (directories 0700, files 0600): images hold secrets.
//!
//! ```text
//! journal.sqlite (+ -wal, -shm)   records, small images, leases
//! contents/NUMBER.pack            chunks of large images
//! depot/ID-N                      whole inodes of this file system, kept by link or rename
//! staging/ID/N                    what could not be staged beside its target
//! captures/ID                     what a running command touched (`drivers::command`)
//! trials/ID/                      the layers of a command that was tried (`trials`)
//! databases.json                  the databases that were enrolled (`databases`)
//! home                            where the store lives, and of which one it is a copy (`home`)
//! host                            which machine uses the store (`host`)
//! head                            how far the journal had come (`witness`)
//! lock                            taken while the store is made, migrated or swapped; says that it was made
//! journal.repaired                a repaired journal that takes the journal's place at the next opening
//! journal.damaged-N (+ -wal)      what a repair found
//! ```

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Component, Path, PathBuf};

use backout_crashpoint::crash_point;
use rustix::io::Errno;

use crate::StorageError;
use crate::schema::FORMAT;

pub(crate) const JOURNAL: &str = "journal.sqlite";
pub(crate) const CONTENTS: &str = "contents";
pub(crate) const DEPOT: &str = "depot";
pub(crate) const STAGING: &str = "staging";
pub(crate) const CAPTURES: &str = "captures";
/// A repaired journal that waits for its place.
pub(crate) const REPAIRED: &str = "journal.repaired";
const LOCK: &str = "lock";

/// An existing state directory that belongs to us.
#[derive(Debug, Clone)]
pub struct StateDir {
    path: PathBuf,
    /// The symbolic links that lead to it.
    links: Vec<PathBuf>,
}

impl StateDir {
    /// Opens the directory, making it and its parts if they are not there.
    pub fn open(path: &Path) -> Result<Self, StorageError> {
        match Self::make(path) {
            Err(StorageError::StateDir { path, source, .. })
                if source.raw_os_error() == Some(Errno::ROFS.raw_os_error()) =>
            {
                Err(if is_mask(&path) {
                    StorageError::InTrial { path }
                } else {
                    StorageError::ReadOnly { path }
                })
            }
            made => made,
        }
    }

    fn make(path: &Path) -> Result<Self, StorageError> {
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
        for part in [CONTENTS, DEPOT, STAGING, CAPTURES] {
            make_private(&canonical.join(part)).map_err(failed("create"))?;
        }
        if is_new {
            sync_directory(&canonical).map_err(failed("sync"))?;
            if let Some(parent) = canonical.parent() {
                sync_directory(parent).map_err(failed("sync"))?;
            }
        }
        let mut links = Vec::new();
        follow(&absolute, &mut links);
        let path = canonical;
        Ok(Self { path, links })
    }

    /// Gives the directory if nothing has that name; nothing is made.
    pub(crate) fn absent(path: &Path) -> Result<Option<Self>, StorageError> {
        let failed = |action| {
            move |source| StorageError::StateDir {
                path: path.to_path_buf(),
                action,
                source,
            }
        };
        let absolute = std::path::absolute(path).map_err(failed("find"))?;
        match fs::symlink_metadata(&absolute) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(Self {
                path: absolute,
                links: Vec::new(),
            })),
            Ok(_) => Ok(None),
            Err(error) => Err(failed("look at")(error)),
        }
    }

    /// Gives the symbolic links that lead to it: without them nobody finds it by the name that it was given.
    pub fn links(&self) -> &[PathBuf] {
        &self.links
    }

    /// Gives the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }

    /// Makes the names in it durable.
    pub(crate) fn sync(&self) -> Result<(), StorageError> {
        sync_directory(&self.path).map_err(|source| StorageError::StateDir {
            path: self.path.clone(),
            action: "sync",
            source,
        })
    }

    /// Tells whether there is no journal, or an empty file in its place.
    pub(crate) fn is_without_journal(&self) -> bool {
        fs::metadata(self.journal()).map_or(true, |found| found.len() == 0)
    }

    /// Tells whether a journal was here before: the store was complete once, or there are things that only a
    /// journal explains.
    pub(crate) fn had_journal(&self) -> bool {
        let has_entries = |part: &str| {
            fs::read_dir(self.path.join(part)).is_ok_and(|mut entries| entries.next().is_some())
        };
        let has_log = fs::metadata(self.wal()).is_ok_and(|found| found.len() > 0);
        self.has_noted_format() || has_log || has_entries(CONTENTS) || has_entries(DEPOT)
    }

    /// Tells whether the lock file says that a store of our format was made here.
    pub(crate) fn has_noted_format(&self) -> bool {
        fs::read_to_string(self.path.join(LOCK)).is_ok_and(|noted| noted == format_note())
    }

    /// Notes, in the lock file, that the store was made.
    pub(crate) fn note_format(&self, mut lock: &File) -> Result<(), StorageError> {
        use std::io::Write as _;
        lock.write_all(format_note().as_bytes())
            .and_then(|()| lock.sync_all())
            .map_err(|source| self.failed(LOCK, "write", source))
    }

    /// Puts a repaired journal in place, if one is waiting. The old log must be gone before, or it would be applied
    /// to the new journal.
    pub(crate) fn finish_swap(&self) -> Result<(), StorageError> {
        let waiting = self.path.join(REPAIRED);
        if !waiting.exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        self.finish_swap_locked()
    }

    /// The same for who has the lock.
    pub(crate) fn finish_swap_locked(&self) -> Result<(), StorageError> {
        let waiting = self.path.join(REPAIRED);
        if !waiting.exists() {
            return Ok(());
        }
        for part in [self.wal(), self.log_index()] {
            match fs::remove_file(&part) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.failed(JOURNAL, "replace", error));
                }
                _ => {}
            }
        }
        crash_point("repair.log-gone");
        fs::rename(&waiting, self.journal())
            .and_then(|()| sync_directory(&self.path))
            .map_err(|error| self.failed(JOURNAL, "replace", error))
    }

    /// Gives the path of the index of the write-ahead log.
    pub(crate) fn log_index(&self) -> PathBuf {
        self.path.join(format!("{JOURNAL}-shm"))
    }

    /// Gives the path of the copy that is kept of a journal of an older format.
    pub(crate) fn older_journal(&self, format: i64) -> PathBuf {
        self.path.join(format!("{JOURNAL}.format-{format}"))
    }

    /// Gives the path of the write-ahead log.
    pub(crate) fn wal(&self) -> PathBuf {
        self.path.join(format!("{JOURNAL}-wal"))
    }

    /// Names what went wrong with one of the files.
    pub(crate) fn failed(
        &self,
        name: &str,
        action: &'static str,
        source: io::Error,
    ) -> StorageError {
        StorageError::StateDir {
            path: self.path.join(name),
            action,
            source,
        }
    }

    /// Takes the lock under which a store is made, migrated or swapped. Dropping the file gives it back.
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

fn format_note() -> String {
    format!("format {FORMAT}\n")
}

/// Makes the entries of a directory durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes a private directory, and public ones above it where they are missing.
/// Tells whether this is what a trial has in the place of a state directory.
fn is_mask(path: &Path) -> bool {
    let is_closed = |found: fs::Metadata| found.mode() & 0o777 == 0o555;
    fs::metadata(path).is_ok_and(is_closed)
        && fs::read_dir(path).is_ok_and(|mut found| found.next().is_none())
}

fn make_private(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.exists()) {
        fs::create_dir_all(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        result => result,
    }
}
/// Follows a path, collects the symbolic links on it, and gives where it leads.
fn follow(path: &Path, links: &mut Vec<PathBuf>) -> PathBuf {
    /// More than the kernel follows.
    const LINKS_MAX: usize = 40;
    let mut at = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(at.pop()),
            Component::CurDir => {}
            part => at.push(part),
        }
        if let Ok(to) = fs::read_link(&at)
            && links.len() < LINKS_MAX
        {
            links.push(at.clone());
            at.pop();
            at = follow(&at.join(to), links);
        }
    }
    at
}
