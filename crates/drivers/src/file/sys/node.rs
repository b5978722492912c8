//! What `stat` tells about an inode, in our own words.

use rustix::fs::{FileType, Stat};

use crate::file::recipe::{Identity, Kind, Times};

/// An inode as `stat` sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    /// What it is.
    pub(crate) kind: Kind,
    /// Which it is.
    pub(crate) identity: Identity,
    /// Whether it has more than one name.
    pub(crate) is_shared: bool,
    /// The permission bits.
    pub(crate) mode: u32,
    /// The owner.
    pub(crate) uid: u32,
    /// The group.
    pub(crate) gid: u32,
    /// When it was read and changed.
    pub(crate) times: Times,
    /// The device's number, of a device.
    pub(crate) device: u64,
}

impl Node {
    /// Reads what the system says.
    pub(crate) fn of(stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            FileType::BlockDevice => Kind::BlockDevice,
            FileType::CharacterDevice => Kind::CharacterDevice,
            FileType::RegularFile | FileType::Unknown => Kind::File,
        };
        let mtime = nanoseconds(stat.st_mtime, stat.st_mtime_nsec);
        Self {
            kind,
            identity: Identity {
                dev: stat.st_dev,
                ino: stat.st_ino,
                size: u64::try_from(stat.st_size).unwrap_or(0),
                mtime,
                ctime: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
            },
            is_shared: kind != Kind::Directory && stat.st_nlink > 1,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            times: Times {
                atime: nanoseconds(stat.st_atime, stat.st_atime_nsec),
                mtime,
            },
            device: stat.st_rdev,
        }
    }

    /// Tells whether this is the inode that was seen, in the same state. Our own rename touches the
    /// change time, so that is only compared where none of ours lies in between.
    pub(crate) fn is_still(&self, seen: &Self, with_ctime: bool) -> bool {
        if self.kind != seen.kind || self.identity.ino != seen.identity.ino {
            return false;
        }
        // A directory's size and time speak of its entries, which are not part of it.
        self.kind == Kind::Directory
            || self.identity.size == seen.identity.size
                && self.identity.mtime == seen.identity.mtime
                && (self.mode, self.uid, self.gid) == (seen.mode, seen.uid, seen.gid)
                && (!with_ctime || self.identity.ctime == seen.identity.ctime)
    }

    /// Tells whether this is the kept inode, unchanged. A directory is known by its number alone.
    pub(crate) fn is_kept(&self, kind: Kind, identity: &Identity) -> bool {
        self.kind == kind
            && self.identity.ino == identity.ino
            && (kind == Kind::Directory
                || self.identity.size == identity.size && self.identity.mtime == identity.mtime)
    }

    /// Tells whether this is the kept inode of a file that has other names, and was written by one of them: what was kept is
    /// the name.
    pub(crate) fn is_kept_name(&self, kind: Kind, identity: &Identity) -> bool {
        self.is_shared && self.kind == kind && self.identity.ino == identity.ino
    }

    /// Tells whether this could be what was moved, made anew: an undo that puts a file back by its bytes gives it
    /// another number and the same size and time. Enough to move it on, never enough to take its content for granted.
    pub(crate) fn looks_like(&self, kind: Kind, identity: &Identity) -> bool {
        self.kind == kind
            && self.identity.mtime == identity.mtime
            && (kind == Kind::Directory || self.identity.size == identity.size)
    }
}

pub(crate) fn nanoseconds(seconds: i64, nanos: impl Into<i128>) -> i128 {
    i128::from(seconds) * 1_000_000_000 + nanos.into()
}
