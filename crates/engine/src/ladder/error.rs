//! What can go wrong when somebody looks after undos that failed.

use backout_model::OperationId;

/// Says why an undo that failed was not looked after as asked.
#[derive(Debug, thiserror::Error)]
pub enum LadderError {
    /// Its undo did not fail, or that was solved since.
    #[error("no undo of operation {id} waits for a person")]
    NotFailed {
        /// Whose undo was asked about.
        id: OperationId,
    },
    /// Whose work it is cannot accept what is left of it, nor can a command under `run`.
    #[error("whose work operation {id} is cannot accept what is left of it")]
    Own {
        /// What he asked to leave as it is.
        id: OperationId,
    },
}
