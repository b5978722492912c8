//! Watching a command: calls are answered, signals passed on, time kept.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use backout_capture::live::{
    Act, Answer, Back, Ending, Event, Observer, Place, Spawned, Supervisor, Touch, descendants,
    opened_for_writing,
};
use backout_files::{Limits, Recorder};
use backout_model::{CaptureMode, CommandEnd, CommandStart, OperationId, Target};
use rustix::process::{Pid, Signal, kill_process};

use super::ArmedCommand;
use super::desk::{Closed, Desk};
use super::neighbours::{Neighbours, answer};
use super::signals::{By, Heard, PATIENCE};
use crate::Engine;

/// How long a command whose time is up may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// How often the log says that the command is watched.
const BEAT: Duration = Duration::from_secs(1);

/// How often to look for processes that are to be ended.
const ENDING_STEP: Duration = Duration::from_millis(20);

/// How often at most: what cannot be ended in so long is stuck in the kernel.
const ENDING_STEPS_MAX: usize = 250;

/// How long processes that are in no list may take to be gone: they are ending.
const QUIET_STEP: Duration = Duration::from_millis(1);
const QUIET_STEPS_MAX: usize = 200;

/// How a command ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) ending: Ending,
    pub(super) timed_out: bool,
}

impl Ended {
    /// Says it as the journal does.
    pub(super) fn told(self, duration_ms: u64, survivors: Vec<String>) -> CommandEnd {
        let (exit_code, signal) = match self.ending {
            Ending::Exited(code) => (Some(code), None),
            Ending::Signalled(signal) => (None, Some(signal)),
        };
        CommandEnd {
            exit_code,
            signal,
            duration_ms,
            timed_out: self.timed_out,
            survivors,
            ..CommandEnd::default()
        }
    }
}

/// A command that is watched.
#[derive(Debug)]
pub struct Watch {
    pub(super) start: CommandStart,
    pub(super) limits: Limits,
    child: Pid,
    supervisor: Supervisor,
    back: Option<Back>,
    desk: Option<Desk>,
    neighbours: Neighbours,
    /// The operation of what the command left running.
    pub(super) next: Option<ArmedCommand>,
    /// Whether somebody asked for the end when the command was over. Once heard, it is heard for good.
    is_asked: Cell<bool>,
}

/// Who writes what a command has perhaps touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WrittenBy {
    /// Another operation, which is about to.
    Operation,
    /// Another command, which is about to, and may do so in place.
    Command,
    /// Somebody who did, and the command is about to write over that.
    Anybody,
}

/// What somebody writes that a command has perhaps touched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writing<'w> {
    pub(super) targets: &'w [Target],
    /// Files among them that have other names, by device and number.
    pub(super) numbers: &'w [(u64, u64)],
    pub(super) by: WrittenBy,
}

/// Records the part of a command in some names by itself. Tells whether its processes go on writing them.
pub(super) type OnPart<'q> = &'q mut dyn FnMut(&mut dyn Recorder, Writing<'_>) -> bool;

/// The recorder; the part of a command is recorded before it takes from others what they wrote, and commands beside it are
/// asked about each name before it touches it.
struct Asking<'r, 'q> {
    recorder: &'r mut dyn Recorder,
    on_part: OnPart<'q>,
    engine: &'r Engine,
    neighbours: &'r mut Neighbours,
    desk: Option<&'r Desk>,
}

impl Observer for Asking<'_, '_> {
    fn before(&mut self, touch: &mut Touch) -> Answer {
        self.neighbours.answer_held(self.recorder, self.on_part);
        if let Some(answer) = self.recorder.prepare(touch) {
            return answer;
        }
        if let Some(target) = self.recorder.taken_from_others(touch) {
            let writing = Writing {
                targets: &[target],
                numbers: &[],
                by: WrittenBy::Anybody,
            };
            (self.on_part)(self.recorder, writing);
        }
        let claim = self.neighbours.claim(self.engine, self.recorder, touch);
        if let Some(claim) = claim {
            let (engine, asked) = (self.engine, (self.desk, claim));
            self.neighbours
                .ask(engine, self.recorder, self.on_part, asked);
            return Answer::Again;
        }
        if !self.neighbours.takes_shared() {
            return self.recorder.proceed(touch);
        }
        let claim = self.recorder.claim(touch);
        let answer = self.recorder.proceed(touch);
        self.recorder.shares(&claim.targets);
        answer
    }

    fn is_noted(&mut self, path: &Path, act: Act) -> bool {
        self.recorder.is_noted(path, act)
    }

    fn made(&mut self, place: &Place, number: (u64, u64)) {
        self.recorder.made(place, number);
    }

    fn did_not_happen(&mut self) {
        self.recorder.did_not_happen();
    }

    fn is_made(&mut self, number: (u64, u64), act: Act) -> bool {
        self.recorder.is_made(number, act)
    }

    fn after(&mut self, touch: &mut Touch, is_over: bool) -> bool {
        self.recorder.after(touch, is_over)
    }

    fn others(&self) -> Option<BorrowedFd<'_>> {
        self.recorder.others()
    }

    fn look_around(&mut self) {
        Observer::look_around(self.recorder);
        self.neighbours.answer_all(self.recorder, self.on_part);
    }

    fn noted(&mut self, what: &str) {
        self.recorder.noted(what);
    }

    fn lasts(&mut self, what: &str) {
        self.recorder.lasts(what);
    }

    fn refused(&mut self, thread: u32, why: &str) {
        self.recorder.refused(thread, why);
    }
}

