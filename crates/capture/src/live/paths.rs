//! The paths of directories that are used again and again, and the ways to them.
//!
//! The system tells the path of what is open, but that question costs more than most calls do. A path stays what it is until
//! the directory, or one above it, is renamed or goes away. So does a way that leads down without a link or a dot. The kernel
//! tells of that (inotify), and whatever it tells, all is forgotten. Where it cannot be told, nothing is remembered. Whoever waits
//! for calls waits for that as well: if it was silent when a call was there, it need not be asked again for that call.
//!
//! Directories are known by their numbers, so only on file systems that are known to give each its own.
//!
//! A directory at the end of a way is held open, so that its file system cannot be unmounted. So ways are forgotten as soon as
//! no calls come, and when somebody mounts something or the command changes the rights to a directory: a way may lead elsewhere
//! or be closed then.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{fstat, fstatfs};
use rustix::io::Errno;

use super::reach::path_text;
use super::resolve::Held;

/// So many are remembered.
const KNOWN_MAX: usize = 256;

/// So many are held open.
const WAYS_MAX: usize = 64;

/// ext4, XFS, Btrfs, F2FS, bcachefs, ZFS, tmpfs and overlays.
const WELL_NUMBERED: [i64; 8] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0xf2f5_2010,
    0xca45_1a4e,
    0x2fc1_2fc1,
    0x0102_1994,
    0x794c_7630,
];

/// A directory by its device and number.
pub(super) type Number = (u64, u64);

thread_local! {
    static PATHS: RefCell<Paths> = RefCell::default();
}

/// What is remembered.
#[derive(Debug, Default)]
struct Paths {
    /// Tells of directories that move or go; none if nothing is remembered.
    inotify: Option<Held>,
    /// Whether it was silent when the call was there that is looked at now.
    is_silent: bool,
    watched: HashMap<PathBuf, i32>,
    known: HashMap<Number, Vec<u8>>,
    /// By what they lead along.
    ways: HashMap<Vec<u8>, Way>,
    /// The directory that was last asked for and known, and the one that was not.
    asked: Option<Number>,
    missed: Option<Number>,
}

/// Where a way begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    Root,
    Directory(Number),
}

/// Where a way leads.
#[derive(Debug)]
struct Way {
    from: Beginning,
    to: Held,
    number: Number,
}

/// Tells where the way begins that is known to lead along a path.
pub(super) fn begins(along: &[u8]) -> Option<Beginning> {
    PATHS.with_borrow(|paths| paths.ways.get(along).map(|way| way.from))
}

/// Goes the way that is known to lead along a path. Gives the directory, its number and its path.
pub(super) fn led(along: &[u8]) -> Option<(Held, Number, Vec<u8>)> {
    PATHS.with_borrow_mut(|paths| {
        paths.hear();
        let way = paths.ways.get(along)?;
        let path = paths.known.get(&way.number)?;
        // One that is gone is held open, and is not told of then.
        let is_there = fstat(&way.to).is_ok_and(|found| found.st_nlink > 0);
        is_there.then(|| (Held::clone(&way.to), way.number, path.clone()))
    })
}

/// Remembers that a way which leads along a path, without a link or a dot, ends at a directory. It must have been known
/// before that way was gone, and asked for since: then nothing moved meanwhile.
pub(super) fn leads(from: Beginning, along: &[u8], to: &Held, number: Number) {
    PATHS.with_borrow_mut(|paths| {
        if paths.asked != Some(number) {
            return;
        }
        if paths.ways.len() >= WAYS_MAX {
            paths.ways.clear();
        }
        let to = Held::clone(to);
        paths.ways.insert(along.to_vec(), Way { from, to, number });
    });
}

/// Tells whether a way along a path may be gone again: the directory that was last asked for was asked for before.
pub(super) fn is_worth_it(along: &[u8]) -> bool {
    PATHS.with_borrow(|paths| {
        let is_end = |path: &Vec<u8>| path.ends_with(along);
        let last = paths.asked.and_then(|number| paths.known.get(&number));
        last.is_some_and(is_end)
    })
}

/// Gives what tells of directories that move or go.
pub(super) fn ear() -> Option<Held> {
    PATHS.with_borrow(|paths| paths.inotify.clone())
}

/// A call is there, and what tells of directories was looked at after it came: what it said then counts for the whole call.
pub(super) fn heard(has_told: bool) {
    PATHS.with_borrow_mut(|paths| {
        paths.is_silent = false;
        if has_told {
            paths.hear();
        }
        paths.is_silent = true;
    });
}

/// What was heard counts no longer: time went by.
pub(super) fn listen() {
    PATHS.with_borrow_mut(|paths| paths.is_silent = false);
}

/// Lets go of all directories that are held open.
pub(super) fn let_go() {
    listen();
    PATHS.with_borrow_mut(|paths| paths.ways.clear());
}

/// Gives the path of a directory, if it is known and still its path.
pub(super) fn known(number: Number) -> Option<Vec<u8>> {
    PATHS.with_borrow_mut(|paths| {
        paths.hear();
        let path = paths.known.get(&number).cloned();
        paths.asked = path.as_ref().map(|_| number);
        path
    })
}

