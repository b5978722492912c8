//! The names that stories are about: few, so that steps meet; odd, so that nothing is taken for granted.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A name of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(pub(crate) usize);

/// Parents stand before what is in them.
const PLAIN: [&[u8]; 18] = [
    b"a",
    b"A",
    b"b",
    b"-rf",
    b"new\nline",
    b"caf\xe9",
    b"d",
    b"d/a",
    b"d/A",
    b"d/e",
    b"d/e/b",
    b"d/e/\xff\xfe",
    b"D",
    b"D/a",
    b"link",
    b"d/link",
    b"D/new\nline",
    b" ",
];

/// The names of directories that others are in.
pub(crate) const DIRECTORIES: [Name; 3] = [Name(6), Name(9), Name(12)];

/// How many names there are: the plain ones, one of 255 bytes, and one at the end of a long path.
pub(crate) const COUNT: usize = PLAIN.len() + 2;

impl Name {
    pub(crate) fn bytes(self) -> Vec<u8> {
        match PLAIN.get(self.0) {
            Some(name) => name.to_vec(),
            None if self.0 == PLAIN.len() => vec![b'n'; 255],
            None => {
                // Within what one path may have, state directory and temporary names included.
                let part = [b'p'; 240];
                [b"d".as_slice(), &part, &part, &part, &part, b"x"].join(b"/".as_slice())
            }
        }
    }

    pub(crate) fn below(self, root: &Path) -> PathBuf {
        root.join(OsStr::from_bytes(&self.bytes()))
    }
}
