//! What became of one target when something was taken back, told honestly.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Target;

/// The ways an undo of one target can end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum OutcomeKind {
    /// Exactly as before, checked by digest.
    Restored,
    /// A second effect answered the first.
    Compensated,
    /// The change was taken out; what others changed since stays.
    Merged,
    /// As before; what somebody else had made of it since is kept by the operation that did this.
    Overwritten {
        /// What was there.
        why: String,
    },
    /// As before but for something that only somebody else could put back. Only force does that.
    Incomplete {
        /// What is missing.
        why: String,
    },
    /// It was put in place, and somebody else changed it at once: what is there is theirs.
    Overtaken {
        /// What was found.
        why: String,
    },
    /// Nothing to do: the target is already as before.
    AlreadyGone,
    /// It is as was wanted, but not by us, and what it was before is not kept any more: it is left as it is from now on.
    Left {
        /// Why it cannot be taken back later.
        why: String,
    },
    /// Left as it is.
    Skipped {
        /// Why nothing was done.
        why: String,
    },
    /// The target changed since; undoing would overwrite somebody's work.
    Conflict {
        /// What is there now, against what was expected.
        why: String,
    },
    /// It was tried and did not work.
    Failed {
        /// What went wrong.
        why: String,
    },
    /// Nobody can tell.
    InDoubt {
        /// What is unknown.
        why: String,
    },
}

impl OutcomeKind {
    /// Tells whether the target was taken back, or needs not be: the operation's change of it is in the world no more.
    pub const fn is_taken_back(&self) -> bool {
        match self {
            Self::Restored
            | Self::Compensated
            | Self::Merged
            | Self::Overwritten { .. }
            | Self::Incomplete { .. }
            | Self::Overtaken { .. }
            | Self::AlreadyGone
            | Self::Left { .. } => true,
            Self::Skipped { .. }
            | Self::Conflict { .. }
            | Self::Failed { .. }
            | Self::InDoubt { .. } => false,
        }
    }

    /// Names it as JSON and the numbers do, without what is said about it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Compensated => "compensated",
            Self::Merged => "merged",
            Self::Overwritten { .. } => "overwritten",
            Self::Incomplete { .. } => "incomplete",
            Self::Overtaken { .. } => "overtaken",
            Self::AlreadyGone => "already-gone",
            Self::Left { .. } => "left",
            Self::Skipped { .. } => "skipped",
            Self::Conflict { .. } => "conflict",
            Self::Failed { .. } => "failed",
            Self::InDoubt { .. } => "in-doubt",
        }
    }

    /// Tells whether the target now is all that an undo wants it to be.
    pub const fn is_complete(&self) -> bool {
        self.is_taken_back() && !matches!(self, Self::Incomplete { .. } | Self::Overtaken { .. })
    }
}

impl fmt::Display for OutcomeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restored => f.write_str("restored"),
            Self::Compensated => f.write_str("compensated"),
            Self::Merged => f.write_str("merged"),
            Self::Overwritten { why } => write!(f, "restored over a later change: {why}"),
            Self::Incomplete { why } => write!(f, "restored but for one thing: {why}"),
            Self::Overtaken { why } => write!(f, "overtaken: {why}"),
            Self::AlreadyGone => f.write_str("already as before"),
            Self::Left { why } => write!(f, "left as it is: {why}"),
            Self::Skipped { why } => write!(f, "skipped: {why}"),
            Self::Conflict { why } => write!(f, "conflict: {why}"),
            Self::Failed { why } => write!(f, "failed: {why}"),
            Self::InDoubt { why } => write!(f, "in doubt: {why}"),
        }
    }
}

/// One target and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetOutcome {
    /// What was to be taken back.
    pub target: Target,
    /// How it ended.
    #[serde(flatten)]
    pub kind: OutcomeKind,
}

impl TargetOutcome {
    /// Pairs a target with its outcome.
    pub const fn new(target: Target, kind: OutcomeKind) -> Self {
        Self { target, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_named_as_in_json() {
        let why = || "so".to_owned();
        for kind in [
            OutcomeKind::Restored,
            OutcomeKind::Compensated,
            OutcomeKind::Merged,
            OutcomeKind::Overwritten { why: why() },
            OutcomeKind::Incomplete { why: why() },
            OutcomeKind::Overtaken { why: why() },
            OutcomeKind::AlreadyGone,
            OutcomeKind::Left { why: why() },
            OutcomeKind::Skipped { why: why() },
            OutcomeKind::Conflict { why: why() },
            OutcomeKind::Failed { why: why() },
            OutcomeKind::InDoubt { why: why() },
        ] {
            let json = serde_json::to_value(&kind).unwrap();
            assert_eq!(json["outcome"], kind.as_str());
        }
    }
}
