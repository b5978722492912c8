//! Running the relay: callers are let in, heard, served and seen off, and nobody is ever waited for.
//!
//! ```text
//! waiting ── accept ─► speaking ── all is said ─► working ── the program ends ─► answered
//!                         │ too late, too much        │ the caller is gone
//!                         └─► refused                 └─► the program is asked to end, then ended
//! ```

use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, recvmsg, send, socket_with,
};
use rustix::process::{Pid, Signal, kill_process};

use super::guest::hand_over;
use super::peer::{Keeper, admit};
use super::request::Answer;
use super::{ASKED, RELAY, Refusal, Request, STREAMS};

/// How many may wait before the relay.
const WAITING_MAX: i32 = 64;

/// How many may be served at once. The others wait.
const CALLERS_MAX: usize = 32;

/// How long a caller may take to say what it wants.
const SPEAKING_MAX: Duration = Duration::from_secs(5);

/// How long a program may take to end by itself when its caller is gone.
const ENDING_MAX: Duration = Duration::from_secs(5);

/// So much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// An open relay.
#[derive(Debug)]
pub(crate) struct Relay {
    socket: OwnedFd,
    keeper: Keeper,
    callers: Vec<Caller>,
}

/// Somebody who came in.
#[derive(Debug)]
enum Caller {
    /// It says what it wants.
    Speaking {
        stream: OwnedFd,
        arrived: Vec<u8>,
        streams: Vec<OwnedFd>,
        until: Instant,
    },
    /// The program does it.
    Working {
        /// None if the caller is gone.
        stream: Option<OwnedFd>,
        program: Child,
        /// When the program is ended that nobody waits for any more.
        end_at: Option<Instant>,
    },
}

impl Relay {
    /// Opens one, under a name that nobody guesses.
    pub(crate) fn open() -> io::Result<Self> {
        let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        let name = format!("backout-{}", random.trim());
        let keeper = Keeper::ourselves(&name).ok_or(io::ErrorKind::NotFound)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let address = SocketAddrUnix::new_abstract_name(OsStr::new(&name).as_bytes())?;
        bind(&socket, &address)?;
        listen(&socket, WAITING_MAX)?;
        Ok(Self {
            socket,
            keeper,
            callers: Vec::new(),
        })
    }

    /// Gives the variable's value that leads here.
    pub(crate) fn told(&self) -> OsString {
        self.keeper.told()
    }

    /// Lists what to wait for.
    pub(crate) fn heard(&self) -> Vec<PollFd<'_>> {
        let has_room = self.callers.len() < CALLERS_MAX;
        let relay = has_room.then(|| PollFd::new(&self.socket, PollFlags::IN));
        let callers = self.callers.iter().filter_map(|caller| match caller {
            Caller::Speaking { stream, .. } => Some(PollFd::new(stream, PollFlags::IN)),
            Caller::Working { stream, .. } => stream
                .as_ref()
                .map(|stream| PollFd::new(stream, PollFlags::RDHUP)),
        });
        relay.into_iter().chain(callers).collect()
    }

    /// Names the processes that do something outside.
    pub(crate) fn outside(&self) -> Vec<u32> {
        let program = |caller: &Caller| match caller {
            Caller::Speaking { .. } => None,
            Caller::Working { program, .. } => Some(program.id()),
        };
        self.callers.iter().filter_map(program).collect()
    }

    /// Tells when something is due even if nothing is heard.
    pub(crate) fn due(&self) -> Option<Instant> {
        let each = self.callers.iter().filter_map(|caller| match caller {
            Caller::Speaking { until, .. } => Some(*until),
            Caller::Working { end_at, .. } => *end_at,
        });
        each.min()
    }

    /// Tells whether programs are at work whose callers wait.
    pub(crate) fn is_busy(&self) -> bool {
        let is_working = |caller: &Caller| {
            matches!(
                caller,
                Caller::Working {
                    stream: Some(_),
                    ..
                }
            )
        };
        self.callers.iter().any(is_working)
    }

    /// Does for everybody what can be done without waiting. Programs get these variables beside ours.
    pub(crate) fn attend(&mut self, watcher: Pid, pinned: &[(OsString, OsString)]) {
        self.let_in(watcher);
        let now = Instant::now();
        let callers = std::mem::take(&mut self.callers).into_iter();
        self.callers = callers
            .filter_map(|caller| match caller {
                Caller::Speaking { .. } => listen_to(caller, pinned, now),
                Caller::Working { .. } => look_after(caller, now),
            })
            .collect();
    }

    fn let_in(&mut self, watcher: Pid) {
        while self.callers.len() < CALLERS_MAX {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let Ok(stream) = accept_with(&self.socket, flags) else {
                return;
            };
            match admit(&stream, watcher) {
                Ok(()) => self.callers.push(Caller::Speaking {
                    stream,
                    arrived: Vec::new(),
                    streams: Vec::new(),
                    until: Instant::now() + SPEAKING_MAX,
                }),
                Err(why) => tell(&stream, Answer::Refused(why)),
            }
        }
    }
}

