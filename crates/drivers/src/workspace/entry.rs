//! What a tree says of one name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use backout_model::Digest;
use backout_model::ports::ContentsError;
use serde::{Deserialize, Serialize};

use crate::file::any_bytes::AnyBytes;
use crate::file::recipe::{Holes, Kind, Meta, Times};
use backout_files::Objects;

/// One name of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) name: AnyBytes,
    pub(super) kind: Kind,
    /// Mode, owner, attributes; of a directory no times, since those speak of its entries.
    pub(super) meta: Meta,
    /// The bytes of a file; of a directory, its tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<Digest>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) size: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) holes: Holes,
    /// Where a symbolic link points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<AnyBytes>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) device: u64,
    /// The number of a file that has several names: those of the same number are one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) number: Option<u64>,
    /// Why it is not kept, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unread: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Entry {
    pub(super) fn os_name(&self) -> &OsStr {
        OsStr::from_bytes(&self.name.0)
    }

    /// Tells whether two names stand for the same, whatever lies in a directory.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let bytes = |it: &Self| (it.kind != Kind::Directory).then_some(it.digest);
        self.kind == other.kind
            && self.meta == other.meta
            && bytes(self) == bytes(other)
            && self.to == other.to
            && self.device == other.device
            && self.unread.is_some() == other.unread.is_some()
    }
}

/// Leaves out of what is known about an inode what changes without anybody's doing.
pub(super) fn lasting(mut meta: Meta, kind: Kind) -> Meta {
    meta.times = match (kind, meta.times) {
        (Kind::Directory, _) | (_, None) => None,
        // Reading a file changes nothing of it.
        (_, Some(times)) => Some(Times {
            atime: times.mtime,
            mtime: times.mtime,
        }),
    };
    meta
}

/// Writes a tree.
pub(super) fn to_bytes(entries: &[Entry]) -> Result<Vec<u8>, ContentsError> {
    serde_json::to_vec(entries).map_err(|error| ContentsError::Store(Box::new(error)))
}

/// Reads a tree.
pub(super) fn tree(objects: &dyn Objects, digest: &Digest) -> Result<Vec<Entry>, ContentsError> {
    let bytes = objects.tree(digest)?;
    serde_json::from_slice(&bytes).map_err(|error| ContentsError::Damaged {
        digest: *digest,
        detail: error.to_string(),
    })
}
