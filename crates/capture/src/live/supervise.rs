//! The loop: a call stops, its paths are resolved, the observer is asked, the call is answered.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, wait};

use super::calls::Act;
use super::ending::{has_left, ran};
use super::eyes::Eyes;
use super::front::{ENDING, Ending, ending_of};
use super::paths;
use super::resolve::{Gone, Place};
use super::sys::{self, First, Notice, Reply};
use super::ticker::{self, Ticker};

/// How often to look whether a call is over that the kernel carries out, and when to give up: its file system is stuck.
const SETTLING_STEP: Duration = Duration::from_micros(50);
const SETTLING_MAX: Duration = Duration::from_secs(10);

/// How long after a call another is waited for before anything else.
const BUSY: Duration = Duration::from_millis(20);

/// While calls come, the next one alone is waited for, until the clock ticks, and so many times before all else is looked at
/// again.
const IN_A_ROW_MAX: u32 = 32;

/// How many calls are taken up before the first of them is answered.
const TAKEN_UP_MAX: usize = 256;

/// A call that is about to happen.
#[derive(Debug)]
pub struct Touch {
    /// What it does.
    pub act: Act,
    /// The thread that makes it.
    pub thread: u32,
    /// What it does it to; none if it has no path.
    pub first: Option<Place>,
    /// The second path, of a rename or a link.
    pub second: Option<Place>,
    /// What it does it to, if that lost its name and has others.
    pub gone: Option<Gone>,
    /// Whether what we do in its place is what it may do itself.
    pub has_our_rights: bool,
    /// Whether its paths are the same files for us.
    pub has_our_mounts: bool,
}

impl Touch {
    pub(super) const fn without_paths(act: Act, thread: u32, has_our_mounts: bool) -> Self {
        Self {
            act,
            thread,
            first: None,
            second: None,
            gone: None,
            has_our_rights: false,
            has_our_mounts,
        }
    }
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The kernel carries it out.
    Continue,
    /// All that it changes is kept: it is carried out for the process where that is the same, else by the kernel.
    Perform,
    /// The kernel carries it out, and the observer wants to see the result.
    Watch,
    /// It fails with this error number.
    Refuse(i32),
    /// It cannot happen, for this reason or for one that the kernel meets before it.
    Fails(i32),
    /// It is done.
    Done,
    /// It is done, and gave a descriptor of this number.
    Gave(i32),
    /// It is done, and the process knows that already.
    Told,
    /// Somebody was asked meanwhile, and may have changed what was looked at: it is looked at again.
    Again,
}

/// Is asked before each call.
pub trait Observer {
    /// Looks at a call before it happens.
    fn before(&mut self, touch: &mut Touch) -> Answer;

    /// Tells whether all is known of a name that the command has open, so that the call goes on at once.
    fn is_noted(&mut self, path: &Path, act: Act) -> bool;

    /// Is told which file came to be at a name, by a call that was carried out for the command: its device and number. The
    /// command may be at work with it already, while it is still open here.
    fn made(&mut self, place: &Place, number: (u64, u64));

    /// Is told that the call that was asked about last failed or is looked at again: none of what it would have done happened.
    fn did_not_happen(&mut self);

    /// Tells whether a file that has one name is known to be one that the command made, by its device and number, so that
    /// the call goes on at once.
    fn is_made(&mut self, number: (u64, u64), act: Act) -> bool;

    /// Looks at a call that was watched, again and again until this tells that it is decided: it has happened, or it is
    /// over and has not.
    fn after(&mut self, touch: &mut Touch, is_over: bool) -> bool;

    /// Gives a descriptor that tells of what others do; none if nothing does.
    fn others(&self) -> Option<BorrowedFd<'_>>;

    /// Looks at what others did.
    fn look_around(&mut self);

    /// Is told of something worth knowing.
    fn noted(&mut self, what: &str);

    /// Is told of something that the command was let do, and that no undo takes back.
    fn lasts(&mut self, what: &str);

    /// Is told of a call that could not be understood, and is refused.
    fn refused(&mut self, thread: u32, why: &str);
}

