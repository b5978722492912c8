//! The open store: one database connection, its rules, and the one way to write through it.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backout_crashpoint::{crash_point, sync_is_skipped};
use backout_model::ports::{Clock, Durability};
use backout_model::{Digest, DriverName, Lsn, OperationId};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::home::{Copied, Home};
use crate::host::Guest;
use crate::journal::Group;
use crate::room;
use crate::schema::{CREATE, FORMAT, MIGRATIONS, NOTE_READER};
use crate::state_dir::{CAPTURES, CONTENTS, DEPOT, STAGING};
use crate::witness::{Witness, WitnessFile};
use crate::{StateDir, StorageError, reserve};

/// How long a writer waits for the others before it gives up.
const BUSY_WAIT: Duration = Duration::from_mins(1);

/// The write-ahead log is folded into the database when it has this many pages: opening the store as the
/// only process reads the whole log, so it is kept short.
const CHECKPOINT_PAGES: u32 = 512;

/// So many pages stay in memory, if they are needed at all. What one command of some thousand files is recorded with fits, and is
/// written once.
const CACHE_PAGES: u32 = 4096;

/// How many prepared statements a connection keeps: more than there are, so that none is ever parsed twice.
const STATEMENTS_MAX: usize = 256;

/// The journal and the contents of one state directory.
#[derive(Debug)]
pub struct Store {
    pub(crate) directory: StateDir,
    pub(crate) clock: Arc<dyn Clock>,
    connection: Mutex<Connection>,
    identity: (u64, u64),
    /// Whether nobody else can open it meanwhile: the disk is full.
    is_alone: bool,
    is_poisoned: AtomicBool,
    /// The last record and its hash, between appending and committing.
    appended: Mutex<Option<(Lsn, Digest)>>,
    witness: Mutex<WitnessFile>,
    /// What the journal had come to, if it has lost that.
    lost: Option<Lsn>,
    /// Whether it is a copy of another store.
    home: Mutex<Home>,
    /// Which machine uses it.
    guest: Option<Guest>,
    /// Whose recipes somebody understands.
    pub(crate) drivers: Mutex<BTreeSet<DriverName>>,
    /// Who appends durably at this moment.
    pub(crate) group: Group,
}

