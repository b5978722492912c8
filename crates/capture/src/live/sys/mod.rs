//! What only unsafe code can do: filters, notices, another process's memory, fork.
//!
//! Each function is safe to call; what makes it so is said beside its unsafe block.

#![expect(
    unsafe_code,
    reason = "the kernel's interfaces of this kind have no safe wrapper"
)]

mod birth;
mod start;

use std::ffi::{CString, c_int, c_long, c_ulong, c_void};
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;

use rustix::io::Errno;
use rustix::process::Pid;

pub use birth::lift_limits;
pub use start::probe;
pub(super) use start::{AT_EXEC, First, Launch, NewLine, first_word, lacks, launch};

/// Newer than the library's list.
pub(super) const FCHMODAT2: c_long = 452;
pub(super) const SETXATTRAT: c_long = 463;
pub(super) const REMOVEXATTRAT: c_long = 466;

/// Wakes the supervisor on the same processor. The library does not know it yet.
const SYNC_WAKE_UP: u64 = 1;

/// Asks for the process at the other end of a socket. The library does not know it yet.
const PEER_PROCESS: c_int = 77;

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notice {
    pub(super) id: u64,
    pub(super) thread: u32,
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

/// How a call is answered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reply {
    Continue,
    Fail(i32),
    Give(i64),
}

/// Takes the next notice. None if the call that it was about is gone.
pub(super) fn receive(listener: BorrowedFd<'_>) -> io::Result<Option<Notice>> {
    // SAFETY: all-zero is a valid value, and what the kernel wants to find.
    let mut notice: libc::seccomp_notif = unsafe { zeroed() };
    // SAFETY: the descriptor is open, and the kernel fills exactly this structure.
    let result = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_RECV,
            &raw mut notice,
        )
    };
    if result < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ENOENT | libc::EINTR | libc::EAGAIN) => Ok(None),
            _ => Err(error),
        };
    }
    Ok(Some(Notice {
        id: notice.id,
        thread: notice.pid,
        number: i64::from(notice.data.nr),
        arguments: notice.data.args,
    }))
}

/// Answers a notice. It does not matter if the caller died meanwhile.
pub(super) fn send(listener: BorrowedFd<'_>, id: u64, reply: Reply) -> io::Result<()> {
    let (val, error, flags) = match reply {
        Reply::Continue => (0, 0, 1),
        Reply::Fail(errno) => (0, -errno, 0),
        Reply::Give(value) => (value, 0, 0),
    };
    let mut response = libc::seccomp_notif_resp {
        id,
        val,
        error,
        flags,
    };
    // SAFETY: the descriptor is open, and the kernel reads exactly this structure.
    let result = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            &raw mut response,
        )
    };
    if result < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ENOENT) => Ok(()),
            _ => Err(error),
        };
    }
    Ok(())
}

/// Tells whether the call still waits: only then was what we read its own.
pub(super) fn is_waiting(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the descriptor is open, and the kernel reads one number.
    let result = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
            &raw const id,
        )
    };
    result == 0
}

/// Asks for the quick wake-up. Older kernels do not have it.
pub(super) fn wake_up_quickly(listener: BorrowedFd<'_>) {
    // SAFETY: the descriptor is open, and the flags are a plain number.
    let _older = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS,
            SYNC_WAKE_UP,
        )
    };
}

/// Gives the process that made a call a descriptor of what is open here, and tells its number there. If that `answers`
/// the call as well, the process goes on at once.
pub(super) fn give(
    listener: BorrowedFd<'_>,
    id: u64,
    what: BorrowedFd<'_>,
    (closes_on_exec, answers): (bool, bool),
) -> Result<i32, Errno> {
    let flags = if closes_on_exec { libc::O_CLOEXEC } else { 0 };
    let answer = libc::SECCOMP_ADDFD_FLAG_SEND;
    let mut given = libc::seccomp_notif_addfd {
        id,
        flags: u32::try_from(answer).unwrap_or(0) * u32::from(answers),
        srcfd: what.as_raw_fd().cast_unsigned(),
        newfd: 0,
        newfd_flags: flags.cast_unsigned(),
    };
    // SAFETY: both descriptors are open, and the kernel reads exactly this structure.
    let number = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ADDFD,
            &raw mut given,
        )
    };
    if number < 0 {
        Err(last_error())
    } else {
        Ok(number)
    }
}

/// Makes the file that a path leads to so long.
pub(super) fn truncate(path: &str, length: i64) -> Result<(), Errno> {
    let path = CString::new(path).map_err(|_| Errno::INVAL)?;
    // SAFETY: the path is a string of ours that ends in a zero byte.
    if unsafe { libc::truncate(path.as_ptr(), length) } < 0 {
        Err(last_error())
    } else {
        Ok(())
    }
}

