//! Removing from depots and staging what no row knows: leftovers of expired operations and of dead processes.
//!
//! A kept inode gets its row when its operation is armed; before that, the lease of its operation protects it. The
//! lease is older than the inode, so directories are listed first and the tables are asked afterwards: what was listed
//! and has neither by then will never have one.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use backout_crashpoint::crash_point;
use backout_model::ports::Durability;
use rusqlite::{Transaction, params};

use super::remove::{list, open_private, remove};
use super::{GcReport, LeftBehind};
use crate::contents::{Kept, add_stored, allocated_bytes};
use crate::journal::id_to_sql;
use crate::state_dir::{DEPOT, STAGING};
use crate::{StorageError, Store};

/// The length of an operation's id at the beginning of a name.
const ID_BYTES: usize = 16;

/// Something in one of our directories that nobody needs.
#[derive(Debug)]
pub(super) struct Stray {
    directory: PathBuf,
    name: OsString,
}

impl Store {
    /// Removes kept inodes that no operation needs.
    pub(super) fn tidy_slots(&self, report: &mut GcReport) -> Result<(), StorageError> {
        for stray in self.stray_slots()? {
            report.slots += u64::from(remove_stray(&stray, report));
            crash_point("gc.slot-removed");
        }
        Ok(())
    }

    /// Removes staging directories of processes that died.
    pub(super) fn tidy_staging(&self, report: &mut GcReport) -> Result<(), StorageError> {
        for stray in self.stray_staging()? {
            report.staging += u64::from(remove_stray(&stray, report));
            crash_point("gc.staging-removed");
        }
        Ok(())
    }

    /// Lists what tidying would remove.
    pub(super) fn strays(&self) -> Result<(Vec<Stray>, Vec<Stray>), StorageError> {
        Ok((self.stray_slots()?, self.stray_staging()?))
    }

    fn stray_slots(&self) -> Result<Vec<Stray>, StorageError> {
        let mut listed = Vec::new();
        for depot in self.read(|transaction| self.depots(transaction))? {
            listed.extend(named_by_operation(&depot));
        }
        if listed.is_empty() {
            return Ok(Vec::new());
        }
        self.read(|transaction| {
            let known = self.slot_rows(transaction)?;
            let known: HashSet<_> = known
                .iter()
                .map(|row| (row.depot.as_slice(), row.name.as_bytes()))
                .collect();
            let is_known = |stray: &Stray| {
                known.contains(&(
                    stray.directory.as_os_str().as_bytes(),
                    stray.name.as_bytes(),
                ))
            };
            self.without_protected(transaction, listed, is_known)
        })
    }

    fn stray_staging(&self) -> Result<Vec<Stray>, StorageError> {
        let listed = named_by_operation(&self.directory.path().join(STAGING));
        self.read(|transaction| self.without_protected(transaction, listed, |_| false))
    }

    /// Leaves out what belongs to an operation that is unfinished or has a living owner.
    fn without_protected(
        &self,
        transaction: &Transaction<'_>,
        listed: Vec<(i64, Stray)>,
        is_known: impl Fn(&Stray) -> bool,
    ) -> Result<Vec<Stray>, StorageError> {
        let leases = self.live_leases(transaction)?;
        let unfinished = self.unfinished(transaction)?;
        let is_protected = |id: &i64| leases.operations.contains(id) || unfinished.contains(id);
        let strays = listed
            .into_iter()
            .filter(|(id, stray)| !is_protected(id) && !is_known(stray));
        Ok(strays.map(|(_, stray)| stray).collect())
    }

    /// Lists every depot: our own, those made on other file systems, and those that slots lie in.
    fn depots(&self, transaction: &Transaction<'_>) -> Result<BTreeSet<PathBuf>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare("SELECT path FROM depot UNION SELECT depot FROM slot")
            .map_err(named)?;
        let rows = statement
            .query_map([], |row| row.get::<_, Vec<u8>>(0))
            .map_err(named)?;
        let mut depots = BTreeSet::from([self.directory.path().join(DEPOT)]);
        for path in rows {
            depots.insert(PathBuf::from(OsStr::from_bytes(&path.map_err(named)?)));
        }
        Ok(depots)
    }