impl Store {
    /// Opens the store in `path`, making it if it is not there.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, StorageError> {
        crate::owner::know_this_process().map_err(|source| StorageError::StateDir {
            path: PathBuf::from("/proc/self"),
            action: "look at",
            source,
        })?;
        let directory = StateDir::open(path)?;
        let guest = Guest::enter(directory.path())?;
        // Before the journal: whatever others append meanwhile makes it only longer.
        let witness = Witness::read(directory.path());
        let (connection, is_alone) = connect(&directory)?;
        let journal = directory.journal();
        let found = std::fs::metadata(&journal).map_err(|source| StorageError::StateDir {
            path: journal,
            action: "look at",
            source,
        })?;
        let mut store = Self {
            identity: (found.dev(), found.ino()),
            guest: Some(guest),
            is_alone,
            ..Self::detached(directory, clock, connection)
        };
        // A journal whose end cannot be read says so to whoever reads it.
        let last = store.read(|transaction| store.last_record(transaction));
        if let (Some(witness), Ok((last, _))) = (witness, &last) {
            store.lost = Some(witness.must_have()).filter(|had| last < had);
        }
        let last = last.map_or(Lsn(u64::MAX), |(last, _)| last);
        store.home = Mutex::new(
            Home::find(store.directory(), last)
                .map_err(|source| store.directory.failed("home", "look at", source))?,
        );
        if (1..FORMAT).any(|format| store.directory.older_journal(format).exists()) {
            // What cannot be brought over is told by a check of the store.
            let _told = store.rebuild_if_older();
        }
        Ok(store)
    }

    /// Opens the store in `path` to look at it. If it is not there it is not made: then this is an empty one, which nothing can
    /// be written to.
    pub fn open_to_look(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, StorageError> {
        let Some(directory) = StateDir::absent(path)? else {
            return Self::open(path, clock);
        };
        let empty = || {
            let connection = Connection::open_in_memory()?;
            connection.execute_batch(CREATE)?;
            Ok(connection)
        };
        let connection =
            empty().map_err(|error| crate::error::of_database(directory.path(), error))?;
        Ok(Self::detached(directory, clock, connection))
    }

    /// Takes a journal that is being built and is not in its place yet.
    pub(crate) fn detached(
        directory: StateDir,
        clock: Arc<dyn Clock>,
        connection: Connection,
    ) -> Self {
        Self {
            identity: (0, 0),
            is_alone: false,
            witness: Mutex::new(WitnessFile::of(directory.path())),
            directory,
            clock,
            connection: Mutex::new(connection),
            is_poisoned: AtomicBool::new(false),
            appended: Mutex::new(None),
            lost: None,
            home: Mutex::new(Home::default()),
            guest: None,
            drivers: Mutex::default(),
            group: Group::default(),
        }
    }

    /// Runs `work` in a write transaction of a journal that is being built.
    pub(crate) fn build<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let connection = self.connection();
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)
            .map_err(|error| self.named(error))?;
        let value = work(&transaction)?;
        transaction.commit().map_err(|error| self.named(error))?;
        Ok(value)
    }

    /// Folds the log into the database and closes it, so that one file is all of it.
    pub(crate) fn close_synced(self) -> Result<(), StorageError> {
        let directory = self.directory.path().to_path_buf();
        let connection = self
            .connection
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        connection
            .pragma_update(None, "wal_checkpoint", "TRUNCATE")
            .and_then(|()| connection.close().map_err(|(_, error)| error))
            .map_err(|error| crate::error::of_database(&directory, error))
    }

    /// Says so if the journal has lost its newest records: what it tells is not all that happened.
    pub fn check_end(&self) -> Result<(), StorageError> {
        match self.lost {
            Some(had) => {
                let (last, _) = self.read(|transaction| self.last_record(transaction))?;
                Err(StorageError::LostRecords { last, had })
            }
            None => Ok(()),
        }
    }

    /// Says so if the disk is too full for several processes to use the journal at a time.
    pub fn check_room(&self) -> Result<(), StorageError> {
        if self.is_alone {
            let path = self.directory.path().to_path_buf();
            return Err(StorageError::DiskFull { path });
        }
        Ok(())
    }

    /// Gives the state directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Runs `work` in a read transaction: it sees one moment, whatever others write.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let connection = self.connection();
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Deferred)
            .map_err(|error| self.named(error))?;
        work(&transaction)
    }

    /// Runs `work` in a write transaction that survives what `durability` says, or has no effect at all.
    pub(crate) fn write<T>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        if self.is_poisoned.load(Ordering::Acquire) {
            return Err(StorageError::Poisoned);
        }
        self.check_end()?;
        if let Some(guest) = &self.guest {
            guest.stay()?;
        }
        let connection = self.connection();
        let synchronous = match durability {
            Durability::Power if !sync_is_skipped("journal.arm") => "FULL",
            Durability::Power | Durability::Process => "NORMAL",
        };
        connection
            .pragma_update(None, "synchronous", synchronous)
            .map_err(|error| self.named(error))?;
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)
            .map_err(|error| self.named(error))?;
        // Inside the transaction: a repair swaps the journal only while nobody has one.
        self.check_still_there()?;
        *held(&self.appended) = None;
        held(&self.home).note(self.directory.path(), || {
            self.last_record(&transaction).ok().map(|(last, _)| last)
        });
        let value = work(&transaction)?;
        crash_point("journal.before-commit");
        transaction.commit().map_err(|error| {
            // What a failed commit left on the disk is unknown: nothing goes on as if it had worked.
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure) {
                self.is_poisoned.store(true, Ordering::Release);
            }
            self.named(error)
        })?;
        crash_point("journal.after-commit");
        if let Some((last, hash)) = held(&self.appended).take() {
            held(&self.witness).note(last, hash, synchronous == "FULL");
        }
        Ok(value)
    }

    /// Tells whether nobody writes at this moment, without waiting for them.
    pub(crate) fn is_unlocked(&self) -> bool {
        if self.is_poisoned.load(Ordering::Acquire) {
            return false;
        }
        let connection = self.connection();
        if connection.busy_timeout(Duration::ZERO).is_err() {
            return false;
        }
        let begun = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate);
        let is_free = begun.is_ok_and(|transaction| transaction.rollback().is_ok());
        connection.busy_timeout(BUSY_WAIT).is_ok() && is_free
    }

    /// Gives the place of the log of what a running command touches.
    pub fn capture_log(&self, id: OperationId) -> PathBuf {
        self.directory.path().join(CAPTURES).join(id.to_string())
    }

    /// Tells how large the journal is on the disk.
    pub fn journal_bytes(&self) -> u64 {
        let files = [self.directory.journal(), self.directory.wal()];
        let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |found| found.len());
        files.iter().map(size).sum()
    }

    /// Gives the place where the watcher of a command can be asked.
    pub fn capture_desk(&self, id: OperationId) -> PathBuf {
        let name = format!("{id}.desk");
        self.directory.path().join(CAPTURES).join(name)
    }

    /// Gives the place of the index of what was last scanned.
    pub fn scan_index(&self) -> PathBuf {
        self.directory.path().join(CAPTURES).join("scanned")
    }

    /// Lists the directories that are nobody's to write but ours.
    pub fn own_directories(&self) -> Vec<PathBuf> {
        let path = self.directory.path();
        let parts = [CAPTURES, CONTENTS, DEPOT, STAGING].map(|part| path.join(part));
        std::iter::once(path.to_path_buf()).chain(parts).collect()
    }

    /// Lists the symbolic links that lead to the state, which are nobody's to take away.
    pub fn links_to_it(&self) -> &[PathBuf] {
        self.directory.links()
    }

    /// Tells of which store this one is a copy, if it is one.
    pub(crate) fn copied(&self) -> Option<Copied> {
        held(&self.home).copied.clone()
    }

    /// Tells the open transaction's last record, for the witness.
    pub(crate) fn note_appended(&self, last: Lsn, hash: Digest) {
        *held(&self.appended) = Some((last, hash));
    }

    /// Names a database error for this store.
    pub(crate) fn named(&self, error: rusqlite::Error) -> StorageError {
        crate::error::of_database(self.directory.path(), error)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        held(&self.connection)
    }

    /// A journal whose file was deleted or replaced would swallow records that nobody can ever read.
    fn check_still_there(&self) -> Result<(), StorageError> {
        let gone = || StorageError::Gone {
            path: self.directory.path().to_path_buf(),
        };
        let found = std::fs::metadata(self.directory.journal()).map_err(|_| gone())?;
        if (found.dev(), found.ino()) == self.identity {
            Ok(())
        } else {
            Err(gone())
        }
    }
}

