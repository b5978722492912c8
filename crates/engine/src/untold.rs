//! What a driver does not tell, and so nobody can show or bring back in part.

use backout_model::OperationId;
use backout_model::ports::{DriverError, Fault};

use crate::EngineError;

/// Says what an operation cannot be asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Untold {
    /// Its driver tells no values.
    #[error("what operation {id} changed is not told value by value")]
    Values {
        /// The operation, in short.
        id: String,
    },
    /// It wrote parts of a file, or something that is no file.
    #[error("operation {id} wrote no whole file, so there is none to restore")]
    Files {
        /// The operation, in short.
        id: String,
    },
}

impl Untold {
    pub(crate) fn values(id: OperationId) -> EngineError {
        let id = id.short();
        DriverError::new(Self::Values { id }).into()
    }

    pub(crate) fn files(id: OperationId) -> EngineError {
        let id = id.short();
        DriverError::new(Self::Files { id }).into()
    }
}

impl Fault for Untold {
    fn advice(&self) -> Option<String> {
        Some(match self {
            Self::Values { id } => format!("see its targets with `backout show {id}`"),
            Self::Files { id } => format!("take back what it wrote with `backout undo {id}`"),
        })
    }
}
