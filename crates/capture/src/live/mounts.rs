//! Files that a process reaches by mounts of its own: where they are for us. And files that it reaches by several mounts:
//! they are known by the first path that was used.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::fs::{CWD, Mode, OFlags, fstat, fstatvfs, makedev, openat};

use super::process_info::Scene;
use super::resolve::{Held, is_same, leads_to};

/// One line of what is mounted where.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    id: u64,
    device: Vec<u8>,
    /// Which directory of its file system is seen.
    root: PathBuf,
    /// The mount point.
    at: PathBuf,
}

/// What was mounted before the command first changed that.
static BEFORE: OnceLock<Vec<Mount>> = OnceLock::new();

/// The directories of devices that are mounted more than once, by number: the path that each was first reached by.
static FIRST: Mutex<BTreeMap<(u64, u64), PathBuf>> = Mutex::new(BTreeMap::new());

/// So many of them are remembered.
const FIRST_MAX: usize = 100_000;

/// Remembers what is mounted: a call that changes it is about to happen.
pub(super) fn remember() {
    BEFORE.get_or_init(|| mounts("self"));
}

/// Tells whether every directory of a device has one path.
pub(super) fn is_seen_once(device: u64) -> bool {
    !seen_twice().contains(&device)
}

/// Gives a directory of a task as we see it, if we do.
pub(super) fn seen(thread: u32, scene: Scene, dir: Held, path: Vec<u8>) -> (Held, PathBuf) {
    let path = PathBuf::from(OsString::from_vec(path));
    if scene.is_plain() && !scene.has_new_mounts {
        return by_first_path(dir, path);
    }
    let is_new = || {
        let before = BEFORE.get().zip(mount_of(dir.as_fd()));
        before.is_some_and(|(before, id)| before.iter().all(|mount| mount.id != id))
    };
    let is_lasting = !scene.is_plain() || !is_new();
    let ours = if is_lasting && leads_to(&path, dir.as_fd()) {
        Some(path.clone())
    } else {
        ours(thread, dir.as_fd(), &path)
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = ours.and_then(|ours| {
        let opened = openat(CWD, &ours, flags, Mode::empty()).ok()?;
        Some((Held::new(opened), ours))
    });
    opened.unwrap_or((dir, path))
}

/// Finds where something is for us that a task reaches at `path` of its own mounts.
pub(super) fn ours(thread: u32, opened: BorrowedFd<'_>, path: &Path) -> Option<PathBuf> {
    let id = mount_of(opened)?;
    let theirs = mounts(&thread.to_string());
    let theirs = theirs.iter().find(|mount| mount.id == id)?;
    let inner = theirs.root.join(path.strip_prefix(&theirs.at).ok()?);
    let here = BEFORE.get().cloned().unwrap_or_else(|| mounts("self"));
    let mut same = here
        .into_iter()
        .filter(|mount| mount.device == theirs.device);
    same.find_map(|mount| {
        let rest = inner.strip_prefix(&mount.root).ok()?;
        let path = if rest.as_os_str().is_empty() {
            mount.at
        } else {
            mount.at.join(rest)
        };
        leads_to(&path, opened).then_some(path)
    })
}

/// Gives a directory by the path that it was first reached by, if another mount shows it there still, with the same rights.
/// One file must not be taken for two.
pub(super) fn by_first_path(dir: Held, path: PathBuf) -> (Held, PathBuf) {
    let Ok(found) = fstat(&dir) else {
        return (dir, path);
    };
    if is_seen_once(found.st_dev) {
        return (dir, path);
    }
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    if first.len() >= FIRST_MAX {
        first.clear();
    }
    let known = first.entry((found.st_dev, found.st_ino));
    let known = known.or_insert_with(|| path.clone());
    if *known == path {
        return (dir, path);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, known.as_path(), flags, Mode::empty()).ok();
    let rights = |dir: &OwnedFd| fstatvfs(dir).map(|found| found.f_flag).ok();
    let is_it =
        |opened: &OwnedFd| is_same(&found, opened.as_fd()) && rights(opened) == rights(&dir);
    if let Some(opened) = opened.filter(is_it) {
        return (Held::new(opened), known.clone());
    }
    known.clone_from(&path);
    (dir, path)
}

/// Lists the devices that are mounted more than once.
fn seen_twice() -> &'static HashSet<u64> {
    static TWICE: OnceLock<HashSet<u64>> = OnceLock::new();
    TWICE.get_or_init(|| {
        let mut once = HashSet::new();
        let devices = mounts("self").into_iter();
        let devices = devices.filter_map(|mount| device(&mount.device));
        devices.filter(|device| !once.insert(*device)).collect()
    })
}

/// Reads a device such as `8:1`.
fn device(text: &[u8]) -> Option<u64> {
    let (major, minor) = std::str::from_utf8(text).ok()?.split_once(':')?;
    Some(makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// Tells whether something is on a file system that we see as well.
pub fn is_on_ours(opened: BorrowedFd<'_>) -> bool {
    let here = BEFORE.get().cloned().unwrap_or_else(|| mounts("self"));
    rustix::fs::fstat(opened).is_ok_and(|stat| {
        let (major, minor) = (
            rustix::fs::major(stat.st_dev),
            rustix::fs::minor(stat.st_dev),
        );
        let device = format!("{major}:{minor}").into_bytes();
        here.iter().any(|mount| mount.device == device)
    })
}

/// Gives the number of the mount that something is reached by.
fn mount_of(opened: BorrowedFd<'_>) -> Option<u64> {
    let number = opened.as_raw_fd();
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
    let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    id.trim().parse().ok()
}

fn mounts(who: &str) -> Vec<Mount> {
    let text = std::fs::read(format!("/proc/{who}/mountinfo")).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(mount).collect()
}

fn mount(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let device = words.nth(1)?.to_vec();
    let path = |word: &[u8]| PathBuf::from(OsString::from_vec(plain(word)));
    let (root, at) = (path(words.next()?), path(words.next()?));
    Some(Mount {
        id,
        device,
        root,
        at,
    })
}

/// Takes back how the system writes blanks and their like: as three octal digits.
fn plain(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, others)) = rest.split_first() {
        let digits = others
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let coded = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let (b'\\', Some(byte)) = (*first, coded) {
            bytes.push(byte);
            rest = others.get(3..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = others;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mounts() {
        let line = br"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - ext3 /dev/root rw";
        let expected = Mount {
            id: 36,
            device: b"98:0".to_vec(),
            root: PathBuf::from("/mnt1"),
            at: PathBuf::from("/mnt 2"),
        };
        assert_eq!(mount(line), Some(expected));
        assert_eq!(mount(b""), None);
    }
}
