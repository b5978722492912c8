//! What happens between the fork and the command. Returns only in the process that becomes the command.

#![expect(unsafe_code, reason = "forks, and waits as a first process does")]

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::io::Errno;
use rustix::thread::UnshareFlags;

use super::mounts::{build, last_error};
use super::script::Script;
use super::signals::Mask;
use crate::overlay::plan::Means;

/// What the children tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::overlay) enum Notice {
    /// The namespace's first process has this number.
    First(i32),
    /// A step could not be layered.
    FellBack(usize, i32),
    /// A step failed; the number after the last stands for the moves around them.
    Failed(usize, i32),
    /// No namespaces.
    NoNamespaces(i32),
    /// The command ended, with what `wait` gives.
    Ended(i32),
}

impl Notice {
    /// How many bytes a notice has; few enough that no other can come between.
    pub(in crate::overlay) const BYTES: usize = 12;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let number = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        let (kind, one, two) = match self {
            Self::First(pid) => (1, pid, 0),
            Self::FellBack(step, errno) => (2, number(step), errno),
            Self::Failed(step, errno) => (3, number(step), errno),
            Self::NoNamespaces(errno) => (4, 0, errno),
            Self::Ended(status) => (5, status, 0),
        };
        let mut bytes = [0; Self::BYTES];
        for (to, from) in bytes.chunks_exact_mut(4).zip([kind, one, two]) {
            to.copy_from_slice(&from.to_ne_bytes());
        }
        bytes
    }

    /// Reads one.
    pub(in crate::overlay) fn of(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut numbers = bytes
            .chunks_exact(4)
            .filter_map(|part| Some(i32::from_ne_bytes(part.try_into().ok()?)));
        let (kind, one, two) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let step = usize::try_from(one).unwrap_or(0);
        match kind {
            1 => Some(Self::First(one)),
            2 => Some(Self::FellBack(step, two)),
            3 => Some(Self::Failed(step, two)),
            4 => Some(Self::NoNamespaces(two)),
            5 => Some(Self::Ended(one)),
            _ => None,
        }
    }
}

/// Has something done between fork and exec.
pub(in crate::overlay) fn before_exec(
    command: &mut Command,
    act: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: `act` is `enter`, which allocates nothing and calls only the system.
    unsafe { command.pre_exec(act) };
}

/// Enters the namespaces and becomes the command, by way of two more processes that stay behind.
pub(in crate::overlay) fn enter(script: &Script, notices: RawFd, mask: &Mask) -> io::Result<()> {
    let failed = |errno: Errno| {
        tell(notices, Notice::NoNamespaces(errno.raw_os_error()));
        io::Error::from(errno)
    };
    leave_the_others(script).map_err(failed)?;
    die_with_parent();
    let first = fork().map_err(failed)?;
    if first != 0 {
        tell(notices, Notice::First(first));
        close_all_but(None);
        wait_for(first);
        leave(0);
    }
    die_with_parent();
    if script.is_cut_off {
        bring_loopback_up();
    }
    let fell_back = |step, errno: Errno| {
        tell(notices, Notice::FellBack(step, errno.raw_os_error()));
    };
    build(script, fell_back).map_err(|(step, errno)| {
        tell(notices, Notice::Failed(step, errno.raw_os_error()));
        io::Error::from(errno)
    })?;
    let command = fork().map_err(failed)?;
    if command != 0 {
        be_first(command, notices);
    }
    mask.restore();
    Ok(())
}

fn leave_the_others(script: &Script) -> rustix::io::Result<()> {
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWPID;
    if script.means == Means::UserNamespace {
        flags |= UnshareFlags::NEWUSER;
    }
    if script.is_cut_off {
        flags |= UnshareFlags::NEWNET;
    }
    // SAFETY: the descriptors are not among what is left; this process is a fresh fork with one thread.
    unsafe { rustix::thread::unshare_unsafe(flags)? };
    if script.means == Means::UserNamespace {
        write(c"/proc/self/setgroups", b"deny")?;
        write(c"/proc/self/uid_map", &script.user_map)?;
        write(c"/proc/self/gid_map", &script.group_map)?;
    }
    Ok(())
}

fn write(path: &std::ffi::CStr, bytes: &[u8]) -> rustix::io::Result<()> {
    use rustix::fs::{Mode, OFlags, open};
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, bytes).map(drop)
}

/// The first process of the namespace: passes signals on to the command, reaps what others leave behind, and ends when
/// nobody is left. Its end is the end of everybody in the namespace.
fn be_first(command: i32, notices: RawFd) -> ! {
    // SAFETY: the sets are plain data of this function; no other thread exists.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        close_all_but(Some(notices));
        let mut is_running = true;
        loop {
            is_running = reap(command, notices, is_running);
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let signal = libc::sigwaitinfo(&raw const all, &raw mut info);
            // What the terminal sends, it sends to the command as well.
            if signal > 0 && signal != libc::SIGCHLD && info.si_code <= 0 && is_running {
                libc::kill(command, signal);
            }
        }
    }
}

/// Reaps all who ended; leaves when nobody is left. Tells whether the command still runs.
fn reap(command: i32, notices: RawFd, mut is_running: bool) -> bool {
    loop {
        let mut status = 0;
        // SAFETY: the status lives as long as the call.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if ended == command {
            tell(notices, Notice::Ended(status));
            is_running = false;
        }
        if ended == 0 {
            return is_running;
        }
        if ended < 0 && last_error() != Errno::INTR {
            leave(0);
        }
    }
}

fn wait_for(child: i32) {
    loop {
        let mut status = 0;
        // SAFETY: the status lives as long as the call.
        let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if ended >= 0 || last_error() != Errno::INTR {
            return;
        }
    }
}

fn fork() -> rustix::io::Result<i32> {
    // SAFETY: the child calls nothing but the system until it becomes the command or ends.
    let child = unsafe { libc::fork() };
    if child < 0 {
        Err(last_error())
    } else {
        Ok(child)
    }
}

fn die_with_parent() {
    // SAFETY: a call with plain numbers. That it may fail only means that orphans are reaped later.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Closes every descriptor: who waits for their end must not wait for us.
fn close_all_but(kept: Option<RawFd>) {
    let kept = kept.map(i32::cast_unsigned);
    // SAFETY: whatever is closed belongs to this process, which uses none of it again.
    unsafe {
        match kept {
            None => libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0),
            Some(0) => libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0),
            Some(kept) => {
                libc::syscall(libc::SYS_close_range, 0, kept - 1, 0);
                libc::syscall(libc::SYS_close_range, kept + 1, u32::MAX, 0)
            }
        }
    };
}

fn bring_loopback_up() {
    // SAFETY: the request is plain data of this function; a failure leaves a network that is wholly cut.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = from.cast_signed();
        }
        let up = libc::IFF_UP | libc::IFF_RUNNING;
        request.ifr_ifru.ifru_flags = i16::try_from(up).unwrap_or_default();
        libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request);
        libc::close(socket);
    }
}

fn tell(notices: RawFd, notice: Notice) {
    let bytes = notice.to_bytes();
    // SAFETY: the bytes live as long as the call; nobody listening means that nobody wants to know.
    unsafe { libc::write(notices, bytes.as_ptr().cast(), bytes.len()) };
}

fn leave(code: i32) -> ! {
    // SAFETY: ends this process without running anything that belongs to the one it was forked from.
    unsafe { libc::_exit(code) }
}
