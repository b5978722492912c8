//! The loop: a call stops, its paths are resolved, the observer is asked, the call is answered.

use std::collections::HashMap;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, wait};

use super::calls::{Act, Operand, Shape, as_int, shape_of};
use super::front::{Ending, ending_of};
use super::place::{Base, Place, of_descriptor, path_of_descriptor, resolve};
use super::sys::{self, First, Notice, Reply};
use super::task::Scene;

/// The longest path that the kernel takes.
const PATH_BYTES_MAX: usize = 4096;

/// How often a call whose path changes under our eyes is looked at again.
const TRIES_MAX: usize = 8;

/// How long to wait for a call to be over that the kernel carries out.
const SETTLING_STEPS_MAX: usize = 400;
const SETTLING_STEP: Duration = Duration::from_micros(50);

/// The processes whose mounts are known are forgotten above this number.
const SCENES_MAX: usize = 4096;

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
    /// Whether what we do in its place is what it may do itself.
    pub has_our_rights: bool,
    /// Whether its paths are the same files for us.
    pub has_our_mounts: bool,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The kernel carries it out.
    Continue,
    /// The kernel carries it out, and the observer wants to see the result.
    Watch,
    /// It fails with this error number.
    Refuse(i32),
    /// The observer has done it.
    Done,
}

/// Is asked before each call.
pub trait Observer {
    /// Looks at a call before it happens.
    fn before(&mut self, touch: &mut Touch) -> Answer;

    /// Tells whether all is known of a name that the command has open, so that the call goes on at once.
    fn is_settled(&mut self, path: &Path, act: Act) -> bool;

    /// Looks at a call that was watched; it is over, or takes very long.
    fn after(&mut self, touch: &mut Touch);

    /// Gives a descriptor that tells of what others do; none if nothing does.
    fn others(&self) -> Option<BorrowedFd<'_>>;

    /// Looks at what others did.
    fn look_around(&mut self);

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
    scenes: HashMap<u32, bool>,
    own_mounts: Option<std::path::PathBuf>,
    /// Whether some process changed its root, namespaces or user.
    is_odd: bool,
    is_reaped: bool,
    calls: u64,
}

impl Supervisor {
    pub(super) fn new(child: Pid, listener: OwnedFd, signals: OwnedFd, start: OwnedFd) -> Self {
        Self {
            child,
            listener,
            signals,
            start: Some(start),
            scenes: HashMap::new(),
            own_mounts: std::fs::read_link("/proc/self/ns/mnt").ok(),
            is_odd: false,
            is_reaped: false,
            calls: 0,
        }
    }

    /// Tells how many calls were asked about.
    pub const fn calls(&self) -> u64 {
        self.calls
    }

