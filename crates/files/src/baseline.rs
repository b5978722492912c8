//! What a name was when a layer was made over it: enough to notice any change since, without keeping the content.
//!
//! An application that was put back leaves everything as it was but for change times, which nobody can set. So what is known
//! by its bytes and its metadata is the same also with another one.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use backout_model::{Digest, wide};
use rustix::buffer::spare_capacity;
use rustix::fs::{lgetxattr, llistxattr};
use serde::{Deserialize, Serialize};

/// Up to this size the bytes are looked at as well.
const DIGEST_BYTES_MAX: u64 = 64 * 1024;

/// The largest name list and value the kernel allows.
const XATTR_BYTES_MAX: usize = 64 * 1024;

/// What a name was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "was", rename_all = "kebab-case")]
pub enum Baseline {
    /// Nothing.
    Absent,
    /// Anything but a directory.
    Node {
        /// The device.
        #[serde(with = "wide")]
        dev: u64,
        /// The inode.
        #[serde(with = "wide")]
        ino: u64,
        /// The size in bytes.
        #[serde(with = "wide")]
        size: u64,
        /// When its content changed, in nanoseconds since 1970.
        #[serde(with = "wide")]
        mtime: i64,
        /// When anything of it changed.
        #[serde(with = "wide")]
        ctime: i64,
        /// Its bytes, if they are few and may be read; of a link, where it points.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<Digest>,
        /// Mode, owner and attributes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meta: Option<Digest>,
    },
    /// A directory by itself; its entries are not part of it.
    Directory {
        /// The device.
        #[serde(with = "wide")]
        dev: u64,
        /// The inode.
        #[serde(with = "wide")]
        ino: u64,
        /// The permission bits and the kind.
        mode: u32,
        /// The owner.
        uid: u32,
        /// The group.
        gid: u32,
    },
    /// A directory with all that is in it.
    Tree {
        /// The device.
        #[serde(with = "wide")]
        dev: u64,
        /// The inode.
        #[serde(with = "wide")]
        ino: u64,
        /// The newest change of anything in it.
        #[serde(with = "wide")]
        ctime: i64,
        /// A digest of names, inodes and change times.
        listing: Digest,
        /// A digest of names, kinds, modes, owners, sizes and, but for directories, times.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        looks: Option<Digest>,
        /// Mode, owner and attributes of the directory itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meta: Option<Digest>,
    },
}

