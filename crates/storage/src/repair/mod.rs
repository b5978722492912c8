//! Repair: a damaged journal is read page by page, and what can be trusted becomes a new one.
//!
//! - Built aside, synced, then swapped in: until the swap nothing of the store has changed, and a crash during it is
//!   finished by whoever opens the store next.
//! - The damaged files stay, under names of their own, for ever.
//! - What was lost stays visible: the new journal's last record says which records are missing and what was assumed.
//!
//! Not here: whether a repair is needed, and marking operations whose images are gone (`engine`). Why so:
//! `docs/design/repair.md`.

mod build;
mod chain;
mod found;
mod packs;
mod pages;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backout_crashpoint::crash_point;
use backout_model::ports::Clock;
use backout_model::{Digest, Event, Gap, Lsn, OperationId, Owner, any_path};
use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};

use self::build::{Build, unlinked};
use self::chain::{Chain, choose};
use self::found::Found;
use self::pages::Pages;
use crate::room::is_busy;
use crate::state_dir::{JOURNAL, REPAIRED, sync_directory};
use crate::store::{configure, make_tables};
use crate::witness::{Witness, WitnessFile};
use crate::{StateDir, StorageError, Store, owner};

/// The new journal while it is being built.
const NEW: &str = "journal.new";

/// How long a repair waits for those who are just reading.
const READERS_WAIT: Duration = Duration::from_secs(5);

/// What a repair of the journal saved and lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Salvage {
    /// Records saved.
    pub records: u64,
    /// Contents saved.
    pub contents: u64,
    /// Records lost.
    pub gaps: Vec<Gap>,
    /// Operations whose record is lost.
    pub lost: Vec<OperationId>,
    /// Operations that were saved but cannot be undone: nothing vouches for their record.
    pub unlinked: Vec<OperationId>,
    /// Operations whose outcome was taken from a table that nothing vouches for.
    pub assumed: Vec<OperationId>,
    /// Where the damaged journal is now.
    #[serde(with = "any_path")]
    pub evidence: PathBuf,
}

impl Salvage {
    /// Counts the records that are lost.
    pub fn lost_records(&self) -> u64 {
        let lengths = self.gaps.iter().map(|gap| gap.last.0 - gap.first.0 + 1);
        lengths.sum()
    }
}

/// Makes a new journal of what can be saved of the one in `path`, and puts it in place. The caller has found out that
/// it is damaged, and has closed it.
pub fn repair_journal(path: &Path, clock: &Arc<dyn Clock>) -> Result<Salvage, StorageError> {
    let directory = StateDir::open(path)?;
    let lock = directory.lock()?;
    directory.finish_swap_locked()?;
    let evidence = keep_evidence(&directory)?;
    // From here on nobody else writes to the damaged journal, if anybody still could.
    let alone = stop_others(&directory)?;
    let (database, log) = (
        Held::read(&directory.journal())?,
        Held::read(&directory.wal())?,
    );
    let witness = Witness::read(directory.path());
    let pages = Pages::new(database.bytes, log.bytes);
    let found = Found::in_pages(&pages);
    let end = witness.map(|witness| {
        let had = witness.must_have();
        (had, (had == witness.last).then_some(witness.hash))
    });
    let chain = choose(&found.records, end);
    let (salvage, last) = build(&directory, clock, &pages, &found, &chain, evidence)?;
    directory.note_format(&lock)?;
    swap(&directory, last)?;
    // Only now: closing any of these would have given the lock on the old journal back.
    drop((alone, database.file, log.file));
    Ok(salvage)
}

/// A file's bytes, and the open file: closing it would drop the database's own locks on it.
struct Held {
    bytes: Vec<u8>,
    file: Option<File>,
}

impl Held {
    fn read(path: &Path) -> Result<Self, StorageError> {
        let failed = |source| StorageError::StateDir {
            path: path.to_path_buf(),
            action: "read",
            source,
        };
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    bytes: Vec::new(),
                    file: None,
                });
            }
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        Ok(Self {
            bytes,
            file: Some(file),
        })
    }
}

/// Gives the damaged files second names, which stay.
fn keep_evidence(directory: &StateDir) -> Result<PathBuf, StorageError> {
    let failed = |source| directory.failed(JOURNAL, "keep a copy of", source);
    let is_same = |one: &Path, other: &Path| {
        let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
        matches!((identity(one), identity(other)), (Ok(a), Ok(b)) if a == b)
    };
    let name = |number: u32| directory.path().join(format!("journal.damaged-{number}"));
    let log_of = |path: &Path| PathBuf::from(format!("{}-wal", path.display()));
    let mut number = 1;
    loop {
        let (path, log) = (name(number), log_of(&name(number)));
        // A repair that died has given them a name already.
        if is_same(&path, &directory.journal()) || is_same(&log, &directory.wal()) {
            return Ok(path);
        }
        if !path.exists() && !log.exists() {
            for (from, to) in [(directory.journal(), &path), (directory.wal(), &log)] {
                match fs::hard_link(&from, to) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    result => result.map_err(failed)?,
                }
            }
            sync_directory(directory.path()).map_err(failed)?;
            crash_point("repair.evidence-kept");
            return Ok(path);
        }
        number += 1;
    }
}

