//! Why a stage is not begun or ended. Nothing was changed.

use backout_model::CheckpointName;

use super::StageStanding;

/// Says why.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// Nobody said whose work it is.
    #[error("nobody said whose work the stage {name} is")]
    Nobodys {
        /// The stage.
        name: CheckpointName,
    },
    /// It has begun already.
    #[error("the stage {name} has begun already")]
    Open {
        /// The stage.
        name: CheckpointName,
    },
    /// Only an open stage can be ended.
    #[error("there is no open stage {name}")]
    NotOpen {
        /// The stage.
        name: CheckpointName,
        /// How it stands, if there was one.
        standing: Option<StageStanding>,
        /// Whose open stage has that name, as an option of the command line.
        elsewhere: Option<String>,
    },
    /// A stage that began in it is open.
    #[error("the stage {inner} began in {name} and is still open")]
    Inner {
        /// The stage.
        name: CheckpointName,
        /// It has to end first.
        inner: CheckpointName,
    },
}
