//! The target: a table of rows, each a name and a value. It knows nothing of Backout.
//!
//! It is a text file with a row per line, which everybody reads and writes through here. One row is put at a time, whole or
//! not at all; several rows together are not. Names and values have no line breaks, names no tabs. Each step of a put can be
//! made to fail, so that a test can cut it anywhere.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

/// A table.
#[derive(Clone)]
pub struct Table {
    file: PathBuf,
    /// Called before and after a row is put.
    step: Arc<dyn Fn() -> io::Result<()> + Send + Sync>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({})", self.file.display())
    }
}

/// Says why a table could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// Somebody else is writing. Nothing was done.
    #[error("somebody else writes the table")]
    Busy,
    /// A row is not what it was thought to be. Nothing was done.
    #[error("row `{0}` changed meanwhile")]
    Changed(String),
    /// The table could not be reached. If that was while a row was put, it may be there.
    #[error("the table could not be used: {0}")]
    Io(#[from] io::Error),
}

impl Table {
    /// Opens a table; one that nobody has written yet is empty.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            step: Arc::new(|| Ok(())),
        }
    }

    /// Calls `step` before and after each row that is put.
    #[must_use]
    pub fn with_steps(mut self, step: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Self {
        self.step = Arc::new(step);
        self
    }

    /// Gives all rows.
    pub fn rows(&self) -> Result<BTreeMap<String, String>, TableError> {
        let text = match fs::read_to_string(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let rows = text.lines().filter_map(|line| line.split_once('\t'));
        Ok(rows
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect())
    }

    /// Puts a row in place of one that is `before`, or takes it away. A row that is something else stays.
    pub fn put(
        &self,
        name: &str,
        before: Option<&str>,
        after: Option<&str>,
    ) -> Result<(), TableError> {
        let _lock = self.lock()?;
        let mut rows = self.rows()?;
        if rows.remove(name).as_deref() != before {
            return Err(TableError::Changed(name.to_owned()));
        }
        rows.extend(after.map(|value| (name.to_owned(), value.to_owned())));
        let new = self.file.with_extension("new");
        let mut file = File::create(&new)?;
        for (name, value) in rows {
            writeln!(file, "{name}\t{value}")?;
        }
        file.sync_all()?;
        (self.step)()?;
        fs::rename(&new, &self.file)?;
        (self.step)()?;
        Ok(())
    }

    /// Locks the table until the lock is dropped.
    pub fn lock(&self) -> Result<File, TableError> {
        let lock = File::create(self.file.with_extension("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(lock),
            Err(TryLockError::WouldBlock) => Err(TableError::Busy),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }
}
