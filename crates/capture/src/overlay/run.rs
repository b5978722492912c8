//! Running a command in layers: the side of the process that waits.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::clock::ClockReference;
use super::error::{MOVE_IN, OverlayError};
use super::mountinfo::{Mount, mounts};
use super::plan::{Means, Plan, Step};
use super::process::{Ended, Invocation, Streams, Survivors};
use super::survivors::{Survivor, below};
use super::sys::{
    Mask, Notice, Script, Signals, before_exec, enter, has_terminal, take_terminal_back,
};
use super::{layer_dir, skeleton};

/// How long processes have to end by themselves when the command has.
const LINGER: Duration = Duration::from_millis(50);

/// How long they have after they were asked to.
const GRACE: Duration = Duration::from_secs(3);

/// How a command in layers went.
#[derive(Debug)]
pub struct Finished {
    /// What was mounted, and where the writes are.
    pub plan: Plan,
    /// How the command ended.
    pub ended: Ended,
    /// Who outlived it.
    pub survivors: Vec<Survivor>,
    /// What could not be layered and was read-only, or not there, inside; with what the system said.
    pub not_layered: Vec<(PathBuf, String)>,
    /// The moment it began, by the clock that stamps files.
    pub began: ClockReference,
    /// Whether it was ended because its time was up.
    pub is_timed_out: bool,
    /// Which signals reached this process while it ran, and were passed on to it.
    pub signals: Vec<i32>,
}

/// Runs a command in layers below one of `places`, the first that can hold them. What is at `masks` is not seen inside.
pub fn run(
    invocation: &Invocation,
    places: &[PathBuf],
    masks: &[PathBuf],
) -> Result<Finished, OverlayError> {
    let mounts = mounts()?;
    let mut means = vec![Means::UserNamespace];
    if rustix::process::geteuid().is_root() {
        means.insert(0, Means::Root);
    }
    let mut last = None;
    for means in means {
        match attempt(invocation, &mounts, means, places, masks) {
            // Root in a container may lack what it takes; a user namespace may still be had.
            Err(error @ (OverlayError::Impossible { .. } | OverlayError::NoPlace { .. })) => {
                last = Some(error);
            }
            result => return result,
        }
    }
    Err(last.unwrap_or(OverlayError::NoPlace { tried: Vec::new() }))
}

fn attempt(
    invocation: &Invocation,
    mounts: &[Mount],
    means: Means,
    places: &[PathBuf],
    masks: &[PathBuf],
) -> Result<Finished, OverlayError> {
    let scratch = layer_dir::choose(places, means)?;
    let mut masks = masks.to_vec();
    if !masks.iter().any(|mask| scratch.starts_with(mask)) {
        masks.push(scratch.clone());
    }
    let mut plan = match means {
        Means::Root => Plan::for_root(mounts, &scratch, &masks),
        Means::UserNamespace => {
            let foreign = layer_dir::foreign_above(&invocation.directory);
            Plan::for_user(mounts, &scratch, (&masks, &foreign), |directory| {
                skeleton::entries(directory, &invocation.directory)
            })
        }
    };
    make_directories(&plan)?;
    for layer in &mut plan.layers {
        layer.top = layer_dir::top_of(&layer.upper);
    }
    if means == Means::UserNamespace {
        skeleton::make(&mut plan)?;
    }
    let began = ClockReference::now(&scratch)?;
    let Supervised {
        ended,
        survivors,
        not_layered,
        is_timed_out,
        signals,
    } = supervise(invocation, &plan)?;
    Ok(Finished {
        plan,
        ended,
        survivors,
        not_layered,
        began,
        is_timed_out,
        signals,
    })
}

fn make_directories(plan: &Plan) -> Result<(), OverlayError> {
    make_directory(&plan.root)?;
    for step in &plan.steps {
        if let Step::Overlay { point, layer, .. } = step {
            let upper = layer.join("upper");
            make_directory(&upper)?;
            make_directory(&layer.join("work"))?;
            layer_dir::dress(point, &upper);
        }
    }
    Ok(())
}

/// Makes a directory and those above it.
pub(super) fn make_directory(path: &Path) -> Result<(), OverlayError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o755);
    builder
        .create(path)
        .map_err(|source| OverlayError::Unmakable {
            path: path.to_path_buf(),
            source,
        })
}

