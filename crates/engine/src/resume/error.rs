//! Why an agent's state is not kept, or nobody goes on from it. Nothing was changed.

use backout_model::ports::UnreadableRules;
use backout_model::{OperationId, TaskId};

/// Says why.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// A state is larger than a checkpoint may be.
    #[error("the state has {bytes} bytes, and at most {max} are kept")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// Nobody can read what people wrote about it.
    #[error(transparent)]
    Rules(UnreadableRules),
    /// There is no checkpoint that could be used.
    #[error("{whose} has no checkpoint to go on from")]
    NoCheckpoint {
        /// Whose work it is.
        whose: String,
        /// Whose checkpoint was looked for; none for work without a task.
        task: Option<TaskId>,
        /// Those that there are, and why not.
        skipped: Vec<String>,
    },
    /// The agent is still at work.
    #[error("the agent that took the checkpoint is still alive: process {pid}")]
    Alive {
        /// Its process.
        pid: u32,
    },
    /// Nobody can tell what an operation did.
    #[error("operation {id} of {whose} waits for a decision")]
    Unsettled {
        /// Whose work it is.
        whose: String,
        /// It has to be settled first.
        id: OperationId,
    },
}
