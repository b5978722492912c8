//! Why the graph was not updated, and why evidence could not be made or believed.

use std::io;
use std::path::PathBuf;

use backout_model::{Digest, Lsn};
use backout_mplp::Refusal;

use crate::StageView;

/// Says what is in the way.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
pub enum GraphError {
    /// What was given is no document of a graph.
    #[error("the graph's file cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// The update was refused. Nothing of it was done.
    #[error("the graph was not updated: {refusal}")]
    Refused {
        /// Why.
        refusal: Box<Refusal>,
        /// The stage that failed for it, as `backout.toml` wants it.
        followed: Option<Box<StageView>>,
    },
    /// What was brought back is not what was there.
    #[error("the graph is not what it was after record {place}")]
    NotAsThen {
        place: Lsn,
        found: Digest,
        wanted: Digest,
    },
    /// There is no such record yet.
    #[error("there is no record {place}")]
    NoRecord { place: Lsn },
    /// The journal does not reach back so far.
    #[error("the journal begins with record {first}")]
    Cut {
        /// The place that was asked for.
        place: Lsn,
        /// The first record that there is.
        first: Lsn,
    },
    /// A file of a pack could not be written or read.
    #[error("cannot {action} `{}`", path.display())]
    Pack {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
}

impl GraphError {
    /// Says that an update was refused, and that nothing followed.
    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self::Refused {
            refusal: Box::new(refusal),
            followed: None,
        }
    }
}