impl Watch {
    pub(super) fn new(
        start: CommandStart,
        limits: Limits,
        spawned: Spawned,
        (back, neighbours): (Option<Back>, Neighbours),
    ) -> Self {
        Self {
            start,
            limits,
            child: spawned.child.pid,
            supervisor: spawned.supervisor,
            is_asked: Cell::new(false),
            back,
            desk: None,
            neighbours,
            next: None,
        }
    }

    /// Lets other operations and commands say what they are about to write.
    pub(super) fn open_desk(&mut self, path: &Path) {
        // Without one, their writes are seen as somebody else's.
        self.desk = Desk::open(path).ok();
    }

    /// Goes on as the watch of what a command left running.
    pub(super) fn goes_on_as(&mut self, id: OperationId) {
        self.neighbours = Neighbours::new(id);
    }

    /// Answers until the command ends. The inner error is the number of why it never started.
    pub(super) fn until_end(
        &mut self,
        engine: &Engine,
        recorder: &mut dyn Recorder,
        timeout: Option<Duration>,
        on_part: OnPart<'_>,
    ) -> io::Result<Result<Ended, i32>> {
        let mut end_at = timeout.map(|timeout| Instant::now() + timeout);
        let mut beat_at = Instant::now();
        let mut stage = Stage::Running;
        let mut heard = Heard::default();
        let mut not_started = None;
        // Before the first call: it may be the one at which the watcher hangs.
        if let Some(back) = &self.back {
            back.watches();
        }
        loop {
            let deadlines = [end_at, heard.next(), Some(beat_at)];
            let deadline = deadlines.into_iter().flatten().min();
            let event = self.next(engine, recorder, deadline, on_part)?;
            self.neighbours.answer_held(recorder, on_part);
            match event {
                Event::NotStarted { errno } => not_started = Some(errno),
                Event::Ended(ending) => {
                    recorder.beat();
                    if self.supervisor.has_dumped() {
                        recorder
                            .lasts("the kernel wrote a core dump of it; that file is not undone");
                    }
                    if let Some(back) = &self.back {
                        back.settles();
                    }
                    let timed_out = stage != Stage::Running;
                    if timed_out {
                        end_the_rest();
                    }
                    return Ok(not_started.map_or(Ok(Ended { ending, timed_out }), Err));
                }
                Event::Signal(signal) if self.back.is_some() => {
                    heard.hear(signal, By::Back, Instant::now());
                }
                Event::Signal(signal) => self.pass_on(signal),
                Event::Readable(0) if self.back.is_some() => self.hear_front(&mut heard),
                Event::Readable(_) => self.answer(recorder, on_part),
                // The end of the command itself comes as a signal of its own.
                Event::Quiet => std::thread::sleep(Duration::from_millis(1)),
                Event::Deadline => {}
            }
            let now = Instant::now();
            if now >= beat_at {
                recorder.beat();
                recorder.keep_notes();
                if let Some(back) = &self.back {
                    back.watches();
                }
                beat_at = now + BEAT;
            }
            for signal in heard.due(now) {
                self.pass_on(signal);
            }
            if end_at.is_some_and(|end_at| now >= end_at) {
                stage = stage.next();
                end_all(stage.signal());
                let pause = if stage == Stage::Asked {
                    GRACE
                } else {
                    ENDING_STEP
                };
                end_at = Some(now + pause);
            }
        }
    }

    /// Answers until nobody is left who could ask.
    pub(super) fn until_quiet(
        &mut self,
        engine: &Engine,
        recorder: &mut dyn Recorder,
        on_part: OnPart<'_>,
    ) -> io::Result<()> {
        loop {
            // What ends the machine's session ends them too; until then they are watched.
            let deadline = Some(Instant::now() + BEAT);
            let event = self.next(engine, recorder, deadline, on_part)?;
            self.neighbours.answer_held(recorder, on_part);
            recorder.beat();
            recorder.keep_notes();
            match event {
                Event::Quiet => return Ok(()),
                Event::Readable(_) => self.answer(recorder, on_part),
                Event::NotStarted { .. } | Event::Ended(_) | Event::Signal(_) | Event::Deadline => {
                }
            }
        }
    }

