//! Two processes for one command: the front waits where the caller waits, the back watches and may stay.
//!
//! A command can leave processes behind. The caller must get its exit code at once, as without us, and the processes must
//! go on being watched. So the process that the caller waits for does nothing but pass signals on and end as the command
//! ended; the one that watches is its child.
//!
//! If the watcher dies or hangs, the front ends what it watched (`watchdog.rs`).
//!
//! A signal for the whole group reaches the command by itself. One for the front alone is passed on: the back forwards it
//! if it did not get the same signal itself.

use std::ffi::{OsStr, OsString, c_int};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, send, socketpair};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, waitpid,
};

use super::door::Door;
use super::sys;
use super::task::{Descendant, children, descendants_of};
use super::watchdog::{Due, Watchdog};

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

/// What the watcher says while it is at work.
const WATCHING: u8 = b'w';
const SETTLING: u8 = b't';

/// How often to look whether the watcher is there.
const STEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

/// How often to look whether what was ended is gone.
const ENDING_STEP: Duration = Duration::from_millis(20);
const ENDING_STEPS_MAX: usize = 250;

/// Those of them that ask for the end.
const ENDING: [c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

const SILENT: &str = "the command waits, and its watcher too: a large file is being kept, or a file system does not answer; \
     Ctrl-C ends the command";

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
    /// Children that this process had before.
    others: Vec<Pid>,
}

/// What the front has to end like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// The command, which ended so.
    Command(Ending),
    /// The watching process, which ended before it could say anything of the command.
    Back(Alone),
}

/// What a dead watcher leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alone {
    /// How it ended.
    pub ending: Ending,
    /// The command's processes that were ended, since nobody watched them any more.
    pub ended: Vec<String>,
    /// Those that could not be.
    pub left: Vec<String>,
    /// Whether the watcher was ended because it did not answer.
    pub was_silent: bool,
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
    let others = children();
    // Without one the command can be watched as well.
    let door = Door::open().ok();
    let name = door.as_ref().map(|door| door.name().to_owned());
    Ok(match sys::fork()? {
        Some(pid) => {
            // What the watcher leaves when it dies comes to us, and can be ended.
            let _older = set_child_subreaper(Some(getpid()));
            Side::Front(Front {
                back: pid,
                socket: front,
                signals,
                door,
                others,
            })
        }
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

    /// Waits for the command's end, passing signals on. If its watcher hangs and the command is to end, or has a timeout,
    /// it is ended all the same.
    pub fn wait(
        mut self,
        timeout: Option<Duration>,
        tell: &mut dyn FnMut(&str),
    ) -> io::Result<Waited> {
        let mut watchdog = Watchdog::new(timeout, Instant::now());
        let mut was_silent = false;
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
            match poll(&mut fds, Some(&STEP)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            if let Some(door) = &mut self.door {
                door.answer();
                door.see_off();
            }
            while let Some(arrived) = sys::next_signal(self.signals.as_fd()) {
                if ENDING.contains(&arrived.signal) {
                    watchdog.ask(Instant::now());
                }
                // What the terminal sends, it sends to the command as well.
                if arrived.is_sent && arrived.signal != libc::SIGCHLD {
                    let number = u8::try_from(arrived.signal).unwrap_or(0);
                    let _gone = send(&self.socket, &[number], SendFlags::NOSIGNAL);
                }
            }
            let mut message = [0_u8; 5];
            match recv(&self.socket, &mut message, RecvFlags::DONTWAIT) {
                Ok((_, 5)) => return Ok(Waited::Command(decode(message))),
                Ok((_, 0)) | Err(rustix::io::Errno::CONNRESET) => {
                    return self.back_ended(was_silent);
                }
                Ok((_, 1)) => watchdog.hear(message[0] == WATCHING, Instant::now()),
                Ok(_) | Err(rustix::io::Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
            match watchdog.due(Instant::now()) {
                Due::Nothing => {}
                Due::Tell => tell(SILENT),
                Due::EndCommand => end(&descendants_of(self.back)),
                Due::EndWatcher => {
                    was_silent = true;
                    let _gone = kill_process(self.back, Signal::KILL);
                }
            }
        }
    }
}

impl Front {
    /// The watching process has nothing more to say: how it ended is all there is. What it watched is ended, too.
    fn back_ended(&self, was_silent: bool) -> io::Result<Waited> {
        let status = waitpid(Some(self.back), WaitOptions::empty())?;
        let ending = status.and_then(|(_, status)| ending_of(status));
        let alone = self.left_alone();
        for _ in 0..ENDING_STEPS_MAX {
            let left = self.left_alone();
            if left.is_empty() {
                break;
            }
            end(&left);
            std::thread::sleep(ENDING_STEP);
        }
        let left = self.left_alone();
        let named = |processes: &[Descendant]| processes.iter().map(ToString::to_string).collect();
        Ok(Waited::Back(Alone {
            ending: ending.unwrap_or(Ending::Exited(1)),
            ended: named(&alone),
            left: named(&left),
            was_silent,
        }))
    }

    /// Finds what is left of the command: all that is below us, but for what we were asked to do and what was there before.
    fn left_alone(&self) -> Vec<Descendant> {
        let door = self.door.as_ref().map(Door::outside).unwrap_or_default();
        let door = door
            .into_iter()
            .filter_map(|pid| Pid::from_raw(pid.cast_signed()));
        let mut not: Vec<Pid> = Vec::new();
        for process in door.chain(self.others.iter().copied()) {
            not.extend(descendants_of(process).iter().map(|below| below.pid));
            not.push(process);
        }
        let mut found = descendants_of(getpid());
        found.retain(|process| !not.contains(&process.pid));
        found
    }
}

/// Ends processes at once.
fn end(processes: &[Descendant]) {
    for process in processes {
        let _gone = kill_process(process.pid, Signal::KILL);
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

    /// Says that the command is watched at this moment.
    pub fn watches(&self) {
        self.say(WATCHING);
    }

    /// Says that the command has ended, and that what it did is being settled.
    pub fn settles(&self) {
        self.say(SETTLING);
    }

    fn say(&self, word: u8) {
        // If the front is gone, nobody listens.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _gone = send(&self.socket, &[word], flags);
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
