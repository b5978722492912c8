//! Whether a name in an open directory has extended attributes, without opening it.
//!
//! Newer kernels tell it of a directory and a name. For older ones a path leads through `/proc`, which takes more than twice as
//! long.

mod sys;

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{Errno, Result};

/// Tells how long the list of attributes of what a name stands for is, a link not followed.
pub fn list_length(dir: impl AsFd, name: &OsStr) -> Result<usize> {
    static IS_OLDER: AtomicBool = AtomicBool::new(false);
    if !IS_OLDER.load(Ordering::Relaxed) {
        let text = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        match sys::list_length(dir.as_fd(), &text) {
            // Some sandboxes say that it is forbidden.
            Err(Errno::NOSYS | Errno::PERM) => IS_OLDER.store(true, Ordering::Relaxed),
            other => return other,
        }
    }
    by_path(dir, name)
}

fn by_path(dir: impl AsFd, name: &OsStr) -> Result<usize> {
    let dir = format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd());
    rustix::fs::llistxattr_query(Path::new(&dir).join(name))
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, OFlags, XattrFlags, openat, setxattr};

    use super::*;

    #[test]
    fn both_ways_tell_the_same() {
        let world = tempfile::tempdir().unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let dir = openat(CWD, world.path(), flags, Mode::empty()).unwrap();
        std::fs::write(world.path().join("plain"), "x").unwrap();
        std::fs::write(world.path().join("dressed"), "x").unwrap();
        std::os::unix::fs::symlink("dressed", world.path().join("link")).unwrap();
        let dressed = world.path().join("dressed");
        let is_dressed = setxattr(&dressed, "user.note", b"1", XattrFlags::empty()).is_ok();
        for name in ["plain", "dressed", "link", "none"].map(OsStr::new) {
            let found = list_length(&dir, name);
            assert_eq!(found, by_path(&dir, name), "{name:?}");
            let is_there = name == "dressed" && is_dressed;
            assert_eq!(found.is_ok_and(|length| length > 0), is_there, "{name:?}");
        }
    }
}
