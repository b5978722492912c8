//! Drift: the world no longer is what the journal recorded, as the journal tells of it.
//!
//! A drift is a note of topic `drift`. Its subject is [`subject_of`] its target, its body a [`DriftNote`]. The newest note of a subject
//! says whether it is open: the same drift is noted once, until it changes or is resolved. A directory in which much changed
//! at once is one drift with a count ([`gather()`]), and what to note is decided by one pure function ([`reconcile()`]).
//!
//! - No note holds a value or bytes: they may be secrets. A [`Found::mark`] tells two findings apart, and no more.
//! - A pattern to be left alone is a note as well ([`DriftNote::Ignoring`]), under a subject of its own.
//!
//! Design: `docs/design/drift.md`.

mod gather;
mod reconcile;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{AgentId, Digest, Key, Lsn, OperationId, Severity, Target, TaskId, Timestamp};

pub use gather::{Gathered, Member, gather};
pub use reconcile::{News, OpenDrift, reconcile};

/// How many members of a drift with a count are named in it.
pub const EXAMPLES_MAX: usize = 8;

/// What begins the subject of a pattern.
const IGNORING: &str = "ignore ";

/// The body of a note about drift.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "drift", rename_all = "kebab-case")]
pub enum DriftNote {
    /// It was found, or is another one now.
    Detected(Box<Drift>),
    /// It is over.
    Resolved(Box<Resolved>),
    /// What a pattern matches is left alone from here on.
    Ignoring {
        /// The pattern, from the root.
        pattern: String,
    },
    /// What a pattern matches is looked at again.
    Heeding {
        /// The pattern, from the root.
        pattern: String,
    },
}

/// Gives the subject that a target's drift is noted under. Of two targets that look the same, a name that is no text has its digest.
pub fn subject_of(target: &Target) -> String {
    let key = target.key();
    let is_text = key
        .file()
        .is_none_or(|path| path.as_path().to_str().is_some());
    if is_text {
        return key.to_string();
    }
    format!("{key} {}", Digest::of(&key.to_bytes()).short())
}

/// Gives the subject that a pattern is noted under.
pub fn subject_of_pattern(pattern: &str) -> String {
    format!("{IGNORING}{pattern}")
}

/// One thing that is not what the journal recorded, or a directory in which several are not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// What it is about; of several, the directory that holds them.
    pub target: Target,
    /// What kind of difference.
    pub kind: DriftKind,
    /// How many targets differ: more than one only for a directory.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
    /// Some of several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Target>,
    /// What was recorded.
    pub expected: Expected,
    /// What is there.
    pub found: Found,
    /// Between which moments it came to be.
    pub since: Since,
    /// Who did it, if that is known.
    pub who: Who,
    /// How grave it is.
    pub severity: Severity,
    /// How it came to light.
    pub seen: Seen,
    /// What can be done about it.
    pub choices: Vec<Choice>,
}

/// What kind of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriftKind {
    /// Something stands where nothing was left.
    Added,
    /// Only mode, owner or attributes differ.
    Looks,
    /// Other bytes, another value, another row.
    Changed,
    /// Something of another kind is there, such as a link or a directory.
    Replaced,
    /// It is not there.
    Gone,
    /// A directory in which several differ.
    Several,
}

impl DriftKind {
    /// Names the kind as the journal, JSON and people know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Looks => "looks",
            Self::Changed => "changed",
            Self::Replaced => "replaced",
            Self::Gone => "gone",
            Self::Several => "several",
        }
    }

    /// Says how grave it is; work under way relies on what it wrote, so there it is graver.
    pub const fn severity(self, is_under_way: bool) -> Severity {
        match (self, is_under_way) {
            (Self::Added | Self::Looks, false) => Severity::Low,
            (Self::Added | Self::Looks, true) | (Self::Changed | Self::Several, false) => {
                Severity::Medium
            }
            (Self::Changed | Self::Several, true) | (Self::Replaced | Self::Gone, _) => {
                Severity::High
            }
        }
    }
}

impl fmt::Display for DriftKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What was recorded of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// In words, without values.
    pub what: String,
    /// The operation that left it so: a write, an undo, a redo.
    pub by: OperationId,
    /// Whose operation left it so, if it had a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The piece of work that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Where in the journal that is.
    pub lsn: Lsn,
}

/// What is there instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// In words, without values.
    pub what: String,
    /// Tells two findings apart: as long as it is the same, so is the drift.
    pub mark: Digest,
}

/// Between which moments a drift came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Since {
    /// When the target was last known to be as recorded.
    pub right: Timestamp,
    /// When the difference was first seen.
    pub seen: Timestamp,
    /// When it says itself that it changed; a clock that was set back may make this anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Timestamp>,
}

/// Who made the difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "who", rename_all = "kebab-case")]
pub enum Who {
    /// Nobody can tell.
    Unknown,
    /// An operation that the journal knows, and that is not in effect or not finished.
    Operation {
        /// The one that made it.
        id: OperationId,
        /// Whose it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
    },
    /// The last process that a watch saw change it.
    Process {
        /// Its number.
        pid: u32,
        /// What it is called; empty if it had ended when that was asked.
        name: String,
    },
}

/// How a drift came to light.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// Somebody read the target through us, or planned to change it.
    Passive,
    /// Somebody went to look.
    Active,
}

impl Seen {
    /// Names it as the journal, JSON and people know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passive => "passive",
            Self::Active => "active",
        }
    }
}

/// What can be done about a drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// The world is right, and recorded as it is.
    Accept,
    /// The record is right, and the world is made so.
    Restore,
    /// Both are right, as far as they do not meet.
    Merge,
    /// What matches a pattern is left alone.
    Ignore,
}

impl Choice {
    /// Names it as the journal, JSON and people know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Restore => "restore",
            Self::Merge => "merge",
            Self::Ignore => "ignore",
        }
    }
}

/// How a drift ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// What it was about.
    pub target: Target,
    /// Where in the journal it was last told.
    pub detected: Lsn,
    /// What became of it.
    #[serde(flatten)]
    pub how: HowResolved,
    /// What was found when it ended: while that stays, an accepted drift is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Digest>,
}

/// What became of a drift.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum HowResolved {
    /// Somebody said that the world is right.
    Accepted {
        /// The operation that keeps what was accepted; none where only this note says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<OperationId>,
    },
    /// Somebody had the record made true again.
    Restored {
        /// The operation that did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<OperationId>,
    },
    /// Somebody had both brought together.
    Merged {
        /// The operation that did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<OperationId>,
    },
    /// A pattern says that it is nobody's concern.
    Ignored {
        /// As it stands in the rules.
        pattern: String,
    },
    /// The target is as recorded again, and nobody here did it.
    WentAway,
    /// Another operation wrote the target since.
    Recorded {
        /// The one that wrote it.
        by: OperationId,
    },
    /// It is told with a directory that holds it, or with others again.
    Joined {
        /// The directory.
        into: Key,
    },
}

impl HowResolved {
    /// Names it as the journal, JSON and people know it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Accepted { .. } => "accepted",
            Self::Restored { .. } => "restored",
            Self::Merged { .. } => "merged",
            Self::Ignored { .. } => "ignored",
            Self::WentAway => "went-away",
            Self::Recorded { .. } => "recorded",
            Self::Joined { .. } => "joined",
        }
    }
}

const fn one() -> u64 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a reference over"
)]
const fn is_one(count: &u64) -> bool {
    *count == 1
}
