//! Identifiers: an operation's id, and the names that people give to agents, tasks and checkpoints.
//!
//! Operation ids are random, so that a short prefix tells two apart; order is the journal's business
//! (`Lsn`). Names are short and plain, so that they can stand in a shell command without quotes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name, in bytes, that an agent, a task or a checkpoint may have.
const NAME_BYTES_MAX: usize = 128;

/// Says why a text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is not sixteen hexadecimal digits.
    #[error("`{text}` is not an operation id (sixteen hexadecimal digits)")]
    NotAnOperation {
        /// What was given.
        text: String,
    },
    /// The text is empty, too long, or has characters a name may not have.
    #[error(
        "`{text}` cannot name {what} (1 to {NAME_BYTES_MAX} letters, digits, `.`, `_`, `-`, `:`, `/`, `@`)"
    )]
    NotAName {
        /// What was to be named.
        what: &'static str,
        /// What was given.
        text: String,
    },
}

/// Names one operation: 64 random bits, shown as sixteen hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(u64);

impl OperationId {
    /// Makes an id from random (or, in tests, counted) bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Gives the bits back, for storage.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Shows the first eight digits, enough to name an operation among thousands.
    pub fn short(self) -> String {
        format!("{:08x}", self.0 >> 32)
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for OperationId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError::NotAnOperation {
            text: text.to_owned(),
        };
        if text.len() != 16 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| wrong())
    }
}

impl Serialize for OperationId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for OperationId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $type(String);

        impl $type {
            /// Shows the name as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                if is_name(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(IdError::NotAName { what: $what, text: text.to_owned() })
                }
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

name!(
    /// Names the agent that asked for a write.
    AgentId,
    "an agent"
);
name!(
    /// Names a piece of agent work whose operations are committed or rolled back together.
    TaskId,
    "a task"
);
name!(
    /// Names a point of the journal to return to.
    CheckpointName,
    "a checkpoint"
);

name!(
    /// Names what a person asked an agent.
    PromptId,
    "a prompt"
);
name!(
    /// Names one call of a caller who may have to ask again: the same key means the same call.
    CallKey,
    "a key"
);

fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-:/@".contains(&b);
    !text.is_empty()
        && text.len() <= NAME_BYTES_MAX
        && text.bytes().all(plain)
        && !text.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_id_survives_text_and_json() {
        let id = OperationId::from_bits(0x00ab_cdef_0123_4567);
        assert_eq!(id.to_string(), "00abcdef01234567");
        assert_eq!(id.short(), "00abcdef");
        assert_eq!(id.to_string().parse(), Ok(id));
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<OperationId>(&json).unwrap(), id);
    }

    #[test]
    fn what_is_not_an_id_is_refused() {
        for text in [
            "",
            "7f3c",
            "zzzzzzzzzzzzzzzz",
            "+123456789abcdef",
            "0123456789abcdef0",
        ] {
            assert!(text.parse::<OperationId>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_plain_enough_for_a_shell() {
        for good in ["claude", "task-1", "refactor/auth", "a@b:3", "x.y_z"] {
            assert!(good.parse::<TaskId>().is_ok(), "{good}");
        }
        for bad in ["", "two words", "-rf", "a;b", "ümlaut"] {
            assert!(bad.parse::<TaskId>().is_err(), "{bad}");
        }
        assert!("x".repeat(NAME_BYTES_MAX + 1).parse::<AgentId>().is_err());
    }
}
