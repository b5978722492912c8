//! Why there is no plan: what was asked for is not there, never happened, or cannot come back.

use crate::{OperationId, Status};

/// Says why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
pub enum PlanError {
    /// The history holds no such operation.
    #[error("there is no operation {id}")]
    Unknown {
        /// The id that was named.
        id: OperationId,
    },
    /// It was taken back before.
    #[error("operation {id} is already undone")]
    AlreadyUndone {
        id: OperationId,
        /// The undo.
        by: Option<OperationId>,
    },
    /// It was a redo and was taken back before, and another redo has brought back the same.
    #[error("operation {id} is already undone, and what it brought back is there again by {by}")]
    BroughtAgain {
        /// The redo.
        id: OperationId,
        /// The other one.
        by: OperationId,
    },
    /// It was taken back before, and what that replaced is not kept any more.
    #[error("operation {id} is already undone, and cannot be redone: its images have expired")]
    UndoneForGood {
        id: OperationId,
        /// The undo.
        by: OperationId,
    },
    /// It never came to pass.
    #[error("operation {id} was {status}: there is nothing to undo")]
    NeverHappened {
        id: OperationId,
        /// What became of it.
        status: Status,
    },
    /// It is being applied right now, or its owner died and nobody recovered it yet.
    #[error("operation {id} is not finished")]
    Unfinished { id: OperationId },
    /// Its images were let go.
    #[error("operation {id} can no longer be undone: its images have expired")]
    Expired {
        id: OperationId,
        /// The named operation for whose sake it would have to go.
        for_sake_of: Option<OperationId>,
    },
    /// It was declared irreversible.
    #[error("operation {id} is irreversible")]
    Irreversible { id: OperationId },
    /// It is a command that changed nothing.
    #[error("operation {id} changed nothing")]
    ChangedNothing { id: OperationId },
    /// None of its targets is in the scope.
    #[error("nothing of operation {id} that is in effect was chosen")]
    NothingChosen { id: OperationId },
    /// Nothing fits the goal.
    #[error("there is nothing to undo")]
    Nothing,
}
