//! Kept directories as people and programs see them.

use backout_files::Walked;
use backout_model::{AgentId, Checkpoint, CheckpointName, OperationId, TargetPath, Timestamp};
use serde::{Deserialize, Serialize};

use crate::TrialWhat;

/// A checkpoint that keeps directories.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct WorkspaceKept {
    /// None if it was not taken.
    pub checkpoint: Option<Checkpoint>,
    /// How many names it keeps.
    pub names: u64,
    /// How many files were read for it: those that changed since the last time.
    pub read: u64,
    /// How many bytes that were.
    pub read_bytes: u64,
    /// How many bytes it takes, beyond what was there.
    pub stored_bytes: u64,
    /// What is not part of it; of very many only some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_kept: Vec<NotKept>,
    /// Older checkpoints whose files had to go for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub let_go: Vec<LetGo>,
}

/// A name that is not part of a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NotKept {
    /// The name.
    pub path: TargetPath,
    /// Why not.
    pub why: String,
}

/// A checkpoint whose files are let go.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LetGo {
    /// Its mark stays.
    pub name: CheckpointName,
    /// When it was made.
    pub at: Timestamp,
    /// Which rule it is that lets them go.
    pub why: String,
}

impl WorkspaceKept {
    pub(super) fn add(&mut self, walked: &Walked) {
        self.names += walked.names;
        self.read += walked.read;
        self.read_bytes += walked.bytes;
        let not_kept = walked.unread.iter().map(|unread| NotKept {
            path: unread.path.clone(),
            why: unread.why.clone(),
        });
        self.not_kept.extend(not_kept);
    }
}

/// What going back to a checkpoint would change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkspacePlan {
    /// To which directories would go back.
    pub checkpoint: CheckpointName,
    /// When it was made.
    pub at: Timestamp,
    /// Its directories.
    pub roots: Vec<TargetPath>,
    /// The names that are not what they were, in their order.
    pub changes: Vec<WorkspaceChange>,
    /// Names that were not kept, or cannot be looked at now: they stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stay: Vec<TargetPath>,
    /// Operations of other agents that need a word before they go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OperationId>,
    /// Those of them that have not ended, and may have written what no operation did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_be_of: Vec<OperationId>,
    /// Why it would be refused, or would have to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// How many operations since then wrote elsewhere. They stay.
    pub elsewhere: u64,
}

/// A name that is not what it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkspaceChange {
    /// The name.
    pub path: TargetPath,
    /// What happened to it since.
    pub what: TrialWhat,
    /// How many bytes it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_before: Option<u64>,
    /// In bytes; none if there is nothing to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_now: Option<u64>,
    /// The newest operation that wrote it since; none if no operation did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<WorkspaceBy>,
}

/// Who wrote a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceBy {
    /// The newest that wrote it.
    pub id: OperationId,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Whether somebody else changed the name after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_changed_since: bool,
}
