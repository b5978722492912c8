//! Why an edit was refused: what, where, and the way out.

use crate::format::Format;
use crate::key::KeyPath;
use crate::lines::Position;

/// A refusal. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
pub enum ConfigError {
    /// The text is not what the format allows.
    #[error("{at}: {what}")]
    Syntax {
        /// Where reading stopped.
        at: Position,
        /// What is wrong there.
        what: String,
    },
    /// The bytes are not UTF-8.
    #[error("{at}: this is not UTF-8")]
    NotUtf8 {
        /// The first byte that is wrong.
        at: Position,
    },
    /// The text is over a limit.
    #[error("{what} is over the limit of {limit}")]
    OverLimit {
        /// What there is too much of.
        what: &'static str,
        limit: usize,
    },
    /// A key is not written as keys are.
    #[error("column {column} of the key `{text}`: {what}")]
    KeySyntax {
        /// The key as it was given.
        text: String,
        /// The character where it goes wrong, from 1.
        column: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// The format has no such keys.
    #[error("`{key}` cannot be a key here: {why}")]
    NoSuchKeys {
        key: KeyPath,
        /// What keys are in this format.
        why: &'static str,
    },
    /// The key stands twice.
    #[error("`{key}` stands twice: {first}, and {second}")]
    Duplicate {
        /// The key, as far as it goes to what stands twice.
        key: KeyPath,
        /// One place.
        first: Position,
        /// The other.
        second: Position,
    },
    /// The text has a name that a reader may take for this one.
    #[error("`{key}` is not there, but `{like}` is ({at})")]
    Ambiguous {
        /// The key that was asked for.
        key: KeyPath,
        /// What the text has.
        like: KeyPath,
        /// Line and column in the text.
        at: Position,
    },
    /// The way to the key leads through something that has no such members.
    #[error("`{key}` cannot be: {found} stands there ({at}), not {wanted}")]
    WrongKind {
        /// The key, as far as it goes.
        key: KeyPath,
        /// Where the other thing stands.
        at: Position,
        /// What stands there.
        found: &'static str,
        /// What would be needed.
        wanted: &'static str,
    },
    /// The list has no such item.
    #[error("`{key}` is out of range: {}", length.map_or_else(|| "there is no list".to_owned(), said_of_length))]
    NoIndex {
        /// The key, up to the index.
        key: KeyPath,
        /// How many items there are; none if there is no list.
        length: Option<usize>,
    },
    /// The key is not there.
    #[error("`{key}` is not there")]
    Missing { key: KeyPath },
    /// Readers do not agree what the value is.
    #[error("`{text}` is unclear: {why}")]
    Unclear {
        /// The value as it was given.
        text: String,
        /// How it may be read.
        why: &'static str,
    },
    /// The value would have another type than the one that is there.
    #[error("`{key}` is {found} ({at}), and `{text}` would make it {wanted}")]
    TypeChange {
        key: KeyPath,
        /// Where it stands.
        at: Position,
        /// What it is now.
        found: &'static str,
        /// What it would be.
        wanted: &'static str,
        /// The value as it was given.
        text: String,
    },
    /// The given value cannot be read.
    #[error("the value cannot be read: {what}")]
    BadValue {
        /// What is wrong with it.
        what: String,
    },
    /// What is to be merged is no table.
    #[error("keys are merged from a table, and this is {found}")]
    NotATable { found: &'static str },
    /// The format cannot hold the value.
    #[error("{} cannot hold this value: {why}", format.name())]
    Unwritable {
        format: Format,
        /// Why not.
        why: &'static str,
    },
    /// Other keys have their value from the same place.
    #[error("`{key}` cannot be changed alone ({at}): {why}")]
    Shared {
        key: KeyPath,
        /// Where the shared value stands.
        at: Position,
        /// Who shares it.
        why: &'static str,
    },
    /// The place is written in a way that is not edited.
    #[error("`{key}` cannot be edited here ({at}): {why}")]
    Unsupported {
        key: KeyPath,
        /// Line and column in the text.
        at: Position,
        /// Why not.
        why: &'static str,
    },
    /// The new text does not read as it should: other keys would change, or the text would be broken.
    #[error("`{key}` cannot be edited: the text around it would be read differently afterwards")]
    Disturbs { key: KeyPath },
    /// The key is neither as the change left it nor as it was before.
    #[error("`{key}` was changed since: expected {}, found {}", shown(expected.as_deref()), shown(found.as_deref()))]
    Conflict {
        key: KeyPath,
        /// What the change left there.
        expected: Option<String>,
        /// What is there.
        found: Option<String>,
    },
    /// Somebody wrote a comment on what would go.
    #[error("`{key}` has a comment that somebody else wrote since")]
    Remarked { key: KeyPath },
    /// The list on the way to the key is not the one it was.
    #[error("the list `{list}` was changed since, and `{key}` may mean another item")]
    Moved { key: KeyPath, list: KeyPath },
}

fn shown(raw: Option<&str>) -> String {
    match raw {
        Some(raw) => format!("`{raw}`"),
        None => "nothing".to_owned(),
    }
}

impl ConfigError {
    /// The same refusal, told of the whole key where only its end was known.
    pub(crate) fn about(mut self, whole: &KeyPath) -> Self {
        if let Self::NoSuchKeys { key, .. } | Self::Unsupported { key, .. } = &mut self {
            *key = whole.clone();
        }
        self
    }

    /// What a person can do about it.
    pub fn next(&self) -> String {
        match self {
            Self::Syntax { .. } | Self::NotUtf8 { .. } => {
                "mend the file, or say with `--format` how it is written".into()
            }
            Self::KeySyntax { .. } => {
                "write names with other characters in double quotes: a.\"b.c\".d".into()
            }
            Self::NoSuchKeys { .. } => {
                "choose another key; a name that holds dots stands in double quotes".into()
            }
            Self::Duplicate { .. } => "remove one of the two".into(),
            Self::Ambiguous { like, .. } => format!("say `{like}` if you mean that one"),
            Self::WrongKind { .. } => {
                "check the key, or set what is above it as a whole with `set --value-json`".into()
            }
            Self::NoIndex { .. } => "count from 0; `[+]` appends".into(),
            Self::Missing { .. } => "check how the key is written in the file".into(),
            Self::Unclear { text, .. } => {
                format!(
                    "say `--string` for a text, `--value-json` with the value as JSON, or `--raw` to write `{text}` as it is"
                )
            }
            Self::TypeChange { text, .. } => {
                format!(
                    "say `--string` to make `{text}` a text, or `--value-json` to change the type"
                )
            }
            Self::BadValue { .. } => "`--string` takes any text as it is".into(),
            Self::NotATable { .. } => "write it like `{\"server\": {\"port\": 8080}}`".into(),
            Self::Unwritable { .. } => "`--raw` takes the format's own syntax".into(),
            Self::Shared { .. } => "change it where it is defined, by hand".into(),
            Self::Unsupported { .. } => "change it by hand, or its keys one by one".into(),
            Self::OverLimit { .. } | Self::Disturbs { .. } => "edit the file as a whole".into(),
            Self::Conflict { .. } | Self::Remarked { .. } | Self::Moved { .. } => {
                "look at the key and decide by hand".into()
            }
        }
    }
}

fn said_of_length(length: usize) -> String {
    let items = if length == 1 { "item" } else { "items" };
    format!("the list has {length} {items}")
}