/// The caller may be gone, and its ears full: then it does not want to know.
fn tell(stream: &OwnedFd, answer: Answer) {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _gone = send(stream, &answer.encode(), flags);
}

/// Takes what a caller has said. None if it was sent away.
fn listen_to(caller: Caller, pinned: &[(OsString, OsString)], now: Instant) -> Option<Caller> {
    let Caller::Speaking {
        stream,
        mut arrived,
        mut streams,
        until,
    } = caller
    else {
        return Some(caller);
    };
    match hear(&stream, &mut arrived, &mut streams) {
        Ok(None) if now < until => Some(Caller::Speaking {
            stream,
            arrived,
            streams,
            until,
        }),
        Ok(None) => {
            tell(&stream, Answer::Refused(Refusal::Late));
            None
        }
        Ok(Some(request)) => {
            let Ok(program) = start(request, streams, pinned) else {
                tell(&stream, Answer::Refused(Refusal::NotStarted));
                return None;
            };
            Some(Caller::Working {
                stream: Some(stream),
                program,
                end_at: None,
            })
        }
        Err(why) => {
            tell(&stream, Answer::Refused(why));
            None
        }
    }
}

/// Reads as much as is there. Its three streams come with the first bytes; others never come in.
fn hear(
    stream: &OwnedFd,
    arrived: &mut Vec<u8>,
    streams: &mut Vec<OwnedFd>,
) -> Result<Option<Request>, Refusal> {
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let part = io::IoSliceMut::new(&mut bytes);
        let read = match recvmsg(stream, &mut [part], &mut control, flags) {
            Ok(read) => read,
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => continue,
            Err(_) => return Err(Refusal::Malformed),
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                streams.extend(descriptors);
            }
        }
        let is_wrong = read.flags.contains(ReturnFlags::CTRUNC) || streams.len() != STREAMS;
        if is_wrong || read.bytes == 0 {
            return Err(Refusal::Malformed);
        }
        arrived.extend_from_slice(bytes.get(..read.bytes).unwrap_or_default());
        match Request::decode(arrived) {
            Ok(None) => {}
            Ok(whole) => return Ok(whole),
            Err(_) => return Err(Refusal::Malformed),
        }
    }
}

/// Runs our own program with the caller's words, in its directory, with its streams, and with nothing else of it.
fn start(
    request: Request,
    streams: Vec<OwnedFd>,
    pinned: &[(OsString, OsString)],
) -> io::Result<Child> {
    let Ok([input, output, errors]) = <[OwnedFd; STREAMS]>::try_from(streams) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    // Inherited by the one program that is started here, and closed before another is.
    let (_environment, number) = hand_over(&request.environment)?;
    Command::new("/proc/self/exe")
        .arg0("backout")
        .args(request.words)
        .envs(pinned.iter().cloned())
        .env(ASKED, number)
        .env_remove(RELAY)
        .current_dir(request.directory)
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(errors))
        .spawn()
}

/// Answers a caller whose program has ended; ends a program whose caller is gone.
fn look_after(caller: Caller, now: Instant) -> Option<Caller> {
    let Caller::Working {
        mut stream,
        mut program,
        mut end_at,
    } = caller
    else {
        return Some(caller);
    };
    match program.try_wait() {
        Ok(None) => {}
        Ok(Some(status)) => {
            let by_signal = status.signal().map_or(1, |signal| 128 + signal);
            let code = status.code().unwrap_or(by_signal);
            if let Some(stream) = &stream {
                tell(stream, Answer::Ended(code));
            }
            return None;
        }
        Err(_) => return None,
    }
    if stream.as_ref().is_some_and(is_gone) {
        stream = None;
        end_at = Some(now + ENDING_MAX);
        end(&program, Signal::TERM);
    } else if end_at.is_some_and(|end_at| now >= end_at) {
        end_at = None;
        end(&program, Signal::KILL);
    }
    Some(Caller::Working {
        stream,
        program,
        end_at,
    })
}

fn is_gone(stream: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::RDHUP)];
    let ready = rustix::event::poll(&mut fds, Some(&rustix::event::Timespec::default()));
    matches!(ready, Ok(count) if count > 0)
}

fn end(program: &Child, signal: Signal) {
    if let Some(pid) = Pid::from_raw(program.id().cast_signed()) {
        let _gone = kill_process(pid, signal);
    }
}
