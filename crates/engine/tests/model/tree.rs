//! Random trees: every kind of inode that needs no device, with odd modes, owners, attributes and times.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

use crate::dice::Dice;
use crate::names::{COUNT, DIRECTORIES, Name};

/// What an entry of the first tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Empty,
    Text,
    Large,
    Sparse,
    Directory,
    LinkTo(Name),
    HardLinkTo(Name),
    Fifo,
    Socket,
}

/// One entry of the first tree. It is left out where its directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    name: Name,
    kind: Kind,
    mode: Option<u32>,
    owner: Option<u32>,
    has_attributes: bool,
    has_acl: bool,
    /// Nanoseconds since 1970.
    mtime: i64,
}

const MODES: [u32; 8] = [0o644, 0o600, 0o4755, 0o2755, 0o1777, 0o000, 0o444, 0o777];

/// Makes up a tree.
pub(crate) fn imagine(dice: &mut Dice) -> Vec<Item> {
    let mut items = Vec::new();
    for name in (0..COUNT).map(Name) {
        let percent = if dice.likes(name) || DIRECTORIES.contains(&name) {
            85
        } else {
            30
        };
        if !dice.chance(percent) {
            continue;
        }
        let kind = if DIRECTORIES.contains(&name) && dice.chance(85) {
            Kind::Directory
        } else {
            any_kind(dice)
        };
        let second = i64::try_from(1_000_000_000 + dice.roll(600_000_000)).unwrap_or(0);
        let nanos = i64::try_from(dice.roll(1_000_000_000)).unwrap_or(0);
        items.push(Item {
            name,
            kind,
            mode: dice.chance(40).then(|| dice.pick(&MODES)),
            owner: dice.chance(20).then_some(1234),
            has_attributes: dice.chance(25),
            has_acl: dice.chance(10),
            mtime: second * 1_000_000_000 + nanos,
        });
    }
    items
}

fn any_kind(dice: &mut Dice) -> Kind {
    match dice.roll(16) {
        0 => Kind::Empty,
        1..=5 => Kind::Text,
        6 => Kind::Large,
        7 => Kind::Sparse,
        8 => Kind::Directory,
        9 | 10 => Kind::LinkTo(dice.name()),
        11..=13 => Kind::HardLinkTo(dice.name()),
        14 => Kind::Fifo,
        _ => Kind::Socket,
    }
}

/// The text that every text file begins as: lines enough for two changes to keep out of each other's way.
pub(crate) fn text(changed: usize, with: &str) -> Vec<u8> {
    let line = |number: usize| {
        if number == changed {
            format!("{with}\n")
        } else {
            format!("line {number}\n")
        }
    };
    (1..=20).map(line).collect::<String>().into_bytes()
}

/// Makes the tree. What cannot be made (a link to nothing, an entry of a file) is left out.
pub(crate) fn plant(root: &Path, items: &[Item]) {
    for item in items {
        let _left_out = make(root, item);
    }
    // Deepest last in the list, so from the end: an entry made later would touch its directory again.
    for item in items.iter().rev() {
        let path = item.name.below(root);
        if path.symlink_metadata().is_ok() {
            dress(&path, item);
        }
    }
}

fn make(root: &Path, item: &Item) -> std::io::Result<()> {
    let path = item.name.below(root);
    let at = |name: Name| name.below(root);
    let special = |kind: FileType| {
        rustix::fs::mknodat(CWD, &path, kind, Mode::from_raw_mode(0o640), 0)
            .map_err(std::io::Error::from)
    };
    if item.name.0 == COUNT - 1 {
        fs::create_dir_all(path.parent().unwrap_or(root))?;
    }
    match item.kind {
        Kind::Empty => fs::write(&path, ""),
        Kind::Text => fs::write(&path, text(item.name.0 % 20, "mine")),
        Kind::Large => fs::write(
            &path,
            vec![b'0' + u8::try_from(item.name.0).unwrap_or(0); 70_000],
        ),
        Kind::Sparse => fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&path)?
            .set_len(300_000),
        Kind::Directory => fs::create_dir(&path),
        Kind::LinkTo(to) => symlink(std::ffi::OsStr::new(&to.below(Path::new(""))), &path),
        Kind::HardLinkTo(to) => fs::hard_link(at(to), &path),
        Kind::Fifo => special(FileType::Fifo),
        Kind::Socket => special(FileType::Socket),
    }
}

fn dress(path: &Path, item: &Item) {
    let is_root = rustix::process::geteuid().is_root();
    let is_link = path.is_symlink();
    if let (Some(owner), true) = (item.owner, is_root) {
        let _as_far_as_allowed = std::os::unix::fs::lchown(path, Some(owner), Some(owner));
    }
    let is_regular = path
        .symlink_metadata()
        .is_ok_and(|found| found.is_file() || found.is_dir());
    if item.has_attributes && is_regular {
        set_attribute(path, "user.note", b"kept\0\xff");
    }
    if item.has_acl && is_regular {
        set_attribute(path, "system.posix_acl_access", &acl());
    }
    if let (Some(mode), false) = (item.mode, is_link) {
        // An ordinary user must still be able to look at everything.
        let mode = if is_root { mode } else { mode | 0o700 };
        let _as_far_as_allowed = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    }
    set_mtime(path, item.mtime);
}

pub(crate) fn set_attribute(path: &Path, name: &str, value: &[u8]) {
    let _where_supported = rustix::fs::lsetxattr(path, name, value, XattrFlags::empty());
}

fn set_mtime(path: &Path, nanoseconds: i64) {
    let stamp = Timespec {
        tv_sec: nanoseconds.div_euclid(1_000_000_000),
        tv_nsec: nanoseconds.rem_euclid(1_000_000_000),
    };
    let times = Timestamps {
        last_access: stamp,
        last_modification: stamp,
    };
    let _set = rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

/// `user::rwx, user:1234:rwx, group::r--, mask::rwx, other::r--`
fn acl() -> Vec<u8> {
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in [
        (1_u16, 7_u16, u32::MAX),
        (2, 7, 1234),
        (4, 4, u32::MAX),
        (16, 7, u32::MAX),
        (32, 4, u32::MAX),
    ] {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}
