//! What follows an undo that fails: a ladder, one rung after the other, until something helps or a person has to.
//!
//! ```text
//! retry ─► fallback ─► restore ─► alert ─► accept
//!   │          │          │         │        │
//!   │          │          │         │        what stays behind is recorded as accepted
//!   │          │          │         a person is told, with all that was tried
//!   │          │          a hook of the user's brings the environment back; what counts is a look
//!   │          the same bytes from somewhere else
//!   again, with growing pauses, if the reason may pass
//! ```
//!
//! - [`Rungs::next`] decides, from data alone. Who carries it out records each rung before the next one begins.
//! - A rung that began and of which nobody knows the end was tried: it is not repeated without somebody's word.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, Decided, OperationId, Owner, Severity, Strategy, Target, TargetOutcome, TaskId,
    Timestamp, Trigger, Verb,
};

/// How much longer each pause is than the one before.
const PAUSE_GROWTH: u64 = 4;

/// One thing that can be done about an undo that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// The same again.
    Retry,
    /// The same bytes from somewhere else.
    Fallback,
    /// The environment-restore hook.
    Restore,
    /// A person is told.
    Alert,
    /// What could not be taken back stays, and that is accepted.
    Accept,
}

impl Rung {
    /// All rungs, the lowest first.
    pub const ALL: [Self; 5] = [
        Self::Retry,
        Self::Fallback,
        Self::Restore,
        Self::Alert,
        Self::Accept,
    ];

    /// Names the rung as the journal and JSON know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Fallback => "fallback",
            Self::Restore => "restore",
            Self::Alert => "alert",
            Self::Accept => "accept",
        }
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What came of a rung.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "climbed", rename_all = "kebab-case")]
pub enum Climbed {
    /// It is under way, or who climbed died on it.
    Began,
    /// It did what it is for: what was to come back is back, a person was told, the rest was accepted.
    Helped,
    /// It was tried, and did not help.
    DidNotHelp {
        /// What was found.
        why: String,
    },
    /// There was nothing to try.
    NotPossible {
        /// Why not.
        why: String,
    },
}

/// A rung, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// How high somebody stood.
    pub rung: Rung,
    /// What came of it.
    #[serde(flatten)]
    pub climbed: Climbed,
    /// How often, if more than once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub times: u32,
    /// When.
    pub at: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this")]
const fn is_zero(times: &u32) -> bool {
    *times == 0
}

/// A rung on which somebody stood to take an operation back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalated {
    /// The operation that could not be taken back.
    pub id: OperationId,
    /// How high he stood.
    pub rung: Rung,
    /// What came of it.
    #[serde(flatten)]
    pub climbed: Climbed,
    /// How often it was tried again, of a retry.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub times: u32,
    /// Whether it is the first rung of a climb: what was tried before that belongs to another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_first: bool,
    /// How the operation was to be taken back.
    pub strategy: Strategy,
    /// What set the undo off.
    pub trigger: Trigger,
    /// How each target stands that was to come back.
    pub outcomes: Vec<TargetOutcome>,
    /// Who climbs.
    pub owner: Owner,
    /// Who accepted what stays behind, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
}

impl Escalated {
    /// Tells whether after this somebody still has to do something.
    pub const fn is_open(&self) -> bool {
        // Who was told has not done anything yet.
        !matches!(self.climbed, Climbed::Helped) || matches!(self.rung, Rung::Alert)
    }

    /// Gives it as one of the rungs that were tried.
    pub fn tried(&self, at: Timestamp) -> Tried {
        Tried {
            rung: self.rung,
            climbed: self.climbed.clone(),
            times: self.times,
            at,
        }
    }
}

/// All that is known of an undo that failed, for hooks and for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The operation that could not be taken back.
    pub operation: OperationId,
    /// What kind of write it was.
    pub verb: Verb,
    /// Its line for people.
    pub summary: String,
    /// Whose it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The task that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// How it was to be taken back.
    pub strategy: Strategy,
    /// What set the undo off.
    pub trigger: Trigger,
    /// How each target stands that was to come back, and why it did not.
    pub targets: Vec<TargetOutcome>,
    /// What was tried, in order.
    pub tried: Vec<Tried>,
}

/// Which rungs there are, and how long the lowest is stood on.
#[expect(clippy::struct_excessive_bools, reason = "each rung is there or not")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rungs {
    /// How often something that may pass is tried again.
    pub retries: u32,
    /// The pause before the first time; each further one is four times as long.
    pub backoff_ms: u64,
    /// No pause is longer.
    pub backoff_max_ms: u64,
    /// Whether the same bytes are looked for elsewhere.
    pub fallback: bool,
    /// Whether the environment-restore hook is called, if there is one.
    pub restore: bool,
    /// Whether a person is told, if there is a way to.
    pub alert: bool,
    /// Whether what stays behind is accepted without a person.
    pub accept_partial: bool,
}

