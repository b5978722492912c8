//! Leases: two processes never interleave on one target.
//!
//! A lease is taken before anything is looked at, and ends with the record that ends its operation. It dies with its
//! owner: a dead owner's lease on something never armed is simply taken over; one on something armed is handed to the
//! caller, who must recover that operation first.

use super::StorageError;
use crate::{Operation, OperationId, Owner, Target};

/// How an attempt to lease targets ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lease {
    /// They are ours until the operation ends.
    Taken,
    /// A living process has one of them.
    Held {
        /// What both want.
        target: Target,
        /// Its operation.
        by: OperationId,
        /// The process.
        owner: Owner,
    },
    /// A dead process left this operation unfinished on one of them.
    Abandoned {
        /// The operation to recover.
        by: OperationId,
    },
}

/// Who may write what, now.
pub trait Leases {
    /// Tries to take all `targets` for `operation`; takes none if one of them is held. What those of `instead_of` hold is
    /// not in the way: who recovers operations works in their place.
    fn lease(
        &self,
        operation: OperationId,
        targets: &[Target],
        owner: &Owner,
        instead_of: &[OperationId],
    ) -> Result<Lease, StorageError>;

    /// Gives the targets of an operation back that ended without a record.
    fn release(&self, operation: OperationId) -> Result<(), StorageError>;

    /// Gives back what dead processes leased and never armed, and returns how many operations those were.
    fn release_dead(&self) -> Result<usize, StorageError>;

    /// Takes over an armed operation whose owner died. Says no if somebody else was faster.
    fn claim(&self, operation: &Operation, owner: &Owner) -> Result<bool, StorageError>;
}
