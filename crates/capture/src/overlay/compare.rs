//! Whether two names stand for the same thing, in content and in everything else.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::xattrs;

/// How much is read at once.
const BLOCK_BYTES: usize = 128 * 1024;

/// How two things differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Difference {
    /// Not at all.
    None,
    /// In mode, owner or attributes.
    Metadata,
    /// In content, or in what they are.
    Content,
}

/// Tells whether a name is what a layer has for it; of a directory, by itself.
pub fn is_as_in_layer(layer: &Path, real: &Path) -> io::Result<bool> {
    Ok(difference(layer, real)? == Difference::None)
}

/// Compares two things that exist. Times are no difference: a file that was only touched is what it was.
pub(super) fn difference(one: &Path, other: &Path) -> io::Result<Difference> {
    let (first, second) = (fs::symlink_metadata(one)?, fs::symlink_metadata(other)?);
    if first.file_type() != second.file_type() || first.rdev() != second.rdev() {
        return Ok(Difference::Content);
    }
    if first.is_symlink() && fs::read_link(one)? != fs::read_link(other)? {
        return Ok(Difference::Content);
    }
    if first.is_file() && (first.len() != second.len() || !has_same_bytes(one, other)?) {
        return Ok(Difference::Content);
    }
    let rest = |of: &Metadata| (of.mode(), of.uid(), of.gid());
    let is_same =
        rest(&first) == rest(&second) && xattrs::read_all(one)? == xattrs::read_all(other)?;
    Ok(if is_same {
        Difference::None
    } else {
        Difference::Metadata
    })
}

fn has_same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    let (mut first, mut second) = (vec![0_u8; BLOCK_BYTES], vec![0_u8; BLOCK_BYTES]);
    loop {
        let read = fill(&mut one, &mut first)?;
        if read != fill(&mut other, &mut second)? || first.get(..read) != second.get(..read) {
            return Ok(false);
        }
        if read < BLOCK_BYTES {
            return Ok(true);
        }
    }
}

fn fill(file: &mut File, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = block.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