/// Tells whether a process may not make files as long as it likes. What cannot be asked counts as so.
pub(super) fn has_size_limit(thread: u32) -> bool {
    let number = c_int::try_from(thread).unwrap_or(c_int::MAX);
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: nothing is set, and the kernel fills exactly this structure.
    let asked = unsafe { libc::prlimit(number, libc::RLIMIT_FSIZE, ptr::null(), &raw mut limit) };
    asked != 0 || limit.rlim_cur != libc::RLIM_INFINITY
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Reads from another process's memory as far as it goes.
pub(super) fn read_memory(thread: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    read_pieces(thread, [(address, &mut *into)]).or_else(|error| match error.raw_os_error() {
        // Some sandboxes forbid the call, and not the file.
        Some(libc::EPERM | libc::ENOSYS) => {
            read_memory_file(thread, address, into).map_err(|_| error)
        }
        _ => Err(error),
    })
}

/// Reads pieces of another process's memory, one after the other, as far as it goes. They must lie in pages that are there
/// whole or not at all.
pub(super) fn read_pieces<const N: usize>(
    thread: u32,
    pieces: [(u64, &mut [u8]); N],
) -> io::Result<usize> {
    let iovecs = pieces.map(|(address, into)| {
        let address = usize::try_from(address).unwrap_or(usize::MAX);
        let iov_len = into.len();
        let of = |iov_base| libc::iovec { iov_base, iov_len };
        let remote = of(ptr::with_exposed_provenance_mut::<c_void>(address));
        (of(into.as_mut_ptr().cast::<c_void>()), remote)
    });
    let (local, remote) = (iovecs.map(|it| it.0), iovecs.map(|it| it.1));
    let number = c_int::try_from(thread).unwrap_or(c_int::MAX);
    let count = c_ulong::try_from(N).unwrap_or(0);
    // SAFETY: the local buffers are ours, lent for this call, and as long as is said; the remote addresses are not ours to
    // vouch for, and the kernel checks them.
    let read =
        unsafe { libc::process_vm_readv(number, local.as_ptr(), count, remote.as_ptr(), count, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Reads memory as a file, which reaches what may only be written or executed.
pub(super) fn read_memory_file(thread: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    use std::os::unix::fs::FileExt as _;
    std::fs::File::open(format!("/proc/{thread}/mem"))?.read_at(into, address)
}

/// Forks this process, which must have one thread. None in the new one.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        return Err(io::Error::other(
            "a process of several threads cannot be split",
        ));
    }
    // SAFETY: with one thread no lock can be held by another, so the child may go on as any process.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Gives the user and the number of the process at the other end of a socket. The number is zero for a process that we
/// cannot see from our namespace.
pub(super) fn peer_of(socket: BorrowedFd<'_>) -> Option<(u32, i32)> {
    // SAFETY: all-zero is a valid value.
    let mut who: libc::ucred = unsafe { zeroed() };
    let size = size_of::<libc::ucred>();
    let mut length = libc::socklen_t::try_from(size).ok()?;
    // SAFETY: the descriptor is open, and the kernel fills at most as much as is said.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut who).cast(),
            &raw mut length,
        )
    };
    (result == 0 && usize::try_from(length) == Ok(size)).then_some((who.uid, who.pid))
}

/// Holds the process at the other end of a socket, so that its number is given to no other. Older kernels cannot.
pub(super) fn peer_process(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut process: RawFd = -1;
    let size = size_of::<RawFd>();
    let mut length = libc::socklen_t::try_from(size).ok()?;
    // SAFETY: the descriptor is open, and the kernel fills at most as much as is said.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            PEER_PROCESS,
            (&raw mut process).cast(),
            &raw mut length,
        )
    };
    // SAFETY: a descriptor that the kernel has just made is ours alone.
    (result == 0 && process >= 0).then(|| unsafe { OwnedFd::from_raw_fd(process) })
}

/// Takes a descriptor that this process was started with, its three streams aside. To be called before anything is
/// opened: then it is nobody else's.
pub(super) fn inherited(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: a plain call that fails if there is no such descriptor.
    let is_open = number > libc::STDERR_FILENO
        && unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == 0;
    // SAFETY: it is open, and nothing of this program knows of it yet.
    is_open.then(|| unsafe { OwnedFd::from_raw_fd(number) })
}

/// Takes signals out of the usual way and gives a descriptor that tells of them.
pub(super) fn signals(which: &[c_int]) -> io::Result<OwnedFd> {
    // SAFETY: a set of our own is filled and handed over; the descriptor that comes back is ours alone.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigemptyset(set.as_mut_ptr());
        for signal in which {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let descriptor = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// A signal that arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrived {
    pub(super) signal: c_int,
    /// Whether another process sent it, and not the kernel or a terminal.
    pub(super) is_sent: bool,
}

/// Takes the next signal, if there is one.
pub(super) fn next_signal(from: BorrowedFd<'_>) -> Option<Arrived> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
    // SAFETY: the kernel fills exactly this structure or nothing.
    unsafe {
        let size = size_of::<libc::signalfd_siginfo>();
        let read = libc::read(from.as_raw_fd(), info.as_mut_ptr().cast(), size);
        if usize::try_from(read) != Ok(size) {
            return None;
        }
        let info = info.assume_init();
        Some(Arrived {
            signal: c_int::try_from(info.ssi_signo).unwrap_or(0),
            is_sent: info.ssi_code <= 0,
        })
    }
}

/// Ends this process by a signal, as another process ended.
pub fn end_like(signal: c_int) -> ! {
    // SAFETY: plain calls; a signal that does not end us is followed by the usual code.
    unsafe {
        let limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const limit);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut());
        libc::raise(signal);
        libc::_exit(128 + signal)
    }
}
