//! What a layer changes, name by name.

use std::path::PathBuf;

/// One name that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The real path.
    pub path: PathBuf,
    /// What happened to it, in a word.
    pub what: What,
    /// What it becomes.
    pub becomes: Becomes,
    /// How many bytes it had, if it was a file.
    pub size_before: Option<u64>,
    /// How many bytes it has, if it is a file.
    pub size_after: Option<u64>,
    /// How many names lay below it, if it was a directory and is none any more.
    pub gone_below: u64,
}

/// What happened to a name, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It is new.
    Created,
    /// It has another content, or is another thing.
    Changed,
    /// Only mode, owner or attributes differ.
    Metadata,
    /// It is gone, with all below.
    Deleted,
    /// It has another name.
    Moved,
}

/// What a name becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Becomes {
    /// Nothing.
    Nothing,
    /// What is at this path, in a layer or elsewhere; of a directory not its entries.
    Like(PathBuf),
    /// Another name of a file.
    Linked {
        /// Its first name: what that real path becomes, or is.
        first: PathBuf,
        /// Where the file is, in a layer or elsewhere.
        source: PathBuf,
    },
    /// What was at this real path, with all below.
    Moved(PathBuf),
}
