//! A child that shares our memory and our descriptors, and lives in a user namespace of its own.

#![expect(unsafe_code, reason = "a child of this kind has no safe wrapper")]

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, Result};

/// How much room the child has for its calls.
const STACK_BYTES: usize = 128 * 1024;

/// Where the top of a stack must lie.
const ALIGNMENT: usize = 16;

/// What the child is to do, and how it went.
struct Job<'j> {
    user_map: Vec<u8>,
    group_map: Vec<u8>,
    act: &'j mut dyn FnMut() -> Result<()>,
    result: Result<()>,
}

/// Does something with the right to pass over modes of what belongs to our user and group. It must allocate nothing.
pub(super) fn as_owner(act: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    let map = |id: u32| format!("{id} {id} 1\n").into_bytes();
    let mut job = Job {
        user_map: map(rustix::process::geteuid().as_raw()),
        group_map: map(rustix::process::getegid().as_raw()),
        act,
        result: Err(Errno::ACCESS),
    };
    let mut stack = vec![0_u8; STACK_BYTES];
    let below = stack.as_mut_ptr_range().end.addr() % ALIGNMENT;
    // No signal of ours may be handled by the child: it shares our memory.
    let before = block_all();
    // SAFETY: the stack is as long as is said, aligned, and used by nobody else. With `CLONE_VFORK` this thread stands still
    // until the child is gone, so that the job and the stack outlive it and nobody else uses them.
    let child = unsafe {
        let top = stack.as_mut_ptr().add(STACK_BYTES - below);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::CLONE_NEWUSER;
        libc::clone(begin, top.cast(), flags, (&raw mut job).cast())
    };
    let failed = (child < 0).then(last_error);
    restore(&before);
    if let Some(errno) = failed {
        return Err(errno);
    }
    reap(child);
    job.result
}

/// Where the child begins.
extern "C" fn begin(job: *mut c_void) -> c_int {
    // SAFETY: it is the job of `as_owner`, which waits for us and looks at it when we are gone.
    let job = unsafe { &mut *job.cast::<Job<'_>>() };
    let maps = [
        (c"/proc/self/setgroups", b"deny".as_slice()),
        (c"/proc/self/uid_map", &job.user_map),
        (c"/proc/self/gid_map", &job.group_map),
    ];
    let mapped = maps.iter().try_for_each(|(path, bytes)| write(path, bytes));
    job.result = mapped.and_then(|()| (job.act)());
    0
}

fn write(path: &CStr, bytes: &[u8]) -> Result<()> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, bytes).map(drop)
}

/// Takes the child that is gone. It tells no one: it was born without a signal.
fn reap(child: c_int) {
    // SAFETY: a plain call; nothing is written.
    while unsafe { libc::waitpid(child, ptr::null_mut(), libc::__WALL) } < 0
        && last_error() == Errno::INTR
    {}
}

fn block_all() -> libc::sigset_t {
    let (mut all, mut before) = (MaybeUninit::zeroed(), MaybeUninit::zeroed());
    // SAFETY: both sets are ours, and all-zero is a valid one.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

fn restore(before: &libc::sigset_t) {
    // SAFETY: the set lives as long as the call.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut()) };
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