    /// Answers calls until something else happens.
    pub fn next(
        &mut self,
        observer: &mut dyn Observer,
        also: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> io::Result<Event> {
        loop {
            let ready = self.wait(observer.others(), also, deadline)?;
            if ready.others {
                observer.look_around();
            }
            if ready.call {
                self.answer(observer)?;
                continue;
            }
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
            if let Some(index) = ready.also {
                return Ok(Event::Readable(index));
            }
            if ready.is_over {
                return Ok(Event::Quiet);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
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
        let mut ending = None;
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.child && !self.is_reaped => {
                    self.is_reaped = true;
                    ending = ending_of(status);
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) | Err(Errno::CHILD) => return Ok(ending),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn answer(&mut self, observer: &mut dyn Observer) -> io::Result<()> {
        let Some(notice) = sys::receive(self.listener.as_fd())? else {
            return Ok(());
        };
        self.calls += 1;
        let (answer, touch) = self.ask(&notice, observer);
        let reply = match answer {
            Answer::Continue | Answer::Watch => Reply::Continue,
            Answer::Refuse(errno) => Reply::Fail(errno),
            Answer::Done => Reply::Give(0),
        };
        sys::send(self.listener.as_fd(), notice.id, reply)?;
        if let (Answer::Watch, Some(mut touch)) = (answer, touch) {
            wait_for_end(&notice);
            observer.after(&mut touch);
        }
        Ok(())
    }

    fn ask(&mut self, notice: &Notice, observer: &mut dyn Observer) -> (Answer, Option<Touch>) {
        let Some(shape) = shape_of(notice.number) else {
            return (Answer::Continue, None);
        };
        if matches!(shape.act(&notice.arguments), Act::Standing | Act::Mounts) {
            self.is_odd = true;
            self.scenes.clear();
        }
        let descriptor = match shape.first {
            Some(Operand::Fd(index)) => Some(index),
            // No path at all means the descriptor itself.
            Some(Operand::Path { at, path, .. }) if notice.arguments.get(path) == Some(&0) => at,
            _ => None,
        };
        if let Some(index) = descriptor {
            let number = notice.arguments.get(index).copied().map_or(-1, as_int);
            let path = path_of_descriptor(notice.thread, number);
            let act = shape.act(&notice.arguments);
            if path.is_ok_and(|path| !self.is_odd && observer.is_settled(&path, act)) {
                return (Answer::Continue, None);
            }
        }
        for _ in 0..TRIES_MAX {
            let scene = self.scene(notice.thread);
            let operands = match Operands::read(notice, shape) {
                Ok(operands) => operands,
                Err(Errno::FAULT) => return (Answer::Continue, None),
                Err(errno) => {
                    if sys::is_waiting(self.listener.as_fd(), notice.id) {
                        observer.refused(
                            notice.thread,
                            &format!("its memory cannot be read: {errno}"),
                        );
                    }
                    return (Answer::Refuse(libc::EPERM), None);
                }
            };
            if !sys::is_waiting(self.listener.as_fd(), notice.id) {
                return (Answer::Continue, None);
            }
            let mut touch = match operands.resolve(notice, shape, scene) {
                Ok(touch) => touch,
                Err(errno) if is_its_own_failure(errno) => return (Answer::Continue, None),
                Err(errno) => {
                    observer.refused(
                        notice.thread,
                        &format!("its path cannot be resolved: {errno}"),
                    );
                    return (Answer::Refuse(libc::EIO), None);
                }
            };
            let answer = observer.before(&mut touch);
            let is_by_kernel = matches!(answer, Answer::Continue | Answer::Watch);
            if !is_by_kernel || Operands::read(notice, shape).as_ref() == Ok(&operands) {
                return (answer, Some(touch));
            }
        }
        observer.refused(
            notice.thread,
            "its path keeps changing while it is looked at",
        );
        (Answer::Refuse(libc::EAGAIN), None)
    }

    fn scene(&mut self, thread: u32) -> Scene {
        if self.is_odd {
            return Scene::of(thread);
        }
        if self.scenes.len() > SCENES_MAX {
            self.scenes.clear();
        }
        let own = &self.own_mounts;
        let has_our_mounts = *self.scenes.entry(thread).or_insert_with(|| {
            own.is_some() && std::fs::read_link(format!("/proc/{thread}/ns/mnt")).ok() == *own
        });
        if has_our_mounts {
            Scene::USUAL
        } else {
            Scene::of(thread)
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

/// The paths of a call, as they are in the memory of the process.
#[derive(Debug, PartialEq, Eq)]
struct Operands {
    first: Option<Where>,
    second: Option<Where>,
}

#[derive(Debug, PartialEq, Eq)]
enum Where {
    Path(Base, Vec<u8>, bool),
    Descriptor(i32),
    /// Nothing in the file system.
    Nowhere,
}

impl Operands {
    fn read(notice: &Notice, shape: &Shape) -> Result<Self, Errno> {
        let read = |operand: Option<Operand>| {
            operand
                .map(|operand| read_operand(notice, operand))
                .transpose()
        };
        Ok(Self {
            first: read(shape.first)?,
            second: read(shape.second)?,
        })
    }

    fn resolve(&self, notice: &Notice, shape: &Shape, scene: Scene) -> Result<Touch, Errno> {
        let place = |operand: &Option<Where>| match operand {
            None | Some(Where::Nowhere) => Ok(None),
            Some(Where::Path(base, path, follow)) => {
                resolve(notice.thread, scene, *base, path, *follow).map(Some)
            }
            Some(Where::Descriptor(number)) => of_descriptor(notice.thread, *number).map(Some),
        };
        Ok(Touch {
            act: shape.act(&notice.arguments),
            thread: notice.thread,
            first: place(&self.first)?,
            second: place(&self.second)?,
            has_our_rights: scene.has_our_rights,
            has_our_mounts: scene.has_our_mounts,
        })
    }
}

fn read_operand(notice: &Notice, operand: Operand) -> Result<Where, Errno> {
    let argument = |index: usize| notice.arguments.get(index).copied().unwrap_or_default();
    match operand {
        Operand::Fd(index) => Ok(Where::Descriptor(as_int(argument(index)))),
        Operand::Address(index, length) => {
            let size = usize::try_from(argument(length)).unwrap_or(0).min(110);
            let mut bytes = vec![0_u8; size];
            let read = read_exactly(notice.thread, argument(index), &mut bytes)?;
            bytes.truncate(read);
            Ok(match bytes.as_slice() {
                [1, 0, first, ..] if *first != 0 => {
                    let path = bytes.iter().skip(2).copied().take_while(|byte| *byte != 0);
                    Where::Path(Base::Here, path.collect(), false)
                }
                _ => Where::Nowhere,
            })
        }
        Operand::Path { at, path, follow } => {
            let base = match at.map(|at| as_int(argument(at))) {
                None | Some(libc::AT_FDCWD) => Base::Here,
                Some(number) => Base::Descriptor(number),
            };
            let address = argument(path);
            let bytes = if address == 0 {
                Vec::new()
            } else {
                read_path(notice.thread, address)?
            };
            // No path, or an empty one where that is allowed, means the descriptor itself.
            Ok(match (base, bytes.is_empty()) {
                (Base::Descriptor(number), true) => Where::Descriptor(number),
                _ => Where::Path(base, bytes, follow.is_on(&notice.arguments)),
            })
        }
    }
}

/// Reads a path up to its zero byte.
fn read_path(thread: u32, address: u64) -> Result<Vec<u8>, Errno> {
    const PAGE: u64 = 4096;
    let mut path = Vec::with_capacity(256);
    while path.len() < PATH_BYTES_MAX {
        let at = address.wrapping_add(path.len() as u64);
        // Never across a page that may not be there.
        let to_page_end = usize::try_from(PAGE - at % PAGE).unwrap_or(256);
        let mut chunk = [0_u8; 256];
        let size = to_page_end.min(chunk.len());
        let room = chunk.get_mut(..size).unwrap_or_default();
        let read = read_exactly(thread, at, room)?;
        let chunk = chunk.get(..read).unwrap_or_default();
        match chunk.iter().position(|byte| *byte == 0) {
            Some(end) => {
                path.extend_from_slice(chunk.get(..end).unwrap_or_default());
                return Ok(path);
            }
            None if read == 0 => return Err(Errno::FAULT),
            None => path.extend_from_slice(chunk),
        }
    }
    Err(Errno::NAMETOOLONG)
}

fn read_exactly(thread: u32, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
    sys::read_memory(thread, address, into)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Tells whether the kernel will refuse the call for the same reason.
fn is_its_own_failure(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOENT
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::ACCESS
            | Errno::BUSY
            | Errno::BADF
            | Errno::INVAL
    )
}

/// Waits until the thread is no longer in the call that it was in.
fn wait_for_end(notice: &Notice) {
    let is_in = |text: &str| {
        let mut words = text.split_whitespace();
        let number = words.next().and_then(|word| word.parse::<i64>().ok());
        number == Some(notice.number) || text.starts_with("running")
    };
    let path = format!("/proc/{}/syscall", notice.thread);
    for _ in 0..SETTLING_STEPS_MAX {
        match std::fs::read_to_string(&path) {
            Ok(text) if is_in(&text) => std::thread::sleep(SETTLING_STEP),
            _ => return,
        }
    }
}
