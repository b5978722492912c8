//! What only unsafe code can do: filters, notices, another process's memory, fork.
//!
//! Each function is safe to call; what makes it so is said beside its unsafe block.

#![expect(
    unsafe_code,
    reason = "the kernel's interfaces of this kind have no safe wrapper"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;

use rustix::process::Pid;

use super::filter::{Filter, Wanted};

/// Wakes the supervisor on the same processor. The library does not know it yet.
const SYNC_WAKE_UP: u64 = 1;

/// Stages of a new process at which it can fail, told to the parent.
pub(super) const AT_FILTER: u8 = 1;
pub(super) const AT_SEND: u8 = 2;
pub(super) const AT_EXEC: u8 = 3;

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

/// Reads from another process's memory as far as it goes.
pub(super) fn read_memory(thread: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast::<c_void>(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: ptr::with_exposed_provenance_mut::<c_void>(
            usize::try_from(address).unwrap_or(usize::MAX),
        ),
        iov_len: into.len(),
    };
    let thread = c_int::try_from(thread).unwrap_or(c_int::MAX);
    // SAFETY: the local buffer is ours and as long as is said; the remote address is not ours to vouch for, and the
    // kernel checks it.
    let read =
        unsafe { libc::process_vm_readv(thread, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Everything a new process needs, made before the fork: after it nothing may be allocated.
pub(super) struct Launch<'a> {
    pub(super) program: &'a CStr,
    pub(super) arguments: &'a [CString],
    pub(super) environment: &'a [CString],
    pub(super) filter: Option<&'a Filter>,
    pub(super) socket: BorrowedFd<'a>,
    /// The other end of the socket: held by the new process as well, nobody would notice the end of this one.
    pub(super) other_end: BorrowedFd<'a>,
    pub(super) needs_no_new_privileges: bool,
}

/// Starts a process under a filter. It sends its listener over the socket, then becomes the program.
pub(super) fn launch(launch: &Launch<'_>) -> io::Result<Pid> {
    let pointers = |words: &[CString]| {
        let all = words.iter().map(|word| word.as_ptr());
        all.chain([ptr::null()]).collect::<Vec<*const c_char>>()
    };
    let (arguments, environment) = (pointers(launch.arguments), pointers(launch.environment));
    let program = launch.filter.map(Filter::program);
    // SAFETY: the child only makes calls that are allowed between fork and exec: it allocates nothing, takes no lock,
    // and ends by exec or `_exit`.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: see above; all pointers live in this frame, which the child has a copy of.
        0 => unsafe { child(launch, program.as_ref(), &arguments, &environment) },
        pid => Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork gave no process")),
    }
}

/// # Safety
///
/// Only in a child right after `fork`.
unsafe fn child(
    launch: &Launch<'_>,
    program: Option<&libc::sock_fprog>,
    arguments: &[*const c_char],
    environment: &[*const c_char],
) -> ! {
    let socket = launch.socket.as_raw_fd();
    // SAFETY: plain system calls on our own descriptors and memory.
    unsafe {
        let mut none: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::close(launch.other_end.as_raw_fd());
        if let Some(program) = program {
            watch_me(launch, program);
        }
        libc::execvpe(
            launch.program.as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
        );
        give_up(socket, AT_EXEC)
    }
}

/// # Safety
///
/// Only in a child right after `fork`.
unsafe fn watch_me(launch: &Launch<'_>, program: &libc::sock_fprog) {
    let socket = launch.socket.as_raw_fd();
    // SAFETY: plain system calls on our own descriptors and memory.
    unsafe {
        if launch.needs_no_new_privileges && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        {
            give_up(socket, AT_FILTER);
        }
        let listener = install(program);
        if listener < 0 {
            give_up(socket, AT_FILTER);
        }
        if !send_descriptor(socket, listener) {
            give_up(socket, AT_SEND);
        }
        libc::close(listener);
    }
}

/// # Safety
///
/// Only in a child right after `fork`.
unsafe fn install(program: &libc::sock_fprog) -> RawFd {
    let newest =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let mut listener = -1;
    for flags in [newest, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER] {
        // SAFETY: the program lives as long as the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                ptr::from_ref(program),
            )
        };
        listener = RawFd::try_from(result).unwrap_or(-1);
        // SAFETY: this thread's own error number.
        let is_unknown = listener < 0 && unsafe { *libc::__errno_location() } == libc::EINVAL;
        if !is_unknown {
            break;
        }
    }
    listener
}

/// # Safety
///
/// Only in a child right after `fork`: it ends the process.
unsafe fn give_up(socket: RawFd, stage: u8) -> ! {
    // SAFETY: this thread's own error number.
    let errno = unsafe { *libc::__errno_location() };
    let mut message = [0_u8; 5];
    message[0] = stage;
    message[1..].copy_from_slice(&errno.to_ne_bytes());
    // SAFETY: a plain write of our own bytes, and the end.
    unsafe {
        libc::send(
            socket,
            message.as_ptr().cast(),
            message.len(),
            libc::MSG_NOSIGNAL,
        );
        libc::_exit(127)
    }
}

/// The room for one descriptor in a control message.
#[repr(C)]
union Control {
    header: libc::cmsghdr,
    room: [u8; 64],
}

const DESCRIPTOR_BYTES: u32 = 4;

fn send_descriptor(socket: RawFd, descriptor: RawFd) -> bool {
    let mut byte = [0_u8];
    let mut control = Control { room: [0; 64] };
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: a message header of all zeros is an empty one; the pointers set below live until the call is over, and
    // the control room is larger than one descriptor needs.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = libc::CMSG_SPACE(DESCRIPTOR_BYTES) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(DESCRIPTOR_BYTES) as usize;
        ptr::write_unaligned(libc::CMSG_DATA(header).cast::<RawFd>(), descriptor);
        libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) == 1
    }
}

/// What a new process said first.
pub(super) enum First {
    Listener(OwnedFd),
    Failed { stage: u8, errno: i32 },
    Silent,
}

/// Waits for a new process's first word.
pub(super) fn first_word(socket: BorrowedFd<'_>) -> io::Result<First> {
    let mut bytes = [0_u8; 5];
    let mut control = Control { room: [0; 64] };
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: as in `send_descriptor`; a descriptor that arrives is ours alone.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<Control>();
        let read = libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC);
        if read < 0 {
            return Err(io::Error::last_os_error());
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS {
            let descriptor = ptr::read_unaligned(libc::CMSG_DATA(header).cast::<RawFd>());
            return Ok(First::Listener(OwnedFd::from_raw_fd(descriptor)));
        }
        Ok(match (read, bytes) {
            (5, [stage, a, b, c, d]) => First::Failed {
                stage,
                errno: i32::from_ne_bytes([a, b, c, d]),
            },
            _ => First::Silent,
        })
    }
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

/// Tries whether a listener can be had here, in a process of its own. The error says what failed.
pub fn probe() -> io::Result<()> {
    let filter = Filter::new(Wanted::default());
    let program = filter.program();
    // SAFETY: the child makes plain calls and ends.
    let pid = unsafe {
        match libc::fork() {
            0 => {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                let listener = install(&program);
                libc::_exit(if listener >= 0 {
                    0
                } else {
                    *libc::__errno_location()
                })
            }
            pid => pid,
        }
    };
    let Some(pid) = Pid::from_raw(pid) else {
        return Err(io::Error::last_os_error());
    };
    let status = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())?;
    match status.and_then(|(_, status)| status.exit_status()) {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => Err(io::Error::other("the process that tried was ended")),
    }
}
