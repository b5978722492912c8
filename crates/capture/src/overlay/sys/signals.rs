//! Signals that come while a command runs: they are for the command.

#![expect(unsafe_code, reason = "signal sets and descriptors")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};

use super::mounts::last_error;

/// What is passed on. What stops and continues is not: it reaches the whole group by itself.
const PASSED_ON: [libc::c_int; 6] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// Which signals were held back before, for the command to begin with.
#[derive(Clone, Copy)]
pub(in crate::overlay) struct Mask(libc::sigset_t);

impl Mask {
    /// Puts it in force.
    pub(super) fn restore(&self) {
        // SAFETY: the set is one that the system gave.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut());
        }
    }
}

/// Holds signals back from this thread and hands them over. Dropping it lets them through again.
pub(in crate::overlay) struct Signals {
    descriptor: OwnedFd,
    before: Mask,
}

impl Signals {
    /// Begins to hold them back.
    pub(in crate::overlay) fn hold() -> io::Result<Self> {
        // SAFETY: the sets are plain data; the descriptor is new and nobody else's.
        unsafe {
            let mut held: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut held);
            for signal in PASSED_ON {
                libc::sigaddset(&raw mut held, signal);
            }
            let mut before: libc::sigset_t = std::mem::zeroed();
            let done = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, &raw mut before);
            if done != 0 {
                return Err(io::Error::from_raw_os_error(done));
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let descriptor = libc::signalfd(-1, &raw const held, flags);
            if descriptor < 0 {
                return Err(last_error().into());
            }
            let descriptor = OwnedFd::from_raw_fd(descriptor);
            Ok(Self {
                descriptor,
                before: Mask(before),
            })
        }
    }

    /// Gives what was held back before.
    pub(in crate::overlay) const fn before(&self) -> Mask {
        self.before
    }

    /// Gives the next signal that somebody sent; what the terminal sent reaches the command by itself.
    pub(in crate::overlay) fn next(&self) -> Option<i32> {
        use std::os::fd::AsRawFd as _;
        // SAFETY: the structure lives as long as the call, and is only believed when it was filled.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of::<libc::signalfd_siginfo>();
            let read = libc::read(self.descriptor.as_raw_fd(), (&raw mut info).cast(), size);
            let is_whole = usize::try_from(read).is_ok_and(|read| read == size);
            (is_whole && info.ssi_code <= 0).then(|| info.ssi_signo.cast_signed())
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // What came and was not asked for is for the command, which has ended.
        for _ in 0..PASSED_ON.len() {
            let _dropped = self.next();
        }
        self.before.restore();
    }
}

/// Tells whether this process's group has the terminal.
pub(in crate::overlay) fn has_terminal() -> bool {
    // SAFETY: calls with plain numbers.
    unsafe { libc::isatty(0) == 1 && libc::tcgetpgrp(0) == libc::getpgrp() }
}

/// Makes this process's group the terminal's foreground again: a shell may have left it to its own.
pub(in crate::overlay) fn take_terminal_back() {
    // SAFETY: calls with plain numbers and sets of this function.
    unsafe {
        let mut held: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut held);
        libc::sigaddset(&raw mut held, libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, &raw mut before);
        libc::tcsetpgrp(0, libc::getpgrp());
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
}
