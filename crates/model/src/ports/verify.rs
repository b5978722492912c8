//! What a check of the whole store finds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Digest, DriverName, Flaw, Gap, Lsn, OperationId, Slot, TargetPath, Timestamp};

/// One thing that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum VerifyFinding {
    /// The database itself is hurt, or a table of it cannot be read.
    Database {
        /// What does not fit.
        detail: String,
    },
    /// A record does not match its hash, cannot be read, or its predecessor is missing.
    Record {
        /// Its place.
        lsn: Lsn,
        /// What does not fit.
        detail: String,
    },
    /// A table says something else of an operation than its records.
    Operation {
        /// About which they differ.
        id: OperationId,
        /// What does not fit.
        detail: String,
    },
    /// A content is missing or damaged; these operations cannot be undone exactly.
    Content {
        /// The content.
        digest: Digest,
        /// What does not fit.
        detail: String,
        /// Whose undo would not be exact.
        needed_by: Vec<OperationId>,
    },
    /// A kept inode is gone; this operation cannot be undone exactly.
    Slot {
        /// Where it should be.
        path: TargetPath,
        /// Whose undo would not be exact.
        needed_by: OperationId,
        /// What does not fit.
        detail: String,
    },
}

/// A content that is told as a change of something that is not in the store: only its driver can tell whether that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeOutside {
    /// The content.
    pub digest: Digest,
    /// Whose undo depends on it.
    pub needed_by: Vec<OperationId>,
}

/// A kept inode that nobody can look at now. It may well be there, so nothing is given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutOfReach {
    /// Where it should be.
    pub path: TargetPath,
    /// Whose undo has to wait.
    pub needed_by: OperationId,
    /// Why not, and what brings it within reach.
    pub why: String,
}

/// A kept inode that somebody changed in its slot. It is there, so nothing is given up: with force it comes back as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedSince {
    /// Where it is.
    pub path: TargetPath,
    /// Whose undo is a conflict now.
    pub needed_by: OperationId,
    /// What was seen.
    pub why: String,
}

/// An operation that is in effect and cannot be taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotUndoable {
    /// It can be named, and its undo is refused.
    pub id: OperationId,
    /// What stands in the way.
    pub why: String,
}

/// A repair that the journal tells of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairSeen {
    /// Its record.
    pub lsn: Lsn,
    /// When it was.
    pub at: Timestamp,
    /// The records that were lost.
    pub gaps: Vec<Gap>,
    /// Operations whose record was lost.
    pub lost: Vec<OperationId>,
    /// The file in the state directory that holds the damaged journal.
    pub evidence: String,
}

/// What a check of the whole store found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VerifyReport {
    /// Records checked.
    pub records: u64,
    /// Contents checked.
    pub contents: u64,
    /// Kept inodes checked.
    pub slots: u64,
    /// What is not as it must be.
    pub findings: Vec<VerifyFinding>,
    /// Kept inodes that are not damaged as far as anybody knows, but out of reach for now.
    pub out_of_reach: Vec<OutOfReach>,
    /// Kept inodes that are there, and were changed after they were kept.
    pub changed: Vec<ChangedSince>,
    /// Contents that are told as changes of what is not in the store, for whoever asks the drivers.
    #[serde(skip)]
    pub outside: Vec<MadeOutside>,
    /// Operations in effect that can still be undone, newest first.
    pub undoable: Vec<OperationId>,
    /// Operations in effect that cannot, newest first.
    pub not_undoable: Vec<NotUndoable>,
    /// Operations whose driver the program does not have. They are neither undoable here nor lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OfOtherDriver>,
    /// Repairs that were made. They are no damage, but whoever checks must know of them.
    pub repairs: Vec<RepairSeen>,
}

impl VerifyReport {
    /// Tells whether the journal itself is hurt, and not only images.
    pub fn is_journal_hurt(&self) -> bool {
        self.findings.iter().any(|finding| match finding {
            VerifyFinding::Database { .. }
            | VerifyFinding::Record { .. }
            | VerifyFinding::Operation { .. } => true,
            VerifyFinding::Content { .. } | VerifyFinding::Slot { .. } => false,
        })
    }
}

/// Lists the operations whose images are hurt, and what is wrong with them.
pub fn hurt_images(findings: &[VerifyFinding]) -> BTreeMap<OperationId, String> {
    let mut hurt = BTreeMap::new();
    for finding in findings {
        match finding {
            VerifyFinding::Content {
                needed_by, detail, ..
            } => hurt.extend(needed_by.iter().map(|id| (*id, detail.clone()))),
            VerifyFinding::Slot {
                path,
                needed_by,
                detail,
            } => drop(hurt.insert(*needed_by, format!("`{path}` {detail}"))),
            VerifyFinding::Database { .. }
            | VerifyFinding::Record { .. }
            | VerifyFinding::Operation { .. } => {}
        }
    }
    hurt
}

/// Lists the inodes that an operation keeps, each with what is wrong with it, if something is. It is told of those that were
/// put away for it; a redo may keep some that were put away for another.
pub type CheckSlots<'a> = dyn Fn(OperationId, &[Slot]) -> Vec<(Slot, Option<Flaw>)> + 'a;

/// An operation whose driver this program does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfOtherDriver {
    /// It can be listed, and not be undone.
    pub id: OperationId,
    /// The driver that its recipe names.
    pub driver: DriverName,
}
