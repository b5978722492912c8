//! The open store: one database connection, its rules, and the one way to write through it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backout_crashpoint::{crash_point, sync_is_skipped};
use backout_model::ports::{Clock, Durability};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::schema::{CREATE, FORMAT};
use crate::{StateDir, StorageError};

/// How long a writer waits for the others before it gives up.
const BUSY_WAIT: Duration = Duration::from_mins(1);

/// The write-ahead log is folded into the database when it has this many pages: opening the store as the
/// only process reads the whole log, so it is kept short.
const CHECKPOINT_PAGES: u32 = 512;

/// How many prepared statements a connection keeps: more than there are, so that none is ever parsed twice.
const STATEMENTS_MAX: usize = 256;

/// The journal and the contents of one state directory.
#[derive(Debug)]
pub struct Store {
    pub(crate) directory: StateDir,
    pub(crate) clock: Arc<dyn Clock>,
    connection: Mutex<Connection>,
    identity: (u64, u64),
    is_poisoned: AtomicBool,
}

impl Store {
    /// Opens the store in `path`, making it if it is not there.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, StorageError> {
        let directory = StateDir::open(path)?;
        let connection = connect(&directory)?;
        let journal = directory.journal();
        let found = std::fs::metadata(&journal).map_err(|source| StorageError::StateDir {
            path: journal,
            action: "look at",
            source,
        })?;
        Ok(Self {
            identity: (found.dev(), found.ino()),
            directory,
            clock,
            connection: Mutex::new(connection),
            is_poisoned: AtomicBool::new(false),
        })
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
        self.check_still_there()?;
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
        Ok(value)
    }

    /// Names a database error for this store.
    pub(crate) fn named(&self, error: rusqlite::Error) -> StorageError {
        StorageError::of_database(self.directory.path(), error)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic while the lock was held left at most an open transaction, which its guard rolled back.
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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

fn connect(directory: &StateDir) -> Result<Connection, StorageError> {
    let named = |error| StorageError::of_database(directory.path(), error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let is_new = !directory.journal().exists();
    let has_log = directory.journal_log().exists();
    let lock = if is_new {
        Some(directory.lock()?)
    } else {
        None
    };
    let connection = Connection::open_with_flags(directory.journal(), flags).map_err(named)?;
    connection.busy_timeout(BUSY_WAIT).map_err(named)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Without this a plan may depend on the values bound to it, and such a statement is parsed again at every use.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(named)?;
    // A short-lived process must not tidy up on its way out: that would cost three syncs and two unlinks.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(named)?;
    if format_of(&connection).map_err(named)? == 0 {
        let _lock = match lock {
            Some(lock) => lock,
            None => directory.lock()?,
        };
        create(directory, &connection)?;
    }
    let found = format_of(&connection).map_err(named)?;
    if found != FORMAT {
        return Err(StorageError::NewerFormat {
            found,
            supported: FORMAT,
        });
    }
    connection
        .pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)
        .map_err(named)?;
    if !has_log {
        // Reading the format has made the log. A record is only as durable as the name of the file it is in.
        directory.sync()?;
    }
    Ok(connection)
}

fn format_of(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Makes the tables, under the lock; somebody else may have been faster.
fn create(directory: &StateDir, connection: &Connection) -> Result<(), StorageError> {
    use std::os::unix::fs::PermissionsExt as _;
    let named = |error| StorageError::of_database(directory.path(), error);
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
    connection
        .pragma_update(None, "auto_vacuum", "INCREMENTAL")
        .map_err(named)?;
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .map_err(named)?;
    connection
        .pragma_update(None, "synchronous", "FULL")
        .map_err(named)?;
    let batch = format!("BEGIN IMMEDIATE; {CREATE} PRAGMA user_version = {FORMAT}; COMMIT;");
    connection.execute_batch(&batch).map_err(named)
}
