//! Looking at what is closed to its own owner.
//!
//! After `chmod 000` an ordinary user cannot read his own file. He could change the mode for the look, but others would see
//! that, and a crash would leave it so. In a user namespace of his own he may look without: there he has the right to pass
//! over the modes of what belongs to his user and group. So a child is born into such a namespace, opens, and is gone;
//! what it opened is ours.
//!
//! Where the system gives no user namespaces this fails, and the mode holds. What belongs to another user, or to a group
//! that is not the process's own, stays closed in any case.

mod sys;

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{Mode, OFlags, ResolveFlags, getxattr, openat2};
use rustix::io::{Errno, Result};

/// Opens something by its path from a directory, without following a link. Nothing is made.
pub fn open(dir: impl AsFd, path: &OsStr, flags: OFlags) -> Result<OwnedFd> {
    let dir = dir.as_fd();
    let path = CString::new(path.as_bytes()).map_err(|_| Errno::INVAL)?;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let mut opened = None;
    sys::as_owner(&mut || {
        let made = openat2(dir, &path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)?;
        opened = Some(made);
        Ok(())
    })?;
    opened.ok_or(Errno::ACCESS)
}

/// Reads the value of an attribute of what a descriptor is open on. Gives how many bytes it has.
pub fn attribute(of: impl AsFd, name: &[u8], value: &mut [u8]) -> Result<usize> {
    use std::os::fd::AsRawFd as _;
    // The descriptors of the child are ours.
    let path = format!("/proc/self/fd/{}", of.as_fd().as_raw_fd());
    let path = CString::new(path).map_err(|_| Errno::INVAL)?;
    let name = CString::new(name).map_err(|_| Errno::INVAL)?;
    let mut length = 0;
    sys::as_owner(&mut || {
        length = getxattr(&path, &name, &mut *value)?;
        Ok(())
    })?;
    Ok(length)
}
