//! The recorder: is asked before each call, and lets it go on only when what it changes is kept.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use backout_capture::live::{Act, Answer, Observer, Place, Touch};
use backout_crashpoint::crash_point;
use backout_model::ports::{Depots, WriteContents};
use backout_model::{OperationId, TargetPath};
use rustix::fs::{Access, AtFlags, Mode, OFlags, accessat, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::before_image::{KeepError, Shelf};
use super::guard::{Forbids, served_now};
use super::log::{LogWriter, Note};
pub(super) use super::numbers::{
    EEXIST, EFBIG, EINVAL, EIO, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY, EPERM,
};
use super::others::{Others, Seen, What};
use super::renames::Linking;
use super::tracker::{Known, Tracker};
use crate::file::recipe::Image;
use crate::file::sys::Node;

/// More things worth knowing than this are only counted.
const NOTES_MAX: usize = 20;

/// So many files that the command made are known by their numbers.
const MADE_MAX: usize = 256;

/// How often a file is read that somebody writes on meanwhile, before it is given up.
const WHILE_IT_CHANGES_MAX: usize = 100;

/// What to do with a file that would have to be copied and is above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverLimit {
    /// The call fails.
    #[default]
    Refuse,
    /// The call goes on, and the record says that this cannot be undone.
    Mark,
}

/// What may be kept, and how safely.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest file that is copied before it is written in place.
    pub copy_bytes_max: u64,
    /// What to do above.
    pub over_limit: OverLimit,
    /// Whether what was kept must survive loss of power before the call goes on.
    pub syncs: bool,
}

