//! What can go wrong with trials. Nothing real was changed.

use std::io;

use backout_capture::overlay::OverlayError;
use backout_model::OperationId;

/// Says why a trial could not be made, found or used.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// A command could not be run in layers, or what it did cannot be told.
    #[error(transparent)]
    Layers(OverlayError),
    /// A command that was to be tried could not be started.
    #[error("`{program}` could not be started")]
    NotStarted {
        /// As it was to be started.
        program: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// It is not clear which trial is meant.
    #[error("it is not clear which trial is meant")]
    Which {
        /// The name that was given.
        name: Option<String>,
        /// How many it could be.
        found: usize,
    },
    /// The layers did not survive a restart of the machine.
    #[error("the trial {} was lost when the machine was started anew", id.short())]
    Lost {
        /// The trial.
        id: OperationId,
    },
    /// The command has not ended, or nobody saw its end.
    #[error("the trial {} has not ended", id.short())]
    Unfinished {
        /// The trial.
        id: OperationId,
        /// Whether it still runs.
        is_running: bool,
    },
    /// What is to be known of a trial cannot be read.
    #[error("the trial {} cannot be read: {why}", id.short())]
    Unreadable {
        /// The trial.
        id: OperationId,
        /// Why not.
        why: String,
    },
    /// All that the trial changed is there already: an application that was left half-way had done it.
    #[error("all that the trial {} changed is real already", id.short())]
    AllReal {
        /// The trial.
        id: OperationId,
    },
    /// Nothing that the trial changed was chosen.
    #[error("nothing of the trial {} was chosen", id.short())]
    NothingChosen {
        /// The trial.
        id: OperationId,
    },
}

impl From<OverlayError> for TrialError {
    fn from(error: OverlayError) -> Self {
        match error {
            OverlayError::NotStarted { program, source } => Self::NotStarted { program, source },
            other @ (OverlayError::Unreadable { .. }
            | OverlayError::Unmakable { .. }
            | OverlayError::NoPlace { .. }
            | OverlayError::Impossible { .. }
            | OverlayError::Lost { .. }) => Self::Layers(other),
        }
    }
}
