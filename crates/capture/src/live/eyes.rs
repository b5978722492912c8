//! Looking at a call: what it is about to do and to what, or why it does not happen.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::calls::{Act, Kind, Operand, Shape, Without, as_int, shape_of};
use super::carry::{Carried, carry_out};
use super::flight::Flight;
use super::masks::Masks;
use super::memory::{is_secret, read_exactly};
use super::mounts;
use super::operands::Operands;
use super::order;
use super::paths;
use super::process_info::Scene;
use super::resolve::{Lost, Place, only_of, path_of_descriptor};
use super::supervise::{Answer, Observer, Touch};
use super::sys::{self, Notice};
use super::table::SET_FLAGS;

/// How often a call whose path changes under our eyes is looked at again. Somebody who saves a file by rename without a pause
/// is overtaken long before that.
const TRIES_MAX: usize = 64;

/// The processes that are known are forgotten above this number, and after so many calls: numbers come again.
const SCENES_MAX: usize = 4096;
const SCENES_CALLS_MAX: u64 = 10_000;

/// What is known of the processes that ask.
#[derive(Debug)]
pub(super) struct Eyes {
    /// What processes see and may do, until one of them changes that.
    scenes: HashMap<u32, Scene>,
    /// Whether some process gave up rights in a way that nobody can look at.
    is_confined: bool,
    /// Whether some process changed what is mounted.
    has_new_mounts: bool,
    /// Whether the observer wants to hear of new programs.
    tells_execs: bool,
    /// Calls that the kernel carries out.
    flight: Flight,
    masks: RefCell<Masks>,
    calls: u64,
}

impl Eyes {
    pub(super) fn new() -> Self {
        Self {
            scenes: HashMap::new(),
            is_confined: false,
            has_new_mounts: false,
            tells_execs: !rustix::process::geteuid().is_root(),
            flight: Flight::default(),
            masks: RefCell::default(),
            calls: 0,
        }
    }

    /// Tells how many calls were asked about.
    pub(super) const fn calls(&self) -> u64 {
        self.calls
    }

    /// Looks at a call and asks the observer about it.
    pub(super) fn ask(
        &mut self,
        listener: BorrowedFd<'_>,
        notice: &Notice,
        observer: &mut dyn Observer,
        waiting: &mut VecDeque<Notice>,
    ) -> (Answer, Option<Touch>) {
        self.calls += 1;
        self.flight.asks_again(notice.thread);
        self.masks.get_mut().asks_again(notice.thread);
        let Some(shape) = shape_of(notice.number, &notice.arguments) else {
            observer.noted(&format!(
                "system call {} was refused: nobody knows here what it does",
                notice.number
            ));
            return (Answer::Refuse(libc::ENOSYS), None);
        };
        if order::has_odd_flags(notice) {
            return (Answer::Refuse(libc::EINVAL), None);
        }
        let is_here = shape.kind == Kind::Mounts && Scene::of(notice.thread).has_our_mounts;
        self.remember(shape.kind, is_here);
        let act = match shape.kind {
            Kind::Never(why) => {
                observer.refused(notice.thread, why);
                return (Answer::Refuse(libc::EPERM), None);
            }
            Kind::Mask => {
                self.masks.get_mut().changes(notice);
                return (Answer::Continue, None);
            }
            Kind::Exec if !self.tells_execs => return (Answer::Continue, None),
            Kind::Flags => Act::Flags {
                to: flags_in(notice),
            },
            _ => shape.act(&notice.arguments),
        };
        if shape.first.is_none() {
            // Nothing is remembered of its process: what it sees and may do is about to change.
            let mut touch = Touch::without_paths(act, notice.thread, is_here);
            return (observer.before(&mut touch), None);
        }
        if self.is_noted(notice, shape, act, observer) {
            return (Answer::Continue, None);
        }
        self.look(listener, (notice, shape, act), observer, waiting)
    }

