//! The rows of kept inodes: which operation needs which, and how much space each takes.
//!
//! An inode is parked after its operation is armed, so its size is learned later: before the next write
//! (`make_room`), which is soon enough for the cap, and once more by `gc`.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use backout_model::ports::Durability;
use backout_model::{OperationId, Slot};
use rusqlite::{Transaction, params};

use super::sizes::{Kept, add_stored};
use crate::journal::id_to_sql;
use crate::{StorageError, Store};

/// What `stat` counts blocks in, whatever the file system's own are.
const BLOCK_BYTES: u64 = 512;

/// Before a write no more entries of a tree are looked at than these, which takes a few milliseconds.
const ENTRIES_BEFORE_WRITE_MAX: usize = 1000;

/// So many kept inodes are looked at before a write.
const SLOTS_BEFORE_WRITE_MAX: i64 = 100;

/// Where and which those are that nobody measured. Left alone the query would look at every row there is.
pub(super) const UNMEASURED: (&str, &str) = (
    "slot INDEXED BY slot_unmeasured",
    "WHERE slot.bytes IS NULL LIMIT ?1",
);

#[derive(Debug)]
pub(crate) struct SlotRow {
    pub(crate) depot: Vec<u8>,
    pub(crate) name: String,
    bytes: Option<i64>,
    /// Whether the inode may still be on its way.
    is_armed: bool,
}

impl SlotRow {
    fn depot(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.depot))
    }

    fn path(&self) -> PathBuf {
        self.depot().join(&self.name)
    }

    /// Measures the inode; none if there is nothing new to know. One whose depot cannot be looked at (a disk
    /// that is not plugged in) keeps its size, one that an undo took out again has none.
    fn measured(&self, entries_max: usize) -> Option<i64> {
        let bytes = match allocated_bytes(&self.path(), entries_max) {
            Ok(bytes) => bytes.cast_signed(),
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && !self.is_armed
                    && self.depot().is_dir() =>
            {
                0
            }
            Err(_) => return None,
        };
        (self.bytes != Some(bytes)).then_some(bytes)
    }

    /// Writes the size down, if nobody did since the row was read.
    fn update(
        &self,
        store: &Store,
        transaction: &Transaction<'_>,
        bytes: i64,
    ) -> Result<(), StorageError> {
        let updated = transaction
            .prepare_cached(
                "UPDATE slot SET bytes = ?4 WHERE depot = ?1 AND name = ?2 AND bytes IS ?3",
            )
            .and_then(|mut update| {
                update.execute(params![self.depot, self.name, self.bytes, bytes])
            })
            .map_err(|error| store.named(error))?;
        let grown = if updated == 1 {
            bytes - self.bytes.unwrap_or(0)
        } else {
            0
        };
        add_stored(store, transaction, Kept::Slots, grown)
    }
}

/// Notes kept inodes, with the space they take if they are there already.
pub(crate) fn put_slots(
    store: &Store,
    transaction: &Transaction<'_>,
    operation: OperationId,
    slots: &[Slot],
) -> Result<(), StorageError> {
    let mut change = 0;
    for slot in slots {
        change += put_slot(store, transaction, operation, slot)?;
    }
    add_stored(store, transaction, Kept::Slots, change)
}

/// Notes a kept inode. Gives by how much the sum of all changes.
fn put_slot(
    store: &Store,
    transaction: &Transaction<'_>,
    operation: OperationId,
    slot: &Slot,
) -> Result<i64, StorageError> {
    let bytes = file_bytes(slot.path().as_path());
    let values = params![
        id_to_sql(operation),
        slot.depot.as_bytes(),
        slot.name,
        bytes
    ];
    let added = transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO slot (operation, depot, name, bytes) VALUES (?1, ?2, ?3, ?4)",
        )
        .and_then(|mut statement| statement.execute(values))
        .map_err(|error| store.named(error))?;
    if added == 1 {
        return Ok(bytes.unwrap_or(0));
    }
    // An undo is about to take it out, or a redo to put it back: it is measured anew.
    let place = params![slot.depot.as_bytes(), slot.name];
    let known: i64 = transaction
        .prepare_cached("SELECT coalesce(bytes, 0) FROM slot WHERE depot = ?1 AND name = ?2")
        .and_then(|mut statement| statement.query_row(place, |row| row.get(0)))
        .map_err(|error| store.named(error))?;
    transaction
        .prepare_cached("UPDATE slot SET bytes = NULL WHERE depot = ?1 AND name = ?2")
        .and_then(|mut statement| statement.execute(place))
        .map_err(|error| store.named(error))?;
    Ok(-known)
}

