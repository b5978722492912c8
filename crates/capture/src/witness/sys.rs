//! The calls of fanotify, and the handles that it names directories by.

#![expect(unsafe_code, reason = "the library does not know these calls")]

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use rustix::io::{Errno, Result};

/// A handle of a directory is at most so long.
const HANDLE_BYTES_MAX: usize = 128;

/// What is told of a marked directory: names and contents in it that change, however.
const MASK: u64 = libc::FAN_MODIFY
    | libc::FAN_ATTRIB
    | libc::FAN_CREATE
    | libc::FAN_DELETE
    | libc::FAN_MOVED_FROM
    | libc::FAN_MOVED_TO
    | libc::FAN_ONDIR
    | libc::FAN_EVENT_ON_CHILD;

/// Asks for events that name a directory and a name in it.
pub(super) fn init() -> Result<OwnedFd> {
    let flags = libc::FAN_CLASS_NOTIF
        | libc::FAN_CLOEXEC
        | libc::FAN_NONBLOCK
        | libc::FAN_REPORT_FID
        | libc::FAN_REPORT_DIR_FID
        | libc::FAN_REPORT_NAME;
    let events = libc::O_RDONLY.cast_unsigned();
    // SAFETY: the call takes two numbers and gives a descriptor or an error.
    let fd = unsafe { libc::fanotify_init(flags, events) };
    if fd < 0 {
        return Err(last_error());
    }
    // SAFETY: the kernel has just made it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Listens to a directory, or does not any more.
pub(super) fn mark(fanotify: BorrowedFd<'_>, directory: &CStr, is_added: bool) -> Result<()> {
    let how = if is_added {
        libc::FAN_MARK_ADD | libc::FAN_MARK_ONLYDIR | libc::FAN_MARK_DONT_FOLLOW
    } else {
        libc::FAN_MARK_REMOVE | libc::FAN_MARK_DONT_FOLLOW
    };
    // SAFETY: the descriptor is open, and the path ends in a zero byte.
    let done = unsafe {
        libc::fanotify_mark(
            fanotify.as_raw_fd(),
            how,
            MASK,
            libc::AT_FDCWD,
            directory.as_ptr(),
        )
    };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// A handle as the kernel writes it.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    body: [u8; HANDLE_BYTES_MAX],
}

/// Gives what events name a directory by: its file system's number, then its handle.
pub(super) fn name_of(directory: &CStr) -> Result<Vec<u8>> {
    let mut handle = Handle {
        bytes: u32::try_from(HANDLE_BYTES_MAX).unwrap_or_default(),
        kind: 0,
        body: [0; HANDLE_BYTES_MAX],
    };
    let mut mount = 0_i32;
    // SAFETY: the path ends in a zero byte, and the kernel writes no more than `bytes` of the handle.
    let done = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            directory.as_ptr(),
            &raw mut handle,
            &raw mut mount,
            0,
        )
    };
    if done != 0 {
        return Err(last_error());
    }
    let mut found = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the path ends in a zero byte, and there is room for the answer.
    let done = unsafe { libc::statfs(directory.as_ptr(), found.as_mut_ptr()) };
    if done != 0 {
        return Err(last_error());
    }
    // SAFETY: all of it was zero before the call, and any bytes are a value.
    let found = unsafe { found.assume_init() };
    // SAFETY: it is two numbers of 32 bits, which the library keeps private.
    let number: [u8; 8] = unsafe { std::mem::transmute(found.f_fsid) };
    let mut name = number.to_vec();
    name.extend(handle.bytes.to_ne_bytes());
    name.extend(handle.kind.to_ne_bytes());
    let length = usize::try_from(handle.bytes).unwrap_or_default();
    name.extend(handle.body.iter().take(length));
    Ok(name)
}

fn last_error() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
