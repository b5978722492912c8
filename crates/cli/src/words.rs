//! What a command asks, in words that mean the same whatever is found: so a call with a key knows itself again.

use std::ffi::OsStr;
use std::path::Path;

use backout_model::Digest;

/// The words of one call, in order.
#[derive(Debug, Default)]
pub(crate) struct Words(Vec<u8>);

impl Words {
    /// Begins with the name of the command.
    pub(crate) fn of(command: &str) -> Self {
        Self::default().and(command)
    }

    /// Adds a word.
    #[must_use]
    pub(crate) fn and(mut self, word: impl AsRef<OsStr>) -> Self {
        // No word of a command line has a zero in it.
        self.0.extend(word.as_ref().as_encoded_bytes());
        self.0.push(0);
        self
    }

    /// Adds paths as they are from the root. Nobody looks where they lead.
    #[must_use]
    pub(crate) fn paths<'p>(self, paths: impl IntoIterator<Item = &'p Path>) -> Self {
        paths.into_iter().fold(self, |words, path| {
            words.and(std::path::absolute(path).as_deref().unwrap_or(path))
        })
    }

    /// Adds an option if it was given.
    #[must_use]
    pub(crate) fn option(self, name: &str, is_given: bool) -> Self {
        if is_given { self.and(name) } else { self }
    }

    /// Gives the digest of all words.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.0)
    }
}
