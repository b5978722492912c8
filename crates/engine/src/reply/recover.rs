//! What recovery did.

use backout_model::{OperationId, Status, TargetOutcome, TaskId, Verb};
use serde::{Deserialize, Serialize};

/// What recovery made of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveredAs {
    /// Nothing of it had happened.
    NothingHappened,
    /// All of it was there, and it is kept.
    Kept,
    /// What it had done was taken back.
    TakenBack,
    /// It is a command whose work is kept until somebody decides.
    Interrupted,
    /// It could not be settled; nothing was touched.
    InDoubt,
}

/// What recovery did with one operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recovered {
    /// It was armed, and its process is dead.
    pub id: OperationId,
    /// What kind of write it is.
    pub verb: Verb,
    /// Its line for people.
    pub summary: String,
    /// What an undo or a redo is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<OperationId>,
    /// What brings about again what an undo or a redo was to do that was put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub do_again: Option<DoAgain>,
    /// What was made of it.
    #[serde(rename = "as")]
    pub became: RecoveredAs,
    /// What it is now.
    pub status: Status,
    /// The operation that took it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<OperationId>,
    /// What became of each target.
    pub outcomes: Vec<TargetOutcome>,
    /// What was done before it by the same undo or redo, and stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<OperationId>,
    /// What nobody can tell any more of what it did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// Why nothing takes it back, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// The processes of a command that nobody watched any more, and that were ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<String>,
    /// The proposal as which it waits again, if somebody had approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<OperationId>,
    /// What was built on it and was taken back with it, since somebody forced that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<Along>,
    /// What was built on it, so that it was not taken back: it goes along only by force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub built_on: Vec<Along>,
}

/// What to ask for again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoAgain {
    /// An undo or a redo.
    pub verb: Verb,
    /// Those that it had not come to, and those that were put back.
    pub operations: Vec<OperationId>,
}

/// An operation that was taken back together with another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Along {
    /// It had been built on the other one.
    pub id: OperationId,
    /// Its line for people.
    pub summary: String,
}

/// A task that could not be rolled back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TaskLeft {
    /// Some of it is still in effect.
    pub task: TaskId,
    /// Why not.
    pub why: String,
}

/// An undo, a redo or a rollback of several operations that was left between two of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActLeft {
    /// Its first step, which stands for all that it did.
    pub act: OperationId,
    /// What was asked for.
    pub verb: Verb,
    /// How many operations it was to take back.
    pub planned: usize,
    /// How many of them it did, and still are so.
    pub done: usize,
    /// The operations to name to go on.
    pub rest: Vec<OperationId>,
    /// The task that it was to roll back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Whether it was to take back a part of their targets only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_part: bool,
}

/// What recovery did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RecoverReport {
    /// Newest first.
    pub operations: Vec<Recovered>,
    /// Tasks whose owner died and that were rolled back.
    pub tasks: Vec<TaskId>,
    /// Tasks whose owner died and that could not be rolled back, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks_left: Vec<TaskLeft>,
    /// Undos and redos of several operations that were left between two of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acts_left: Vec<ActLeft>,
    /// Sandboxes that a dead process left, and what became of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandboxes: Vec<crate::SandboxSettled>,
    /// Operations whose owner is alive and that were left alone.
    pub running: Vec<OperationId>,
}