/// Takes the damaged journal away from every other process, as far as it can be opened at all.
fn stop_others(directory: &StateDir) -> Result<Option<Connection>, StorageError> {
    // An empty database would take its log with it.
    if directory.is_without_journal() {
        return Ok(None);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let taken = || {
        let connection = Connection::open_with_flags(directory.journal(), flags)?;
        configure(&connection)?;
        connection.busy_timeout(READERS_WAIT)?;
        // A journal without its end shows leases that were given back since.
        let held = if has_lost_its_end(directory, &connection) {
            Vec::new()
        } else {
            leases(&connection).unwrap_or_default()
        };
        for owner in held {
            if owner::is_alive(&owner) && owner != owner::this_process() {
                return Ok(Err(StorageError::InUse { pid: owner.pid }));
            }
        }
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.execute_batch("BEGIN EXCLUSIVE")?;
        Ok(Ok(connection))
    };
    match taken() {
        Ok(connection) => connection.map(Some),
        Err(error) if is_busy(&error) => Err(StorageError::InUse { pid: 0 }),
        // What we cannot open nobody can write to.
        Err(_) => Ok(None),
    }
}

fn has_lost_its_end(directory: &StateDir, connection: &Connection) -> bool {
    let last = connection.query_row("SELECT max(lsn) FROM record", [], |row| {
        row.get::<_, Option<i64>>(0)
    });
    let last = last.ok().flatten().unwrap_or(0).cast_unsigned();
    Witness::read(directory.path()).is_some_and(|witness| witness.must_have().0 > last)
}

fn leases(connection: &Connection) -> rusqlite::Result<Vec<Owner>> {
    let mut statement = connection.prepare("SELECT owner FROM lease")?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    let owners = rows.flatten();
    Ok(owners
        .filter_map(|owner| serde_json::from_str(&owner).ok())
        .collect())
}

/// Builds the new journal aside, closed and synced.
fn build(
    directory: &StateDir,
    clock: &Arc<dyn Clock>,
    pages: &Pages,
    found: &Found,
    chain: &Chain,
    evidence: PathBuf,
) -> Result<(Salvage, (Lsn, Digest)), StorageError> {
    let named = |error| crate::error::of_database(directory.path(), error);
    let path = directory.path().join(NEW);
    for part in ["", "-wal", "-shm", "-journal"] {
        let _leftover = fs::remove_file(directory.path().join(format!("{NEW}{part}")));
    }
    let connection = Connection::open(&path).map_err(named)?;
    make_tables(&connection).map_err(named)?;
    let store = Store::detached(directory.clone(), Arc::clone(clock), connection);
    let now = clock.now();
    let name = evidence.file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let (mut salvage, last) = store.build(|transaction| {
        let build = Build {
            store: &store,
            transaction,
        };
        for record in &chain.records {
            build.record(record)?;
        }
        let contents = build.contents(pages)?;
        store.adopt_packs_in(transaction)?;
        let repair = build.statement(chain, &found.hints, name)?;
        let mut salvage = Salvage {
            records: chain.records.len() as u64,
            contents,
            gaps: repair.gaps.clone(),
            lost: repair.lost.clone(),
            unlinked: Vec::new(),
            assumed: repair.assumed.iter().map(|assumed| assumed.id).collect(),
            evidence,
        };
        let mut end = build.append(chain.end, now, Event::Repaired(Box::new(repair)))?;
        salvage.unlinked = unlinked(chain);
        if !salvage.unlinked.is_empty() {
            let why = "its record cannot be checked, since the one before it is lost".to_owned();
            let ids = salvage.unlinked.clone();
            end = build.append(end, now, Event::Lost { ids, why })?;
        }
        Ok((salvage, end))
    })?;
    salvage.unlinked.sort_unstable();
    store.close_synced()?;
    File::open(&path)
        .and_then(|file| file.sync_all())
        .map_err(|source| directory.failed(NEW, "sync", source))?;
    crash_point("repair.built");
    Ok((salvage, last))
}

/// Puts the new journal in place. The rename to its waiting name is the moment from which it counts.
fn swap(directory: &StateDir, (last, hash): (Lsn, Digest)) -> Result<(), StorageError> {
    use std::os::unix::fs::PermissionsExt as _;
    let new = directory.path().join(NEW);
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::rename(&new, directory.path().join(REPAIRED)))
        .and_then(|()| sync_directory(directory.path()))
        .map_err(|source| directory.failed(NEW, "rename", source))?;
    crash_point("repair.waiting");
    directory.finish_swap_locked()?;
    crash_point("repair.swapped");
    // The old witness speaks of the old journal.
    Witness::dismiss(directory.path());
    WitnessFile::of(directory.path()).note(last, hash, true);
    Ok(())
}
