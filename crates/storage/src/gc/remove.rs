//! Removing a file or a tree from one of our own directories, whatever is in it.
//!
//! - Nothing is followed: every step goes through an open directory and a name in it. Another file system
//!   mounted below is not entered.
//! - No depth is too deep: a directory inside the tree is first renamed to the top, so that at most one of them is open.
//!   Its new name begins like the old one, so what a killed `gc` leaves is found by the next.
//! - A directory without permissions is given some, if it is ours.

use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat, fstat, openat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;

/// So many names are tried for a directory that is moved to the top.
const NAMES_TRIED_MAX: u64 = 1_000_000;

/// Removes `name` from the directory `top`. What can be removed is, even if something cannot.
pub(super) fn remove(top: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let device = fstat(top)?.st_dev;
    let mut removal = Removal {
        top,
        device,
        moved: 0,
        first_error: None,
    };
    let mut waiting = vec![name.to_os_string()];
    let mut emptied = Vec::new();
    while let Some(name) = waiting.pop() {
        match unlinkat(top, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR | Errno::PERM) => {
                let inner = removal.empty(&name);
                removal.note(inner.map(|found| waiting.extend(found)));
                emptied.push(name);
            }
            Err(error) => removal.note(Err(error)),
        }
    }
    for name in emptied {
        removal.note(unlinkat(top, &name, AtFlags::REMOVEDIR));
    }
    removal
        .first_error
        .map_or(Ok(()), |error| Err(error.into()))
}

struct Removal<'t> {
    top: BorrowedFd<'t>,
    device: u64,
    /// How many directories were moved to the top.
    moved: u64,
    first_error: Option<Errno>,
}

impl Removal<'_> {
    fn note(&mut self, result: Result<(), Errno>) {
        if let Err(error) = result {
            self.first_error.get_or_insert(error);
        }
    }

    /// Removes the files of a directory at the top and moves its directories beside it, which are returned.
    fn empty(&mut self, name: &OsStr) -> Result<Vec<OsString>, Errno> {
        let directory = self.open(self.top, name)?;
        let mut found = Vec::new();
        // Entries are listed first: what happens to a listing while its directory changes is not defined.
        for entry in list(&directory)? {
            match self.take(directory.as_fd(), &entry, name) {
                Ok(None) | Err(Errno::NOENT) => {}
                Ok(Some(moved)) => found.push(moved),
                Err(error) => self.note(Err(error)),
            }
        }
        Ok(found)
    }

    /// Removes an entry, or moves it to the top if it is a directory with something in it.
    fn take(
        &mut self,
        directory: BorrowedFd<'_>,
        entry: &CStr,
        under: &OsStr,
    ) -> Result<Option<OsString>, Errno> {
        let found = statat(directory, entry, AtFlags::SYMLINK_NOFOLLOW)?;
        if !is_directory(&found) {
            return unlinkat(directory, entry, AtFlags::empty()).map(|()| None);
        }
        match unlinkat(directory, entry, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS | Errno::PERM) => {}
            result => return result.map(|()| None),
        }
        if found.st_dev != self.device {
            return Err(Errno::XDEV);
        }
        // To move a directory is to change its `..`, which needs the permission to write it.
        drop(self.open(directory, OsStr::from_bytes(entry.to_bytes()))?);
        self.move_up(directory, entry, under).map(Some)
    }

    fn move_up(
        &mut self,
        directory: BorrowedFd<'_>,
        entry: &CStr,
        under: &OsStr,
    ) -> Result<OsString, Errno> {
        // The first 48 bytes hold the operation's id; the rest may be cut.
        let stem: Vec<u8> = under.as_bytes().iter().copied().take(48).collect();
        while self.moved < NAMES_TRIED_MAX {
            self.moved += 1;
            let mut name = OsStr::from_bytes(&stem).to_os_string();
            name.push(format!("~{}", self.moved));
            match renameat_with(directory, entry, self.top, &name, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                result => return result.map(|()| name),
            }
        }
        Err(Errno::EXIST)
    }

    /// Opens a directory on our file system, with permission to change it if it is ours to give.
    fn open(&self, parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
        let path = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = openat(parent, name, path, Mode::empty())?;
        let found = fstat(&handle)?;
        if found.st_dev != self.device {
            return Err(Errno::XDEV);
        }
        let ours = found.st_uid == rustix::process::geteuid().as_raw();
        if ours && Mode::from_raw_mode(found.st_mode) & Mode::RWXU != Mode::RWXU {
            // A handle without permissions can be changed only through its name in `/proc`.
            let name = format!("/proc/self/fd/{}", handle.as_raw_fd());
            rustix::fs::chmod(name, Mode::RWXU)?;
        }
        let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(parent, name, read, Mode::empty())
    }
}

/// Opens one of our own directories: no link, our own, closed to others.
pub(super) fn open_private(path: &std::path::Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    let found = fstat(&directory)?;
    let ours = rustix::process::geteuid().as_raw();
    if found.st_uid != ours || found.st_mode & 0o077 != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "not a private directory",
        ));
    }
    Ok(directory)
}

/// Lists the names in a directory.
pub(super) fn list(directory: &OwnedFd) -> Result<Vec<std::ffi::CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

fn is_directory(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
}