/// Locks what only one thread may use. A panic of another one left at most an open transaction, which was rolled back.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the journal. Tells also whether nobody else can until we close it.
fn connect(directory: &StateDir) -> Result<(Connection, bool), StorageError> {
    let named = |error| crate::error::of_database(directory.path(), error);
    let not_whole = |detail| StorageError::NotWhole {
        path: directory.journal(),
        detail,
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    directory.finish_swap()?;
    let has_log = directory.wal().exists();
    let lock = if directory.is_without_journal() {
        Some(directory.lock()?)
    } else {
        None
    };
    // Under the lock: whoever made it meanwhile has finished.
    if lock.is_some() && directory.is_without_journal() && directory.had_journal() {
        return Err(not_whole("it is gone, but what belongs to it is not"));
    }
    let connection = Connection::open_with_flags(directory.journal(), flags).map_err(named)?;
    configure(&connection).map_err(named)?;
    let is_alone =
        room::is_short(directory) && room::open(&connection, BUSY_WAIT).map_err(named)?;
    if format_of(&connection).map_err(named)? == 0 {
        let lock = match lock {
            Some(lock) => lock,
            None => directory.lock()?,
        };
        // Only under the lock: before it, somebody may just be making them.
        let is_unmade = format_of(&connection).map_err(named)? == 0;
        if is_unmade && tables_in(&connection).map_err(named)? != 0 {
            return Err(not_whole("it has tables, but no format"));
        }
        create(directory, &connection)?;
        directory.note_format(&lock)?;
    }
    let mut found = format_of(&connection).map_err(named)?;
    if (1..FORMAT).contains(&found) && !directory.has_noted_format() {
        migrate(directory, &connection)?;
        found = format_of(&connection).map_err(named)?;
    }
    if found != FORMAT && directory.has_noted_format() {
        return Err(not_whole(
            "it says another format than the store was made with",
        ));
    }
    if found != FORMAT {
        return Err(StorageError::NewerFormat {
            found,
            supported: FORMAT,
            reader: reader_of(&connection),
        });
    }
    for (rule, value) in [
        ("wal_autocheckpoint", CHECKPOINT_PAGES),
        ("cache_size", CACHE_PAGES),
    ] {
        connection.pragma_update(None, rule, value).map_err(named)?;
    }
    if !has_log {
        // Reading the format has made the log. A record is only as durable as the name of the file it is in.
        directory.sync()?;
    }
    Ok((connection, is_alone))
}

/// Gives a connection its rules.
pub(crate) fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_WAIT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Without this a plan may depend on the values bound to it, and such a statement is parsed again at every use.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A short-lived process must not tidy up on its way out: that would cost three syncs and two unlinks.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(())
}