    /// Finds what a call is about, asks the observer, and lets it happen. Anew, if that changes under our eyes.
    fn look(
        &mut self,
        listener: BorrowedFd<'_>,
        (notice, shape, act): (&Notice, &Shape, Act),
        observer: &mut dyn Observer,
        waiting: &mut VecDeque<Notice>,
    ) -> (Answer, Option<Touch>) {
        for tries in 0..TRIES_MAX {
            if tries > 0 {
                paths::listen();
            }
            let operands = match Operands::read(notice, shape) {
                Ok(operands) => operands,
                Err(errno) => return (unreadable(listener, notice, act, errno, observer), None),
            };
            let scene = self.scene(notice.thread);
            if !sys::is_waiting(listener, notice.id) {
                return (Answer::Continue, None);
            }
            let places = match operands.resolve(notice, act, scene) {
                Ok(places) => places,
                Err(lost) => {
                    let answer = refuse(listener, notice, act, lost, observer);
                    return (settled(notice, act, scene, &operands, answer), None);
                }
            };
            if act == Act::Attributes && places.first.as_ref().is_some_and(is_directory) {
                paths::let_go();
            }
            if let Some(what) = places.lasts {
                observer.lasts(what);
            }
            let mut touch = Touch {
                act,
                thread: notice.thread,
                first: places.first,
                second: places.second,
                gone: places.gone,
                has_our_rights: scene.has_our_rights && scene.has_our_mounts && !self.is_confined,
                has_our_mounts: scene.has_our_mounts && !scene.has_new_mounts,
            };
            if self.flight.holds(&touch) {
                self.flight.see_out(listener, &touch, waiting);
                continue;
            }
            let answer = observer.before(&mut touch);
            if answer == Answer::Again {
                continue;
            }
            let answer = settled(notice, act, scene, &operands, answer);
            let call = (notice, shape, &operands);
            if let Some(answer) = self.begin(listener, call, &touch, answer, observer) {
                return (answer, Some(touch));
            }
        }
        observer.refused(
            notice.thread,
            "its path keeps changing while it is looked at",
        );
        (Answer::Refuse(libc::EAGAIN), None)
    }

    /// Lets a call happen as the observer wants it. None if it must be looked at again.
    fn begin(
        &mut self,
        listener: BorrowedFd<'_>,
        (notice, shape, operands): (&Notice, &Shape, &Operands),
        touch: &Touch,
        answer: Answer,
        observer: &mut dyn Observer,
    ) -> Option<Answer> {
        if answer == Answer::Perform && operands.are_names() {
            match carry_out(listener, notice, shape, touch, &self.masks) {
                Carried::Over(Ok(number)) => return Some(Answer::Gave(number)),
                Carried::Made(given, file) => {
                    if let Some(place) = &touch.first {
                        observer.made(place, file);
                    }
                    return Some(given.map_or(Answer::Told, Answer::Gave));
                }
                Carried::Over(Err(errno)) => return Some(Answer::Refuse(errno.raw_os_error())),
                Carried::Failed(errno) => {
                    observer.did_not_happen();
                    return Some(Answer::Refuse(errno.raw_os_error()));
                }
                Carried::Again => {
                    observer.did_not_happen();
                    return None;
                }
                Carried::ByKernel => {}
            }
        }
        match answer {
            Answer::Refuse(_)
            | Answer::Fails(_)
            | Answer::Done
            | Answer::Gave(_)
            | Answer::Told
            | Answer::Again => return Some(answer),
            Answer::Continue | Answer::Perform | Answer::Watch => {}
        }
        if Operands::read(notice, shape).as_ref() != Ok(operands) {
            observer.did_not_happen();
            return None;
        }
        let has_names = operands.are_names() || touch.second.is_some();
        if has_names && answer != Answer::Watch {
            self.flight.begins(notice, touch);
        }
        Some(answer)
    }

    /// Remembers what a call is about to change of how processes see the world.
    fn remember(&mut self, kind: Kind, is_here: bool) {
        if matches!(
            kind,
            Kind::Standing | Kind::Confining | Kind::Mounts | Kind::Exec
        ) {
            self.scenes.clear();
            self.masks.get_mut().forget();
        }
        if kind == Kind::Mounts {
            paths::let_go();
        }
        self.is_confined |= kind == Kind::Confining;
        if is_here {
            mounts::remember();
            self.has_new_mounts = true;
        }
    }

    /// Tells whether all is known of what a descriptor is open on.
    fn is_noted(
        &mut self,
        notice: &Notice,
        shape: &Shape,
        act: Act,
        observer: &mut dyn Observer,
    ) -> bool {
        let index = match shape.first {
            Some(Operand::Fd(index)) => index,
            // No path at all means the descriptor itself.
            Some(Operand::Path {
                at: Some(at),
                path,
                without: Without::Null(_),
                ..
            }) if notice.arguments.get(path) == Some(&0) => at,
            _ => return false,
        };
        let is_plain = !self.has_new_mounts && self.scene(notice.thread).is_plain();
        if matches!(act, Act::Flags { .. }) || !is_plain {
            return false;
        }
        let number = notice.arguments.get(index).copied().map_or(-1, as_int);
        let Some(stat) = only_of(notice.thread, number) else {
            return false;
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            paths::let_go();
        }
        observer.is_made((stat.st_dev, stat.st_ino), act)
            || path_of_descriptor(notice.thread, number)
                .is_some_and(|path| observer.is_noted(&path, act))
    }

