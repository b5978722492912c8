//! Why a rollout could not be begun, found or taken up.

use backout_model::{Owner, TargetPath, TaskId};

use crate::EngineError;

/// Says why nothing was done about a rollout.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
pub enum RolloutError {
    /// No target was named.
    #[error("a rollout needs a target")]
    NoTarget,
    /// A target was named twice.
    #[error("`{target}` is named twice")]
    Twice { target: TargetPath },
    /// The check cannot be carried out, now or ever.
    #[error("the check cannot be carried out: {why}")]
    BadCheck {
        /// Why not.
        why: String,
    },
    /// There is no rollout of that name, or none at all.
    #[error("there is no such rollout")]
    Unknown {
        /// The name, if one was given.
        name: Option<String>,
    },
    /// It is not clear which rollout is meant.
    #[error("several rollouts could be meant")]
    Which {
        /// Which could be.
        tasks: Vec<TaskId>,
    },
    /// The rollout has ended.
    #[error("the rollout `{task}` has ended")]
    Ended { task: TaskId },
    /// The store failed on the way. Some of it may be written.
    #[error("the rollout `{task}` stopped on its way")]
    Broken {
        task: TaskId,
        /// What ended it.
        #[source]
        cause: Box<EngineError>,
    },
    /// Another process carries the rollout out.
    #[error("the rollout `{task}` is at work in process {}", owner.pid)]
    AtWork {
        task: TaskId,
        /// The process.
        owner: Box<Owner>,
    },
}
