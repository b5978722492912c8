//! What is said about a command: its class, one sentence, and the words that decided.
//!
//! The class of a line is the worst of its parts, in the order of [`Class`]: what surely writes is said first,
//! what is not understood second. Both are captured; only what is read-only is let through without it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a command does to the world outside its own process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// It only looks.
    ReadOnly,
    /// Nobody can tell from its words. Treated like a write.
    Unknown,
    /// It changes something.
    Writes,
}

impl Class {
    /// Tells whether what it does must be captured.
    pub const fn needs_capture(self) -> bool {
        match self {
            Self::ReadOnly => false,
            Self::Unknown | Self::Writes => true,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ReadOnly => "read-only",
            Self::Unknown => "unknown",
            Self::Writes => "writes",
        })
    }
}

/// What is said about a whole command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Verdict {
    /// The worst class of its parts.
    pub class: Class,
    /// Why, in one sentence.
    pub because: String,
    /// The words that decided, as they were written.
    pub words: Vec<String>,
    /// Every simple command that was found, in the order in which it was read.
    pub commands: Vec<CommandVerdict>,
}

/// What is said about one simple command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CommandVerdict {
    /// The command as it was written.
    pub command: String,
    /// What it does.
    pub class: Class,
    /// Why, in one sentence.
    pub because: String,
    /// The words that decided.
    pub words: Vec<String>,
}

impl Verdict {
    /// Puts the parts together: the first of the worst class speaks for the line.
    pub(crate) fn of(commands: Vec<CommandVerdict>) -> Self {
        let class = commands.iter().map(|command| command.class).max();
        let deciding = commands
            .iter()
            .find(|command| Some(command.class) == class && command.class != Class::ReadOnly);
        let (because, words) = match (deciding, commands.as_slice()) {
            (Some(command), _) => (command.because.clone(), command.words.clone()),
            (None, []) => ("there is no command in it".to_owned(), Vec::new()),
            (None, [only]) => (only.because.clone(), only.words.clone()),
            (None, _) => (
                "every command in it only reads".to_owned(),
                commands
                    .iter()
                    .flat_map(|command| command.words.iter().cloned())
                    .collect(),
            ),
        };
        Self {
            class: class.unwrap_or(Class::ReadOnly),
            because,
            words,
            commands,
        }
    }
}

/// What a rule finds about one command; the walk turns it into a [`CommandVerdict`].
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) class: Class,
    pub(crate) because: String,
    pub(crate) words: Vec<String>,
}

impl Finding {
    /// It only looks.
    pub(crate) fn reads(because: impl Into<String>, word: &str) -> Self {
        Self::new(Class::ReadOnly, because, word)
    }

    /// It changes something.
    pub(crate) fn writes(because: impl Into<String>, word: &str) -> Self {
        Self::new(Class::Writes, because, word)
    }

    /// Nobody can tell.
    pub(crate) fn unknown(because: impl Into<String>, word: &str) -> Self {
        Self::new(Class::Unknown, because, word)
    }

    fn new(class: Class, because: impl Into<String>, word: &str) -> Self {
        Self {
            class,
            because: because.into(),
            words: vec![word.to_owned()],
        }
    }

    /// Names one more word that decided.
    pub(crate) fn and(mut self, word: &str) -> Self {
        if !self.words.iter().any(|known| known == word) {
            self.words.push(word.to_owned());
        }
        self
    }

    /// Gives the worse of two; of equals the first.
    pub(crate) fn or_worse(self, other: Self) -> Self {
        if other.class > self.class {
            other
        } else {
            self
        }
    }
}
