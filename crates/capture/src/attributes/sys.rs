//! The call, which has no wrapper yet.

#![expect(unsafe_code, reason = "the library does not know this call")]

use std::ffi::{CStr, c_long};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr;

use rustix::io::{Errno, Result};

/// The number of `listxattrat`, the same everywhere.
const LISTXATTRAT: c_long = 465;

/// Asks for the length of the list alone.
pub(super) fn list_length(dir: BorrowedFd<'_>, name: &CStr) -> Result<usize> {
    // SAFETY: the descriptor is open, the name ends in a zero byte, and with no room given the kernel writes nothing.
    let length = unsafe {
        libc::syscall(
            LISTXATTRAT,
            dir.as_raw_fd(),
            name.as_ptr(),
            libc::AT_SYMLINK_NOFOLLOW,
            ptr::null_mut::<u8>(),
            0_usize,
        )
    };
    usize::try_from(length).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::IO)
    })
}
