//! Refusing what a flag of an inode or the mode of a directory forbids, before anything is changed.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use backout_model::TargetPath;
use rustix::fs::{Access, AtFlags, accessat};
use rustix::io::Errno;

use super::error::FileError;
use super::execute::is_closed;
use super::recipe::Change;
use super::sys::{Dir, flags};

/// Finds the first name that a change would touch and may not, because it or its directory is immutable or
/// append-only.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    dirs: HashMap<TargetPath, Option<Looked>>,
    /// Directories that an undo may open, if they are closed to their owner.
    own: BTreeSet<TargetPath>,
}

/// An open directory, and the flag that locks it.
type Looked = (Arc<Dir>, Option<&'static str>);

impl Locks {
    /// Takes the directories that an undo may open.
    pub(crate) fn of(own: BTreeSet<TargetPath>) -> Self {
        Self {
            own,
            ..Self::default()
        }
    }

    /// Refuses a change that a flag forbids.
    pub(crate) fn refuse(&mut self, change: &Change) -> Result<(), FileError> {
        match change {
            Change::Set { path, .. } => self.refuse_name(path, true),
            Change::Move { from, to, .. } => {
                self.refuse_name(from, true)?;
                self.refuse_name(to, true)
            }
            Change::Retouch { path, .. } | Change::Rewrite { path, .. } => {
                self.refuse_name(path, false)
            }
        }
    }

    /// Says why a change is forbidden, if it is, and what helps.
    pub(crate) fn why(&mut self, change: &Change) -> Option<String> {
        let error = self.refuse(change).err()?;
        let FileError::Locked { flag, .. } = &error else {
            return Some(error.to_string());
        };
        let letter = flags::letter(flag);
        Some(format!("{error}; `chattr -{letter}` takes that off"))
    }

    /// Names the directory that does not let us change its entries, of a change that no flag forbids.
    pub(crate) fn barred(&self, change: &Change) -> Option<TargetPath> {
        if rustix::process::geteuid().is_root() {
            return None;
        }
        let names = match change {
            Change::Set { path, .. } => vec![path],
            Change::Move { from, to, .. } => vec![from, to],
            Change::Retouch { .. } | Change::Rewrite { .. } => Vec::new(),
        };
        let mut parents = names.into_iter().filter_map(TargetPath::parent);
        let is_barred = |parent: &TargetPath| {
            let Some(Some((dir, _))) = self.dirs.get(parent) else {
                return false;
            };
            let wanted = Access::WRITE_OK | Access::EXEC_OK;
            let opens = self.own.contains(parent) && dir.node().is_ok_and(|node| is_closed(&node));
            let found = accessat(&**dir, ".", wanted, AtFlags::EACCESS);
            found == Err(Errno::ACCESS) && !opens
        };
        parents.find(is_barred)
    }

    fn refuse_name(&mut self, path: &TargetPath, with_directory: bool) -> Result<(), FileError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(());
        };
        let known = self.dirs.entry(parent.clone()).or_insert_with(|| {
            // A directory that is not there yet has no flags.
            let dir = Dir::open(&parent).ok()?;
            let lock = flags::lock_of(&*dir);
            Some((dir, lock))
        });
        let Some((dir, lock)) = known else {
            return Ok(());
        };
        let locked = |path: &TargetPath, flag: &'static str| FileError::Locked {
            path: path.to_string(),
            flag,
        };
        match (*lock, flags::lock(&dir.place(name))) {
            (_, Some(flag)) => Err(locked(path, flag)),
            (Some(flag), None) if with_directory => Err(locked(&parent, flag)),
            (Some(_) | None, None) => Ok(()),
        }
    }
}