/// Why a recorder could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The log could not be made.
    #[error("the capture log `{}` could not be made", path.display())]
    Log {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Is asked whether a file above the limit may be written without an undo.
pub type Ask = Box<dyn FnMut(&TargetPath, u64) -> bool>;

/// Is told of each name before the command first touches it.
pub type FirstTouch = Box<dyn FnMut(&TargetPath)>;

/// Records one command.
pub struct Recorder {
    pub(super) depots: Arc<dyn Depots>,
    pub(super) stash: Arc<dyn WriteContents>,
    pub(super) limits: Limits,
    pub(super) ask: Option<Ask>,
    pub(super) log: LogWriter,
    pub(crate) tracker: Tracker,
    pub(super) shelf: Shelf,
    pub(super) others: Others,
    /// Is told of each name before the command first touches it.
    pub(super) first: Option<FirstTouch>,
    /// Directories of our own state, by device and inode: a path may lead there by another name.
    pub(super) own: HashSet<(u64, u64)>,
    pub(super) own_paths: Vec<PathBuf>,
    pub(super) forbids: Option<Forbids>,
    pub(super) depot_name: String,
    /// File systems of the kernel itself, by device.
    pub(super) kernel: HashMap<u64, bool>,
    /// File systems that processes of the command serve, by device.
    pub(super) served: HashMap<u64, bool>,
    /// Those that others serve: they were there before.
    pub(super) served_by_others: HashSet<u64>,
    /// Inodes of several names, by device and number, with the name of before that what they were is noted under.
    pub(super) firsts: HashMap<(u64, u64), TargetPath>,
    /// Files that the command made, by device and number, with the name that they have: as long as nothing but the command's
    /// own calls by a descriptor happened since.
    pub(super) made: HashMap<(u64, u64), TargetPath>,
    /// Files that are known to be of the upper layer of their overlay, by device and number.
    pub(super) raised: HashSet<(u64, u64)>,
    /// A file that the kernel is about to give another name.
    pub(super) linking: Option<Linking>,
    pub(super) notes: Vec<String>,
    pub(super) notes_left_out: usize,
    /// What is so already and could not be noted yet: until the log has it, nothing goes on that needs another note.
    pub(super) owed: VecDeque<Note>,
    /// How many parts were told by themselves because others wrote.
    pub(super) parts: usize,
    /// Whether a file is written in place of which the disk may not have yet what was in it.
    pub(super) is_ahead: bool,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Why a call does not go on.
pub(super) enum Stop {
    Keep(KeepError),
    Log(io::Error),
}

impl From<KeepError> for Stop {
    fn from(error: KeepError) -> Self {
        Self::Keep(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Log(error)
    }
}

impl Recorder {
    /// Begins to record an operation.
    pub fn new(
        id: OperationId,
        log: &std::path::Path,
        (depots, stash): (Arc<dyn Depots>, Arc<dyn WriteContents>),
        limits: Limits,
    ) -> Result<Self, RecorderError> {
        let writer = LogWriter::create(log, limits.syncs).map_err(|source| RecorderError::Log {
            path: log.to_path_buf(),
            source,
        })?;
        Ok(Self {
            depots,
            stash,
            limits,
            ask: None,
            log: writer,
            tracker: Tracker::default(),
            shelf: Shelf::new(id, limits.copy_bytes_max),
            others: Others::new(),
            first: None,
            own: HashSet::new(),
            own_paths: Vec::new(),
            forbids: None,
            depot_name: format!(".backout-{}", rustix::process::geteuid().as_raw()),
            kernel: HashMap::new(),
            served: HashMap::new(),
            served_by_others: served_now(),
            firsts: HashMap::new(),
            made: HashMap::new(),
            raised: HashSet::new(),
            linking: None,
            notes: Vec::new(),
            notes_left_out: 0,
            owed: VecDeque::new(),
            parts: 0,
            is_ahead: false,
        })
    }

    /// Asks somebody before a file above the limit is refused.
    #[must_use]
    pub fn with_ask(mut self, ask: Ask) -> Self {
        self.ask = Some(ask);
        self
    }

    /// Tells somebody of each name before the command first touches it.
    #[must_use]
    pub fn with_first_touch(mut self, first: FirstTouch) -> Self {
        self.first = Some(first);
        self
    }

    /// Forbids everything directly in a directory, by whatever path it is reached.
    pub fn forbid(&mut self, dir: &std::path::Path) {
        if let Ok(stat) = rustix::fs::stat(dir) {
            self.own.insert((stat.st_dev, stat.st_ino));
        }
        self.own_paths.push(dir.components().collect());
    }

    /// Forbids to take away a symbolic link, or to rename what is above it.
    pub fn forbid_link(&mut self, link: &std::path::Path) {
        if let Ok(stat) = rustix::fs::lstat(link) {
            self.own.insert((stat.st_dev, stat.st_ino));
        }
        self.own_paths.push(link.to_path_buf());
    }

    /// Keeps a file that the command can write by a descriptor it has already: once for each of them.
    pub fn opened_before(&mut self, path: &std::path::Path) {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return;
        };
        let flags =
            rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
        let Ok(opened) = rustix::fs::open(dir, flags, rustix::fs::Mode::empty()) else {
            return;
        };
        let mut place = Place {
            dir: opened,
            dir_path: dir.to_path_buf(),
            dir_number: None,
            name: name.to_owned(),
            stat: None,
            is_slashed: false,
        };
        if place.look().is_err() {
            return;
        }
        let directory = place.directory();
        if self.is_ours(&place, directory) || self.is_kernels(&place, directory) {
            return;
        }
        self.expect_closing(&place);
        for _ in 0..WHILE_IT_CHANGES_MAX {
            match self.written(&place) {
                Err(Stop::Keep(KeepError::Changing)) if place.look().is_ok() => {}
                Err(stop) => return self.not_kept(&place, stop.why()),
                Ok(()) => return,
            }
        }
        self.not_kept(&place, KeepError::Changing.to_string());
    }

    /// The command ends, and processes of it go on, recorded by `next`: what that one found in a file is what this one left.
    pub fn ends_where_begins(&mut self, next: &Self) {
        let known = next.tracker.known.iter();
        let files = known.filter_map(|(path, known)| match known {
            Known::Whole(image) => Some((path.clone(), image.clone())),
            Known::Absent | Known::Dressed { .. } => None,
        });
        self.tracker.left = files.collect();
    }

    /// Says of something that can be written all the same that it is not kept.
    fn not_kept(&mut self, place: &Place, why: String) {
        self.note(format!(
            "`{}` was open before, and cannot be brought back: {why}",
            place.path().display()
        ));
        if let Ok(path) = TargetPath::new(place.path()) {
            self.is_so(Note::Unkept {
                path: self.tracker.origin(&path).unwrap_or(path),
                why,
                identity: node_of(place).map(|node| node.identity),
            });
        }
    }

    /// Takes in what a scan found.
    pub(crate) fn scanned(&mut self, notes: Vec<Note>) -> io::Result<()> {
        for note in notes {
            self.log.add(&note, &[])?;
            self.tracker.apply(note, Vec::new());
        }
        Ok(())
    }

    /// Says that the command is watched at this moment.
    pub fn beat(&self) {
        // Who reads the log then only trusts less of what it finds.
        let _told = self.log.beat();
    }

    /// Has the disk keep what was noted, while the command goes on.
    pub fn keep_notes(&mut self) {
        self.log.sync_soon();
    }

    /// The command is about to have the disk keep what it wrote: the disk keeps what was there before, first.
    fn keep_first(&mut self) -> Answer {
        if !self.is_ahead {
            return Answer::Continue;
        }
        match self.log.sync_now().and_then(|()| self.shelf.sync()) {
            Ok(()) => {
                self.is_ahead = false;
                Answer::Continue
            }
            Err(error) => {
                self.note(format!("the disk would not keep the capture log: {error}"));
                Answer::Refuse(Errno::IO.raw_os_error())
            }
        }
    }

    /// Takes in what others did since the last look.
    pub fn look_around(&mut self) -> io::Result<()> {
        for seen in self.others.seen() {
            // They may have removed one of those, and its number may be another's.
            self.made.clear();
            let note = match seen {
                Seen::Touched(path) if !self.tracker.foreign.contains(&path) => Note::Foreign(path),
                Seen::Arrived(path) if self.tracker.is_in_own_directory(&path) => {
                    Note::Stranger(path)
                }
                // Whatever is in it is theirs, too.
                Seen::Taken(path) => {
                    self.is_so(Note::Foreign(path.clone()));
                    Note::Stranger(path)
                }
                Seen::Touched(_) | Seen::Arrived(_) => continue,
            };
            self.is_so(note);
        }
        self.pay()
    }

    /// Gives what is worth knowing.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if let Some(why) = self.others.blind() {
            notes.push(format!(
                "what others changed while it ran may have gone unseen: {why}"
            ));
        }
        if self.notes_left_out > 0 {
            notes.push(format!("and {} more of the kind", self.notes_left_out));
        }
        notes
    }

    pub(super) fn note(&mut self, text: String) {
        if self.notes.contains(&text) {
            return;
        }
        if self.notes.len() < NOTES_MAX {
            self.notes.push(text);
        } else {
            self.notes_left_out += 1;
        }
    }

    /// Lets a call pass that is not undone, and says so.
    fn pass(&mut self, why: &str) -> Answer {
        self.note(why.to_owned());
        Answer::Continue
    }

    pub(super) fn learn(&mut self, note: Note, bytes: Vec<u8>) -> Result<(), Stop> {
        if let Some(tell) = &mut self.first
            && let Note::Absent(path) | Note::Dressed { path, .. } | Note::Whole { path, .. } =
                &note
            && !self.tracker.known.contains_key(path)
        {
            tell(path);
        }
        self.pay()?;
        if self.tracker.goes_without_saying(&note) {
            self.log.beat_for_unsaid()?;
        } else {
            self.log.add(&note, &bytes)?;
            crash_point("command.noted");
        }
        self.tracker.apply(note, bytes);
        Ok(())
    }

    /// Learns what is so already, whether it can be noted now or not.
    pub(super) fn is_so(&mut self, note: Note) {
        self.tracker.apply(note.clone(), Vec::new());
        self.owed.push_back(note);
        if let Err(error) = self.pay() {
            self.note(format!("the capture log could not be written: {error}"));
        }
    }

    /// Notes what could not be noted before.
    pub(super) fn pay(&mut self) -> io::Result<()> {
        while let Some(note) = self.owed.front() {
            self.log.add(note, &[])?;
            crash_point("command.noted");
            self.owed.pop_front();
        }
        Ok(())
    }

    /// Takes what is known, to settle it.
    pub(crate) fn into_ledger(self) -> Tracker {
        self.tracker
    }

    /// Makes everything that was kept durable.
    pub fn sync(&mut self) -> io::Result<()> {
        self.log.synced()?;
        self.shelf.sync()
    }
}

