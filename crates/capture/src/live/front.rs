//! Two processes for one command: the front waits where the caller waits, the back watches and may stay.
//!
//! A command can leave processes behind. The caller must get its exit code at once, as without us, and the processes must
//! go on being watched. So the process that the caller waits for does nothing but pass signals on and end as the command
//! ended; the one that watches is its child.
//!
//! A signal for the whole group reaches the command by itself. One for the front alone is passed on: the back forwards it
//! if it did not get the same signal itself.

use std::cell::Cell;
use std::ffi::{OsStr, OsString, c_int};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, waitpid,
};

use super::process_info::{Descendant, children, descendants_of};
use super::relay::Relay;
use super::sys;
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
const ARMED: u8 = b'a';

/// The bytes of a message of the back: what it is about, and a number. A pipe takes so few whole or not at all.
const MESSAGE_BYTES: usize = 9;

/// How long the front stays for callers of the relay whose work is nearly done.
const STAYING_MAX: Duration = Duration::from_secs(1);

/// How often the back may not be heard before the front gives up.
const FAILURES_MAX: u32 = 100;

/// What the watcher says while it is at work.
const WATCHING: u8 = b'w';
const SETTLING: u8 = b't';

/// How often to look whether the watcher is there.
const STEP: Duration = Duration::from_millis(500);

/// How often to look whether what was ended is gone.
const ENDING_STEP: Duration = Duration::from_millis(20);
const ENDING_STEPS_MAX: usize = 250;

/// Those of them that ask for the end.
pub(super) const ENDING: [c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

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
    hears: OwnedFd,
    says: OwnedFd,
    signals: OwnedFd,
    relay: Option<Relay>,
    /// Children that this process had before.
    others: Vec<Pid>,
    /// How often the back could not be heard.
    failures: Cell<u32>,
}

/// What a program gets in its environment that is run for somebody inside.
#[derive(Debug, Clone, Default)]
pub struct Pinned {
    /// The variables that are known from the start.
    pub variables: Vec<(OsString, OsString)>,
    /// The variable that names the command.
    pub command: OsString,
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
    hears: OwnedFd,
    says: OwnedFd,
    relay: Option<OsString>,
}

/// Becomes two processes.
pub fn split() -> io::Result<Side> {
    // Not sockets: in some sandboxes there are none.
    let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
    let (front_hears, back_says) = pipe_with(flags)?;
    let (back_hears, front_says) = pipe_with(flags)?;
    // Before the fork, so that no signal falls between.
    let signals = sys::signals(&HEARD)?;
    let others = children();
    // Without one the command can be watched as well.
    let relay = Relay::open().ok();
    let told = relay.as_ref().map(Relay::told);
    Ok(match sys::fork()? {
        Some(pid) => {
            // What the watcher leaves when it dies comes to us, and can be ended.
            let _older = set_child_subreaper(Some(getpid()));
            Side::Front(Front {
                back: pid,
                hears: front_hears,
                says: front_says,
                signals,
                relay,
                others,
                failures: Cell::new(0),
            })
        }
        None => Side::Back(Back {
            hears: back_hears,
            says: back_says,
            relay: told,
        }),
    })
}

/// What the back told.
enum Told {
    Armed(u64),
    /// It is there: it watches, or it settles.
    There(bool),
    Ended(Ending),
    Gone,
    Nothing,
}

impl Front {
    /// Names the process that watches.
    pub const fn watcher(&self) -> u32 {
        self.back.as_raw_nonzero().get().cast_unsigned()
    }

    /// Waits for the command's end, passing signals on, and answers the relay. If its watcher hangs and the command is to
    /// end, or has a timeout, it is ended all the same.
    pub fn wait(
        mut self,
        pinned: &Pinned,
        timeout: Option<Duration>,
        tell: &mut dyn FnMut(&str),
    ) -> io::Result<Waited> {
        let mut variables = pinned.variables.clone();
        let mut watchdog = Watchdog::new(timeout, Instant::now());
        let mut was_silent = false;
        let mut ended = None;
        loop {
            self.sleep(ended.map(|(_, until)| until))?;
            // Before the relay: whoever asks there was started after the command was armed.
            match self.hear()? {
                Told::Armed(command) => {
                    let name = format!("{command:016x}").into();
                    variables.push((pinned.command.clone(), name));
                }
                Told::Ended(ending) => ended = Some((ending, Instant::now() + STAYING_MAX)),
                Told::There(is_watching) => watchdog.hear(is_watching, Instant::now()),
                Told::Gone if ended.is_none() => return self.back_ended(was_silent),
                Told::Gone | Told::Nothing => {}
            }
            // Before the relay as well: what ends after its signal was taken is seen there, what ends later wakes us again.
            self.pass_on(&mut watchdog);
            if let Some(relay) = &mut self.relay {
                relay.attend(self.back, &variables);
            }
            if let Some((ending, until)) = ended
                && (!self.relay.as_ref().is_some_and(Relay::is_busy) || Instant::now() >= until)
            {
                return Ok(Waited::Command(ending));
            }
            if ended.is_none() {
                was_silent |= self.look_after(watchdog.due(Instant::now()), tell);
            }
        }
    }

