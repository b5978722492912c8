//! What may not be written, what cannot be kept, and what is said then.

use std::collections::HashSet;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use backout_capture::live::{Act, Answer, Place, Touch, is_on_ours};
use backout_files::{OverLimit, Writing};
use backout_model::TargetPath;
use rustix::fs::{FileType, Stat, fstat};

use super::before_image::KeepError;
use super::log::Note;
use super::recorder::{EFBIG, EIO, EPERM, Recorder, Stop, node_of};
use crate::file::recipe::Kind;

/// `/proc`, `/sys`, control groups, terminals and their like.
const KERNEL_FILE_SYSTEMS: [i64; 12] = [
    0x9fa0,
    0x6265_6572,
    0x0027_e0eb,
    0x6367_7270,
    0x1cd1,
    0x6462_6720,
    0x7363_6673,
    0x7472_6163,
    0xcafe_4a11,
    0x6573_5543,
    0x1980_0202,
    0x6265_6570,
];

/// FUSE: a process does what the kernel is asked for.
const SERVED_FILE_SYSTEM: i64 = 0x6573_5546;

/// More links by which files were written are not remembered.
const THROUGH_MAX: usize = 10_000;

/// Tells whether a call changes a file and not only a name of it, or gives it one more.
const fn changes_the_file(act: Act) -> bool {
    match act {
        Act::Open { writes, .. } => writes,
        Act::Truncate | Act::Attributes | Act::Times | Act::Flags { .. } | Act::Link => true,
        Act::Unlink
        | Act::Rmdir
        | Act::Rename { .. }
        | Act::Make
        | Act::Read
        | Act::Exec
        | Act::Standing
        | Act::Mounts
        | Act::Quotas
        | Act::Sync => false,
    }
}

/// Lists the devices of the file systems that processes serve at this moment.
pub(super) fn served_now() -> HashSet<u64> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let device = |line: &str| {
        let (place, kind) = line.split_once(" - ")?;
        let (major, minor) = place.split(' ').nth(2)?.split_once(':')?;
        let device = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
        kind.starts_with("fuse").then_some(device)
    };
    mounts.lines().filter_map(device).collect()
}

/// Tells whether a path is another, or lies below it. Both are as the system tells them, so their bytes say it.
fn is_at_or_below(path: &Path, above: &Path) -> bool {
    let rest = path
        .as_os_str()
        .as_bytes()
        .strip_prefix(above.as_os_str().as_bytes());
    rest.is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b'/'))
}

impl Recorder {
    /// Answers what needs no look at what is there: what may not be written, and what is not ours to keep.
    pub(super) fn beforehand(&mut self, touch: &Touch) -> Option<Answer> {
        if touch.first.is_none() {
            let answer = self.nameless(touch);
            if answer.is_none() {
                self.unknown(touch);
            }
            return answer;
        }
        if let Some(why) = self.forbidden(touch) {
            self.note(format!("{why}; the command was refused"));
            return Some(Answer::Refuse(EPERM));
        }
        self.remember_through(touch);
        for place in [&touch.first, &touch.second].into_iter().flatten() {
            let directory = place.directory();
            let is_rename = matches!(touch.act, Act::Rename { .. });
            if self.is_ours(place, directory) || (is_rename && self.holds_ours(place)) {
                if let Some(answer) = self.nameless(touch) {
                    return Some(answer);
                }
                let note = "writing our own state was refused; nothing of it may change here";
                self.note(note.to_owned());
                return Some(Answer::Refuse(EPERM));
            }
            if self.is_kernels(place, directory) {
                let path = place.path();
                if path.starts_with("/sys") || path.starts_with("/proc/sys") {
                    self.note_lasting(format!(
                        "`{}` belongs to the kernel; it is not undone",
                        path.display()
                    ));
                }
                return Some(Answer::Continue);
            }
            if self.is_served(place, directory) {
                let note = "it wrote to a file system that it serves itself; what its server did is recorded";
                self.note(note.to_owned());
                return Some(Answer::Continue);
            }
            if !touch.has_our_mounts && !Self::is_seen(place) {
                if is_on_ours(place.dir.as_fd()) {
                    return Some(self.hidden());
                }
                self.note_lasting("it wrote where only it can see; that is not undone".to_owned());
                return Some(Answer::Continue);
            }
        }
        None
    }

    /// Says why what a call touches may not be written, if it may not.
    fn forbidden(&self, touch: &Touch) -> Option<String> {
        let forbids = self.forbids.as_ref()?;
        let place = touch.first.as_ref()?;
        let first = place.path();
        let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let several = place
            .stat
            .as_ref()
            .filter(|it| it.st_nlink > 1 && is_file(it));
        let writing = Writing {
            path: &first,
            to: None,
            has_other_names: several.is_some() && changes_the_file(touch.act),
        };
        let by = |path| Writing {
            path,
            to: None,
            has_other_names: false,
        };
        let through = || place.through.as_deref().and_then(|link| forbids(by(link)));
        let Some(second) = touch.second.as_ref().map(Place::path) else {
            return forbids(writing).or_else(through);
        };
        if matches!(touch.act, Act::Rename { .. }) {
            let moving = |path, to| Writing {
                to: Some(to),
                ..by(path)
            };
            // Two names may change places.
            return forbids(moving(&first, &second)).or_else(|| forbids(moving(&second, &first)));
        }
        forbids(writing).or_else(|| forbids(by(&second)))
    }

    /// Remembers the link by which a file is written.
    fn remember_through(&mut self, touch: &Touch) {
        let writes = matches!(touch.act, Act::Open { writes: true, .. } | Act::Truncate);
        let Some(place) = touch.first.as_ref().filter(|_| writes) else {
            return;
        };
        let link = place.through.as_ref().map(TargetPath::new);
        if let (Some(Ok(link)), Ok(path)) = (link, TargetPath::new(place.path()))
            && self.through.len() < THROUGH_MAX
        {
            self.through.insert((link, path));
        }
    }