impl Default for Rungs {
    fn default() -> Self {
        Self {
            retries: 3,
            backoff_ms: 50,
            backoff_max_ms: 800,
            fallback: true,
            restore: true,
            alert: true,
            accept_partial: false,
        }
    }
}

/// What to do next about an undo that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextRung {
    /// The same again, after a pause.
    Retry {
        /// How long.
        pause_ms: u64,
    },
    /// One of the other rungs.
    Climb(Rung),
    /// Nothing more: a person has to.
    Person,
}

/// How far somebody has climbed.
#[derive(Debug, Clone, Copy)]
pub struct Height<'t> {
    /// Whether the reason may pass by itself.
    pub may_pass: bool,
    /// How often it was tried again.
    pub retried: u32,
    /// The rungs above that were stood on, whatever came of it.
    pub tried: &'t [Rung],
}

impl Rungs {
    /// Decides what to do next. What was passed over is not gone back to.
    pub fn next(&self, height: Height<'_>) -> NextRung {
        let Height {
            may_pass,
            retried,
            tried,
        } = height;
        if may_pass && tried.is_empty() && retried < self.retries {
            return NextRung::Retry {
                pause_ms: self.pause_ms(retried),
            };
        }
        let highest = tried.iter().max();
        let above = Rung::ALL.into_iter().filter(|rung| Some(rung) > highest);
        let mut above = above.filter(|rung| self.has(*rung));
        above.next().map_or(NextRung::Person, NextRung::Climb)
    }

    /// Tells how long to wait before it is tried again, after so many times.
    pub fn pause_ms(&self, retried: u32) -> u64 {
        let growth = PAUSE_GROWTH.saturating_pow(retried);
        let pause_ms = self.backoff_ms.saturating_mul(growth);
        pause_ms.min(self.backoff_max_ms)
    }

    /// Tells whether there is such a rung above the lowest.
    const fn has(&self, rung: Rung) -> bool {
        match rung {
            Rung::Retry => false,
            Rung::Fallback => self.fallback,
            Rung::Restore => self.restore,
            Rung::Alert => self.alert,
            Rung::Accept => self.accept_partial,
        }
    }
}

/// The rungs for each severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ladder {
    /// For what disturbs nobody.
    pub low: Rungs,
    /// For what somebody wants gone.
    pub medium: Rungs,
    /// For what is broken until it is gone.
    pub high: Rungs,
    /// For what must not stay.
    pub critical: Rungs,
}

impl Default for Ladder {
    /// Graver things are tried longer. Nothing is accepted without a person unless somebody says so.
    fn default() -> Self {
        let rungs = Rungs::default();
        let patient = |retries, backoff_max_ms| Rungs {
            retries,
            backoff_max_ms,
            ..rungs
        };
        Self {
            low: Rungs {
                retries: 1,
                restore: false,
                alert: false,
                ..rungs
            },
            medium: rungs,
            high: patient(4, 2000),
            critical: patient(5, 5000),
        }
    }
}

impl Ladder {
    /// Gives the rungs for a severity.
    pub const fn rungs(&self, severity: Severity) -> &Rungs {
        match severity {
            Severity::Low => &self.low,
            Severity::Medium => &self.medium,
            Severity::High => &self.high,
            Severity::Critical => &self.critical,
        }
    }
}

/// What lies outside of Backout and may help where an undo failed. How it ends is never believed: the targets are looked at.
pub trait Escalation: fmt::Debug + Send + Sync {
    /// Says which rungs there are for such targets; `usual` are those of the settings.
    fn rungs(&self, _severity: Severity, _targets: &[Target], usual: Rungs) -> Rungs {
        usual
    }

    /// Tells whether there is a hook that brings the environment back, for such a failure.
    fn restores(&self, _failure: &Failure) -> bool {
        true
    }

    /// Calls that hook and waits for its end. The error says what went wrong.
    fn restore(&self, failure: &Failure) -> Result<(), String>;

    /// Tells whether there is a way to tell a person of such a failure.
    fn alerts(&self, _failure: &Failure) -> bool {
        true
    }

    /// Tells a person. The error says what went wrong.
    fn alert(&self, failure: &Failure) -> Result<(), String>;
}

#[cfg(test)]
#[path = "ladder_tests.rs"]
mod tests;
