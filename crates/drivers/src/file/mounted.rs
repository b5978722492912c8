//! The mounts that names are on. Where one is gone, what stands at a name is not what was changed there, and nothing can be
//! told of it.

use std::collections::HashSet;

use backout_model::{TargetPath, wide};
use rustix::fs::{AtFlags, CWD, Statx, StatxAttributes, StatxFlags, statx};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::recipe::Change;

/// A place where something was mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mounted {
    /// The place.
    pub(crate) path: TargetPath,
    /// The number of the directory that was mounted there.
    #[serde(with = "wide")]
    pub(crate) ino: u64,
}

/// Finds the mounts that the changed names are on. That of `/` is always there.
pub(crate) fn mounts_of(changes: &[Change]) -> Vec<Mounted> {
    let (mut looked_at, mut known) = (HashSet::new(), HashSet::new());
    let mut mounts = Vec::new();
    for name in changes.iter().flat_map(names_of) {
        let mut above = name.parent();
        while let Some(path) = above.take() {
            if !looked_at.insert(path.clone()) {
                break;
            }
            let found = look(&path).ok();
            let is_root = found.as_ref().is_some_and(is_root);
            if let Some(found) = found {
                // Whatever else is on that mount leads to the same place.
                if !known.insert((found.stx_mnt_id, is_root)) {
                    break;
                }
                if is_root {
                    let ino = found.stx_ino;
                    let is_first = path.parent().is_none();
                    mounts.extend((!is_first).then(|| Mounted {
                        path: path.clone(),
                        ino,
                    }));
                    break;
                }
            }
            above = path.parent();
        }
    }
    mounts
}

/// Lists the places where nothing is mounted any more. One that is the same directory by itself needs no mount.
pub(crate) fn missing(mounts: &[Mounted]) -> Vec<&TargetPath> {
    let is_missing = |mounted: &&Mounted| match look(&mounted.path) {
        Ok(found) => !is_root(&found) && found.stx_ino != mounted.ino,
        Err(errno) => matches!(errno, Errno::NOENT | Errno::NOTDIR),
    };
    let gone = mounts.iter().filter(is_missing);
    gone.map(|mounted| &mounted.path).collect()
}

/// Says why nothing can be told of a change, if what it is on is not mounted.
pub(crate) fn why_unseen(change: &Change, missing: &[&TargetPath]) -> Option<String> {
    let is_on = |mount: &&&TargetPath| names_of(change).any(|name| name.is_below(mount));
    let mount = missing.iter().find(is_on)?;
    Some(format!("nothing is mounted at `{mount}` any more"))
}

/// Lists the names of a change.
fn names_of(change: &Change) -> impl Iterator<Item = &TargetPath> {
    let from = match change {
        Change::Move { from, .. } => Some(from),
        Change::Set { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => None,
    };
    from.into_iter().chain([change.path()])
}

fn look(path: &TargetPath) -> Result<Statx, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
    statx(CWD, path.as_path(), flags, wanted)
}

/// Tells whether something is mounted at a place. Where the system does not say, nothing is known to be.
const fn is_root(found: &Statx) -> bool {
    found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
}