    fn slot_rows(&self, transaction: &Transaction<'_>) -> Result<Vec<SlotRow>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare("SELECT depot, name, bytes FROM slot")
            .map_err(named)?;
        let rows = statement
            .query_map([], |row| {
                Ok(SlotRow {
                    depot: row.get(0)?,
                    name: row.get(1)?,
                    bytes: row.get(2)?,
                })
            })
            .map_err(named)?;
        rows.map(|row| row.map_err(named)).collect()
    }

    /// Measures the kept inodes that were not there, or not whole, when their operation was armed, and forgets
    /// the size of those that an undo took out again. One whose depot cannot be looked at keeps its size.
    pub(super) fn measure_slots(&self) -> Result<(), StorageError> {
        let rows = self.read(|transaction| self.slot_rows(transaction))?;
        let mut changed = Vec::new();
        for row in rows {
            let depot = Path::new(OsStr::from_bytes(&row.depot));
            if !depot.is_dir() {
                continue;
            }
            let path = depot.join(&row.name);
            let bytes = match std::fs::symlink_metadata(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
                Ok(_) if row.bytes == 0 => allocated_bytes(&path).unwrap_or(0).cast_signed(),
                Ok(_) | Err(_) => row.bytes,
            };
            if bytes != row.bytes {
                changed.push((row, bytes));
            }
        }
        if changed.is_empty() {
            return Ok(());
        }
        self.write(Durability::Process, |transaction| {
            let mut update = transaction
                .prepare_cached(
                    "UPDATE slot SET bytes = ?4 WHERE depot = ?1 AND name = ?2 AND bytes = ?3",
                )
                .map_err(|error| self.named(error))?;
            for (row, bytes) in &changed {
                let updated = update
                    .execute(params![row.depot, row.name, row.bytes, bytes])
                    .map_err(|error| self.named(error))?;
                if updated == 1 {
                    add_stored(self, transaction, Kept::Slots, bytes - row.bytes)?;
                }
            }
            Ok(())
        })
    }
}

struct SlotRow {
    depot: Vec<u8>,
    name: String,
    bytes: i64,
}

/// Lists what begins with an operation's id. A depot that is not there, or not ours, has nothing for us; a name
/// that we did not give is none of our business.
fn named_by_operation(directory: &Path) -> Vec<(i64, Stray)> {
    let listed = open_private(directory).and_then(|directory| Ok(list(&directory)?));
    let stray = |name: &CString| Stray {
        directory: directory.to_path_buf(),
        name: OsStr::from_bytes(name.to_bytes()).to_os_string(),
    };
    let names = listed.unwrap_or_default();
    names
        .iter()
        .filter_map(|name| Some((operation_of(name.to_bytes())?, stray(name))))
        .collect()
}

/// Reads the operation's id from a name such as `00abcdef01234567-1`.
pub(super) fn operation_of(name: &[u8]) -> Option<i64> {
    let (id, rest) = name.split_at_checked(ID_BYTES)?;
    if !matches!(rest.first(), None | Some(b'-' | b'~' | b'.')) {
        return None;
    }
    std::str::from_utf8(id).ok()?.parse().ok().map(id_to_sql)
}

/// Removes a stray and tells whether it is gone.
fn remove_stray(stray: &Stray, report: &mut GcReport) -> bool {
    let removed =
        open_private(&stray.directory).and_then(|directory| remove(directory.as_fd(), &stray.name));
    match removed {
        Ok(()) => true,
        Err(error) => {
            let path = stray.directory.join(&stray.name);
            report.left.push(LeftBehind {
                path,
                why: error.to_string(),
            });
            false
        }
    }
}