    fn scene(&mut self, thread: u32) -> Scene {
        if self.scenes.len() > SCENES_MAX || self.calls.is_multiple_of(SCENES_CALLS_MAX) {
            self.scenes.clear();
            self.masks.get_mut().forget();
        }
        let scene = self
            .scenes
            .entry(thread)
            .or_insert_with(|| Scene::of(thread));
        Scene {
            has_new_mounts: self.has_new_mounts,
            ..*scene
        }
    }
}

fn is_directory(place: &Place) -> bool {
    let kind = |stat: &Stat| FileType::from_raw_mode(stat.st_mode);
    place.stat.as_ref().map(kind) == Some(FileType::Directory)
}

/// Reads what the flags of an inode are to be, from the call that sets them all at once.
fn flags_in(notice: &Notice) -> Option<u32> {
    let [_, request, address, ..] = notice.arguments;
    let is_plain =
        notice.number == libc::SYS_ioctl && SET_FLAGS.contains(&as_int(request).cast_unsigned());
    let mut bytes = [0; 4];
    is_plain
        .then(|| read_exactly(notice.thread, address, &mut bytes).ok())
        .flatten()
        .map(|()| u32::from_ne_bytes(bytes))
}

/// A call whose arguments cannot be read does not happen.
fn unreadable(
    listener: BorrowedFd<'_>,
    notice: &Notice,
    act: Act,
    errno: Errno,
    observer: &mut dyn Observer,
) -> Answer {
    if !act.changes_files() || !sys::is_waiting(listener, notice.id) {
        return Answer::Continue;
    }
    match errno {
        Errno::FAULT | Errno::NAMETOOLONG if order::is_malformed(notice) => {
            Answer::Refuse(libc::EINVAL)
        }
        Errno::FAULT | Errno::NAMETOOLONG => {
            let mut arguments = notice.arguments.iter();
            if arguments.any(|address| is_secret(notice.thread, *address)) {
                let why = "its path is in memory that only itself can read (`memfd_secret`)";
                observer.refused(notice.thread, why);
            }
            Answer::Refuse(errno.raw_os_error())
        }
        _ => {
            let name = name_of(notice.thread);
            observer.refused(
                notice.thread,
                &format!(
                    "`{name}` keeps its memory from its own user ({errno}), so nobody can see what it would write; start \
                     an agent before the command and without `backout run` (`eval $(ssh-agent)`, `gpgconf --launch \
                     gpg-agent`), or run the command with `--capture scan`, or as root"
                ),
            );
            Answer::Refuse(libc::EPERM)
        }
    }
}

/// A call whose paths lead nowhere that we can look at does not happen.
fn refuse(
    listener: BorrowedFd<'_>,
    notice: &Notice,
    act: Act,
    lost: Lost,
    observer: &mut dyn Observer,
) -> Answer {
    if !act.changes_files() || !sys::is_waiting(listener, notice.id) {
        return Answer::Continue;
    }
    match lost {
        Lost::Fails(errno) => Answer::Fails(errno.raw_os_error()),
        Lost::Blind(errno, why) => {
            observer.refused(notice.thread, &format!("{why}: {errno}"));
            Answer::Refuse(errno.raw_os_error())
        }
        // A second path is always a name.
        Lost::Nameless { .. } | Lost::Root | Lost::Dots(_) => Answer::Refuse(libc::ENOENT),
    }
}

/// Finds the error that a call fails with which cannot happen.
fn settled(notice: &Notice, act: Act, scene: Scene, operands: &Operands, answer: Answer) -> Answer {
    let Answer::Fails(errno) = answer else {
        return answer;
    };
    let known = Errno::from_raw_os_error(errno);
    let first = order::first_error(notice, act, scene, operands.paths(), known);
    Answer::Refuse(first.raw_os_error())
}

/// Gives the name of a process, as the kernel keeps it.
fn name_of(thread: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}