/// Asks for rows of `slot`.
pub(super) fn rows_sql(from: &str, only: &str) -> String {
    format!(
        "SELECT slot.depot, slot.name, slot.bytes, operation.status IS 'armed'
         FROM {from} LEFT JOIN operation ON operation.id = slot.operation {only}"
    )
}

fn file_bytes(path: &Path) -> Option<i64> {
    let found = fs::symlink_metadata(path).ok()?;
    (!found.is_dir()).then(|| (found.blocks() * BLOCK_BYTES).cast_signed())
}

/// Forgets the kept inodes of an operation; `gc` then removes what no row knows. Their depot is remembered.
pub(crate) fn drop_slots(
    store: &Store,
    transaction: &Transaction<'_>,
    operation: i64,
) -> Result<(), StorageError> {
    let named = |error| store.named(error);
    let bytes: i64 = transaction
        .prepare_cached("SELECT coalesce(sum(bytes), 0) FROM slot WHERE operation = ?1")
        .and_then(|mut statement| statement.query_row([operation], |row| row.get(0)))
        .map_err(named)?;
    for sql in [
        "INSERT OR IGNORE INTO depot (path) SELECT depot FROM slot WHERE operation = ?1",
        "DELETE FROM slot WHERE operation = ?1",
    ] {
        transaction
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([operation]))
            .map_err(named)?;
    }
    add_stored(store, transaction, Kept::Slots, -bytes)
}

impl Store {
    /// Learns the size of kept inodes that nobody looked at yet. Of a large tree only a part is counted: `gc`
    /// does the rest.
    pub fn measure_new_slots(&self) -> Result<(), StorageError> {
        let rows = self.read(|transaction| {
            let (from, only) = UNMEASURED;
            self.slot_rows(transaction, from, only, [SLOTS_BEFORE_WRITE_MAX])
        })?;
        self.measure(rows, ENTRIES_BEFORE_WRITE_MAX)
    }

    /// Learns the size of every kept inode.
    pub(crate) fn measure_all_slots(&self) -> Result<(), StorageError> {
        let rows = self.read(|transaction| self.all_slot_rows(transaction))?;
        self.measure(rows, usize::MAX)
    }

    /// Lists every kept inode.
    pub(crate) fn all_slot_rows(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<Vec<SlotRow>, StorageError> {
        self.slot_rows(transaction, "slot", "", [])
    }

    fn slot_rows(
        &self,
        transaction: &Transaction<'_>,
        from: &str,
        only: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<SlotRow>, StorageError> {
        let named = |error| self.named(error);
        let sql = rows_sql(from, only);
        let mut statement = transaction.prepare_cached(&sql).map_err(named)?;
        let rows = statement
            .query_map(values, |row| {
                let (depot, name) = (row.get(0)?, row.get(1)?);
                Ok(SlotRow {
                    depot,
                    name,
                    bytes: row.get(2)?,
                    is_armed: row.get(3)?,
                })
            })
            .map_err(named)?;
        rows.map(|row| row.map_err(named)).collect()
    }

    fn measure(&self, rows: Vec<SlotRow>, entries_max: usize) -> Result<(), StorageError> {
        let changed: Vec<(SlotRow, i64)> = rows
            .into_iter()
            .filter_map(|row| row.measured(entries_max).map(|bytes| (row, bytes)))
            .collect();
        if changed.is_empty() {
            return Ok(());
        }
        self.write(Durability::Process, |transaction| {
            changed
                .iter()
                .try_for_each(|(row, bytes)| row.update(self, transaction, *bytes))
        })
    }
}

/// Measures the space that a file or a tree takes, of which at most `entries_max` are looked at. Nothing is followed; an
/// inode with several names counts once, and what cannot be looked into counts as nothing.
fn allocated_bytes(path: &Path, entries_max: usize) -> io::Result<u64> {
    let top = fs::symlink_metadata(path)?;
    let mut counted = HashSet::new();
    let mut waiting = vec![path.to_path_buf()];
    let (mut blocks, mut entries) = (0, 0);
    while let Some(path) = waiting.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        entries += 1;
        if found.dev() != top.dev() || (found.nlink() > 1 && !counted.insert(found.ino())) {
            continue;
        }
        blocks += found.blocks();
        if found.is_dir() && entries < entries_max {
            let below = fs::read_dir(&path).into_iter().flatten();
            let below = below.take(entries_max - entries);
            waiting.extend(below.filter_map(|entry| Some(entry.ok()?.path())));
        }
    }
    Ok(blocks * BLOCK_BYTES)
}
