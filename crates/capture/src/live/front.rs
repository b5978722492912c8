//! Two processes for one command: the front waits where the caller waits, the back watches and may stay.
//!
//! A command can leave processes behind. The caller must get its exit code at once, as without us, and the processes must
//! go on being watched. So the process that the caller waits for does nothing but pass signals on and end as the command
//! ended; the one that watches is its child.
//!
//! A signal for the whole group reaches the command by itself. One for the front alone is passed on: the back forwards it
//! if it did not get the same signal itself.

use std::ffi::{OsStr, OsString, c_int};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, send, socketpair};

use rustix::process::{Pid, WaitOptions, WaitStatus, waitpid};

use super::door::Door;
use super::sys;

/// Signals that are meant for the command, and the end of a child.
pub(super) const HEARD: [c_int; 7] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCHLD,
];

const EXITED: u8 = b'e';
const SIGNALLED: u8 = b's';

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// Which of the two processes this is.
#[derive(Debug)]
pub enum Side {
    /// The one that the caller waits for.
    Front(Front),
    /// The one that watches.
    Back(Back),
}

/// The process that the caller waits for.
#[derive(Debug)]
pub struct Front {
    back: Pid,
    socket: OwnedFd,
    signals: OwnedFd,
    door: Option<Door>,
}

/// What the front has to end like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The command, which ended so.
    Command(Ending),
    /// The watching process, which ended so before it could say anything of the command.
    Back(Ending),
}

/// The process that watches.
#[derive(Debug)]
pub struct Back {
    socket: OwnedFd,
    door: Option<OsString>,
}

/// Becomes two processes.
pub fn split() -> io::Result<Side> {
    let (front, back) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // Before the fork, so that no signal falls between.
    let signals = sys::signals(&HEARD)?;
    // Without one the command can be watched as well.
    let door = Door::open().ok();
    let name = door.as_ref().map(|door| door.name().to_owned());
    Ok(match sys::fork()? {
        Some(pid) => Side::Front(Front {
            back: pid,
            socket: front,
            signals,
            door,
        }),
        None => Side::Back(Back {
            socket: back,
            door: name,
        }),
    })
}

impl Front {
    /// Names the process that watches.
    pub const fn watcher(&self) -> u32 {
        self.back.as_raw_nonzero().get().cast_unsigned()
    }

    /// Waits for the command's end, passing signals on.
    pub fn wait(mut self) -> io::Result<Waited> {
        loop {
            let mut fds = vec![
                PollFd::new(&self.socket, PollFlags::IN),
                PollFd::new(&self.signals, PollFlags::IN),
            ];
            fds.extend(
                self.door
                    .as_ref()
                    .map(|door| PollFd::new(door, PollFlags::IN)),
            );
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            if let Some(door) = &mut self.door {
                door.answer();
                door.see_off();
            }
            while let Some(arrived) = sys::next_signal(self.signals.as_fd()) {
                // What the terminal sends, it sends to the command as well.
                if arrived.is_sent && arrived.signal != libc::SIGCHLD {
                    let number = u8::try_from(arrived.signal).unwrap_or(0);
                    let _gone = send(&self.socket, &[number], SendFlags::NOSIGNAL);
                }
            }
            let mut message = [0_u8; 5];
            match recv(&self.socket, &mut message, RecvFlags::DONTWAIT) {
                Ok((_, 5)) => return Ok(Waited::Command(decode(message))),
                Ok((_, 0)) | Err(rustix::io::Errno::CONNRESET) => return self.back_ended(),
                Ok(_) | Err(rustix::io::Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl Front {
    /// The watching process has nothing more to say: how it ended is all there is.
    fn back_ended(&self) -> io::Result<Waited> {
        let status = waitpid(Some(self.back), WaitOptions::empty())?;
        let ending = status.and_then(|(_, status)| ending_of(status));
        Ok(Waited::Back(ending.unwrap_or(Ending::Exited(1))))
    }
}

/// Reads how a process ended.
pub(super) fn ending_of(status: WaitStatus) -> Option<Ending> {
    let exited = status.exit_status().map(Ending::Exited);
    exited.or(status.terminating_signal().map(Ending::Signalled))
}

impl Back {
    /// Lets the front go, as the command ended.
    pub fn report(self, ending: Ending) -> io::Result<()> {
        let (kind, number) = match ending {
            Ending::Exited(code) => (EXITED, code),
            Ending::Signalled(signal) => (SIGNALLED, signal),
        };
        let mut message = [kind; 5];
        message[1..].copy_from_slice(&number.to_ne_bytes());
        send(&self.socket, &message, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Tells where the command can ask for something to be done outside.
    pub fn door(&self) -> Option<&OsStr> {
        self.door.as_deref()
    }

    /// Takes a signal that the front was sent, if there is one.
    pub fn passed_on(&self) -> Option<c_int> {
        let mut byte = [0_u8];
        match recv(&self.socket, &mut byte, RecvFlags::DONTWAIT) {
            Ok((_, 1)) => Some(c_int::from(byte[0])),
            _ => None,
        }
    }
}

impl AsFd for Back {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn decode([kind, a, b, c, d]: [u8; 5]) -> Ending {
    let number = i32::from_ne_bytes([a, b, c, d]);
    if kind == SIGNALLED {
        Ending::Signalled(number)
    } else {
        Ending::Exited(number)
    }
}