/// Finds the version of the program that gave a journal its format. A newer one may keep that elsewhere.
fn reader_of(connection: &Connection) -> Option<String> {
    let sql = "SELECT value FROM meta WHERE key = 'reader'";
    connection.query_row(sql, [], |row| row.get(0)).ok()
}

fn tables_in(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
}

fn format_of(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Makes the tables, under the lock; somebody else may have been faster.
fn create(directory: &StateDir, connection: &Connection) -> Result<(), StorageError> {
    use std::os::unix::fs::PermissionsExt as _;
    let named = |error| crate::error::of_database(directory.path(), error);
    if format_of(connection).map_err(named)? != 0 {
        return Ok(());
    }
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(directory.journal(), private).map_err(|source| {
        StorageError::StateDir {
            path: directory.journal(),
            action: "make private",
            source,
        }
    })?;
    make_tables(connection).map_err(named)?;
    reserve::keep(directory.path());
    directory.sync()
}

/// Makes an older journal one of our format, a format at a time, under the lock. A copy of the older one is kept.
fn migrate(directory: &StateDir, connection: &Connection) -> Result<(), StorageError> {
    let named = |error| crate::error::of_database(directory.path(), error);
    let lock = directory.lock()?;
    let first = format_of(connection).map_err(named)?;
    let steps = usize::try_from(first)
        .ok()
        .and_then(|at| MIGRATIONS.get(at - 1..));
    for (step, from) in steps.unwrap_or_default().iter().zip(first..) {
        keep_copy(directory, connection, from)?;
        crash_point("store.copied");
        let batch = format!(
            "BEGIN IMMEDIATE; {step} {NOTE_READER} PRAGMA user_version = {}; COMMIT;",
            from + 1
        );
        connection.execute_batch(&batch).map_err(|error| {
            // A batch that failed half-way leaves its transaction open.
            let _ended = connection.execute_batch("ROLLBACK");
            named(error)
        })?;
        crash_point("store.migrated");
    }
    directory.note_format(&lock)
}

/// Keeps a copy of a journal as it is before it is brought over: whole and on the disk, or not there.
fn keep_copy(
    directory: &StateDir,
    connection: &Connection,
    format: i64,
) -> Result<(), StorageError> {
    let copy = directory.older_journal(format);
    if copy.exists() {
        return Ok(());
    }
    let failed = |source| StorageError::StateDir {
        path: copy.clone(),
        action: "write",
        source,
    };
    let unfinished = copy.with_added_extension("new");
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let name = unfinished.to_string_lossy();
    connection
        .execute("VACUUM INTO ?1", [name.as_ref()])
        .map_err(|error| crate::error::of_database(directory.path(), error))?;
    crash_point("store.copying");
    std::fs::File::open(&unfinished)
        .and_then(|file| file.sync_all())
        .and_then(|()| std::fs::rename(&unfinished, &copy))
        .map_err(failed)?;
    directory.sync()
}

/// Makes an empty journal.
pub(crate) fn make_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let batch =
        format!("BEGIN IMMEDIATE; {CREATE} {NOTE_READER} PRAGMA user_version = {FORMAT}; COMMIT;");
    connection.execute_batch(&batch)
}
