//! What can go wrong with sandboxes. Nothing real was changed.

/// Says why a sandbox could not be made, found or used.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// It is not clear which sandbox is meant, or there is none.
    #[error("it is not clear which sandbox is meant")]
    Which {
        /// The name that was given.
        name: Option<String>,
        /// The sandboxes that there are.
        found: Vec<String>,
    },
    /// The name is taken.
    #[error("there is a sandbox `{name}` already")]
    Exists {
        /// It is that of a sandbox that is there.
        name: String,
    },
    /// The name cannot be one.
    #[error("`{name}` cannot be the name of a sandbox")]
    BadName {
        /// What was given.
        name: String,
    },
    /// Somebody else uses it.
    #[error("the sandbox `{name}` is in use")]
    Busy {
        /// The sandbox.
        name: String,
        /// What runs in it, if that is known.
        command: Option<String>,
    },
    /// There is no such checkpoint.
    #[error("the sandbox `{name}` has no checkpoint `{checkpoint}`")]
    NoCheckpoint {
        /// The sandbox.
        name: String,
        /// What was asked for.
        checkpoint: String,
        /// The newest that there is.
        newest: u64,
    },
    /// The layers did not survive a restart of the machine.
    #[error("the sandbox `{name}` was lost when the machine was started anew")]
    Lost {
        /// The sandbox.
        name: String,
    },
    /// What is to be known of a sandbox cannot be read.
    #[error("the sandbox `{name}` cannot be read: {why}")]
    Unreadable {
        /// The sandbox.
        name: String,
        /// Why not.
        why: String,
    },
    /// It holds work that was not applied.
    #[error("the sandbox `{name}` holds changes that were not applied")]
    NotApplied {
        /// The sandbox.
        name: String,
        /// The checkpoints with such changes.
        checkpoints: Vec<u64>,
        /// Where it stands.
        head: u64,
    },
    /// Something is where an export was to be written.
    #[error("`{path}` is there already")]
    InTheWay {
        /// The path, as people are told it.
        path: String,
    },
    /// There is nothing to make real.
    #[error("nothing of the sandbox `{name}` is to be applied")]
    Nothing {
        /// The sandbox.
        name: String,
        /// Whether all of it is real already.
        is_real: bool,
    },
}
