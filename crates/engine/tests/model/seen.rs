//! What can be seen of the world: every name with everything that an undo must bring back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use backout_testkit::world::xattrs;

/// A name, as bytes below the root; the root itself is empty.
pub(crate) type Rel = Vec<u8>;

/// Which inode it is. Numbers are used again, so the moment of birth tells two apart.
pub(crate) type Inode = (u64, Option<SystemTime>);

/// What one name stands for.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The type bits of the mode.
    pub(crate) kind: u32,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    /// Nanoseconds since 1970; none where nobody can foresee it.
    pub(crate) mtime: Option<i64>,
    /// Bytes, or where a link points.
    pub(crate) content: Vec<u8>,
    pub(crate) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) inode: Inode,
}

pub(crate) type Snapshot = BTreeMap<Rel, Seen>;

const DIRECTORY: u32 = 0o040_000;

impl Seen {
    pub(crate) const fn is_directory(&self) -> bool {
        self.kind == DIRECTORY
    }

    /// The same to a person: all but times and which inode it is.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.kind, self.mode, self.owner) == (other.kind, other.mode, other.owner)
            && self.content == other.content
            && self.xattrs == other.xattrs
    }

    /// The same for an undo: times too, where they are known. Those of directories speak of their entries
    /// and are compared on their own.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        let times = match (self.mtime, other.mtime) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => true,
        };
        self.is_like(other) && times
    }
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = &self.content[..self.content.len().min(24)];
        write!(
            f,
            "{:o} {:o} {:?} mtime {:?} {} bytes {:?} {} xattrs inode {}",
            self.kind,
            self.mode,
            self.owner,
            self.mtime,
            self.content.len(),
            String::from_utf8_lossy(start),
            self.xattrs.len(),
            self.inode.0,
        )
    }
}

/// Tells whether two optional names are alike.
pub(crate) fn alike(one: Option<&Seen>, other: Option<&Seen>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.is_like(other),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// Looks at everything below a directory.
pub(crate) fn look(root: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    look_at(root, root, &mut found);
    found
}

fn look_at(root: &Path, path: &Path, found: &mut Snapshot) {
    let stat = path.symlink_metadata().unwrap();
    let kind = stat.file_type();
    let content = if kind.is_symlink() {
        fs::read_link(path)
            .unwrap()
            .into_os_string()
            .as_bytes()
            .to_vec()
    } else if kind.is_file() {
        fs::read(path).unwrap()
    } else {
        Vec::new()
    };
    if kind.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            look_at(root, &entry.unwrap().path(), found);
        }
    }
    let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes();
    let seen = Seen {
        kind: stat.mode() & 0o170_000,
        mode: stat.mode() & 0o7777,
        owner: (stat.uid(), stat.gid()),
        mtime: Some(stat.mtime() * 1_000_000_000 + stat.mtime_nsec()),
        content,
        xattrs: xattrs(path),
        inode: (stat.ino(), stat.created().ok()),
    };
    found.insert(name.to_vec(), seen);
}
