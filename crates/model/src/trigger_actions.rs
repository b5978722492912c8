//! What a trigger does: take back, keep, or wait for a person.

use std::fmt;
use std::str::FromStr;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Target, TriggerKind, UnknownWord};

/// What follows when something fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerAction {
    /// The work is taken back.
    #[default]
    Rollback,
    /// The work stays.
    Keep,
    /// The work stays until somebody decides.
    Ask,
}

impl TriggerAction {
    /// All actions.
    pub const ALL: [Self; 3] = [Self::Rollback, Self::Keep, Self::Ask];

    /// Names the action as the journal, JSON and `backout.toml` know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rollback => "rollback",
            Self::Keep => "keep",
            Self::Ask => "ask",
        }
    }
}

impl fmt::Display for TriggerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for TriggerAction {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        crate::trigger::found(&Self::ALL, Self::as_str, word)
    }
}

/// A file of rules cannot be understood, so nobody can tell what it wants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot be understood: {mistake}", file.display())]
pub struct UnreadableRules {
    /// From the root.
    pub file: PathBuf,
    /// What is wrong with it first.
    pub mistake: String,
}

/// What people have written down of triggers and checkpoints, for those whose work it is about.
pub trait Triggers: fmt::Debug + Send + Sync {
    /// Tells what a trigger does with work on some targets; none if nobody says. Where it cannot be read, nobody can tell.
    fn action(
        &self,
        kind: TriggerKind,
        targets: &[Target],
    ) -> Result<Option<TriggerAction>, UnreadableRules>;

    /// Tells after how many operations another checkpoint is due, for work in a directory; none if nobody says.
    fn checkpoint_every(&self, directory: &Path) -> Result<Option<u32>, UnreadableRules>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_read_as_it_is_written() {
        for action in TriggerAction::ALL {
            assert_eq!(action.to_string().parse(), Ok(action));
        }
        let error = "revert".parse::<TriggerAction>().unwrap_err();
        assert_eq!(error.to_string(), "`revert` is none of rollback, keep, ask");
    }
}
