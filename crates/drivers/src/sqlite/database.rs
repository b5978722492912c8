//! A database file that is open, and the marks in it.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backout_changeset::rusqlite::config::DbConfig;
use backout_changeset::rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use backout_model::OperationId;

use super::error::SqliteFault;
use super::name::quoted;

/// How long to wait for somebody who has the database locked.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The table of marks.
pub(super) const MARKS: &str = "backout_marker";

/// How many marks are kept: only the newest matter, to whoever finds out what a dead process did.
const MARKS_MAX: u32 = 1000;

/// An open file.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
}

/// Gives the name by which a database is looked at without a trace, if nobody can be at work in it: it keeps a log beside it, and
/// there is none. Otherwise a look would make one, and could not take it away again.
fn still(path: &Path) -> Option<String> {
    let mut head = [0; 20];
    let mut file = std::fs::File::open(path).ok()?;
    file.read_exact(&mut head).ok()?;
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    // The version for reading: 2 is that of a log.
    if head.get(19) != Some(&2) || Path::new(&wal).exists() {
        return None;
    }
    let name = path.to_str()?;
    let name = name
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    Some(format!("file:{name}?immutable=1"))
}

impl Database {
    /// Opens a file to write in it. It must be there.
    pub(super) fn open(path: &Path) -> Result<Self, SqliteFault> {
        Self::with(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// Opens a file to look at it.
    pub(super) fn open_to_look(path: &Path) -> Result<Self, SqliteFault> {
        if let Some(still) = still(path) {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            return Self::at(path, Path::new(&still), flags);
        }
        Self::with(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    fn with(path: &Path, flags: OpenFlags) -> Result<Self, SqliteFault> {
        if !path.exists() {
            let path = path.display().to_string();
            return Err(SqliteFault::Missing { path });
        }
        Self::at(path, path, flags)
    }

    fn at(path: &Path, name: &Path, flags: OpenFlags) -> Result<Self, SqliteFault> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let wrong = |error| SqliteFault::of(path, error);
        let connection = Connection::open_with_flags(name, flags).map_err(wrong)?;
        connection.busy_timeout(WAIT_MAX).map_err(wrong)?;
        let database = Self {
            path: path.to_owned(),
            connection,
        };
        // A commit is over when the disk has it.
        database.execute("PRAGMA synchronous=FULL")?;
        Ok(database)
    }

    /// Says what went wrong here.
    pub(super) fn wrong(&self, error: impl Into<backout_changeset::ChangesetError>) -> SqliteFault {
        SqliteFault::of(&self.path, error)
    }

    /// Runs statements of our own.
    pub(super) fn execute(&self, sql: &str) -> Result<(), SqliteFault> {
        let done = self.connection.execute_batch(sql);
        done.map_err(|error| self.wrong(error))
    }

    /// Begins to write: from now on nobody else does.
    pub(super) fn begin(&self) -> Result<(), SqliteFault> {
        self.execute("BEGIN IMMEDIATE")?;
        self.check_marks()
    }

    /// Refuses a database in which somebody else's table, or view, has the name of ours.
    pub(super) fn check_marks(&self) -> Result<(), SqliteFault> {
        if self.has_marks()? != Some(false) {
            return Ok(());
        }
        Err(SqliteFault::refused(
            format!("`{MARKS}` in this database is not Backout's own table"),
            "Backout notes in a table of that name which operations were committed, and this one has other columns",
            "give it another name, without Backout, then run this again",
        ))
    }

    /// Tells whether the table of marks is ours; none if there is nothing of that name.
    fn has_marks(&self) -> Result<Option<bool>, SqliteFault> {
        let sql = "SELECT type = 'table' AND name = ?1 AND (SELECT group_concat(name || ' ' || type || ' ' || \"notnull\" || ' ' || pk) \
                   FROM pragma_table_xinfo(?1, 'main')) = 'number INTEGER 0 1,operation TEXT 1 0' \
                   FROM main.sqlite_schema WHERE lower(name) = ?1";
        let found = self.connection.query_row(sql, [MARKS], |row| row.get(0));
        found.optional().map_err(|error| self.wrong(error))
    }

    /// Keeps triggers still: what they did is recorded, and comes back as what it is.
    pub(super) fn silence(&self) -> Result<(), SqliteFault> {
        let off = DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER;
        let done = self.connection.set_db_config(off, false);
        done.map(|_| ()).map_err(|error| self.wrong(error))
    }

    /// Leaves the mark of an operation in the transaction that is open.
    pub(super) fn mark(&self, by: OperationId) -> Result<(), SqliteFault> {
        self.execute(&format!(
            "CREATE TABLE IF NOT EXISTS main.{MARKS}(number INTEGER PRIMARY KEY, operation TEXT NOT NULL UNIQUE)"
        ))?;
        let marked = self.connection.execute(
            &format!("INSERT INTO main.{MARKS}(operation) VALUES(?1)"),
            [by.to_string()],
        );
        marked.map_err(|error| self.wrong(error))?;
        let pruned = self.connection.execute(
            &format!("DELETE FROM main.{MARKS} WHERE number <= (SELECT max(number) FROM main.{MARKS}) - ?1"),
            [MARKS_MAX],
        );
        pruned.map(|_| ()).map_err(|error| self.wrong(error))
    }

    /// Tells whether an operation left its mark.
    pub(super) fn has_mark(&self, by: OperationId) -> Result<bool, SqliteFault> {
        if self.has_marks()? != Some(true) {
            return Ok(false);
        }
        let sql = format!("SELECT 1 FROM main.{MARKS} WHERE operation=?1");
        let found = self
            .connection
            .query_row(&sql, [by.to_string()], |_| Ok(()));
        let found = found.optional().map_err(|error| self.wrong(error))?;
        Ok(found.is_some())
    }

    /// Tells whether the file has no bytes: that is an empty database.
    pub(super) fn is_empty_file(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|found| found.len() == 0)
    }

    /// Refuses a table that can be written here only in part: an index or a check on it needs a function that only an application
    /// has, and so would the way back.
    pub(super) fn check_writable(&self, table: &str) -> Result<(), SqliteFault> {
        let table = quoted(table);
        for sql in [
            format!("DELETE FROM main.{table}"),
            format!("INSERT INTO main.{table} DEFAULT VALUES"),
        ] {
            let Err(error) = self.connection.prepare(&sql) else {
                continue;
            };
            if error.to_string().contains("unknown function: ") {
                return Err(SqliteFault::refused(
                    format!("rows of {table} cannot be brought back here: {error}"),
                    "an index or a check of the table needs a function that only its application has",
                    "write it by that application, under `backout run`",
                ));
            }
        }
        Ok(())
    }

    /// Gives a file that was empty before no bytes again, if nothing but our marks is left in the database, and nobody else uses it.
    pub(super) fn empty_if_nothing_is_left(&self) {
        let left = format!(
            "SELECT count(*) FROM main.sqlite_schema WHERE tbl_name <> '{MARKS}' AND name NOT LIKE 'sqlite_%'"
        );
        let is_nothing = |database: &Self| {
            let count: Result<i64, _> = database.connection.query_row(&left, [], |row| row.get(0));
            count.is_ok_and(|count| count == 0)
        };
        // With a log beside it others may be at work in ways that a lock does not tell.
        let mode: Result<String, _> =
            self.connection
                .query_row("PRAGMA main.journal_mode", [], |row| row.get(0));
        if !mode.is_ok_and(|mode| mode == "delete") || self.execute("BEGIN EXCLUSIVE").is_err() {
            return;
        }
        if is_nothing(self)
            && let Ok(file) = std::fs::File::options().write(true).open(&self.path)
        {
            let _emptied = file.set_len(0).and_then(|()| file.sync_all());
            // To close it would end the lock: it goes with the connection.
            self.execute("ROLLBACK").ok();
            return;
        }
        self.execute("ROLLBACK").ok();
    }

    /// Makes the transaction count, and its end durable.
    pub(super) fn commit(&self) -> Result<(), SqliteFault> {
        if let Err(error) = self.execute("COMMIT") {
            // A commit that somebody's reading held up leaves the transaction open.
            self.execute("ROLLBACK").ok();
            return Err(error);
        }
        let mut wal = self.path.as_os_str().to_owned();
        wal.push("-wal");
        // With a rollback journal its removal is the commit, and SQLite does not sync that (`.cargo/config.toml`).
        if !Path::new(&wal).exists()
            && let Some(directory) = self.path.parent()
        {
            std::fs::File::open(directory)
                .and_then(|directory| directory.sync_all())
                .ok();
        }
        Ok(())
    }
}
