//! The status machine of an operation.
//!
//! ```text
//! proposed ─► armed ─► applied ─► committed
//!    │          │ │       │           │  ▲
//! refused       │ │     undone ◄──────┘  │ redo
//!               │ │       ▲ └────────────┘
//!               │ ├───────┘  its process died and a recovery took it back
//!               │ └─► interrupted: a command whose watcher died; kept or taken back by hand
//!               ├───► aborted: it did not come to pass
//!               └───► in-doubt ─► any of these, when somebody decides or a recovery can
//! ```
//!
//! Most operations begin as *armed*, or as *refused*. *Proposed* is one that a gate wants somebody to decide about.
//! An operation is *in effect* while its change is in the world: armed (perhaps), applied, committed,
//! interrupted, or stuck half-way (`in-doubt`, and `failed` in journals of older programs).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Says that a status cannot follow another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an operation that is {from} cannot become {to}")]
pub struct StatusError {
    /// What the operation has and keeps.
    pub from: Status,
    /// The status it was asked to take.
    pub to: Status,
}

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It waits for a decision. The target was never touched.
    Proposed,
    /// A gate said no. The target was never touched.
    Refused,
    /// The recipe is durable. The effect may have happened.
    Armed,
    /// The effect happened and was verified; its task has not committed it.
    Applied,
    /// Kept. Undone only when somebody asks for it.
    Committed,
    /// A command whose watcher died: what it did is recorded and stays until somebody decides.
    Interrupted,
    /// It did not come to pass: the targets are as before.
    Aborted,
    /// It was taken back.
    Undone,
    /// Nobody can tell whether the effect happened, or a target holds something else.
    InDoubt,
    /// Taking it back was tried and did not work on every target. Only older programs wrote this.
    Failed,
}

impl Status {
    /// All statuses, in the order of a life.
    pub const ALL: [Self; 10] = [
        Self::Proposed,
        Self::Refused,
        Self::Armed,
        Self::Applied,
        Self::Committed,
        Self::Interrupted,
        Self::Aborted,
        Self::Undone,
        Self::InDoubt,
        Self::Failed,
    ];

    /// Tells whether `next` may follow.
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Proposed => matches!(next, Self::Refused | Self::Armed),
            Self::Armed => {
                matches!(
                    next,
                    Self::Applied
                        | Self::Interrupted
                        | Self::Aborted
                        | Self::Undone
                        | Self::InDoubt
                        | Self::Failed
                )
            }
            Self::Applied => matches!(next, Self::Committed | Self::Undone | Self::Failed),
            Self::Committed => matches!(next, Self::Undone | Self::Failed),
            Self::Interrupted => matches!(next, Self::Applied | Self::Committed | Self::Undone),
            Self::Undone => matches!(next, Self::Applied | Self::Committed),
            Self::InDoubt | Self::Failed => {
                matches!(
                    next,
                    Self::Applied
                        | Self::Committed
                        | Self::Interrupted
                        | Self::Aborted
                        | Self::Undone
                        | Self::Failed
                        | Self::InDoubt
                )
            }
            Self::Refused | Self::Aborted => false,
        }
    }

    /// Takes the next status, or says why not.
    pub const fn becomes(self, next: Self) -> Result<Self, StatusError> {
        if self.may_become(next) {
            Ok(next)
        } else {
            Err(StatusError {
                from: self,
                to: next,
            })
        }
    }

    /// Tells whether the operation's change is, or may be, in the world.
    pub const fn is_in_effect(self) -> bool {
        match self {
            Self::Armed
            | Self::Applied
            | Self::Committed
            | Self::Interrupted
            | Self::InDoubt
            | Self::Failed => true,
            Self::Proposed | Self::Refused | Self::Aborted | Self::Undone => false,
        }
    }

    /// Tells whether the operation's change is known to be in the world, all of it.
    pub const fn has_happened(self) -> bool {
        matches!(self, Self::Applied | Self::Committed | Self::Interrupted)
    }

    /// Tells whether the operation was left half-way, or is at work at this moment.
    pub const fn is_unfinished(self) -> bool {
        matches!(self, Self::Armed | Self::InDoubt | Self::Failed)
    }

    /// Tells whether the operation's images must be kept whatever their age.
    pub const fn is_uncommitted(self) -> bool {
        match self {
            Self::Proposed
            | Self::Armed
            | Self::Applied
            | Self::Interrupted
            | Self::InDoubt
            | Self::Failed => true,
            Self::Refused | Self::Committed | Self::Aborted | Self::Undone => false,
        }
    }

    /// Names the status as the journal, JSON and people know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Refused => "refused",
            Self::Armed => "armed",
            Self::Applied => "applied",
            Self::Committed => "committed",
            Self::Interrupted => "interrupted",
            Self::Aborted => "aborted",
            Self::Undone => "undone",
            Self::InDoubt => "in-doubt",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every allowed step of a life; what is not here is refused.
    const ALLOWED: &str = "
        proposed -> refused armed
        armed -> applied interrupted aborted undone in-doubt failed
        applied -> committed undone failed
        committed -> undone failed
        interrupted -> applied committed undone
        undone -> applied committed
        in-doubt -> applied committed interrupted aborted undone in-doubt failed
        failed -> applied committed interrupted aborted undone in-doubt failed
        refused ->
        aborted ->
    ";

    #[test]
    fn exactly_the_listed_steps_are_allowed() {
        for line in ALLOWED
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            let (from, nexts) = line.split_once("->").unwrap();
            let from = named(from.trim());
            let nexts: Vec<Status> = nexts.split_whitespace().map(named).collect();
            for next in Status::ALL {
                let allowed = nexts.contains(&next);
                assert_eq!(from.may_become(next), allowed, "{from} -> {next}");
                assert_eq!(from.becomes(next).is_ok(), allowed);
            }
        }
    }

    #[test]
    fn json_and_text_use_the_same_word() {
        for status in Status::ALL {
            assert_eq!(
                serde_json::to_string(&status).unwrap(),
                format!("\"{status}\"")
            );
        }
    }

    fn named(word: &str) -> Status {
        Status::ALL
            .into_iter()
            .find(|status| status.as_str() == word)
            .unwrap()
    }
}
