//! What a plan leaves alone, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{DependencyReason, OperationId, Status};

/// An operation that the plan does not touch although it came up, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum LeftAlone {
    /// It came later and does not depend on anything that goes.
    Independent {
        /// It stays.
        id: OperationId,
    },
    /// Its later change to the same target merges cleanly.
    Merges {
        /// It stays, and what it changed too.
        id: OperationId,
    },
    /// It is not in effect any more.
    NotInEffect {
        /// It was undone, or never came to pass.
        id: OperationId,
        /// What it is instead.
        status: Status,
    },
    /// It depends on what goes, and is not among what was chosen.
    Depends {
        /// It stays, and may not work without what goes.
        id: OperationId,
        /// What it depends on.
        on: OperationId,
        /// What makes it depend on that.
        reason: DependencyReason,
    },
    /// It read what goes, and what it read has the same bytes afterwards.
    ReadsTheSame {
        /// It stays.
        id: OperationId,
        /// What it read from.
        on: OperationId,
    },
    /// It is an undo that was to be taken back, and what it would bring back was built on what goes: that would go again.
    GoesAgain {
        /// The undo.
        id: OperationId,
        /// What goes.
        on: OperationId,
    },
    /// It stood at the checkpoint, and was undone since.
    UndoneSince {
        /// It is not brought back.
        id: OperationId,
        /// The undo; a redo of it brings it back.
        by: OperationId,
    },
}

impl LeftAlone {
    /// Names the operation.
    pub const fn id(&self) -> OperationId {
        match self {
            Self::Independent { id }
            | Self::Merges { id }
            | Self::NotInEffect { id, .. }
            | Self::Depends { id, .. }
            | Self::ReadsTheSame { id, .. }
            | Self::GoesAgain { id, .. }
            | Self::UndoneSince { id, .. } => *id,
        }
    }
}

impl fmt::Display for LeftAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Independent { .. } => f.write_str("independent"),
            Self::Merges { .. } => f.write_str("its change merges cleanly"),
            Self::NotInEffect { status, .. } => write!(f, "already {status}"),
            Self::Depends { on, reason, .. } => {
                write!(
                    f,
                    "depends on {} ({reason}), and was not chosen",
                    on.short()
                )
            }
            Self::ReadsTheSame { on, .. } => {
                write!(f, "what it read of {} stays the same", on.short())
            }
            Self::GoesAgain { on, .. } => {
                write!(
                    f,
                    "what it took back was built on {}, which goes",
                    on.short()
                )
            }
            Self::UndoneSince { by, .. } => write!(f, "undone since by {}", by.short()),
        }
    }
}
