//! The port of what keeps whole directories: everything below a root as trees of contents, and what differs between two
//! states of it.
//!
//! Where trees and files are kept is the caller's affair ([`Objects`]). All of it looks at roots only; it writes nothing but an
//! index and the files that the caller asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use backout_model::ports::{ContentsError, DriverError};
use backout_model::{Digest, TargetPath};

use crate::{Past, WrittenDown};

/// Where files and trees are kept, by their digests.
pub trait Objects {
    /// Keeps the bytes of a file, from its beginning to its end, and tells which and how many they are.
    fn put_file(&mut self, file: &mut File) -> Result<(Digest, u64), ContentsError>;

    /// Keeps a tree.
    fn put_tree(&mut self, bytes: Vec<u8>) -> Result<Digest, ContentsError>;

    /// Reads a tree.
    fn tree(&self, digest: &Digest) -> Result<Vec<u8>, ContentsError>;

    /// Opens the bytes of a file.
    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentsError>;
}

/// A name that is not part of what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The name.
    pub path: TargetPath,
    /// Why not.
    pub why: String,
}

/// What a walk leaves for the next one, which then reads only what changed.
pub trait NextIndex: fmt::Debug {
    /// Puts it in the place of the last.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// What a walk found.
#[derive(Debug)]
pub struct Walked {
    /// The state of the root.
    pub tree: Digest,
    /// How many names were looked at.
    pub names: u64,
    /// How many files were read.
    pub read: u64,
    /// Of all files together.
    pub bytes: u64,
    /// What is not part of it; of very many only some.
    pub unread: Vec<Unread>,
    /// The index for the next walk, if that was asked for.
    pub next: Option<Box<dyn NextIndex>>,
}

impl Walked {
    /// Keeps the index for the next walk. Only once all that it stands for is kept.
    pub fn keep_index(&mut self) -> io::Result<()> {
        self.next.take().map_or(Ok(()), NextIndex::finish)
    }
}

/// How a name differs from what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It came since.
    Created,
    /// It went since.
    Deleted,
    /// It has other bytes, points elsewhere or is something else.
    Changed,
    /// Only its mode, owner, attributes or times are others.
    Dressed,
}

/// A name that is not what it was.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The name.
    pub path: TargetPath,
    /// How it differs.
    pub what: What,
    /// How many bytes it had.
    pub size_before: Option<u64>,
    /// The same of what is there now.
    pub size_now: Option<u64>,
    /// What it was; none if nothing was there.
    pub was: Option<WrittenDown>,
    /// The number of the file that it was, if that had several names: those of one number are one file.
    pub number: Option<u64>,
    /// The bytes that are needed to bring it back, if it takes any.
    pub needs: Option<Digest>,
    /// Where the file that it was had holes, as offset and length.
    pub holes: Vec<(u64, u64)>,
}

/// A root as a checkpoint keeps it.
#[derive(Debug, Clone)]
pub struct KeptRoot {
    /// The directory.
    pub path: TargetPath,
    /// Names the contents of all that was below it.
    pub tree: Digest,
    /// Where the index of its last walk is.
    pub index: PathBuf,
}

/// What differs from what was kept.
#[derive(Debug)]
pub struct Differences {
    /// The names that are not what they were, in their order.
    pub found: Vec<Difference>,
    /// Names that nobody kept, or that cannot be looked at now: they stay as they are.
    pub stay: Vec<TargetPath>,
    /// Names that are what they were, but no longer names of the file that has others outside of the roots.
    pub parted: Vec<TargetPath>,
    /// Names that are what they were, but names of one file now, which they were not.
    pub joined: Vec<TargetPath>,
}

/// Names the index file of a root.
pub fn index_name(root: &TargetPath) -> String {
    Digest::of(root.as_bytes()).short()
}

/// Keeps whole directories.
pub trait Directories: fmt::Debug + Send + Sync {
    /// Walks everything below a directory, with itself, and keeps it. `index` is what the last walk left; the next one is in
    /// what this gives.
    fn walk(
        &self,
        root: &TargetPath,
        objects: &mut dyn Objects,
        index: &Path,
    ) -> Result<Walked, DriverError>;

    /// Compares what roots are now with what they were. With `is_fine`, what came since is told name by name, each before
    /// the directory that it is in. Keeps nothing.
    fn differences(
        &self,
        objects: &dyn Objects,
        roots: &[KeptRoot],
        is_fine: bool,
    ) -> Result<Differences, DriverError>;

    /// Says what names are to become, for `Files::restoring`. `at` tells where the bytes wait that are needed.
    fn becoming(
        &self,
        objects: &dyn Objects,
        roots: &[KeptRoot],
        chosen: &[&Difference],
        at: &BTreeMap<Digest, PathBuf>,
    ) -> Result<Vec<Past>, DriverError>;

    /// Writes the bytes that bring a name back into a new file, with holes where there were some.
    fn write_out(
        &self,
        objects: &dyn Objects,
        needs: &Digest,
        to: &Path,
        holes: &[(u64, u64)],
    ) -> Result<(), DriverError>;

    /// Adds everything that a state needs.
    fn needed(
        &self,
        objects: &dyn Objects,
        tree: &Digest,
        all: &mut BTreeSet<Digest>,
    ) -> Result<(), DriverError>;

    /// Tells which state an index speaks of; none if it is not whole.
    fn index_tree(&self, index: &Path) -> Option<Digest>;
}
