//! What a name stands for, but for its bytes: kind, number, mode, owner, times and attributes.

use backout_model::wide;
use serde::{Deserialize, Serialize};

use crate::AnyBytes;

/// Attributes that the system gives to new files by its own rules. They are compared and restored where
/// an image names them, and tolerated where it does not.
const SYSTEM_GIVEN: [&[u8]; 3] = [b"security.selinux", b"security.ima", b"security.evm"];

/// Tells whether an attribute is a note that an overlay keeps for itself.
pub fn is_overlay_note(name: &[u8]) -> bool {
    name.starts_with(b"trusted.overlay.") || name.starts_with(b"user.overlay.")
}

/// Tells whether the system itself gives files this attribute.
pub fn is_system_given(name: &[u8]) -> bool {
    SYSTEM_GIVEN.contains(&name)
}

/// The kinds of inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharacterDevice,
}

impl Kind {
    /// Says what it is, with its article.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Directory => "a directory",
            Self::Symlink => "a symbolic link",
            Self::Fifo => "a pipe",
            Self::Socket => "a socket",
            Self::BlockDevice | Self::CharacterDevice => "a device",
        }
    }

    /// Says what it is, without an article.
    pub fn word(self) -> &'static str {
        self.noun().strip_prefix("a ").unwrap_or_default()
    }
}

/// Which inode it is, and in which state. Device numbers change over a reboot, so they are noted but not
/// compared; times are nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The device.
    #[serde(with = "wide")]
    pub dev: u64,
    /// The inode.
    #[serde(with = "wide")]
    pub ino: u64,
    /// The size in bytes.
    #[serde(with = "wide")]
    pub size: u64,
    /// When its content changed.
    #[serde(with = "wide")]
    pub mtime: i128,
    /// When anything of it changed.
    #[serde(with = "wide")]
    pub ctime: i128,
}

/// Access and modification time, in nanoseconds since 1970; wide enough for every time that a file system can keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// When it was last read.
    #[serde(with = "wide")]
    pub atime: i128,
    /// When it was last changed.
    #[serde(with = "wide")]
    pub mtime: i128,
}

/// Everything about an inode but its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The permission bits, with setuid, setgid and sticky.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The times to give it; none for "whenever it is made".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
    /// Extended attributes and ACLs, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub xattrs: Vec<(AnyBytes, AnyBytes)>,
    /// The inode flags that people set; none where nobody changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<u32>,
}

impl Meta {
    /// Tells whether times are part of a change from this to `after`: where both are told and differ.
    pub fn changes_times_to(&self, after: &Self) -> bool {
        matches!((self.times, after.times), (Some(was), Some(is)) if was != is)
    }
}

/// Says how metadata differs, times aside.
pub fn differs_in_meta(now: &Meta, wanted: &Meta, kind: Kind) -> Option<String> {
    if kind != Kind::Symlink && now.mode != wanted.mode {
        return Some(format!("mode is {:04o}, was {:04o}", now.mode, wanted.mode));
    }
    if (now.uid, now.gid) != (wanted.uid, wanted.gid) {
        let (now, was) = ((now.uid, now.gid), (wanted.uid, wanted.gid));
        return Some(format!(
            "owner is {}:{}, was {}:{}",
            now.0, now.1, was.0, was.1
        ));
    }
    if wanted.flags.is_some() && now.flags.is_some() && now.flags != wanted.flags {
        return Some("its inode flags changed".to_owned());
    }
    for (name, value) in &wanted.xattrs {
        match now.xattrs.iter().find(|(other, _)| other == name) {
            None => return Some(format!("attribute {name:?} is gone")),
            Some((_, other)) if other != value => {
                return Some(format!("attribute {name:?} changed"));
            }
            Some(_) => {}
        }
    }
    let extra = now.xattrs.iter().find(|(name, _)| {
        !is_system_given(&name.0) && !wanted.xattrs.iter().any(|(other, _)| other == name)
    });
    extra.map(|(name, _)| format!("attribute {name:?} is new"))
}

/// Compares only the fields that the change changed: others may change theirs.
pub fn differs_where_changed(now: &Meta, wanted: &Meta, other: &Meta) -> Option<String> {
    let mut seen = wanted.clone();
    let mut reference = wanted.clone();
    if wanted.mode != other.mode {
        seen.mode = now.mode;
    }
    if (wanted.uid, wanted.gid) != (other.uid, other.gid) {
        (seen.uid, seen.gid) = (now.uid, now.gid);
    }
    if wanted.xattrs != other.xattrs {
        seen.xattrs.clone_from(&now.xattrs);
    }
    if wanted.flags != other.flags {
        seen.flags = now.flags;
    }
    let mtime = |meta: &Meta| meta.times.map(|times| times.mtime);
    if wanted.changes_times_to(other) && mtime(now) != mtime(wanted) {
        return Some("its time changed".to_owned());
    }
    seen.times = None;
    reference.times = None;
    differs_in_meta(&seen, &reference, Kind::File)
}

/// Takes the fields that a change changed back to what they were, and leaves the others as they are.
pub fn put_back_changed(now: &Meta, before: &Meta, after: &Meta) -> Meta {
    let mut wanted = now.clone();
    if before.mode != after.mode {
        wanted.mode = before.mode;
    }
    if (before.uid, before.gid) != (after.uid, after.gid) {
        (wanted.uid, wanted.gid) = (before.uid, before.gid);
    }
    if before.xattrs != after.xattrs {
        wanted.xattrs.clone_from(&before.xattrs);
    }
    if before.flags != after.flags {
        wanted.flags = before.flags;
    }
    if before.changes_times_to(after) {
        wanted.times = before.times;
    }
    wanted
}
