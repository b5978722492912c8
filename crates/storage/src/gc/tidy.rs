//! Removing from depots and staging what no row knows: leftovers of expired operations and of dead processes.
//!
//! A kept inode gets its row when its operation is armed; before that, the lease of its operation protects it. The
//! lease is older than the inode, so directories are listed first and the tables are asked afterwards: what was listed
//! and has neither by then will never have one.
//!
//! A depot on another file system may serve other state directories of the same user as well: there only what belongs to
//! an operation of this journal is ours to remove. In a copy of a store that is only what was kept since it was copied.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use backout_crashpoint::crash_point;
use backout_model::ports::Depots as _;
use backout_model::{OperationId, Slot, TargetPath};
use rusqlite::Transaction;

use super::remove::{list, open_private, remove};
use crate::journal::id_to_sql;
use crate::state_dir::{CAPTURES, DEPOT, STAGING};
use crate::{GcReport, LeftBehind, StorageError, Store};

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

    /// Removes staging directories and capture logs of processes that died.
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

    /// Lists kept inodes whose operation needs none. A name tells the operation, so they are known by that even
    /// if the state directory was moved and lies elsewhere than the rows say.
    fn stray_slots(&self) -> Result<Vec<Stray>, StorageError> {
        let (own, copied) = (self.directory.path().join(DEPOT), self.copied());
        let mut listed = Vec::new();
        for depot in self.open_depots()? {
            listed.extend(named_by_operation(&depot));
        }
        if listed.is_empty() {
            return Ok(Vec::new());
        }
        self.read(|transaction| {
            let mut needed = self.protected(transaction)?;
            let with_slots = "SELECT id FROM operation WHERE retained = 1
                              UNION SELECT operation FROM slot";
            needed.extend(self.operation_ids(transaction, with_slots)?);
            // An operation may need what was kept under the name of another.
            let names = self.slot_names(transaction)?;
            listed.retain(|(_, stray)| !names.contains(&stray.name));
            // Before it was copied, all was another's: leases too.
            let known = match copied {
                Some(copied) => format!("SELECT id FROM operation WHERE lsn > {}", copied.last),
                None => "SELECT id FROM operation UNION SELECT operation FROM lease".to_owned(),
            };
            let known: HashSet<i64> = self
                .operation_ids(transaction, &known)?
                .into_iter()
                .collect();
            let is_ours = |id: &i64, stray: &Stray| stray.directory == own || known.contains(id);
            listed.retain(|(id, stray)| !needed.contains(id) && is_ours(id, stray));
            Ok(listed.into_iter().map(|(_, stray)| stray).collect())
        })
    }

    fn stray_staging(&self) -> Result<Vec<Stray>, StorageError> {
        let mut listed = named_by_operation(&self.directory.path().join(STAGING));
        listed.extend(named_by_operation(&self.directory.path().join(CAPTURES)));
        let needed = self.read(|transaction| self.protected(transaction))?;
        listed.retain(|(id, _)| !needed.contains(id));
        Ok(listed.into_iter().map(|(_, stray)| stray).collect())
    }

    fn slot_names(&self, transaction: &Transaction<'_>) -> Result<HashSet<OsString>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare("SELECT name FROM slot")
            .map_err(named)?;
        let rows = statement
            .query_map([], |row| row.get::<_, String>(0))
            .map_err(named)?;
        rows.map(|name| name.map(OsString::from).map_err(named))
            .collect()
    }

    /// Lists the operations that are unfinished or have a living owner.
    fn protected(&self, transaction: &Transaction<'_>) -> Result<HashSet<i64>, StorageError> {
        let mut protected = self.unfinished(transaction)?;
        protected.extend(self.live_leases(transaction)?.operations);
        Ok(protected)
    }

    /// Lists what is kept under the name of an operation.
    pub(crate) fn slots_named_by(&self, by: OperationId) -> Result<Vec<Slot>, StorageError> {
        let mut slots = Vec::new();
        for depot in self.open_depots()? {
            let Ok(path) = TargetPath::new(&depot) else {
                continue;
            };
            let listed = named_by_operation(&depot).into_iter();
            let own = listed.filter(|(id, _)| *id == id_to_sql(by));
            slots.extend(own.filter_map(|(_, stray)| {
                let (depot, name) = (path.clone(), stray.name.into_string().ok()?);
                Some(Slot { depot, name }).filter(|slot| self.out_of_reach(slot).is_none())
            }));
        }
        slots.sort();
        Ok(slots)
    }

    /// Lists the depots that we may touch something in.
    fn open_depots(&self) -> Result<Vec<PathBuf>, StorageError> {
        let all = self.read(|transaction| self.depots(transaction))?;
        Ok(all
            .into_iter()
            .filter(|depot| !self.is_anothers(depot))
            .collect())
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
pub(crate) fn operation_of(name: &[u8]) -> Option<i64> {
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