    /// Lists the links by which files were written, each with what it led to.
    pub(super) fn through(&self) -> Vec<(TargetPath, TargetPath)> {
        self.through.iter().cloned().collect()
    }

    /// Tells whether a place is in our own state, which nothing may write.
    pub(super) fn is_ours(&self, place: &Place, directory: Option<(u64, u64)>) -> bool {
        let itself = place.stat.as_ref().map(|stat| (stat.st_dev, stat.st_ino));
        directory.is_some_and(|number| self.own.contains(&number))
            || itself.is_some_and(|number| self.own.contains(&number))
            || self
                .own_paths
                .iter()
                .any(|own| is_at_or_below(&place.dir_path, own))
            || self.is_in_depot(place)
    }

    /// Tells whether a place is in a depot of another file system.
    pub(super) fn is_in_depot(&self, place: &Place) -> bool {
        let name = self.depot_name.as_bytes();
        let directory = place.dir_path.as_os_str().as_bytes();
        // Most paths have nothing like it.
        let may_be = |path: &[u8]| path.windows(name.len()).any(|part| part == name);
        if place.name.as_bytes() != name && !may_be(directory) {
            return false;
        }
        let mut parts = place
            .dir_path
            .components()
            .map(std::path::Component::as_os_str);
        *place.name == *self.depot_name || parts.any(|part| *part == *self.depot_name)
    }

    /// Tells whether our own state is below a place: with another name above it, nobody would find it.
    pub(super) fn holds_ours(&self, place: &Place) -> bool {
        let path = place.path();
        self.own_paths.iter().any(|own| own.starts_with(&path))
    }

    /// Tells whether a place is in a file system that the kernel makes up: nothing of it can be kept.
    pub(super) fn is_kernels(&mut self, place: &Place, directory: Option<(u64, u64)>) -> bool {
        let Some((device, _)) = directory else {
            return false;
        };
        *self.kernel.entry(device).or_insert_with(|| {
            rustix::fs::fstatfs(place.dir.as_fd())
                .is_ok_and(|found| KERNEL_FILE_SYSTEMS.contains(&found.f_type))
        })
    }

    /// Tells whether a place is in a file system that a process of the command serves: what we changed there it would have to
    /// do, and would wait for us.
    pub(super) fn is_served(&mut self, place: &Place, directory: Option<(u64, u64)>) -> bool {
        let Some((device, _)) = directory else {
            return false;
        };
        let others = &self.served_by_others;
        *self.served.entry(device).or_insert_with(|| {
            !others.contains(&device)
                && rustix::fs::fstatfs(place.dir.as_fd())
                    .is_ok_and(|found| found.f_type == SERVED_FILE_SYSTEM)
        })
    }

    /// Tells whether a path is the same place for us as for the process.
    pub(super) fn is_seen(place: &Place) -> bool {
        let here = rustix::fs::stat(&place.dir_path);
        let there = fstat(&place.dir);
        matches!((here, there), (Ok(here), Ok(there))
            if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino))
    }

    pub(super) fn too_large(&mut self, place: &Place, size: u64) -> Answer {
        let Ok(path) = TargetPath::new(place.path()) else {
            return Answer::Refuse(EFBIG);
        };
        let is_allowed = match (&mut self.ask, self.limits.over_limit) {
            (_, OverLimit::Mark) => true,
            (Some(ask), OverLimit::Refuse) => ask(&path, size),
            (None, OverLimit::Refuse) => false,
        };
        if !is_allowed {
            self.note(format!(
                "writing `{path}` was refused: it is {size} bytes, more than may be copied first"
            ));
            return Answer::Refuse(EFBIG);
        }
        let why = format!("it was {size} bytes, more than may be copied first");
        self.note(format!("`{path}` cannot be brought back: {why}"));
        let unkept = Note::Unkept {
            path: self.tracker.origin(&path).unwrap_or(path),
            why,
            identity: node_of(place).map(|node| node.identity),
        };
        match self.learn(unkept, Vec::new()) {
            Ok(()) => Answer::Continue,
            Err(stop) => self.stop(place, stop),
        }
    }

    pub(super) fn stop(&mut self, place: &Place, stop: Stop) -> Answer {
        match stop {
            Stop::Keep(KeepError::TooLarge { size }) => self.too_large(place, size),
            Stop::Keep(KeepError::System { action, errno }) => {
                let path = place.path();
                self.note(format!(
                    "writing `{}` was refused: could not {action} it: {errno}",
                    path.display()
                ));
                Answer::Refuse(errno.raw_os_error())
            }
            Stop::Keep(error) => {
                self.note(format!(
                    "writing `{}` was refused: {error}",
                    place.path().display()
                ));
                Answer::Refuse(EIO)
            }
            Stop::Log(error) => {
                let why = format!("the capture log could not be written: {error}");
                self.note(format!("writing was refused: {why}"));
                Answer::Refuse(error.raw_os_error().unwrap_or(EIO))
            }
        }
    }

    /// Explains why a program that would gain rights does not.
    pub(super) fn executed(&mut self, touch: &Touch) {
        let Some(place) = &touch.first else {
            return;
        };
        let Some(node) = node_of(place) else {
            return;
        };
        let own = rustix::process::geteuid().as_raw();
        let gains = node.mode & 0o4000 != 0 && node.uid != own;
        if node.kind == Kind::File && gains {
            self.note(format!(
                "`{}` gained no rights here: a watched command keeps those it has; run `backout run` itself with them",
                place.path().display()
            ));
        }
    }
}
