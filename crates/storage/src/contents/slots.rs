//! The rows of kept inodes: which operation needs which, and how much space each takes.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use backout_model::{OperationId, Slot};
use rusqlite::{Transaction, params};

use super::sizes::{Kept, add_stored};
use crate::journal::id_to_sql;
use crate::{StorageError, Store};

/// What `stat` counts blocks in, whatever the file system's own are.
const BLOCK_BYTES: u64 = 512;

/// Notes a kept inode with the space it takes now. What is parked after its operation is armed is not there yet:
/// it is measured when the operation is applied, and a tree by `gc`.
pub(crate) fn put_slot(
    store: &Store,
    transaction: &Transaction<'_>,
    operation: OperationId,
    slot: &Slot,
) -> Result<(), StorageError> {
    let bytes = match fs::symlink_metadata(slot.path().as_path()) {
        Ok(found) if !found.is_dir() => (found.blocks() * BLOCK_BYTES).cast_signed(),
        Ok(_) | Err(_) => 0,
    };
    let added = transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO slot (operation, depot, name, bytes) VALUES (?1, ?2, ?3, ?4)",
        )
        .and_then(|mut statement| {
            statement.execute(params![
                id_to_sql(operation),
                slot.depot.as_bytes(),
                slot.name,
                bytes
            ])
        })
        .map_err(|error| store.named(error))?;
    if added == 1 {
        add_stored(store, transaction, Kept::Slots, bytes)
    } else {
        Ok(())
    }
}

/// Measures the files that an operation parked when it was applied.
pub(crate) fn measure_slots(
    store: &Store,
    transaction: &Transaction<'_>,
    operation: OperationId,
) -> Result<(), StorageError> {
    let named = |error| store.named(error);
    let unmeasured = {
        let mut statement = transaction
            .prepare_cached("SELECT depot, name FROM slot WHERE operation = ?1 AND bytes = 0")
            .map_err(named)?;
        let rows = statement
            .query_map([id_to_sql(operation)], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(named)?;
        rows.collect::<rusqlite::Result<Vec<(Vec<u8>, String)>>>()
            .map_err(named)?
    };
    for (depot, name) in unmeasured {
        let path = Path::new(OsStr::from_bytes(&depot)).join(&name);
        let bytes = match fs::symlink_metadata(path) {
            Ok(found) if !found.is_dir() => (found.blocks() * BLOCK_BYTES).cast_signed(),
            Ok(_) | Err(_) => continue,
        };
        transaction
            .prepare_cached("UPDATE slot SET bytes = ?3 WHERE depot = ?1 AND name = ?2")
            .and_then(|mut statement| statement.execute(params![depot, name, bytes]))
            .map_err(named)?;
        add_stored(store, transaction, Kept::Slots, bytes)?;
    }
    Ok(())
}

/// Forgets the kept inodes of an operation; `gc` then removes what no row knows.
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
    transaction
        .prepare_cached("DELETE FROM slot WHERE operation = ?1")
        .and_then(|mut statement| statement.execute([operation]))
        .map_err(named)?;
    add_stored(store, transaction, Kept::Slots, -bytes)
}

/// Measures the space that a file or a tree takes. Nothing is followed; an inode with several names counts once,
/// and what cannot be looked into counts as nothing.
pub(crate) fn allocated_bytes(path: &Path) -> io::Result<u64> {
    let mut counted = HashSet::new();
    let mut waiting = vec![path.to_path_buf()];
    let mut blocks = 0;
    let top = fs::symlink_metadata(path)?;
    while let Some(path) = waiting.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        if found.dev() != top.dev() || (found.nlink() > 1 && !counted.insert(found.ino())) {
            continue;
        }
        blocks += found.blocks();
        if found.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten();
            waiting.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
        }
    }
    Ok(blocks * BLOCK_BYTES)
}