    fn next(
        &mut self,
        engine: &Engine,
        recorder: &mut dyn Recorder,
        deadline: Option<Instant>,
        on_part: OnPart<'_>,
    ) -> io::Result<Event> {
        let back = self.back.as_ref().map(AsFd::as_fd);
        let desk = self.desk.as_ref().map(AsFd::as_fd);
        let also: Vec<_> = [back, desk].into_iter().flatten().collect();
        let mut asking = Asking {
            recorder,
            on_part,
            engine,
            neighbours: &mut self.neighbours,
            desk: self.desk.as_ref(),
        };
        self.supervisor.next(&mut asking, &also, deadline)
    }

    fn answer(&self, recorder: &mut dyn Recorder, on_part: OnPart<'_>) {
        if let Some(question) = self.desk.as_ref().and_then(Desk::question) {
            answer(question, recorder, on_part);
        }
    }

    /// Names the processes that go on after the command. Whether there are any, the kernel tells where it asks us; the
    /// names are for people.
    pub(super) fn survivors(&mut self) -> io::Result<Vec<String>> {
        for _ in 0..QUIET_STEPS_MAX {
            let is_quiet = self.supervisor.is_quiet()?;
            if is_quiet && self.start.mode == CaptureMode::Live {
                return Ok(Vec::new());
            }
            let alive = descendants().into_iter();
            let named: Vec<String> = alive.map(|process| process.to_string()).collect();
            if !named.is_empty() {
                return Ok(named);
            }
            if is_quiet {
                return Ok(named);
            }
            std::thread::sleep(QUIET_STEP);
        }
        Ok(vec!["a process that is in no list".to_owned()])
    }

    /// Tells whether somebody asked for the end since the command is over, and says that this process is there.
    pub(super) fn is_asked_to_end(&self) -> bool {
        let mut is_asked = self.is_asked.get() || self.supervisor.is_asked_to_end();
        if let Some(back) = &self.back {
            back.settles();
            is_asked |= back.is_asked_to_end();
        }
        self.is_asked.set(is_asked);
        is_asked
    }

    /// Forgets who asked for the end so far: that was meant for the command. Of a signal that ended it both of us hear, and
    /// the front may take a moment longer.
    pub(super) fn forget_asked(&self, end: &CommandEnd) {
        let is_by_signal = end.signal.is_some() || end.exit_code.is_some_and(|code| code > 128);
        if self.is_asked_to_end() || is_by_signal {
            let until = Instant::now() + PATIENCE;
            while Instant::now() < until {
                self.is_asked_to_end();
                std::thread::sleep(QUIET_STEP);
            }
        }
        self.is_asked.set(false);
    }

    /// Lets nobody write what the command wrote, until the value goes.
    pub(super) fn close_desk(&mut self, written: &[Target]) -> Option<Closed> {
        let desk = self.desk.take()?;
        Some(Closed::over(desk, written.to_vec()))
    }

    /// Gives the way to the front back.
    pub(super) const fn take_back(&mut self) -> Option<Back> {
        self.back.take()
    }

    fn hear_front(&mut self, heard: &mut Heard) {
        let Some(back) = &self.back else {
            return;
        };
        match back.passed_on() {
            Some(signal) => heard.hear(signal, By::Front, Instant::now()),
            // The front is gone: nobody waits any more, and the command goes on.
            None => self.back = None,
        }
    }

    fn pass_on(&self, signal: i32) {
        if let Some(signal) = Signal::from_named_raw(signal) {
            let _gone = kill_process(self.child, signal);
        }
    }
}

/// How far the end of a command whose time is up has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    Asked,
    Ended,
}

impl Stage {
    const fn next(self) -> Self {
        match self {
            Self::Running => Self::Asked,
            Self::Asked | Self::Ended => Self::Ended,
        }
    }

    const fn signal(self) -> Signal {
        match self {
            Self::Running | Self::Asked => Signal::TERM,
            Self::Ended => Signal::KILL,
        }
    }
}

/// Ends what is left of a command whose time is up, or that is to be taken back.
pub(super) fn end_the_rest() {
    for _ in 0..ENDING_STEPS_MAX {
        if descendants().is_empty() {
            return;
        }
        end_all(Signal::KILL);
        std::thread::sleep(ENDING_STEP);
    }
}

/// Sends a signal to every process below this one.
fn end_all(signal: Signal) {
    for process in descendants() {
        let _gone = kill_process(process.pid, signal);
    }
}

/// Keeps what the processes below this one have open for writing, our own streams aside: those are the caller's.
pub(super) fn keep_open_files(recorder: &mut dyn Recorder) {
    for file in open_files() {
        recorder.opened_before(&file);
    }
}

/// Lists what the processes below this one have open for writing, our own streams aside; once for each of them.
pub(super) fn open_files() -> Vec<PathBuf> {
    let own: Vec<PathBuf> = (0..=2)
        .filter_map(|number| std::fs::read_link(format!("/proc/self/fd/{number}")).ok())
        .collect();
    let processes = descendants().into_iter();
    let files = processes.flat_map(|process| opened_for_writing(process.pid));
    files.filter(|file| !own.contains(file)).collect()
}
