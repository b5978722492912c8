//! All that can happen to a store in memory, as values: a state is what a list of changes makes of nothing.

use backout_model::{Digest, Event, OperationId, Owner, Target, Timestamp};
use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Change {
    /// An entry was appended.
    Append {
        at: Timestamp,
        events: Vec<Event>,
        contents: Vec<Vec<u8>>,
        /// What is told as a change: of what, of how many bytes, and its pieces.
        changes: Vec<(Digest, Digest, u64, Vec<u8>)>,
    },
    /// A content was kept for an operation that is not armed yet.
    Keep { by: OperationId, bytes: Vec<u8> },
    /// Targets were leased.
    Lease {
        operation: OperationId,
        targets: Vec<Target>,
        owner: Owner,
    },
    /// Operations gave back what they had leased.
    Release { operations: Vec<OperationId> },
    /// Somebody else answers for an operation.
    Claim {
        operation: OperationId,
        owner: Owner,
    },
    /// Somebody was told of an act that was left.
    Told { act: OperationId },
    /// An act is over.
    Ended { act: OperationId },
    /// A process said that it is at work.
    Beat { owner: Owner, at: Timestamp },
    /// What operations referred to is not needed by them any more.
    Forget { operations: Vec<OperationId> },
    /// Contents went.
    Drop { contents: Vec<Digest> },
    /// A content is not what it was. Only tests do that.
    Hurt { content: Digest },
}