impl Observer for Recorder {
    fn before(&mut self, touch: &mut Touch) -> Answer {
        match touch.act {
            Act::Standing => return Answer::Continue,
            // What a process mounts for itself alone is gone with it.
            Act::Mounts if !touch.has_our_mounts => return Answer::Continue,
            Act::Mounts => {
                return self.pass("it changed what is mounted; that is not undone");
            }
            Act::Quotas => {
                return self.pass("it asked for quotas or changed them; that is not undone");
            }
            Act::Sync => return self.keep_first(),
            Act::Exec => {
                self.executed(touch);
                return Answer::Continue;
            }
            Act::Read => {}
            _ => {
                if let Some(answer) = self.beforehand(touch) {
                    return answer;
                }
            }
        }
        for place in [&touch.first, &touch.second].into_iter().flatten() {
            self.others.watch(place);
        }
        if let Err(error) = self.look_around() {
            return match touch.first.take() {
                Some(place) => self.stop(&place, Stop::Log(error)),
                None => Answer::Refuse(EIO),
            };
        }
        // A name that goes or changes: its file is known no longer by its number.
        if !matches!(touch.act, Act::Open { .. } | Act::Make | Act::Read) {
            self.made.clear();
        }
        let answer = self.act_until_it_holds(touch);
        if let Ok(answer) = &answer {
            self.expect(touch, *answer);
        }
        match answer {
            Ok(Answer::Continue) if touch.has_our_rights && touch.has_our_mounts => Answer::Perform,
            Ok(answer) => answer,
            Err(stop) => match touch.first.take() {
                Some(place) => self.stop(&place, stop),
                None => Answer::Refuse(EIO),
            },
        }
    }

