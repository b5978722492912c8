//! What only carrying out a file operation could tell: the inodes that it left, and the times of their directories.
//!
//! It is journalled when the operation was applied. An operation that died before has none, and is judged without.

use backout_model::wide::Wide;
use backout_model::{Completion, Effect};
use serde::{Deserialize, Serialize};

use super::error::FileError;
use super::recipe::Identity;

/// What only the effect could tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileCompletion {
    /// Per change, which inode the name stands for now.
    pub(crate) identities: Vec<Option<Identity>>,
    /// Per directory of `parents`, its modification time now.
    pub(crate) parents: Vec<Option<Wide<i128>>>,
}

impl FileCompletion {
    /// Wraps it for the journal.
    pub(crate) fn encode(&self) -> Result<Completion, FileError> {
        serde_json::to_value(self)
            .map(Completion)
            .map_err(FileError::Unreadable)
    }

    /// Reads the completion of an effect; an effect without one has an empty one.
    pub(crate) fn of(effect: &Effect) -> Result<Self, FileError> {
        match &effect.completion {
            Some(completion) => Self::deserialize(&completion.0).map_err(FileError::Unreadable),
            None => Ok(Self::default()),
        }
    }

    /// Gives the inode that change number `index` left behind.
    pub(crate) fn identity(&self, index: usize) -> Option<&Identity> {
        self.identities.get(index).and_then(Option::as_ref)
    }
}