/// How it went, as far as the one who waits can tell.
pub(super) struct Supervised {
    pub(super) ended: Ended,
    pub(super) survivors: Vec<Survivor>,
    pub(super) not_layered: Vec<(PathBuf, String)>,
    pub(super) is_timed_out: bool,
    pub(super) signals: Vec<i32>,
}

/// Runs a command in a plan that is made ready. If we had the terminal, we have it again afterwards.
pub(super) fn supervise(invocation: &Invocation, plan: &Plan) -> Result<Supervised, OverlayError> {
    let is_ours = has_terminal();
    let result = watch_over(invocation, plan);
    if is_ours {
        take_terminal_back();
    }
    result
}

fn watch_over(invocation: &Invocation, plan: &Plan) -> Result<Supervised, OverlayError> {
    let lost = |action| move |source: io::Error| OverlayError::Lost { action, source };
    let script = Script::new(plan, invocation).map_err(lost("read the paths"))?;
    let (from, to) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|errno| lost("make a pipe")(errno.into()))?;
    let mut notices = Notices {
        pipe: File::from(from),
        first: None,
        not_layered: Vec::new(),
        deadline: None,
        is_timed_out: false,
        signals: Vec::new(),
    };
    let signals = Signals::hold().map_err(lost("hold signals back"))?;
    let mut child = match spawn(invocation, script, &to, signals.before()) {
        Ok(child) => child,
        Err(source) => {
            drop(to);
            return Err(notices.why_not_started(plan, invocation, source));
        }
    };
    drop(to);
    let watched = watch(&child).map_err(lost("watch the command"))?;
    notices.deadline = invocation.time_max.map(|most| Instant::now() + most);
    let ended = notices
        .until_ended(&signals, plan)
        .map_err(lost("wait for the command"))?;
    let survivors = await_survivors(invocation.survivors, notices.first, &watched, &signals)
        .map_err(lost("wait for the processes that it left"))?;
    child.wait().map_err(lost("wait for the command"))?;
    Ok(Supervised {
        ended,
        survivors,
        not_layered: notices.not_layered,
        is_timed_out: notices.is_timed_out,
        signals: notices.signals,
    })
}

fn watch(child: &Child) -> io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(io::ErrorKind::NotFound)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// What the children told.
struct Notices {
    pipe: File,
    first: Option<i32>,
    not_layered: Vec<(PathBuf, String)>,
    /// When all of it is ended.
    deadline: Option<Instant>,
    is_timed_out: bool,
    /// What reached us and was passed on.
    signals: Vec<i32>,
}

impl Notices {
    /// Takes the next; none if nobody is left to tell anything.
    fn next(&mut self) -> Option<Notice> {
        let mut bytes = [0; Notice::BYTES];
        self.pipe.read_exact(&mut bytes).ok()?;
        Notice::of(&bytes)
    }

