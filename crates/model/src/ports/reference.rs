//! How people name operations: a short unique prefix of the id, `@` for the newest, `@-1` for the one before.
//!
//! `@` counts operations that changed something. Undos and redos have ids of their own and are named by them; writes that
//! were refused or did not come to pass, and commands that changed nothing, are not counted.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::StorageError;
use crate::OperationId;

/// How many candidates an ambiguous prefix lists.
pub const CANDIDATES_MAX: usize = 5;

/// The shortest prefix that is taken for an id.
const PREFIX_DIGITS_MIN: usize = 2;

/// A name that a person gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
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

impl From<OperationRef> for String {
    fn from(reference: OperationRef) -> Self {
        match reference {
            OperationRef::Newest { back: 0 } => "@".to_owned(),
            OperationRef::Newest { back } => format!("@-{back}"),
            OperationRef::Prefix(prefix) => prefix,
        }
    }
}

impl TryFrom<String> for OperationRef {
    type Error = RefError;

    fn try_from(text: String) -> Result<Self, RefError> {
        text.parse()
    }
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
