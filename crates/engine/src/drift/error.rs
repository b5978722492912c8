//! Why nothing was done about a drift.

use backout_model::{Key, OperationId, TargetPath};

use super::DriftDecided;
use crate::EngineError;

/// Says why nothing was done about a drift.
#[derive(Debug, thiserror::Error)]
pub enum DriftError {
    /// There is no open drift of that name.
    #[error("`{what}` has not drifted")]
    Unknown {
        /// What was named.
        what: String,
    },
    /// It is not the drift any more that was told.
    #[error("`{target}` changed again")]
    Changed {
        /// What it is about.
        target: Key,
    },
    /// An agent may read drift, and not decide about it.
    #[error("an agent does not decide about drift")]
    NotYours,
    /// The record is right, and nobody can make it true again.
    #[error("`{target}` cannot be made what was recorded: {why}")]
    NoRestore {
        /// What it is about.
        target: Key,
        /// The operation that left it so.
        by: OperationId,
        /// Why not.
        why: String,
    },
    /// What was recorded and what is there do not go together.
    #[error("`{target}` cannot be merged: {why}")]
    NoMerge {
        /// What it is about.
        target: Key,
        /// Why not.
        why: String,
        /// Whether the record can be made true again instead.
        can_restore: bool,
    },
    /// The file of a key or a row is gone.
    #[error("the file of `{target}` is gone")]
    NoFile {
        /// What it is about.
        target: Key,
        /// The file, if the operation left it whole and that can be had.
        file: Option<TargetPath>,
        /// The operation that left it so.
        by: OperationId,
    },
    /// Nothing was named.
    #[error("nothing was named")]
    NoTarget,
    /// Some of it was done, and some was not.
    #[error("not all of it was done")]
    Partly {
        /// In the order in which it was done.
        done: Box<DriftDecided>,
        /// Why the rest was not.
        left: Vec<EngineError>,
    },
    /// It is no pattern.
    #[error("`{pattern}` is no pattern: {why}")]
    Pattern {
        /// What was given.
        pattern: String,
        /// Why not.
        why: String,
    },
    /// The pattern was never given.
    #[error("`{pattern}` is not ignored")]
    NotIgnored {
        /// What was given.
        pattern: String,
    },
}