    fn is_noted(&mut self, path: &std::path::Path, act: Act) -> bool {
        let Ok(path) = TargetPath::new(path) else {
            return false;
        };
        let is_known = |origin: TargetPath| self.tracker.known.contains_key(&origin);
        // A new name of a file of before says nothing of that file.
        let is_noted = !self.tracker.aliases.contains_key(&path)
            && self.tracker.origin(&path).is_none_or(is_known);
        if is_noted && matches!(act, Act::Attributes | Act::Times) {
            // The kernel tells of two changes once, if nobody has read of the first. What cannot be noted stops the next call.
            let _told = Self::look_around(self);
            self.others.expect(&path, What::Dressed);
        }
        is_noted
    }

    fn made(&mut self, place: &Place, number: (u64, u64)) {
        if self.made.len() >= MADE_MAX {
            self.made.clear();
        }
        if let Ok(path) = TargetPath::new(place.path()) {
            self.made.insert(number, path);
        }
    }

    fn is_made(&mut self, number: (u64, u64), act: Act) -> bool {
        if !self.made.contains_key(&number) {
            return false;
        }
        // What others did may be that they took it. What cannot be noted stops the next call that needs a note.
        let _told = Self::look_around(self);
        let Some(path) = self.made.get(&number) else {
            return false;
        };
        if matches!(act, Act::Attributes | Act::Times) {
            self.others.expect(path, What::Dressed);
        }
        true
    }

    fn others(&self) -> Option<BorrowedFd<'_>> {
        self.others.as_fd()
    }

    fn look_around(&mut self) {
        // What cannot be written stops the next call.
        let _told = Self::look_around(self);
    }

    fn after(&mut self, touch: &mut Touch, is_over: bool) -> bool {
        if let Some(linking) = self.linking.take() {
            let is_linked = touch.second.as_mut().is_some_and(|new| {
                let number = |node: Node| (node.identity.dev, node.identity.ino);
                new.look().is_ok() && node_of(new).map(number) == Some(linking.number)
            });
            if !is_linked && !is_over {
                self.linking = Some(linking);
                return false;
            }
            if is_linked {
                self.linked(linking);
            } else {
                self.not_linked(linking);
            }
            return true;
        }
        let Some(moving) = self.tracker.pending.clone() else {
            return true;
        };
        let is_moved = touch.second.as_mut().is_some_and(|to| {
            to.look().is_ok() && node_of(to).is_some_and(|node| node.identity.ino == moving.ino)
        });
        if !is_moved && !is_over {
            return false;
        }
        let note = if is_moved {
            let (is_exchange, is_tree) = (moving.is_exchange, moving.is_directory);
            self.others
                .moved(&moving.from, &moving.to, is_exchange, is_tree);
            Note::Moved
        } else {
            Note::NotMoved
        };
        self.is_so(note);
        true
    }

    fn noted(&mut self, what: &str) {
        self.note(what.to_owned());
    }

    fn refused(&mut self, thread: u32, why: &str) {
        self.note(format!("a call of process {thread} was refused: {why}"));
    }
}

impl Stop {
    fn why(&self) -> String {
        match self {
            Self::Keep(error) => error.to_string(),
            Self::Log(error) => format!("the capture log could not be written: {error}"),
        }
    }
}

pub(super) fn node_of(place: &Place) -> Option<Node> {
    place.stat.as_ref().map(Node::of)
}

/// Tells whether a directory has entries that this process may see, in a directory that it may write to: else the
/// system itself says why it cannot go.
pub(super) fn is_filled(place: &Place) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let may_write = accessat(&place.dir, ".", Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    let opened = openat(&place.dir, &place.name, flags, Mode::empty());
    let Some(entries) = opened.and_then(rustix::fs::Dir::new).ok() else {
        return false;
    };
    let is_entry = |name: &[u8]| name != b"." && name != b"..";
    let mut names = entries.flatten();
    may_write && names.any(|entry| is_entry(entry.file_name().to_bytes()))
}

pub(super) fn with_times(mut image: Image, times: Option<crate::file::recipe::Times>) -> Image {
    if let (Some(times), Image::Directory { meta }) = (times, &mut image) {
        meta.times = Some(times);
    }
    image
}
