//! What changed in the rows of an `SQLite` database: recorded, read, inverted and applied, by `SQLite`'s session extension.
//!
//! - [`Session`] records what one connection does to the rows of the main database, or compares two databases.
//! - [`each`] reads a changeset, row by row. [`apply`] carries one out, also the other way round ([`Apply::inverted`]), and asks
//!   about every row and every conflict.
//! - A table without a primary key is recorded by its rowid, which is then the first column.
//!
//! What a session does not see: rows with `NULL` in their primary key, virtual tables, `SQLite`'s own tables, and the schema.
//! Whoever relies on it has to look after those. Nothing here knows files, journals or recipes.

mod sys;
mod value;

use std::io::Read;

pub use rusqlite;
pub use sys::{Apply, Session, apply, each, invert, memory_bytes};
pub use value::Value;

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// It was not there.
    Insert,
    /// Some of its columns changed.
    Update,
    /// It is not there any more.
    Delete,
}

/// A row that changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its name, as in the schema.
    pub table: String,
    /// What became of the row.
    pub op: Op,
    /// Which columns are the primary key.
    pub key: Vec<bool>,
    /// What was in its columns; of an update only the key and what changed, of an insert nothing.
    pub old: Vec<Option<Value>>,
    /// What is in its columns; of an update only what changed, of a delete nothing.
    pub new: Vec<Option<Value>>,
}

impl Change {
    /// Gives the values of the primary key.
    pub fn key_values(&self) -> Vec<&Value> {
        let row = match self.op {
            Op::Insert => &self.new,
            Op::Update | Op::Delete => &self.old,
        };
        let columns = std::iter::zip(row, &self.key);
        columns
            .filter(|(_, is_key)| **is_key)
            .filter_map(|(value, _)| value.as_ref())
            .collect()
    }
}

/// What stands in the way of a change that is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// The row is not what it was.
    Differs,
    /// The row is not there.
    Missing,
    /// There is a row with that key already.
    Taken,
    /// A constraint of the table forbids it.
    Constraint,
    /// This many references lead nowhere when all is applied. If that is skipped, a commit does not ask again.
    References(u32),
}

/// What to do about a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Leave that row as it is, and go on.
    Skip,
    /// Apply it over what is there. Only for [`Conflict::Differs`] and [`Conflict::Taken`].
    Replace,
    /// Stop, and take back all that was applied.
    Stop,
}

/// Says why a changeset could not be made, read or applied.
#[derive(Debug, thiserror::Error)]
pub enum ChangesetError {
    /// `SQLite` said no.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The bytes could not be read or written.
    #[error("the changeset could not be read or written")]
    Io(#[from] std::io::Error),
    /// A conflict was answered with [`Answer::Stop`].
    #[error("a change does not fit what is there")]
    Stopped,
}

impl ChangesetError {
    /// Gives `SQLite`'s own code, if it is `SQLite`'s error.
    pub fn code(&self) -> Option<rusqlite::ErrorCode> {
        match self {
            Self::Sqlite(error) => error.sqlite_error_code(),
            Self::Io(_) | Self::Stopped => None,
        }
    }
}

/// Counts the changes of a changeset.
pub fn count(from: &mut dyn Read) -> Result<u64, ChangesetError> {
    let mut count = 0;
    each(from, false, |_| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

#[cfg(test)]
mod tests;