/// What happened beside calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The program could not be executed.
    NotStarted {
        /// The error number.
        errno: i32,
    },
    /// The command ended. Others of its processes may be alive.
    Ended(Ending),
    /// No process is left that could ask.
    Quiet,
    /// A signal came that is meant for the command.
    Signal(c_int),
    /// Something can be read from this one of the descriptors that the caller gave.
    Readable(usize),
    /// The time is up.
    Deadline,
}

/// Answers the kernel's questions.
#[derive(Debug)]
pub struct Supervisor {
    child: Pid,
    listener: OwnedFd,
    signals: OwnedFd,
    /// Where the new process says that it could not become the program.
    start: Option<OwnedFd>,
    /// Calls that were taken up and not answered yet.
    waiting: VecDeque<Notice>,
    /// The thread whose call was taken up last.
    asked_last: Option<u32>,
    ticker: Ticker,
    /// Tells when somebody changes what is mounted.
    mounts: Option<File>,
    eyes: Eyes,
    is_reaped: bool,
    /// Whether a process was ended so that the kernel wrote its memory into a file.
    has_dumped: bool,
}

impl Supervisor {
    pub(super) fn new(child: Pid, listener: OwnedFd, signals: OwnedFd, start: OwnedFd) -> Self {
        Self {
            child,
            listener,
            signals,
            start: Some(start),
            waiting: VecDeque::new(),
            asked_last: None,
            ticker: Ticker::new(),
            mounts: File::open("/proc/self/mountinfo").ok(),
            eyes: Eyes::new(),
            is_reaped: false,
            has_dumped: false,
        }
    }

    /// Tells how many calls were asked about.
    pub const fn calls(&self) -> u64 {
        self.eyes.calls()
    }

    /// Tells whether the kernel wrote the memory of a process into a file: nobody is asked about that.
    pub const fn has_dumped(&self) -> bool {
        self.has_dumped
    }

    /// Tells whether no process is left that could ask. The kernel knows: a process whose parents are gone is found in no
    /// list, and its calls stop all the same.
    pub fn is_quiet(&mut self) -> io::Result<bool> {
        self.reap()?;
        Ok(self.wait(None, &[], Some(Instant::now()))?.is_over)
    }

