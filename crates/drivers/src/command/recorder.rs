//! The recorder: is asked before each call, and lets it go on only when what it changes is kept.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use backout_capture::live::{Act, Answer, Held, Observer, Place, Touch};
use backout_crashpoint::crash_point;
use backout_files::{Ask, Forbids, Limits};
use backout_model::ports::{Depots, WriteContents};
use backout_model::{OperationId, TargetPath};
use rustix::fs::{Access, AtFlags, Mode, OFlags, accessat, openat};
use rustix::io::Errno;

use super::before_image::{KeepError, Shelf};
use super::guard::served_now;
use super::log::{LogWriter, Note};
pub(super) use super::numbers::{
    EEXIST, EFBIG, EINVAL, EIO, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY, EPERM,
};
use super::others::{Others, Seen, What};
use super::renames::Linking;
use super::tracker::{Known, Tracker};
use crate::file::FileDriver;
use crate::file::recipe::Image;
use crate::file::sys::Node;

/// More things worth knowing than this are only counted.
const NOTES_MAX: usize = 20;

/// So many files that the command made are known by their numbers.
const MADE_MAX: usize = 256;

/// How often a file is read that somebody writes on meanwhile, before it is given up.
const WHILE_IT_CHANGES_MAX: usize = 100;

/// Why a recorder could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The log could not be made.
    #[error("the capture log `{}` could not be made", path.display())]
    Log {
        /// The log file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Records one command.
pub struct Recorder {
    pub(super) id: OperationId,
    pub(super) files: Arc<FileDriver>,
    pub(super) depots: Arc<dyn Depots>,
    pub(super) stash: Arc<dyn WriteContents>,
    pub(super) limits: Limits,
    pub(super) ask: Option<Ask>,
    pub(super) log: LogWriter,
    pub(crate) tracker: Tracker,
    pub(super) shelf: Shelf,
    pub(super) others: Others,
    /// Directories of our own state, by device and inode: a path may lead there by another name.
    pub(super) own: HashSet<(u64, u64)>,
    pub(super) own_paths: Vec<PathBuf>,
    pub(super) forbids: Option<Forbids>,
    /// Links by which files were written, each with what it led to.
    pub(super) through: BTreeSet<(TargetPath, TargetPath)>,
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
    /// Those of the notes that tell what the command was let do and nobody kept.
    pub(super) lasting: Vec<String>,
    /// What is so already and could not be noted yet: until the log has it, nothing goes on that needs another note.
    pub(super) owed: VecDeque<Note>,
    /// Files of several names of which only the bytes are kept, by the names of before.
    pub(super) split: BTreeSet<TargetPath>,
    /// How many parts were told by themselves because others wrote.
    pub(super) parts: usize,
    /// How many because commands beside this one did.
    pub(super) parts_beside: usize,
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
    pub(super) fn new(
        id: OperationId,
        log: &std::path::Path,
        files: Arc<FileDriver>,
        limits: Limits,
    ) -> Result<Self, RecorderError> {
        let writer = LogWriter::create(log, limits.syncs).map_err(|source| RecorderError::Log {
            path: log.to_path_buf(),
            source,
        })?;
        Ok(Self {
            depots: Arc::clone(&files.context().depots),
            stash: Arc::clone(&files.context().stash),
            id,
            files,
            limits,
            ask: None,
            log: writer,
            tracker: Tracker::default(),
            shelf: Shelf::new(id, limits.copy_bytes_max),
            others: Others::new(),
            own: HashSet::new(),
            own_paths: Vec::new(),
            forbids: None,
            through: BTreeSet::new(),
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
            lasting: Vec::new(),
            owed: VecDeque::new(),
            split: BTreeSet::new(),
            parts: 0,
            parts_beside: 0,
            is_ahead: false,
        })
    }

    /// Forbids everything directly in a directory, by whatever path it is reached.
    pub(super) fn forbid(&mut self, dir: &std::path::Path) {
        if let Ok(stat) = rustix::fs::stat(dir) {
            self.own.insert((stat.st_dev, stat.st_ino));
        }
        self.own_paths.push(dir.components().collect());
    }

    /// Forbids to take away a symbolic link, or to rename what is above it.
    pub(super) fn forbid_link(&mut self, link: &std::path::Path) {
        if let Ok(stat) = rustix::fs::lstat(link) {
            self.own.insert((stat.st_dev, stat.st_ino));
        }
        self.own_paths.push(link.to_path_buf());
    }

    /// Keeps a file that the command can write by a descriptor it has already: once for each of them.
    pub(super) fn opened_before(&mut self, path: &std::path::Path) {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return;
        };
        let flags =
            rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
        let Ok(opened) = rustix::fs::open(dir, flags, rustix::fs::Mode::empty()) else {
            return;
        };
        let mut place = Place {
            dir: Held::new(opened),
            dir_path: dir.to_path_buf(),
            dir_number: None,
            name: name.to_owned(),
            stat: None,
            is_slashed: false,
            through: None,
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
    pub(super) fn ends_where_begins(&mut self, next: &Self) {
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
    pub(super) fn beat(&self) {
        // Who reads the log then only trusts less of what it finds.
        let _told = self.log.beat();
    }

    /// Has the disk keep what was noted, while the command goes on.
    pub(super) fn keep_notes(&mut self) {
        self.log.sync_soon();
    }

    /// The command is about to have the disk keep what it wrote: the disk keeps what was there before, first.
    pub(super) fn keep_first(&mut self) -> Answer {
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
    pub(super) fn look_around(&mut self) -> io::Result<()> {
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
    pub(super) fn notes(&self) -> Vec<String> {
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

    /// Gives the files of several names of which only the bytes are kept: an undo makes each a file of its own.
    pub(super) const fn split(&self) -> &BTreeSet<TargetPath> {
        &self.split
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

    /// Notes what the command was let do and nobody kept: whoever takes it back is told again.
    pub(super) fn note_lasting(&mut self, text: String) {
        self.note(text.clone());
        // Of what there was no room for nobody is told again.
        if self.notes.contains(&text) && !self.lasting.contains(&text) {
            self.lasting.push(text);
        }
    }

    /// Lets a call pass that is not undone, and says so.
    pub(super) fn pass(&mut self, why: &str) -> Answer {
        self.note_lasting(why.to_owned());
        Answer::Continue
    }

    pub(super) fn learn(&mut self, note: Note, bytes: Vec<u8>) -> Result<(), Stop> {
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
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.log.synced()?;
        self.shelf.sync()
    }
}

impl Observer for Recorder {
    fn before(&mut self, touch: &mut Touch) -> Answer {
        match self.prepare(touch) {
            Some(answer) => answer,
            None => self.proceed(touch),
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
        // Until it is closed here, the kernel does not tell that the command closed it. If somebody else closes it meanwhile,
        // both would be told as one. What cannot be noted stops the next call.
        let _told = Self::look_around(self);
        if self.made.len() >= MADE_MAX {
            self.made.clear();
        }
        if let Ok(path) = TargetPath::new(place.path()) {
            self.made.insert(number, path);
        }
    }

    fn did_not_happen(&mut self) {
        self.others.expect_no_more();
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
                self.others.expect_no_more();
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
            self.others.expect_no_more();
            Note::NotMoved
        };
        self.is_so(note);
        true
    }

    fn noted(&mut self, what: &str) {
        self.note(what.to_owned());
    }

    fn lasts(&mut self, what: &str) {
        self.note_lasting(what.to_owned());
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
