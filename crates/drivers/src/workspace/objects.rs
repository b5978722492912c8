//! Looking at a state without keeping it, and writing files out of what is kept.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use backout_files::Objects;
use backout_model::Digest;
use backout_model::ports::ContentsError;

use super::entry::tree;
use crate::file::error::FileError;
use crate::file::recipe::Kind;
use crate::file::sys::bytes;

/// What is seen beside what is kept: files are only named, trees are in memory.
pub(super) struct Looking<'l> {
    kept: &'l dyn Objects,
    trees: HashMap<Digest, Vec<u8>>,
}

impl<'l> Looking<'l> {
    /// Looks beside this.
    pub(super) fn beside(kept: &'l dyn Objects) -> Self {
        Self {
            kept,
            trees: HashMap::new(),
        }
    }
}

impl Objects for Looking<'_> {
    fn put_file(&mut self, file: &mut File) -> Result<(Digest, u64), ContentsError> {
        let named = bytes::digest_of_file(file);
        named.map_err(|error| ContentsError::Store(Box::new(error)))
    }

    fn put_tree(&mut self, bytes: Vec<u8>) -> Result<Digest, ContentsError> {
        let digest = Digest::of(&bytes);
        self.trees.insert(digest, bytes);
        Ok(digest)
    }

    fn tree(&self, digest: &Digest) -> Result<Vec<u8>, ContentsError> {
        match self.trees.get(digest) {
            Some(bytes) => Ok(bytes.clone()),
            None => self.kept.tree(digest),
        }
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentsError> {
        self.kept.open(digest)
    }
}

/// Adds everything that a state needs.
pub(super) fn needed(
    objects: &dyn Objects,
    digest: &Digest,
    all: &mut BTreeSet<Digest>,
) -> Result<(), FileError> {
    if !all.insert(*digest) {
        return Ok(());
    }
    for entry in tree(objects, digest).map_err(FileError::Contents)? {
        match (entry.kind, entry.digest) {
            (Kind::Directory, Some(below)) => needed(objects, &below, all)?,
            (_, digest) => all.extend(digest),
        }
    }
    Ok(())
}

/// Writes bytes into a new file, with holes where there were some.
pub(super) fn write_out(from: &mut dyn Read, to: &Path, holes: &[(u64, u64)]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(to)?;
    io::copy(from, &mut file)?;
    bytes::punch(&file, holes)
}