impl Baseline {
    /// Looks at a path. With `whole`, a directory counts with all that is in it.
    pub fn of(path: &Path, whole: bool) -> io::Result<Self> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(error) if is_missing(&error) => return Ok(Self::Absent),
            Err(error) => return Err(error),
        };
        let (dev, ino) = (found.dev(), found.ino());
        if !found.is_dir() {
            let digest = if found.is_symlink() {
                Some(Digest::of(fs::read_link(path)?.as_os_str().as_bytes()))
            } else if found.is_file() && found.len() <= DIGEST_BYTES_MAX {
                digest(path)?
            } else {
                None
            };
            return Ok(Self::Node {
                dev,
                ino,
                size: found.len(),
                mtime: nanoseconds(found.mtime(), found.mtime_nsec()),
                ctime: ctime(&found),
                digest,
                meta: Some(meta(path, &found)),
            });
        }
        if !whole {
            return Ok(Self::Directory {
                dev,
                ino,
                mode: found.mode(),
                uid: found.uid(),
                gid: found.gid(),
            });
        }
        let mut listed = Listed {
            lines: Vec::new(),
            looks: Vec::new(),
            newest: ctime(&found),
        };
        listed.add(path)?;
        Ok(Self::Tree {
            dev,
            ino,
            ctime: listed.newest,
            listing: Digest::of(&listed.lines),
            looks: Some(Digest::of(&listed.looks)),
            meta: Some(meta(path, &found)),
        })
    }

    /// Tells whether it was changed at or after a moment, in nanoseconds since 1970. A directory by itself does not
    /// tell: its time speaks of its entries.
    pub const fn is_newer_than(&self, moment: i64) -> bool {
        match self {
            Self::Node { ctime, .. } | Self::Tree { ctime, .. } => *ctime >= moment,
            Self::Absent | Self::Directory { .. } => false,
        }
    }

    /// Tells whether the path is still what it was.
    pub fn still_holds(&self, path: &Path) -> io::Result<bool> {
        let now = self.again(path)?;
        Ok(now == *self || self.is_alike(&now))
    }

    /// Gives the same with the change times that it has now, if those are all that differs; of what is in a tree, also the
    /// numbers. It proves nothing but to whoever has put it back.
    pub fn put_back(&self, path: &Path) -> io::Result<Option<Self>> {
        let now = self.again(path)?;
        let mut same = self.clone();
        match (&mut same, &now) {
            (Self::Node { ctime, .. }, Self::Node { ctime: newer, .. }) => *ctime = *newer,
            (
                Self::Tree {
                    ctime,
                    listing,
                    looks: Some(_),
                    ..
                },
                Self::Tree {
                    ctime: newer,
                    listing: now,
                    ..
                },
            ) => (*ctime, *listing) = (*newer, *now),
            _ => {}
        }
        Ok((same == now).then_some(now))
    }

    fn again(&self, path: &Path) -> io::Result<Self> {
        Self::of(path, matches!(self, Self::Tree { .. }))
    }

    /// Tells whether all that can be seen is the same, where that is enough to know.
    fn is_alike(&self, now: &Self) -> bool {
        match (self, now) {
            (
                Self::Node {
                    size,
                    mtime,
                    digest: digest @ Some(_),
                    meta: meta @ Some(_),
                    ..
                },
                Self::Node {
                    size: size_now,
                    mtime: mtime_now,
                    digest: digest_now,
                    meta: meta_now,
                    ..
                },
            ) => (size, mtime, digest, meta) == (size_now, mtime_now, digest_now, meta_now),
            (
                Self::Tree {
                    dev,
                    ino,
                    listing,
                    meta: meta @ Some(_),
                    ..
                },
                Self::Tree {
                    dev: dev_now,
                    ino: ino_now,
                    listing: listing_now,
                    meta: meta_now,
                    ..
                },
            ) => (dev, ino, listing, meta) == (dev_now, ino_now, listing_now, meta_now),
            (Self::Absent | Self::Node { .. } | Self::Directory { .. } | Self::Tree { .. }, _) => {
                false
            }
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// What is in a tree.
struct Listed {
    lines: Vec<u8>,
    looks: Vec<u8>,
    newest: i64,
}

impl Listed {
    fn add(&mut self, directory: &Path) -> io::Result<()> {
        let mut names = Vec::new();
        let entries = match fs::read_dir(directory) {
            // Who may not look into it changes nothing in it, either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.lines.extend(b"closed\n");
                self.looks.extend(b"closed\n");
                return Ok(());
            }
            entries => entries?,
        };
        for entry in entries {
            names.push(entry?.file_name());
        }
        names.sort();
        for name in names {
            let path = directory.join(&name);
            let found = match fs::symlink_metadata(&path) {
                Err(error) if is_missing(&error) => continue,
                found => found?,
            };
            self.newest = ctime(&found).max(self.newest);
            self.lines.extend(name.as_bytes());
            self.lines
                .extend(format!("\0{} {}\n", found.ino(), ctime(&found)).into_bytes());
            self.looks.extend(name.as_bytes());
            self.looks.extend(looks(&found).into_bytes());
            if found.is_dir() {
                self.add(&path)?;
            }
        }
        self.lines.extend(b"\n");
        self.looks.extend(b"\n");
        Ok(())
    }
}

/// Says what stays the same when something is changed and put back. The time of a directory speaks of its entries.
fn looks(found: &Metadata) -> String {
    let (size, mtime) = if found.is_dir() {
        (0, 0)
    } else {
        let mtime = nanoseconds(found.mtime(), found.mtime_nsec());
        (found.len(), mtime)
    };
    let (mode, uid, gid) = (found.mode(), found.uid(), found.gid());
    format!("\0{mode:o} {uid}:{gid} {size} {mtime}\n")
}

/// Names the bytes of a file; none if they may not be read.
fn digest(path: &Path) -> io::Result<Option<Digest>> {
    let mut bytes = Vec::new();
    let limit = DIGEST_BYTES_MAX + 1;
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        file => {
            file?.take(limit).read_to_end(&mut bytes)?;
            Ok(Some(Digest::of(&bytes)))
        }
    }
}

/// Names mode, owner and attributes, as far as they may be seen.
fn meta(path: &Path, found: &Metadata) -> Digest {
    let mut all = format!("{:o} {}:{}\n", found.mode(), found.uid(), found.gid()).into_bytes();
    let mut names = Vec::with_capacity(XATTR_BYTES_MAX);
    let _none_if_there_are_none = llistxattr(path, spare_capacity(&mut names));
    let mut names: Vec<&[u8]> = names.split(|byte| *byte == 0).collect();
    names.sort_unstable();
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        let mut value = Vec::with_capacity(XATTR_BYTES_MAX);
        let _unseen = lgetxattr(path, OsStr::from_bytes(name), spare_capacity(&mut value));
        all.extend(name);
        all.extend(format!("={}\n", Digest::of(&value)).into_bytes());
    }
    Digest::of(&all)
}

fn ctime(found: &Metadata) -> i64 {
    nanoseconds(found.ctime(), found.ctime_nsec())
}

const fn nanoseconds(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_below_a_tree_is_noticed_and_none_is_none() {
        let root = tempfile::tempdir().unwrap();
        let tree = root.path().join("tree");
        fs::create_dir_all(tree.join("sub")).unwrap();
        fs::write(tree.join("sub/file"), "x").unwrap();
        let whole = Baseline::of(&tree, true).unwrap();
        let alone = Baseline::of(&tree, false).unwrap();
        assert!(whole.still_holds(&tree).unwrap());
        fs::write(tree.join("sub/new"), "x").unwrap();
        assert!(!whole.still_holds(&tree).unwrap());
        assert!(alone.still_holds(&tree).unwrap());
        let gone = Baseline::of(&root.path().join("gone"), true).unwrap();
        assert_eq!(gone, Baseline::Absent);
        assert!(whole.is_newer_than(0) && !gone.is_newer_than(0));
    }
}