/// Remembers the path of an open directory that is asked for twice in a row.
pub(super) fn learn(number: Number, dir: BorrowedFd<'_>, path: &[u8]) {
    PATHS.with_borrow_mut(|paths| {
        if paths.missed.replace(number) != Some(number) {
            return;
        }
        if paths.known.len() >= KNOWN_MAX {
            paths.forget();
        }
        let is_one = fstatfs(dir).is_ok_and(|found| WELL_NUMBERED.contains(&found.f_type));
        let is_watched = is_one && paths.watch(Path::new(OsStr::from_bytes(path))).is_ok();
        // It may have moved before somebody looked.
        if is_watched && path_text(dir).is_ok_and(|now| now == path) {
            paths.known.insert(number, path.to_vec());
        }
    });
}

impl Paths {
    /// Forgets all if any of them may have another path now.
    fn hear(&mut self) {
        if !self.is_silent && self.inotify.as_deref().is_some_and(has_told) {
            self.forget();
        }
    }

    /// Forgets all. The descriptor stays: to close it, the kernel would have us wait for milliseconds.
    fn forget(&mut self) {
        let old = std::mem::take(self);
        let Some(inotify) = old.inotify else {
            return;
        };
        for watch in old.watched.into_values() {
            // It may be gone with its directory.
            let _gone = inotify::remove_watch(&inotify, watch);
        }
        // That they are gone is told as well.
        has_told(&inotify);
        self.inotify = Some(inotify);
    }

    /// Wants to be told when a directory or one above it moves or goes.
    fn watch(&mut self, path: &Path) -> Result<(), Errno> {
        let inotify = match self.inotify.take() {
            Some(inotify) => inotify,
            None => Held::new(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?),
        };
        let inotify = self.inotify.insert(inotify);
        let flags = WatchFlags::MOVE_SELF
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        // From the top, so that all above one that is watched are watched, too.
        let mut all: Vec<&Path> = path.ancestors().collect();
        all.reverse();
        for at in all {
            if !self.watched.contains_key(at) {
                let watch = inotify::add_watch(&*inotify, at, flags)?;
                self.watched.insert(at.to_path_buf(), watch);
            }
        }
        Ok(())
    }
}

/// Tells whether anything was told since the last time.
fn has_told(inotify: &OwnedFd) -> bool {
    let mut events = [0; 4096];
    let mut is_told = false;
    loop {
        match rustix::io::read(inotify, &mut events) {
            Err(Errno::AGAIN) => return is_told,
            Err(Errno::INTR) => {}
            Ok(1..) => is_told = true,
            Ok(_) | Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use rustix::fs::{CWD, Mode, OFlags, openat};

    use super::*;

    #[test]
    fn a_path_is_known_until_a_directory_above_it_moves_or_goes() {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().canonicalize().unwrap();
        let look = |path: &Path| {
            let dir = openat(CWD, path, OFlags::PATH, Mode::empty()).unwrap();
            let found = fstat(&dir).unwrap();
            let number = (found.st_dev, found.st_ino);
            let known = known(number);
            if known.is_none() {
                learn(number, dir.as_fd(), path.as_os_str().as_bytes());
            }
            known
        };
        let [first, second] = ["a/b/c", "x/b/c"].map(|path| root.join(path));
        let text = |path: &Path| Some(path.as_os_str().as_bytes().to_vec());
        std::fs::create_dir_all(&first).unwrap();
        assert_eq!(look(&first), None);
        assert_eq!(look(&first), None);
        assert_eq!(look(&first), text(&first));
        std::fs::write(first.join("file"), "x").unwrap();
        let mode = std::fs::metadata(first.join("file")).unwrap().permissions();
        std::fs::set_permissions(first.join("file"), mode).unwrap();
        std::fs::remove_file(first.join("file")).unwrap();
        assert_eq!(look(&first), text(&first), "only moves count");
        std::fs::rename(root.join("a"), root.join("x")).unwrap();
        assert_eq!(look(&second), None, "it moved");
        assert_eq!(look(&second), None);
        assert_eq!(look(&second), text(&second));
        std::fs::remove_dir_all(&second).unwrap();
        std::fs::create_dir_all(&second).unwrap();
        assert_eq!(look(&second), None, "another has its number, perhaps");
    }

    #[test]
    fn what_was_silent_when_a_call_came_counts_for_that_call_alone() {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().canonicalize().unwrap();
        let dir = root.join("a");
        std::fs::create_dir(&dir).unwrap();
        let open = openat(CWD, &dir, OFlags::PATH, Mode::empty()).unwrap();
        let found = fstat(&open).unwrap();
        let number = (found.st_dev, found.st_ino);
        for _ in 0..2 {
            learn(number, open.as_fd(), dir.as_os_str().as_bytes());
        }
        assert!(known(number).is_some());
        std::fs::rename(&dir, root.join("b")).unwrap();
        heard(false);
        assert!(known(number).is_some(), "it moved after that call came");
        listen();
        assert_eq!(known(number), None);
    }
}
