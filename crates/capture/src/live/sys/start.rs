//! Starting a process under a filter, and taking its listener over.
//!
//! The new process says over a pipe how far it has come. Its listener goes over a socket, or is taken out of it where there
//! are no sockets.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair,
};
use rustix::process::Pid;

use super::{birth, read_memory};
use crate::live::filter::{Filter, Wanted};

/// Stages of a new process at which it can fail, told to the parent.
pub(in crate::live) const AT_FILTER: u8 = 1;
pub(in crate::live) const AT_SEND: u8 = 2;
pub(in crate::live) const AT_EXEC: u8 = 3;

/// What a new process says of its listener.
const SENT: u8 = 4;
const OFFERED: u8 = 5;

/// The bytes of what it says: what it is, and a number.
const WORD_BYTES: usize = 5;

/// Everything a new process needs, made before the fork: after it nothing may be allocated.
pub(in crate::live) struct Launch<'a> {
    pub(in crate::live) program: &'a CStr,
    pub(in crate::live) arguments: &'a [CString],
    pub(in crate::live) environment: &'a [CString],
    pub(in crate::live) filter: Option<&'a Filter>,
    pub(in crate::live) line: &'a NewLine,
    pub(in crate::live) needs_no_new_privileges: bool,
}

/// Starts a process under a filter. It hands its listener over, then becomes the program.
pub(in crate::live) fn launch(launch: &Launch<'_>) -> io::Result<Pid> {
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
    // SAFETY: plain system calls on our own descriptors and memory.
    unsafe {
        birth::as_born();
        if let Some(program) = program {
            watch_me(launch.line, launch.needs_no_new_privileges, program);
        }
        libc::execvpe(
            launch.program.as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
        );
        give_up(launch.line, AT_EXEC)
    }
}