    /// Does what the watchdog says. Gives true if the watcher had to be ended.
    fn look_after(&self, due: Due, tell: &mut dyn FnMut(&str)) -> bool {
        match due {
            Due::Nothing => {}
            Due::Tell => tell(SILENT),
            Due::EndCommand => end(&descendants_of(self.back)),
            Due::EndWatcher => {
                let _gone = kill_process(self.back, Signal::KILL);
            }
        }
        due == Due::EndWatcher
    }

    /// Sleeps until there is something to do.
    fn sleep(&self, until: Option<Instant>) -> io::Result<()> {
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        // What was told last is known, and that nobody tells more is always there to be heard.
        if until.is_none() {
            fds.push(PollFd::new(&self.hears, PollFlags::IN));
        }
        fds.extend(self.relay.iter().flat_map(Relay::heard));
        let due = self.relay.as_ref().and_then(Relay::due);
        let step = Instant::now() + STEP;
        let due = due.into_iter().chain(until).fold(step, Instant::min);
        let left = due.saturating_duration_since(Instant::now());
        let wait = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut fds, Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn hear(&self) -> io::Result<Told> {
        let mut message = [0; MESSAGE_BYTES];
        match read(&self.hears, &mut message) {
            Ok(MESSAGE_BYTES) => Ok(decode(message)),
            Ok(0) => Ok(Told::Gone),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(Told::Nothing),
            // The command goes on behind us: what passes is no reason to leave it.
            Err(errno) if self.failures.get() >= FAILURES_MAX => Err(errno.into()),
            Err(_) => {
                self.failures.set(self.failures.get() + 1);
                Ok(Told::Nothing)
            }
        }
    }

    fn pass_on(&self, watchdog: &mut Watchdog) {
        while let Some(arrived) = sys::next_signal(self.signals.as_fd()) {
            if ENDING.contains(&arrived.signal) {
                watchdog.ask(Instant::now());
            }
            // What the terminal sends, it sends to the command as well.
            if arrived.is_sent && arrived.signal != libc::SIGCHLD {
                let number = u8::try_from(arrived.signal).unwrap_or(0);
                let _gone = write(&self.says, &[number]);
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
        let relay = self.relay.as_ref().map(Relay::outside).unwrap_or_default();
        let relay = relay
            .into_iter()
            .filter_map(|pid| Pid::from_raw(pid.cast_signed()));
        let mut not: Vec<Pid> = Vec::new();
        for process in relay.chain(self.others.iter().copied()) {
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
    /// Tells the front which operation the command is.
    pub fn announce(&self, command: u64) -> io::Result<()> {
        self.say(ARMED, command)
    }

    /// Lets the front go, as the command ended.
    pub fn report(self, ending: Ending) -> io::Result<()> {
        let (kind, number) = match ending {
            Ending::Exited(code) => (EXITED, code),
            Ending::Signalled(signal) => (SIGNALLED, signal),
        };
        self.say(kind, u64::from(number.cast_unsigned()))
    }

    /// Says that the command is watched at this moment.
    pub fn watches(&self) {
        // If the front is gone, nobody listens.
        let _gone = self.say(WATCHING, 0);
    }

    /// Says that the command has ended, and that what it did is being settled.
    pub fn settles(&self) {
        let _gone = self.say(SETTLING, 0);
    }

    fn say(&self, kind: u8, number: u64) -> io::Result<()> {
        let mut message = [kind; MESSAGE_BYTES];
        let (_, rest) = message.split_at_mut(1);
        rest.copy_from_slice(&number.to_ne_bytes());
        write(&self.says, &message)?;
        Ok(())
    }

    /// Tells where the command can ask for something to be done outside.
    pub fn relay(&self) -> Option<&OsStr> {
        self.relay.as_deref()
    }

    /// Tells whether the front was sent a signal that asks for the end. What came before that is taken, too.
    pub fn is_asked_to_end(&self) -> bool {
        let mut signals = std::iter::from_fn(|| self.passed_on());
        signals.any(|signal| ENDING.contains(&signal))
    }

    /// Takes a signal that the front was sent, if there is one.
    pub fn passed_on(&self) -> Option<c_int> {
        let mut byte = [0_u8];
        match read(&self.hears, &mut byte) {
            Ok(1) => Some(c_int::from(byte[0])),
            _ => None,
        }
    }
}

impl AsFd for Back {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.hears.as_fd()
    }
}

fn decode([kind, number @ ..]: [u8; MESSAGE_BYTES]) -> Told {
    let number = u64::from_ne_bytes(number);
    let small = u32::try_from(number).unwrap_or(u32::MAX).cast_signed();
    match kind {
        ARMED => Told::Armed(number),
        WATCHING => Told::There(true),
        SETTLING => Told::There(false),
        SIGNALLED => Told::Ended(Ending::Signalled(small)),
        EXITED => Told::Ended(Ending::Exited(small)),
        _ => Told::Nothing,
    }
}
