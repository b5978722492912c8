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
        /// The one that leased it.
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

/// An undo or a redo of several operations that has begun, and of which nobody has told the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAct {
    /// Its first step.
    pub id: OperationId,
    /// The process that does it.
    pub owner: Owner,
    /// Whether somebody was told that it was left.
    pub is_told: bool,
}

/// Who may write what, now, and who is in the middle of several steps.
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

    /// Takes over an armed operation whose owner died, or a proposal to decide about. Says no if somebody else was faster.
    fn claim(&self, operation: &Operation, owner: &Owner) -> Result<bool, StorageError>;

    /// Lists the acts that have begun, and of which nobody has told the end. An act begins with the record that arms its first
    /// step.
    fn open_acts(&self) -> Result<Vec<OpenAct>, StorageError>;

    /// Notes that somebody is told of an act that was left. Says no if somebody else was.
    fn tell_act(&self, act: OperationId) -> Result<bool, StorageError>;

    /// Forgets an act: it is over, and whoever asked for it knows how it ended.
    fn end_act(&self, act: OperationId) -> Result<(), StorageError>;
}
