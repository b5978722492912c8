//! The stat index of a watch: what a name looked like when it was found to be as recorded.
//!
//! It is a hint to save work, never the truth: a name whose stamps changed is compared by its driver. A change within the same tick of the
//! clock leaves the stamps as they were, so what changed a moment before it was noted is compared again; and since a clock may be set back, the number of the inode
//! and the change time, which nobody can set, both count.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use backout_model::{OperationId, TargetPath};

use super::claims::hash;

/// A stamp this young may be that of two changes.
const YOUNG_NS: i128 = 2_000_000_000;

/// More files than these are not noted for keeping in one look.
const RIGHT_MAX: usize = 1_000;

/// What names looked like, by the hash of their path.
#[derive(Debug, Default)]
pub(super) struct StatIndex {
    known: HashMap<u64, u64>,
    /// Looked at in this sweep, and believed unless something is found to differ.
    looked: HashMap<u64, u64>,
    /// Files that were found to be as recorded, and whose bytes may be worth keeping, with who left them.
    right: Vec<(TargetPath, OperationId)>,
    /// Whether directories are where their names say, in this sweep.
    straight: HashMap<PathBuf, bool>,
}

impl StatIndex {
    /// Tells whether a name looks as it did when it was found to be what this operation left; if not, notes how it looks now.
    pub(super) fn is_known(&mut self, path: &TargetPath, by: OperationId) -> bool {
        let name = hash(path.as_bytes());
        let is_straight = self.is_straight(path);
        let (stamp, is_young) = stamp(path, by, is_straight);
        if self.known.get(&name) == Some(&stamp) {
            return true;
        }
        if is_young {
            self.known.remove(&name);
        } else {
            self.looked.insert(name, stamp);
        }
        if self.right.len() < RIGHT_MAX {
            self.right.push((path.clone(), by));
        }
        false
    }

    /// Believes all that was looked at, but for what differs.
    pub(super) fn settle<'p>(&mut self, differing: impl Iterator<Item = &'p TargetPath>) {
        let differing: HashSet<&TargetPath> = differing.collect();
        self.right.retain(|(path, _)| !differing.contains(path));
        for path in differing {
            // What is new in a directory is seen only by listing that again.
            for path in std::iter::once(path.clone()).chain(path.parent()) {
                let name = hash(path.as_bytes());
                self.looked.remove(&name);
                self.known.remove(&name);
            }
        }
        self.known.extend(self.looked.drain());
        self.straight.clear();
    }

    /// Tells whether no link stands between the root and the directory of a name.
    fn is_straight(&mut self, path: &TargetPath) -> bool {
        let Some(parent) = path.as_path().parent() else {
            return true;
        };
        if let Some(known) = self.straight.get(parent) {
            return *known;
        }
        let is_straight = parent.canonicalize().is_ok_and(|real| real == parent);
        self.straight.insert(parent.to_owned(), is_straight);
        is_straight
    }

    /// Gives the files that were found to be as recorded since this was last asked.
    pub(super) fn take_right(&mut self) -> Vec<(TargetPath, OperationId)> {
        std::mem::take(&mut self.right)
    }

    /// Has every target be looked at again.
    pub(super) fn forget(&mut self) {
        self.known.clear();
        self.looked.clear();
        self.right.clear();
    }
}

/// Gives what a name looks like, and whether that is so young that it may change without a trace.
fn stamp(path: &TargetPath, by: OperationId, is_straight: bool) -> (u64, bool) {
    let by = by.to_string();
    let Ok(found) = path.as_path().symlink_metadata() else {
        return (hash(format!("{by} none {is_straight}").as_bytes()), false);
    };
    let changed = i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec());
    let text = format!(
        "{by} {is_straight} {} {} {} {} {} {} {} {}",
        found.dev(),
        found.ino(),
        found.size(),
        found.mode(),
        found.uid(),
        found.gid(),
        found.mtime_nsec(),
        changed,
    );
    (hash(text.as_bytes()), is_young(changed))
}

fn is_young(changed_ns: i128) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |passed| i128::try_from(passed.as_nanos()).unwrap_or(0));
    // A clock that was set back makes everything young: then it is compared.
    now - changed_ns < YOUNG_NS
}
