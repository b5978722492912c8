//! Where whole inodes are kept: a private directory on the file system that holds them.
//!
//! The state directory's own depot serves its file system. On another one a depot is made at the mount's root
//! (`.backout-UID`), where that is allowed; otherwise there is none and contents are copied instead.
//!
//! What lies in the depot of another state directory is that one's, and what a copy of a store knows of from the first one
//! stays the first one's (`home`): none of it is taken out or removed here.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use backout_model::ports::{Depots, Durability};
use backout_model::{Lsn, OperationId, Slot, TargetPath};
use rusqlite::{OptionalExtension as _, Transaction};

use crate::gc::operation_of;
use crate::home::Copied;
use crate::journal::lsn_from_sql;
use crate::state_dir::{DEPOT, JOURNAL, STAGING};
use crate::{StorageError, Store};

/// What the name of a depot at the root of a mount begins with; the number of its user follows.
const DEPOT_PREFIX: &str = ".backout-";

impl Depots for Store {
    fn depot_for(&self, directory: &TargetPath) -> Option<TargetPath> {
        let device = fs::metadata(directory.as_path()).ok()?.dev();
        let own = self.directory.path().join(DEPOT);
        if fs::metadata(&own).ok()?.dev() == device {
            return TargetPath::new(own).ok();
        }
        let depot = mount_root(directory.as_path(), device)?.join(depot_name());
        let path = TargetPath::new(&depot).ok()?;
        if is_private(&depot, device) {
            return Some(path);
        }
        // A depot that the journal does not know would never be cleaned up, nor looked into after a loss of power.
        self.note_depot(&path).ok()?;
        fs::DirBuilder::new().mode(0o700).create(&depot).ok()?;
        // It may lie in somebody's project. What was removed there must not go into the next commit.
        let _ignored = fs::write(depot.join(".gitignore"), "*\n");
        is_private(&depot, device).then_some(path)
    }

    fn staging(&self, by: OperationId) -> io::Result<TargetPath> {
        let path = self.directory.path().join(STAGING).join(by.to_string());
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => result?,
        }
        TargetPath::new(path).map_err(io::Error::other)
    }

    fn slots_of(&self, by: OperationId) -> Vec<Slot> {
        self.slots_named_by(by).unwrap_or_default()
    }

    fn out_of_reach(&self, slot: &Slot) -> Option<String> {
        let depot = slot.depot.as_path();
        let own = self.directory.path();
        if self.is_anothers(depot) {
            let first = depot.parent().unwrap_or(depot);
            return Some(match self.copied() {
                Some(_) => copied_from(first),
                None => format!(
                    "it is kept in `{0}`, and the state directory is `{1}` now: move that back to `{0}`",
                    first.display(),
                    own.display()
                ),
            });
        }
        if depot == own.join(DEPOT) {
            return None;
        }
        if let Some(copied) = self.copied()
            && self.is_from_before(slot, &copied)
        {
            return Some(match copied.from {
                Some(from) => copied_from(from.as_path()),
                None => format!(
                    "it may be kept by another store: the file `home` in `{0}` cannot be read; if `{0}` is no copy, \
                     remove that file",
                    own.display()
                ),
            });
        }
        if depot.is_dir() {
            return None;
        }
        let root = depot.parent().unwrap_or(depot);
        let at = root.display();
        Some(if root.is_dir() && is_mounted(root) {
            format!(
                "what is mounted at `{at}` is not the file system that it is kept on: mount that one there"
            )
        } else {
            format!("it is kept on the file system of `{at}`, which is not mounted: mount it")
        })
    }

    fn is_ours(&self, path: &TargetPath) -> bool {
        // Who we are is only asked for where a name may be that of a depot.
        let is_depot = |part: &OsStr| {
            part.as_bytes().starts_with(DEPOT_PREFIX.as_bytes()) && part == depot_name().as_str()
        };
        path.as_path().starts_with(self.directory.path()) || path.as_path().iter().any(is_depot)
    }

    fn is_above_ours(&self, path: &TargetPath) -> bool {
        let own = self.directory.path();
        let real = own.canonicalize();
        let real = real.as_deref().unwrap_or(own);
        own.starts_with(path.as_path()) || real.starts_with(path.as_path())
    }
}

fn copied_from(first: &Path) -> String {
    let place = first.display();
    if first.join(JOURNAL).exists() {
        return format!(
            "it is kept by the store in `{place}`, of which this one is a copy: take it back there, with `--state-dir {place}`"
        );
    }
    format!(
        "it is kept for the store in `{place}`, and that is not there any more: if the one in use is that one, move it back to `{place}`"
    )
}

impl Store {
    /// Tells whether a depot is the own one of another state directory.
    pub(crate) fn is_anothers(&self, depot: &Path) -> bool {
        let own = self.directory.path().join(DEPOT);
        let inode = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
        let is_same =
            || matches!((inode(depot), inode(&own)), (Ok(one), Ok(other)) if one == other);
        depot.file_name() == own.file_name() && depot != own && !is_same()
    }

    /// Tells whether something was kept before this store was copied.
    fn is_from_before(&self, slot: &Slot, copied: &Copied) -> bool {
        let Some(id) = operation_of(slot.name.as_bytes()) else {
            return true;
        };
        let lsn = self.read(|transaction| self.lsn_of(transaction, id));
        // What is about to be armed has no record yet.
        !matches!(lsn, Ok(lsn) if lsn.is_none_or(|lsn| lsn > copied.last))
    }

    fn lsn_of(&self, transaction: &Transaction<'_>, id: i64) -> Result<Option<Lsn>, StorageError> {
        let found = transaction
            .prepare_cached("SELECT lsn FROM operation WHERE id = ?1")
            .and_then(|mut statement| statement.query_row([id], |row| row.get(0)).optional());
        Ok(found.map_err(|error| self.named(error))?.map(lsn_from_sql))
    }

    fn note_depot(&self, path: &TargetPath) -> Result<(), StorageError> {
        self.write(Durability::Power, |transaction| {
            transaction
                .execute(
                    "INSERT OR IGNORE INTO depot (path) VALUES (?1)",
                    [path.as_bytes()],
                )
                .map_err(|error| self.named(error))?;
            Ok(())
        })
    }
}

fn depot_name() -> String {
    let user = rustix::process::geteuid().as_raw();
    format!("{DEPOT_PREFIX}{user}")
}

/// Finds the topmost directory of the file system that holds `path`. None for a subvolume in the midst of another: a depot
/// there would be somebody's file, and go with the subvolume.
fn mount_root(path: &Path, device: u64) -> Option<PathBuf> {
    let same = |path: &Path| fs::metadata(path).is_ok_and(|found| found.dev() == device);
    path.ancestors()
        .take_while(|ancestor| same(ancestor))
        .last()
        .filter(|root| is_mounted(root))
        .map(Path::to_path_buf)
}

/// Tells whether something is mounted at a directory; where the system cannot tell, it is taken to be.
fn is_mounted(root: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    statx(CWD, root, AtFlags::empty(), StatxFlags::INO).map_or(true, |found| {
        !found
            .stx_attributes_mask
            .contains(StatxAttributes::MOUNT_ROOT)
            || found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
    })
}

/// Tells whether a depot is really ours: a directory (no link), our own, closed to others (the low six bits of its
/// mode are zero).
fn is_private(depot: &Path, device: u64) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(depot).is_ok_and(|found| {
        found.is_dir()
            && found.dev() == device
            && found.uid() == ours
            && found.mode().trailing_zeros() >= 6
    })
}