/// # Safety
///
/// Only in a child right after `fork`.
unsafe fn watch_me(line: &NewLine, needs_no_new_privileges: bool, program: &libc::sock_fprog) {
    // SAFETY: plain system calls on our own descriptors and memory; this process never drops the line.
    unsafe {
        // Else it would wait for itself if the parent dies.
        libc::close(line.taken.1.as_raw_fd());
        // As long as it had this end too, a listener on its way would outlive the parent.
        if let Some((ours, _)) = &line.sockets {
            libc::close(ours.as_raw_fd());
        }
        if needs_no_new_privileges && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            give_up(line, AT_FILTER);
        }
        let listener = install(program);
        if listener < 0 {
            give_up(line, AT_FILTER);
        }
        let is_sent = match &line.sockets {
            Some((_, theirs)) => send_descriptor(theirs.as_raw_fd(), listener) && line.say(SENT, 0),
            // The other side takes it, and says so.
            None => line.say(OFFERED, listener) && line.is_taken(),
        };
        if !is_sent {
            give_up(line, AT_SEND);
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
unsafe fn give_up(line: &NewLine, stage: u8) -> ! {
    // SAFETY: this thread's own error number.
    let errno = unsafe { *libc::__errno_location() };
    line.say(stage, errno);
    // SAFETY: the end.
    unsafe { libc::_exit(127) }
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

/// How a new process and its parent talk until it is the program that it is to be.
pub(in crate::live) struct NewLine {
    /// What the new process says; it ends when the program starts.
    says: (OwnedFd, OwnedFd),
    /// Tells the new process that its listener was taken.
    taken: (OwnedFd, OwnedFd),
    /// For the listener; none where there are no sockets.
    sockets: Option<(OwnedFd, OwnedFd)>,
}

impl NewLine {
    pub(in crate::live) fn new() -> io::Result<Self> {
        let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        Ok(Self {
            says: pipe()?,
            taken: pipe()?,
            sockets: socketpair(family, kind, SocketFlags::CLOEXEC, None).ok(),
        })
    }

    /// Says something in the new process. Allocates nothing.
    fn say(&self, what: u8, number: c_int) -> bool {
        let [a, b, c, d] = number.to_ne_bytes();
        rustix::io::write(&self.says.1, &[what, a, b, c, d]) == Ok(WORD_BYTES)
    }

    /// Waits in the new process until its listener was taken. Allocates nothing.
    fn is_taken(&self) -> bool {
        rustix::io::read(&self.taken.0, &mut [0_u8]) == Ok(1)
    }

    /// Gives the parent's ends, after the fork.
    pub(in crate::live) fn ours(self) -> OurLine {
        OurLine {
            hears: self.says.0,
            taken: self.taken.1,
            socket: self.sockets.map(|(ours, _)| ours),
        }
    }
}

/// The parent's ends.
pub(in crate::live) struct OurLine {
    /// Where it is heard what the new process says.
    pub(in crate::live) hears: OwnedFd,
    taken: OwnedFd,
    socket: Option<OwnedFd>,
}

impl OurLine {
    /// Waits for the listener of a new process.
    pub(in crate::live) fn listener(&self, of: Pid) -> io::Result<First> {
        Ok(match (first_word(self.hears.as_fd())?, &self.socket) {
            (First::Sent, Some(socket)) => First::Listener(receive_descriptor(socket.as_fd())?),
            (First::Offered(number), _) => match take_descriptor(of, number) {
                Ok(listener) => {
                    rustix::io::write(&self.taken, b".")?;
                    First::Listener(listener)
                }
                Err(error) => First::Failed {
                    stage: AT_SEND,
                    errno: error.raw_os_error().unwrap_or(libc::EPERM),
                },
            },
            (other, _) => other,
        })
    }
}

/// What a new process said first.
pub(in crate::live) enum First {
    /// This is its listener.
    Listener(OwnedFd),
    /// The listener is on its way.
    Sent,
    /// The listener has this number over there.
    Offered(RawFd),
    Failed {
        stage: u8,
        errno: i32,
    },
    Silent,
}

/// Waits for a new process's first word.
pub(in crate::live) fn first_word(from: BorrowedFd<'_>) -> io::Result<First> {
    let mut word = [0_u8; WORD_BYTES];
    let read = loop {
        match rustix::io::read(from, &mut word) {
            Err(rustix::io::Errno::INTR) => {}
            read => break read?,
        }
    };
    let [what, a, b, c, d] = word;
    let number = i32::from_ne_bytes([a, b, c, d]);
    Ok(match (read, what) {
        (WORD_BYTES, SENT) => First::Sent,
        (WORD_BYTES, OFFERED) => First::Offered(number),
        (WORD_BYTES, stage) => First::Failed {
            stage,
            errno: number,
        },
        _ => First::Silent,
    })
}

/// Takes a descriptor out of another process.
fn take_descriptor(of: Pid, number: RawFd) -> io::Result<OwnedFd> {
    let process = rustix::process::pidfd_open(of, rustix::process::PidfdFlags::empty())?;
    let flags = rustix::process::PidfdGetfdFlags::empty();
    Ok(rustix::process::pidfd_getfd(process, number, flags)?)
}

fn receive_descriptor(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let mut byte = [0_u8];
    let part = io::IoSliceMut::new(&mut byte);
    recvmsg(socket, &mut [part], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptor = descriptors.next().and_then(|mut all| all.next());
    descriptor.ok_or_else(|| io::Error::other("the listener did not arrive"))
}

/// What a process that only tries has in its memory, for the parent to read.
static TRIED: [u8; 5] = *b"tried";

/// Tries whether commands can be watched here, in a process of its own: a listener can be had and handed over, and memory
/// can be read. The error says what is missing.
pub fn probe() -> io::Result<()> {
    let filter = Filter::new(Wanted::default());
    let program = filter.program();
    let line = NewLine::new()?;
    // SAFETY: the child makes plain calls, and ends when the parent has let go of the line.
    let pid = unsafe {
        match libc::fork() {
            0 => {
                watch_me(&line, true, &program);
                line.is_taken();
                libc::_exit(0)
            }
            pid => pid,
        }
    };
    let Some(pid) = Pid::from_raw(pid) else {
        return Err(io::Error::last_os_error());
    };
    let ours = line.ours();
    let tried = try_out(&ours, pid);
    drop(ours);
    let _status = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())?;
    tried
}

fn try_out(ours: &OurLine, pid: Pid) -> io::Result<()> {
    let missing = |what: &str, error: io::Error| io::Error::other(format!("{what}: {error}"));
    match ours.listener(pid)? {
        First::Listener(_) => {}
        First::Failed { stage, errno } => {
            return Err(missing(lacks(stage), io::Error::from_raw_os_error(errno)));
        }
        First::Sent | First::Offered(_) | First::Silent => {
            return Err(io::Error::other("the process that tried was ended"));
        }
    }
    let address = (&raw const TRIED).expose_provenance();
    let mut read = [0; TRIED.len()];
    let memory = read_memory(
        pid.as_raw_nonzero().get().cast_unsigned(),
        u64::try_from(address).unwrap_or(0),
        &mut read,
    );
    match memory {
        Ok(_) if read == TRIED => Ok(()),
        Ok(_) => Err(io::Error::other("a command's memory cannot be read")),
        Err(error) => {
            let what = "a command's memory cannot be read (process_vm_readv, /proc/PID/mem)";
            Err(missing(what, error))
        }
    }
}

/// Says what is missing if a new process fails at a stage.
pub(in crate::live) const fn lacks(stage: u8) -> &'static str {
    match stage {
        AT_SEND => "the listener cannot be handed over (socketpair, pidfd_getfd)",
        _ => "the kernel gives no listener (seccomp)",
    }
}