    fn until_ended(&mut self, signals: &Signals, plan: &Plan) -> io::Result<Ended> {
        let mut waiting = Vec::new();
        loop {
            let mut both = [
                PollFd::new(&self.pipe, PollFlags::IN),
                PollFd::new(signals, PollFlags::IN),
            ];
            let left = self
                .deadline
                .map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match poll(&mut both, left.map(timespec).as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let [pipe, _] = both;
            if left.is_some_and(|left| left.is_zero())
                && let Some(first) = self.first
            {
                // The end of the first process is the end of all.
                send(first, Signal::KILL.as_raw());
                self.is_timed_out = true;
                self.deadline = None;
            }
            let heard = signals.next();
            self.signals.extend(heard);
            waiting.extend(heard);
            // Who comes before the first process is known has to wait for it.
            if let Some(first) = self.first {
                waiting.drain(..).for_each(|signal| send(first, signal));
            }
            if pipe.revents().is_empty() {
                continue;
            }
            match self.next() {
                Some(Notice::First(pid)) => {
                    self.first = Some(pid);
                    waiting.drain(..).for_each(|signal| send(pid, signal));
                }
                Some(Notice::FellBack(step, errno)) => self.fell_back(plan, step, errno),
                Some(Notice::Ended(status)) => return Ok(Ended::of_status(status)),
                Some(Notice::Failed(..) | Notice::NoNamespaces(_)) => {}
                // Somebody ended everything at once.
                None => return Ok(Ended::Signal(9)),
            }
        }
    }

    fn fell_back(&mut self, plan: &Plan, step: usize, errno: i32) {
        if let Some(step) = plan.steps.get(step) {
            let why = io::Error::from_raw_os_error(errno).to_string();
            self.not_layered.push((step.point().to_path_buf(), why));
        }
    }

    /// Finds out whether the layers or the command were the trouble.
    fn why_not_started(
        &mut self,
        plan: &Plan,
        invocation: &Invocation,
        source: io::Error,
    ) -> OverlayError {
        while let Some(notice) = self.next() {
            match notice {
                Notice::Failed(step, errno) => {
                    let step = plan.steps.get(step).map(Step::describe);
                    return OverlayError::Impossible {
                        step: step.unwrap_or_else(|| MOVE_IN.to_owned()),
                        source: io::Error::from_raw_os_error(errno),
                    };
                }
                Notice::NoNamespaces(errno) => {
                    return OverlayError::Impossible {
                        step: match plan.means {
                            Means::Root => "make a mount namespace",
                            Means::UserNamespace => "make a user namespace",
                        }
                        .to_owned(),
                        source: io::Error::from_raw_os_error(errno),
                    };
                }
                Notice::First(_) | Notice::FellBack(..) | Notice::Ended(_) => {}
            }
        }
        OverlayError::NotStarted {
            program: invocation.program.display().to_string(),
            source,
        }
    }
}

fn spawn(
    invocation: &Invocation,
    script: Script,
    notices: &OwnedFd,
    mask: Mask,
) -> io::Result<Child> {
    let mut command = Command::new(&invocation.program);
    command.args(&invocation.arguments);
    if let Some(environment) = &invocation.environment {
        command.env_clear();
        command.envs(environment.iter().map(|(name, value)| (name, value)));
    }
    match &invocation.streams {
        Streams::Ours => {}
        Streams::OursOnStderr => {
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        Streams::To(sink) => {
            command.stdin(Stdio::null());
            command.stdout(sink.try_clone()?).stderr(sink.try_clone()?);
        }
    }
    let notices = notices.as_raw_fd();
    before_exec(&mut command, move || enter(&script, notices, &mask));
    command.spawn()
}

/// Waits for those who outlive the command, or ends them. Gives who they were.
fn await_survivors(
    wanted: Survivors,
    first: Option<i32>,
    watched: &OwnedFd,
    signals: &Signals,
) -> io::Result<Vec<Survivor>> {
    let Some(first) = first else {
        return Ok(Vec::new());
    };
    if is_over(watched, Some(LINGER))? {
        return Ok(Vec::new());
    }
    let found = below(first);
    match wanted {
        Survivors::Wait => {
            let mut both = [
                PollFd::new(watched, PollFlags::IN),
                PollFd::new(signals, PollFlags::IN),
            ];
            // Whoever sends a signal now is tired of waiting.
            while matches!(poll(&mut both, None), Err(rustix::io::Errno::INTR)) {}
            if !is_over(watched, Some(Duration::ZERO))? {
                end(first, watched)?;
            }
        }
        Survivors::End => end(first, watched)?,
    }
    Ok(found)
}

fn end(first: i32, watched: &OwnedFd) -> io::Result<()> {
    for survivor in below(first) {
        send(survivor.pid, Signal::TERM.as_raw());
    }
    let deadline = Instant::now() + GRACE;
    let is_over = is_over(
        watched,
        Some(deadline.saturating_duration_since(Instant::now())),
    )?;
    if !is_over {
        // The end of the first process is the end of all.
        send(first, Signal::KILL.as_raw());
    }
    Ok(())
}

fn is_over(watched: &OwnedFd, within: Option<Duration>) -> io::Result<bool> {
    let limit = within.map(timespec);
    let mut one = [PollFd::new(watched, PollFlags::IN)];
    match poll(&mut one, limit.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

/// Sends a signal; who is gone needs none.
fn send(pid: i32, signal: i32) {
    if let (Some(pid), Some(signal)) = (Pid::from_raw(pid), Signal::from_named_raw(signal)) {
        let _gone = kill_process(pid, signal);
    }
}
