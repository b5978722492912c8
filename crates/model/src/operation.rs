//! An operation as the journal knows it, and the things it belongs to: owner, task, checkpoint.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, CheckpointName, Decision, Dependency, Digest, Lsn, OperationId, PromptId, ResumePoint,
    Status, Target, TargetPath, TaskId, Trigger,
};

/// A moment: milliseconds since 1970 in UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Tells how many milliseconds have passed since `earlier`; never negative.
    pub const fn millis_since(self, earlier: Self) -> i64 {
        let passed = self.0.saturating_sub(earlier.0);
        if passed < 0 { 0 } else { passed }
    }
}

/// What kind of write an operation is, as the agent would say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Put a file's whole content.
    Write,
    /// Change a part of a file.
    Edit,
    /// Add to a file's end.
    Append,
    /// Remove a file or a tree.
    Remove,
    /// Give a file or a tree another name.
    Move,
    /// Make a second file or tree like the first.
    Copy,
    /// Make a directory.
    Mkdir,
    /// Make a symbolic or hard link.
    Link,
    /// Change permissions.
    Chmod,
    /// Change the owner.
    Chown,
    /// Make a name what it was.
    Restore,
    /// Several of these, all or nothing.
    Batch,
    /// Run a command.
    Run,
    /// Take an operation back.
    Undo,
    /// Take an undo back.
    Redo,
    /// Take back what a dead process left unfinished.
    Recover,
}

impl Verb {
    /// Tells whether it may change a file itself, so that all its names show it, and not only what a name stands for.
    pub const fn may_retouch(self) -> bool {
        matches!(
            self,
            Self::Chmod | Self::Chown | Self::Batch | Self::Restore
        )
    }

    /// Names the verb as the journal, JSON and people know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Append => "append",
            Self::Remove => "remove",
            Self::Move => "move",
            Self::Copy => "copy",
            Self::Mkdir => "mkdir",
            Self::Link => "link",
            Self::Chmod => "chmod",
            Self::Chown => "chown",
            Self::Restore => "restore",
            Self::Batch => "batch",
            Self::Run => "run",
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Recover => "recover",
        }
    }

    /// Tells whether it is an undo or a recovery, so that a redo takes it back. Everything else is taken back by an undo, a redo too.
    pub const fn is_redoable(self) -> bool {
        matches!(self, Self::Undo | Self::Recover)
    }

    /// Tells whether the operation takes another one back.
    pub const fn is_reversal(self) -> bool {
        matches!(self, Self::Undo | Self::Redo | Self::Recover)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The process that answers for an operation until it is finished.
///
/// A process id alone is reused; with its start time and the machine's boot it is not. A boot that is over tells of a dead
/// process only on its own machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The process id.
    pub pid: u32,
    /// When the process started, in clock ticks since boot.
    pub started: u64,
    /// The kernel's boot id.
    pub boot: String,
    /// The process-id namespace, since the same number means another process elsewhere.
    pub pid_namespace: u64,
    /// The machine; empty in journals of older programs, which were used on one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
}

/// A target of an operation, and how it stands: a target is taken back and brought back by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// As the operation named it.
    #[serde(flatten)]
    pub target: Target,
    /// The undo that took it back, while that holds. An undo that died and was kept names itself where it had done nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<OperationId>,
    /// The redo that brought it back, whose recipe now takes it back; none means the operation's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<OperationId>,
}

impl Standing {
    /// Makes the standing of a target that nobody has taken back yet.
    pub const fn new(target: Target) -> Self {
        Self {
            target,
            undone_by: None,
            held_by: None,
        }
    }

    /// Tells whether the operation's change of it is, or may be, in the world.
    pub const fn is_in_effect(&self) -> bool {
        self.undone_by.is_none()
    }
}

