//! Why a gate did not let a change pass, and why nobody could decide about a proposal.

use backout_model::ports::Reason;
use backout_model::{CallKey, OperationId, Proposal, Status};

/// Says why a change did not happen, or not yet.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// Gates said no. Nothing was changed.
    #[error("the write was refused")]
    Denied {
        /// The operation, as the journal knows it.
        id: OperationId,
        /// What the gates said.
        reasons: Vec<Reason>,
    },
    /// Gates want somebody to decide. Nothing was changed.
    #[error("the write waits for a decision")]
    Waits(Box<Proposal>),
    /// An operation is not, or not any more, a proposal.
    #[error("operation {id} does not wait for a decision")]
    NotProposed {
        /// The operation.
        id: OperationId,
        /// Where it stands.
        status: Status,
    },
    /// Nobody decided about a proposal in time.
    #[error("the time for a decision about {id} is up")]
    Expired {
        /// The proposal.
        id: OperationId,
    },
    /// What was proposed cannot be done any more as it was proposed.
    #[error("{why}")]
    Stale {
        /// The proposal.
        id: OperationId,
        /// Why not.
        why: String,
    },
    /// Another process decides about the proposal at this moment.
    #[error("somebody else is deciding about {id}")]
    BeingDecided {
        /// The proposal.
        id: OperationId,
    },
    /// Who asks does not approve.
    #[error("who proposed {id} cannot approve it")]
    Own {
        /// The proposal.
        id: OperationId,
    },
    /// The key of a call stands for another call.
    #[error("the key `{key}` belongs to operation {id}")]
    KeyTaken {
        /// The key.
        key: CallKey,
        /// The operation that answered it.
        id: OperationId,
    },
}
