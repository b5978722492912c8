//! A store: all that the engine needs kept, behind one trait.

use super::{Depots, Journal, Leases, Maintenance, Owners, ReadContents, Workspace, WriteContents};

/// Everything that is kept, whoever keeps it.
///
/// Several processes may use one store at the same time, and several threads one value of this type. What a store must do
/// is said by the conformance suite of the test kit.
pub trait Store:
    Journal + Leases + Workspace + Maintenance + Owners + ReadContents + WriteContents + Depots
{
}

impl<S> Store for S where
    S: Journal + Leases + Workspace + Maintenance + Owners + ReadContents + WriteContents + Depots
{
}
