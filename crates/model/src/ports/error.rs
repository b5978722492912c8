//! What can go wrong with a store.

use std::io;
use std::path::PathBuf;

use crate::{Digest, Lsn, OperationId, RecordError};

/// What a store's own machinery said, such as a database engine.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Says why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The state directory or a file in it could not be used.
    #[error("cannot {action} `{}`", path.display())]
    StateDir {
        /// The directory or file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The state directory belongs to another user.
    #[error("the state directory `{}` belongs to user {uid}", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// The store was written by a newer program.
    #[error("the store has format {found}, this program reads up to {supported}")]
    NewerFormat {
        /// The format of the store.
        found: i64,
        /// The newest format this program reads.
        supported: i64,
        /// The version of the program that gave it its format, if it says so. That one reads it.
        reader: Option<String>,
    },
    /// The journal's database cannot be read as one.
    #[error("the journal `{}` is damaged", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What the database engine said.
        #[source]
        source: Cause,
    },
    /// The journal is not what a journal is, or not there at all.
    #[error("the journal `{}` is damaged: {detail}", path.display())]
    NotWhole {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        detail: &'static str,
    },
    /// The newest records of the journal are gone.
    #[error("the journal ends at record {last}, but it had come to {had}")]
    LostRecords {
        /// The last record that is there.
        last: Lsn,
        /// The last record that must be there.
        had: Lsn,
    },
    /// Another machine uses the store, which serves one at a time.
    #[error("the state directory `{}` is used by the host `{host}`", path.display())]
    AnotherHost {
        /// The directory.
        path: PathBuf,
        /// What the other machine is called.
        host: String,
        /// Whether the directory is on a file system that several machines share.
        is_shared: bool,
    },
    /// A repair would pull the store away from a process that is using it.
    #[error("the store is being used by process {pid}")]
    InUse {
        /// The process; 0 if nobody can tell which it is.
        pid: u32,
    },
    /// The state directory vanished while it was in use.
    #[error("the state directory `{}` was deleted or replaced while in use", path.display())]
    Gone {
        /// The directory.
        path: PathBuf,
    },
    /// The disk that holds the state directory is full.
    #[error("no space left for the journal in `{}`", path.display())]
    DiskFull {
        /// The directory.
        path: PathBuf,
    },
    /// It is hidden: the process is part of a trial.
    #[error("the state directory `{}` is hidden in a trial", path.display())]
    InTrial {
        /// The state directory.
        path: PathBuf,
    },
    /// The state directory cannot be written.
    #[error("the state directory `{}` is read-only", path.display())]
    ReadOnly {
        /// The directory.
        path: PathBuf,
    },
    /// A sync failed before; what is on the disk is unknown until the store is opened again.
    #[error("an earlier write to the journal failed, so it takes no more until it is opened again")]
    Poisoned,
    /// The store is full of images that may not be let go yet.
    #[error("the store holds {stored} bytes and would get {adding} more; its cap is {cap}")]
    OverCap {
        /// What it holds.
        stored: u64,
        /// What the write would add, at most.
        adding: u64,
        /// What it may hold.
        cap: u64,
    },
    /// Two operations were given the same id.
    #[error("there already is an operation {id}")]
    DuplicateId {
        /// The id.
        id: OperationId,
    },
    /// A content that a recipe needs left the store before the recipe was recorded.
    #[error("the content {digest} is gone")]
    ContentGone {
        /// The content.
        digest: Digest,
    },
    /// A stored record is damaged.
    #[error("the journal's chain is broken")]
    Record(#[from] RecordError),
    /// A row that must be there is not, or does not say what it must.
    #[error("the journal contradicts itself at {at}: {detail}")]
    Inconsistent {
        /// The record or row.
        at: String,
        /// What does not fit.
        detail: String,
    },
    /// The database engine failed.
    #[error("the journal's database failed")]
    Database(#[source] Cause),
}

impl StorageError {
    /// Tells whether the store takes nothing more, and is whole.
    pub const fn is_of_room(&self) -> bool {
        matches!(
            self,
            Self::DiskFull { .. } | Self::ReadOnly { .. } | Self::OverCap { .. }
        )
    }

    /// Tells whether the store itself is hurt, so that nothing more should be done with it.
    pub const fn is_broken(&self) -> bool {
        matches!(
            self,
            Self::NewerFormat { .. }
                | Self::Damaged { .. }
                | Self::NotWhole { .. }
                | Self::LostRecords { .. }
                | Self::Gone { .. }
                | Self::Poisoned
                | Self::Record(_)
                | Self::Inconsistent { .. }
        )
    }

    /// Says that a store contradicts itself.
    pub fn inconsistent(at: impl Into<String>, detail: &dyn std::fmt::Display) -> Self {
        Self::Inconsistent {
            at: at.into(),
            detail: detail.to_string(),
        }
    }
}
