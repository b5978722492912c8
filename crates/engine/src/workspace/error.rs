//! What can be wrong with the directories of a checkpoint. Nothing was changed.

use backout_model::{CheckpointName, OperationId, TargetPath};

/// Says why directories could not be kept or brought back.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
pub enum WorkspaceError {
    /// Its files were let go.
    #[error("the checkpoint `{name}` keeps no files")]
    LetGo { name: CheckpointName },
    /// Other agents wrote since, and what they wrote would go.
    #[error("{} operations of other agents would be overwritten", operations.len())]
    Others {
        name: CheckpointName,
        operations: Vec<OperationId>,
    },
    /// What is known of the checkpoints cannot be read.
    #[error("what is known of the files of checkpoints cannot be read: {why}")]
    Unreadable {
        /// Why not.
        why: String,
    },
    /// Something that was excluded is in a directory that stands where something else was.
    #[error("`{path}` is a directory now, and holds what was excluded")]
    Held {
        name: CheckpointName,
        /// What was to come back.
        path: TargetPath,
    },
    /// None of what was chosen is other than it was.
    #[error("nothing of what was chosen has changed since the checkpoint `{name}`")]
    Nothing { name: CheckpointName },
}
