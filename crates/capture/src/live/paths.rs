//! The paths of directories that are used again and again.
//!
//! The system tells the path of what is open, but that question costs more than most calls do. A path stays what it is until
//! the directory, or one above it, is renamed or goes away. The kernel tells of that (inotify), and whatever it tells, all is
//! forgotten. Where it cannot be told, nothing is remembered.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

use super::reach::path_text;

/// So many are remembered.
const KNOWN_MAX: usize = 1024;

/// A directory by its device and number.
pub(super) type Number = (u64, u64);

thread_local! {
    static PATHS: RefCell<Paths> = RefCell::default();
}

/// What is remembered.
#[derive(Debug, Default)]
struct Paths {
    /// Tells of directories that move or go; none if nothing is remembered.
    inotify: Option<OwnedFd>,
    watched: HashSet<PathBuf>,
    known: HashMap<Number, Vec<u8>>,
    /// The directory that was last asked for and not known.
    missed: Option<Number>,
}

/// Gives the path of a directory, if it is known and still its path.
pub(super) fn known(number: Number) -> Option<Vec<u8>> {
    PATHS.with_borrow_mut(|paths| {
        if paths.has_moved() {
            *paths = Paths::default();
        }
        paths.known.get(&number).cloned()
    })
}

/// Remembers the path of an open directory that is asked for twice in a row.
pub(super) fn learn(number: Number, dir: BorrowedFd<'_>, path: &[u8]) {
    PATHS.with_borrow_mut(|paths| {
        if paths.missed.replace(number) != Some(number) {
            return;
        }
        if paths.known.len() >= KNOWN_MAX {
            *paths = Paths::default();
        }
        let is_watched = paths.watch(Path::new(OsStr::from_bytes(path))).is_ok();
        // It may have moved before somebody looked.
        if is_watched && path_text(dir).is_ok_and(|now| now == path) {
            paths.known.insert(number, path.to_vec());
        }
    });
}

impl Paths {
    /// Tells whether any of them may have another path now.
    fn has_moved(&self) -> bool {
        let Some(inotify) = &self.inotify else {
            return false;
        };
        let mut first = [0; 512];
        !matches!(rustix::io::read(inotify, &mut first), Err(Errno::AGAIN))
    }

    /// Wants to be told when a directory or one above it moves or goes.
    fn watch(&mut self, path: &Path) -> Result<(), Errno> {
        let inotify = match self.inotify.take() {
            Some(inotify) => inotify,
            None => inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
        };
        let inotify = self.inotify.insert(inotify);
        let flags = WatchFlags::MOVE_SELF
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        for above in path.ancestors() {
            if self.watched.contains(above) {
                return Ok(());
            }
            inotify::add_watch(&*inotify, above, flags)?;
        }
        self.watched.extend(path.ancestors().map(Path::to_path_buf));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use rustix::fs::{CWD, Mode, OFlags, fstat, openat};

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
        assert_eq!(look(&first), text(&first), "only moves count");
        std::fs::rename(root.join("a"), root.join("x")).unwrap();
        assert_eq!(look(&second), None, "it moved");
        assert_eq!(look(&second), None);
        assert_eq!(look(&second), text(&second));
        std::fs::remove_dir_all(&second).unwrap();
        std::fs::create_dir_all(&second).unwrap();
        assert_eq!(look(&second), None, "another has its number, perhaps");
    }
}
