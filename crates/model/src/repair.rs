//! What a repair of the journal says about itself: the gaps it found, what it assumed, and where the evidence is.
//!
//! A repair never hides that something was lost. Its record stays in the chain, and a gap counts as explained only
//! while the record that explains it is there.

use serde::{Deserialize, Serialize};

use crate::{Completion, Digest, Lsn, OperationId, Record, Status, Timestamp};

/// How the chain goes on behind a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapLink {
    /// The hash of the last lost record is known, so the next one was checked.
    Hash(Digest),
    /// Nothing before the next record is known: this is the digest of that record as it was found.
    Pin(Digest),
}

/// Records that are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The first lost record.
    pub first: Lsn,
    /// The last lost record.
    pub last: Lsn,
    /// How the chain goes on.
    pub link: GapLink,
}

impl Gap {
    /// Computes the pin of a record whose event is stored as `body`: it covers everything but the link to the past.
    pub fn pin(lsn: Lsn, at: Timestamp, body: &[u8], hash: &Digest) -> Digest {
        Record::chain(hash, lsn, at, body)
    }
}

/// What a repair took for true of an operation whose outcome was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assumed {
    /// It is told as repaired from now on.
    pub id: OperationId,
    /// What the damaged table of operations said.
    pub status: Status,
    /// The undo that took it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<OperationId>,
    /// The redo that brought it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redone_by: Option<OperationId>,
    /// What its effect told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Completion>,
}

/// What a repair did to the journal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Repair {
    /// The file in the state directory that holds the damaged journal.
    pub evidence: String,
    /// What is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// What was taken from tables that nothing vouches for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<Assumed>,
    /// Operations that later records or tables speak of, but whose own record is lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<OperationId>,
}
