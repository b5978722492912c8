//! Reaching what is open, here and in another process, by the shortest way.
//!
//! `/proc` tells all of it, but each walk through it costs several times what a call by a descriptor costs.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, openat, readlinkat, statat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// Asks for one thread, and not for its process. The library does not know it yet.
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(0o200);

/// So many threads are held.
const THREADS_MAX: usize = 256;

thread_local! {
    /// Threads by their numbers. What is held is that thread, also when its number is another's.
    static THREADS: RefCell<HashMap<u32, OwnedFd>> = RefCell::new(HashMap::new());
    /// What `/proc` tells of threads, by their numbers. It tells nothing any more when that thread is gone.
    static TOLD: RefCell<HashMap<u32, OwnedFd>> = RefCell::new(HashMap::new());
}

/// Opens, only to be looked at, what something in the directory of a thread in `/proc` leads to.
pub(super) fn opened(thread: u32, what: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    told(thread, |dir| openat(dir, what, flags, Mode::empty()))
}

/// Looks at what something in the directory of a thread in `/proc` leads to.
pub(super) fn seen(thread: u32, what: &str) -> Result<Stat, Errno> {
    told(thread, |dir| statat(dir, what, AtFlags::empty()))
}

/// Reads a link in the directory of a thread in `/proc`.
pub(super) fn link_text(thread: u32, what: &str) -> Result<Vec<u8>, Errno> {
    let text = told(thread, |dir| readlinkat(dir, what, Vec::with_capacity(256)));
    Ok(text?.into_bytes())
}

/// Asks in the directory of a thread in `/proc`, which stays open: the way there costs as much as the question.
fn told<T>(thread: u32, ask: impl Fn(BorrowedFd<'_>) -> Result<T, Errno>) -> Result<T, Errno> {
    TOLD.with_borrow_mut(|threads| {
        if threads.len() >= THREADS_MAX {
            threads.clear();
        }
        if let Some(dir) = threads.get(&thread) {
            match ask(dir.as_fd()) {
                // It may be gone, and its number may be another's by now.
                Err(Errno::NOENT | Errno::SRCH) => drop(threads.remove(&thread)),
                answer => return answer,
            }
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(CWD, format!("/proc/{thread}"), flags, Mode::empty())?;
        let answer = ask(dir.as_fd());
        threads.insert(thread, dir);
        answer
    })
}

/// Reads the path of something that is open here, as the system tells it.
pub(super) fn path_text(opened: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
    /// Our own descriptors, with whose they are: after a fork they are another's.
    static OWN: OnceLock<Option<(Pid, OwnedFd)>> = OnceLock::new();
    let own = OWN.get_or_init(|| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, "/proc/self/fd", flags, Mode::empty()).ok()?;
        Some((getpid(), opened))
    });
    let room = Vec::with_capacity(256);
    let text = match own {
        Some((pid, own)) if *pid == getpid() => {
            readlinkat(own, opened.as_raw_fd().to_string(), room)
        }
        Some(_) | None => readlinkat(CWD, format!("/proc/self/fd/{}", opened.as_raw_fd()), room),
    };
    Ok(text?.into_bytes())
}

/// Takes a directory that a thread has open, as it has it. None if that does not work here; the long way may.
pub(super) fn taken(thread: u32, number: i32) -> Option<OwnedFd> {
    THREADS.with_borrow_mut(|threads| {
        if threads.len() >= THREADS_MAX {
            threads.clear();
        }
        if let Some(held) = threads.get(&thread) {
            match pidfd_getfd(held, number, PidfdGetfdFlags::empty()) {
                Ok(taken) => return Some(taken),
                // It is gone, and its number may be another's by now.
                Err(Errno::SRCH) => drop(threads.remove(&thread)),
                Err(_) => return None,
            }
        }
        let held = pidfd_open(Pid::from_raw(thread.cast_signed())?, THREAD).ok()?;
        let taken = pidfd_getfd(&held, number, PidfdGetfdFlags::empty()).ok();
        threads.insert(thread, held);
        taken
    })
}