/// An operation, without its recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Its name.
    pub id: OperationId,
    /// Its place in the journal: the record that armed (or refused) it; of a command, the record of its end.
    pub lsn: Lsn,
    /// Where its change was last made: its own place, or that of the redo that brought it back.
    pub place: Lsn,
    /// When it was armed.
    pub at: Timestamp,
    /// What kind of write it is.
    pub verb: Verb,
    /// One line for people.
    pub summary: String,
    /// Where it stands.
    pub status: Status,
    /// Who asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The piece of work it belongs to; none means it is a task of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The prompt that it answers, if an agent told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptId>,
    /// Who answers for it until it is finished.
    pub owner: Owner,
    /// How it can be undone, and why so.
    pub decision: Decision,
    /// What it writes, and how each target stands.
    pub targets: Vec<Standing>,
    /// What it was built on.
    pub depends_on: Vec<Dependency>,
    /// For an undo or a redo: the operation that it takes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undoes: Option<OperationId>,
    /// For an undo or a redo: the first one of the plan that it was part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<OperationId>,
    /// For an undo or a redo: what was asked for, if that is the other. A redo may have to undo what was written since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Verb>,
    /// For an undo, a redo or a recovery: what set it off, if that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// Whether its images are still kept, so that it can be undone.
    pub retained: bool,
    /// Things worth knowing about it: what could not be captured, which means were used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Operation {
    /// Tells whether it is what somebody asked for, and not an undo that was only in the way of a redo, or the reverse.
    pub const fn is_as_asked(&self) -> bool {
        self.asked.is_none()
    }

    /// Lists the targets whose change is, or may be, in the world.
    pub fn in_effect(&self) -> impl Iterator<Item = &Standing> {
        self.targets
            .iter()
            .filter(|standing| standing.is_in_effect())
    }

    /// Tells whether some of its targets were taken back and others were not.
    pub fn is_partly_undone(&self) -> bool {
        let is_undone = |standing: &Standing| !standing.is_in_effect();
        self.status.is_in_effect() && self.targets.iter().any(is_undone)
    }

    /// Names the undos that hold one of its targets, each once. What an undo that died had not come to is undone by itself.
    pub fn undos(&self) -> Vec<OperationId> {
        let undos = self.targets.iter().filter_map(|s| s.undone_by);
        let mut undos: Vec<_> = undos.filter(|undo| *undo != self.id).collect();
        undos.sort_unstable();
        undos.dedup();
        undos
    }

    /// Names the operations whose recipes take its targets in effect back, each once.
    pub fn holders(&self) -> Vec<OperationId> {
        let holder = |standing: &Standing| standing.held_by.unwrap_or(self.id);
        let mut holders: Vec<_> = self.in_effect().map(holder).collect();
        holders.sort_unstable();
        holders.dedup();
        holders
    }
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskStatus {
    /// Its operations are applied and wait for its end.
    Open,
    /// Its operations are kept.
    Committed,
    /// Its operations were taken back.
    RolledBack,
}

impl TaskStatus {
    /// Names the status as the journal, JSON and people know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Committed => "committed",
            Self::RolledBack => "rolled-back",
        }
    }
}

/// A piece of agent work whose operations are committed or rolled back together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// Where it stands.
    pub status: TaskStatus,
    /// When it began.
    pub began: Timestamp,
    /// Who does the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The process whose death rolls the task back; none means only a person or a command ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
}

/// A named point of the journal plus the agent's own state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Its name; a later checkpoint of the same name takes it over.
    pub name: CheckpointName,
    /// Its place in the journal. Its record has its own, so an event leaves it out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lsn: Lsn,
    /// When it was taken; as with the place.
    #[serde(default, skip_serializing_if = "is_default")]
    pub at: Timestamp,
    /// Whose work it marks; none marks everybody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The task it belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// What the agent wants to find again.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub state: serde_json::Value,
    /// The directories that it keeps, if it keeps any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<CheckpointFiles>,
    /// What it says of the agent, so that it can go on from here. Older programs say nothing.
    #[serde(
        default,
        deserialize_with = "ResumePoint::read",
        skip_serializing_if = "Option::is_none"
    )]
    pub resume: Option<Box<ResumePoint>>,
}

/// Directories as they were, with all that was in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointFiles {
    /// By which they are known; no operation has it.
    pub id: OperationId,
    /// The directories.
    pub roots: Vec<CheckpointRoot>,
}

/// A directory as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRoot {
    /// Where it is.
    pub path: TargetPath,
    /// Names the contents of all that was below it.
    pub tree: Digest,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
