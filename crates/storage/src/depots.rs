//! Where whole inodes are kept: a private directory on the file system that holds them.
//!
//! The state directory's own depot serves its file system. On another one a depot is made at the mount's root
//! (`.backout-UID`), where that is allowed; otherwise there is none and contents are copied instead.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use backout_model::ports::{Depots, Durability};
use backout_model::{OperationId, Slot, TargetPath};

use crate::state_dir::{DEPOT, STAGING};
use crate::{StorageError, Store};

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

    fn is_ours(&self, path: &TargetPath) -> bool {
        let name = depot_name();
        path.as_path().starts_with(self.directory.path())
            || path
                .as_path()
                .components()
                .any(|part| part.as_os_str() == name.as_str())
    }
}

impl Store {
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
    format!(".backout-{}", rustix::process::geteuid().as_raw())
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