    /// Answers calls until something else happens.
    pub fn next(
        &mut self,
        observer: &mut dyn Observer,
        also: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> io::Result<Event> {
        let mut is_busy = false;
        let mut in_a_row = 0;
        loop {
            let is_due = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_busy && self.waiting.is_empty() && in_a_row < IN_A_ROW_MAX && !is_due() {
                in_a_row += 1;
                if self.has_next_call(also)? {
                    self.take_up()?;
                    if let Some(notice) = self.waiting.pop_front() {
                        self.answer(&notice, observer)?;
                    }
                    paths::listen();
                    continue;
                }
            }
            in_a_row = 0;
            paths::let_go();
            let now = Instant::now();
            let pause = match (self.waiting.is_empty(), is_busy) {
                (false, _) => Some(now),
                (true, true) => Some(deadline.map_or(now + BUSY, |at| at.min(now + BUSY))),
                (true, false) => deadline,
            };
            // While calls come, what others do is looked at before each of them, and need not wake us in between.
            let others = observer.others().filter(|_| !is_busy);
            let ready = self.wait(others, also, pause)?;
            if ready.others {
                observer.look_around();
            }
            if ready.call {
                self.take_up()?;
            }
            // Calls may come without end; whoever asks beside them waits for an answer too.
            if let Some(index) = ready.also {
                return Ok(Event::Readable(index));
            }
            if let Some(notice) = self.waiting.pop_front() {
                self.answer(&notice, observer)?;
                is_busy = true;
                continue;
            }
            if is_busy {
                is_busy = false;
                self.ticker.stop();
                observer.look_around();
            }
            // Each write of a file is told. Whoever writes without a pause is looked at once in a while.
            is_busy |= ready.others;
            if ready.start
                && let Some(event) = self.started()
            {
                return Ok(event);
            }
            if ready.signal
                && let Some(event) = self.signal()?
            {
                return Ok(event);
            }
            let is_due = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            // In a program with other threads the signal of its end may be lost on one of them.
            if (ready.is_over || is_due)
                && let Some(ending) = self.reap()?
            {
                return Ok(Event::Ended(ending));
            }
            if ready.is_over {
                return Ok(Event::Quiet);
            }
            if is_due {
                return Ok(Event::Deadline);
            }
        }
    }

    fn wait(
        &self,
        others: Option<BorrowedFd<'_>>,
        also: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> io::Result<Ready> {
        let mut fds = vec![
            PollFd::new(&self.listener, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        fds.extend(
            self.start
                .as_ref()
                .map(|start| PollFd::new(start, PollFlags::IN)),
        );
        let also_at = fds.len();
        let rest = also.iter().copied().chain(others);
        fds.extend(rest.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let timeout = deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let any = |index: usize| fds.get(index).map_or(PollFlags::empty(), PollFd::revents);
        let start_at = self.start.is_some().then_some(2);
        let others_at = others.map(|_| fds.len() - 1);
        Ok(Ready {
            call: any(0).contains(PollFlags::IN),
            is_over: any(0).contains(PollFlags::HUP),
            signal: !any(1).is_empty(),
            start: start_at.is_some_and(|at| !any(at).is_empty()),
            also: (0..also.len()).find(|index| !any(also_at + index).is_empty()),
            others: others_at.is_some_and(|at| !any(at).is_empty()),
        })
    }

    /// Hears whether the program was executed.
    fn started(&mut self) -> Option<Event> {
        let start = self.start.take()?;
        match sys::first_word(start.as_fd()) {
            Ok(First::Failed { errno, .. }) => Some(Event::NotStarted { errno }),
            _ => None,
        }
    }

    /// Tells whether somebody asked for the end since the command is over, at the terminal or by a signal. Children are left to
    /// who waits for them: they may be somebody else's.
    pub fn is_asked_to_end(&self) -> bool {
        let mut signals = std::iter::from_fn(|| sys::next_signal(self.signals.as_fd()));
        signals.any(|it| ENDING.contains(&it.signal))
    }

    fn signal(&mut self) -> io::Result<Option<Event>> {
        while let Some(arrived) = sys::next_signal(self.signals.as_fd()) {
            if arrived.signal == libc::SIGCHLD {
                if let Some(ending) = self.reap()? {
                    return Ok(Some(Event::Ended(ending)));
                }
            } else if arrived.is_sent {
                return Ok(Some(Event::Signal(arrived.signal)));
            }
        }
        Ok(None)
    }

    /// Takes every child that ended; tells how the command did.
    fn reap(&mut self) -> io::Result<Option<Ending>> {
        /// What the system adds to how a process ended if it wrote its memory down.
        const DUMPED: i32 = 0x80;
        let mut ending = None;
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    self.has_dumped |= status.signaled() && status.as_raw() & DUMPED != 0;
                    if pid == self.child && !self.is_reaped {
                        self.is_reaped = true;
                        ending = ending_of(status);
                    }
                }
                Err(Errno::INTR) => {}
                Ok(None) | Err(Errno::CHILD) => return Ok(ending),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Takes up all calls that wait: until then a signal can interrupt even those that never are otherwise. Where only one
    /// thread asks there is no second to look for.
    fn take_up(&mut self) -> io::Result<()> {
        for _ in 0..TAKEN_UP_MAX {
            let Some(notice) = sys::receive(self.listener.as_fd())? else {
                return Ok(());
            };
            let others = self.asked_last.replace(notice.thread);
            let is_alone = self.waiting.is_empty() && others == Some(notice.thread);
            self.waiting.push_back(notice);
            if !is_alone {
                paths::listen();
            }
            if is_alone || !self.has_call(&Timespec::default())? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Tells whether a call waits to be taken up, or comes within a time.
    fn has_call(&self, within: &Timespec) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
        match poll(&mut fds, Some(within)) {
            Ok(_) => Ok(fds.iter().any(|fd| fd.revents().contains(PollFlags::IN))),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Waits for the next call, and tells whether it came before the clock ticked or anything else can be read.
    fn has_next_call(&mut self, also: &[BorrowedFd<'_>]) -> io::Result<bool> {
        let Some(ticks) = self.ticker.start() else {
            return self.has_call(&ticker::PERIOD);
        };
        let listener = PollFd::new(&self.listener, PollFlags::IN);
        let mounts = self.mounts.as_ref().map_or(ticks, AsFd::as_fd);
        let also = |index: usize| match also.get(index) {
            Some(fd) => PollFd::from_borrowed_fd(*fd, PollFlags::IN),
            None => PollFd::from_borrowed_fd(ticks, PollFlags::empty()),
        };
        // The kernel looks at them in this order: what tells of directories is looked at when a call is there.
        let ear = paths::ear();
        let ear = match &ear {
            Some(ear) => PollFd::new(ear, PollFlags::IN),
            None => PollFd::from_borrowed_fd(ticks, PollFlags::empty()),
        };
        let mut fds = [
            listener,
            PollFd::from_borrowed_fd(ticks, PollFlags::IN),
            PollFd::from_borrowed_fd(mounts, PollFlags::PRI),
            ear,
            also(0),
            also(1),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let [call, tick, mounted, ear, also @ ..] = fds.map(|fd| fd.revents());
        if mounted.contains(PollFlags::PRI) {
            paths::let_go();
        }
        let (call, tick) = (call.contains(PollFlags::IN), tick.contains(PollFlags::IN));
        paths::heard(ear.contains(PollFlags::IN));
        if tick && !call {
            self.ticker.heard();
        }
        Ok(call && also.iter().all(PollFlags::is_empty))
    }

    fn answer(&mut self, notice: &Notice, observer: &mut dyn Observer) -> io::Result<()> {
        let (answer, touch) =
            self.eyes
                .ask(self.listener.as_fd(), notice, observer, &mut self.waiting);
        let reply = match answer {
            Answer::Continue | Answer::Perform | Answer::Watch => Reply::Continue,
            Answer::Refuse(errno) | Answer::Fails(errno) => Reply::Fail(errno),
            Answer::Done => Reply::Give(0),
            Answer::Gave(number) => Reply::Give(i64::from(number)),
            Answer::Told => return Ok(()),
            // Only a look can be had again.
            Answer::Again => Reply::Fail(libc::EAGAIN),
        };
        sys::send(self.listener.as_fd(), notice.id, reply)?;
        if let (Answer::Watch, Some(mut touch)) = (answer, touch) {
            self.see_to_the_end(notice, &mut touch, observer)?;
        }
        Ok(())
    }

    /// Waits until a call is over that the kernel carries out, however long its thread waits for its turn.
    fn see_to_the_end(
        &mut self,
        notice: &Notice,
        touch: &mut Touch,
        observer: &mut dyn Observer,
    ) -> io::Result<()> {
        let (began, ran) = (Instant::now(), ran(notice.thread));
        let mut is_over = false;
        loop {
            is_over |= has_left(notice, ran);
            if observer.after(touch, is_over) {
                return Ok(());
            }
            if began.elapsed() > SETTLING_MAX {
                observer.noted(
                    "a rename took longer than ten seconds; whether it happened was not waited for",
                );
                observer.after(touch, true);
                return Ok(());
            }
            let pause = Instant::now() + SETTLING_STEP;
            let ready = self.wait(None, &[], Some(pause))?;
            if ready.call
                && let Some(next) = sys::receive(self.listener.as_fd())?
            {
                // Whoever asks again is done with what it asked before.
                is_over |= next.thread == notice.thread;
                self.waiting.push_back(next);
            } else if ready.signal || ready.start {
                std::thread::sleep(SETTLING_STEP);
            }
            is_over |= ready.is_over;
        }
    }
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one descriptor's answer"
)]
struct Ready {
    call: bool,
    is_over: bool,
    signal: bool,
    start: bool,
    also: Option<usize>,
    others: bool,
}
