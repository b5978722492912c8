//! How people name operations: a short unique prefix of the id, `@` for the newest, `@-1` for the one before.
//!
//! `@` counts operations that changed something. Undos and redos have ids of their own and are named by them; writes that
//! were refused or did not come to pass, and commands that changed nothing, are not counted.

use std::str::FromStr;

use backout_model::OperationId;
use rusqlite::{OptionalExtension as _, params};

use super::rows::id_from_sql;
use crate::{StorageError, Store};

/// The shortest prefix that is taken for an id.
const PREFIX_DIGITS_MIN: usize = 2;

/// How many candidates an ambiguous prefix lists.
const CANDIDATES_MAX: usize = 5;

/// A name that a person gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationRef {
    /// The newest, or the n-th before it.
    Newest {
        /// How many to go back.
        back: u32,
    },
    /// The beginning of an id, in lower case.
    Prefix(String),
}

/// Says why a name does not lead to one operation.
#[derive(Debug, thiserror::Error)]
pub enum RefError {
    /// It is not a name of an operation at all.
    #[error("`{text}` does not name an operation")]
    Malformed {
        /// What was given.
        text: String,
    },
    /// Nothing has that name.
    #[error("there is no operation `{text}`")]
    Unknown {
        /// What was given.
        text: String,
    },
    /// More than one operation begins so.
    #[error("`{text}` could be {}", list(candidates))]
    Ambiguous {
        /// What was given.
        text: String,
        /// Some of the operations that begin so.
        candidates: Vec<OperationId>,
    },
    /// The journal could not be asked.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

fn list(candidates: &[OperationId]) -> String {
    let shown: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    shown.join(", ")
}

impl FromStr for OperationRef {
    type Err = RefError;

    fn from_str(text: &str) -> Result<Self, RefError> {
        let malformed = || RefError::Malformed {
            text: text.to_owned(),
        };
        if let Some(rest) = text.strip_prefix('@') {
            let back = match rest.strip_prefix('-') {
                Some(number) => number.parse().map_err(|_| malformed())?,
                None if rest.is_empty() => 0,
                None => return Err(malformed()),
            };
            return Ok(Self::Newest { back });
        }
        let length_fits = (PREFIX_DIGITS_MIN..=16).contains(&text.len());
        if !length_fits || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(malformed());
        }
        Ok(Self::Prefix(text.to_ascii_lowercase()))
    }
}

impl Store {
    /// Finds the operation that a person named.
    pub fn resolve(&self, reference: &OperationRef) -> Result<OperationId, RefError> {
        match reference {
            OperationRef::Newest { back } => self.newest(*back),
            OperationRef::Prefix(prefix) => self.by_prefix(prefix),
        }
    }

    fn newest(&self, back: u32) -> Result<OperationId, RefError> {
        let found = self.read(|transaction| {
            transaction
                .prepare_cached(
                    "SELECT id FROM operation
                     WHERE undoes IS NULL AND status NOT IN ('refused', 'aborted')
                       AND EXISTS (SELECT 1 FROM target WHERE target.operation = operation.id)
                     ORDER BY lsn DESC LIMIT 1 OFFSET ?1",
                )
                .and_then(|mut s| s.query_row([back], |row| row.get(0)).optional())
                .map_err(|error| self.named(error))
        })?;
        let text = if back == 0 {
            "@".to_owned()
        } else {
            format!("@-{back}")
        };
        found.map(id_from_sql).ok_or(RefError::Unknown { text })
    }

    fn by_prefix(&self, prefix: &str) -> Result<OperationId, RefError> {
        let unknown = || RefError::Unknown {
            text: prefix.to_owned(),
        };
        let first = u64::from_str_radix(&format!("{prefix:0<16}"), 16).map_err(|_| unknown())?;
        let last = u64::from_str_radix(&format!("{prefix:f<16}"), 16).map_err(|_| unknown())?;
        let found: Vec<OperationId> = self.read(|transaction| {
            let named = |error| self.named(error);
            let mut statement = transaction
                .prepare_cached(
                    "SELECT id FROM operation WHERE id BETWEEN ?1 AND ?2 ORDER BY lsn DESC LIMIT ?3",
                )
                .map_err(named)?;
            let rows = statement
                .query_map(
                    params![first.cast_signed(), last.cast_signed(), CANDIDATES_MAX],
                    |row| row.get::<_, i64>(0),
                )
                .map_err(named)?;
            rows.map(|row| row.map(id_from_sql).map_err(named)).collect()
        })?;
        match found.as_slice() {
            [] => Err(unknown()),
            [one] => Ok(*one),
            _ => Err(RefError::Ambiguous {
                text: prefix.to_owned(),
                candidates: found,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_or_refused() {
        let read = |text: &str| text.parse::<OperationRef>().ok();
        assert_eq!(read("@"), Some(OperationRef::Newest { back: 0 }));
        assert_eq!(read("@-3"), Some(OperationRef::Newest { back: 3 }));
        assert_eq!(read("7F3c"), Some(OperationRef::Prefix("7f3c".to_owned())));
        for text in ["", "7", "@x", "@-", "@-x", "xyz", "0123456789abcdef0"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
