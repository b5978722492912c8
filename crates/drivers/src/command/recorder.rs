//! The recorder: is asked before each call, and lets it go on only when what it changes is kept.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;

use backout_capture::live::{Act, Answer, Observer, Place, Touch};
use backout_crashpoint::crash_point;
use backout_model::ports::{Depots, WriteContents};
use backout_model::{OperationId, TargetPath};
use rustix::fs::{
    Access, AtFlags, Mode, OFlags, RenameFlags, accessat, fstat, openat, renameat_with,
};
use rustix::io::Errno;

use super::keep::{KeepError, Kept, Shelf, meta_of, with_meta};
use super::ledger::{Known, Ledger};
use super::log::{LogWriter, Move, Note};
use crate::file::recipe::{Image, Kind, Meta};
use crate::file::sys::Node;

/// More things worth knowing than this are only counted.
const NOTES_MAX: usize = 20;

/// What to do with a file that would have to be copied and is above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

/// Records one command.
pub struct Recorder {
    depots: Arc<dyn Depots>,
    stash: Arc<dyn WriteContents>,
    limits: Limits,
    ask: Option<Ask>,
    log: LogWriter,
    pub(crate) ledger: Ledger,
    shelf: Shelf,
    /// Directories of our own state, by device and inode: a path may lead there by another name.
    own: HashSet<(u64, u64)>,
    own_paths: Vec<PathBuf>,
    depot_name: String,
    /// File systems of the kernel itself, by device.
    kernel: HashMap<u64, bool>,
    /// Inodes of several names, by device and number, with the name of before that what they were is noted under.
    firsts: HashMap<(u64, u64), TargetPath>,
    notes: Vec<String>,
    notes_left_out: usize,
    /// What could not be written any more: nothing may go on then.
    failure: Option<String>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Why a call does not go on.
enum Stop {
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
            ledger: Ledger::default(),
            shelf: Shelf::new(id, limits.copy_bytes_max),
            own: HashSet::new(),
            own_paths: Vec::new(),
            depot_name: format!(".backout-{}", rustix::process::geteuid().as_raw()),
            kernel: HashMap::new(),
            firsts: HashMap::new(),
            notes: Vec::new(),
            notes_left_out: 0,
            failure: None,
        })
    }

    /// Asks somebody before a file above the limit is refused.
    #[must_use]
    pub fn with_ask(mut self, ask: Ask) -> Self {
        self.ask = Some(ask);
        self
    }

    /// Forbids everything directly in a directory, by whatever path it is reached.
    pub fn forbid(&mut self, dir: &std::path::Path) {
        if let Ok(stat) = rustix::fs::stat(dir) {
            self.own.insert((stat.st_dev, stat.st_ino));
        }
        self.own_paths.push(dir.to_path_buf());
    }

    /// Keeps a file that the command can write by a descriptor it was born with.
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
            name: name.to_owned(),
            stat: None,
        };
        if place.look().is_err() {
            return;
        }
        if let Err(stop) = self.written(&place) {
            let why = stop.why();
            self.note(format!(
                "`{}` was open before the command, and {why}",
                path.display()
            ));
        }
    }

    /// Takes in what a scan found.
    pub(crate) fn scanned(&mut self, notes: Vec<Note>) -> io::Result<()> {
        for note in notes {
            self.log.add(&note, &[])?;
            self.ledger.apply(note, Vec::new());
        }
        Ok(())
    }

    /// Gives what is worth knowing.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if self.notes_left_out > 0 {
            notes.push(format!("and {} more of the kind", self.notes_left_out));
        }
        notes
    }

    fn note(&mut self, text: String) {
        if self.notes.contains(&text) {
            return;
        }
        if self.notes.len() < NOTES_MAX {
            self.notes.push(text);
        } else {
            self.notes_left_out += 1;
        }
    }

    fn learn(&mut self, note: Note, bytes: Vec<u8>) -> Result<(), Stop> {
        self.log.add(&note, &bytes)?;
        crash_point("command.noted");
        self.ledger.apply(note, bytes);
        Ok(())
    }

    fn act(&mut self, touch: &mut Touch) -> Result<Answer, Stop> {
        let (first, second) = (touch.first.as_ref(), touch.second.as_ref());
        match (touch.act, first, second) {
            (Act::Open { creates, writes }, Some(place), _) => {
                match node_of(place) {
                    None if creates => self.made(place)?,
                    Some(_) if writes => self.written(place)?,
                    _ => {}
                }
                Ok(Answer::Continue)
            }
            (Act::Truncate, Some(place), _) => self.written(place).map(|()| Answer::Continue),
            (Act::Unlink, Some(place), _) => self.unlink(place, touch.has_our_rights),
            (Act::Rmdir, Some(place), _) => self.rmdir(place),
            (Act::Make, Some(place), _) => self.made(place).map(|()| Answer::Continue),
            (Act::Attributes | Act::Times, Some(place), _) => {
                self.dressed(place, touch.act).map(|()| Answer::Continue)
            }
            (Act::Link, Some(old), Some(new)) => self.link(old, new),
            (Act::Rename { flags }, Some(from), Some(to)) => {
                self.rename(from, to, flags, touch.has_our_rights)
            }
            (Act::Read, Some(place), _) => self.read(place),
            _ => Ok(Answer::Continue),
        }
    }

    /// Gives the name of before, if it is worth learning something about it.
    fn origin(&mut self, place: &Place) -> Result<Option<TargetPath>, Stop> {
        let Ok(path) = TargetPath::new(place.path()) else {
            return Ok(None);
        };
        let origin = self.ledger.origin(&path);
        let parent = path.parent().and_then(|parent| self.ledger.origin(&parent));
        if let Some(parent) = parent {
            self.parent(place, parent)?;
        }
        Ok(origin)
    }

    /// Notes the times of a directory before its entries change for the first time.
    fn parent(&mut self, place: &Place, origin: TargetPath) -> Result<(), Stop> {
        let is_new = self.ledger.known.get(&origin) == Some(&Known::Absent);
        if is_new || self.ledger.parents.contains_key(&origin) {
            return Ok(());
        }
        if let Ok(stat) = fstat(&place.dir) {
            let times = Node::of(&stat).times;
            self.learn(
                Note::Parent {
                    path: origin,
                    times,
                },
                Vec::new(),
            )?;
        }
        Ok(())
    }

    /// A name comes to be where nothing was.
    fn made(&mut self, place: &Place) -> Result<(), Stop> {
        if place.stat.is_some() {
            return Ok(()); // it will be refused
        }
        if let Some(origin) = self.origin(place)?
            && !self.ledger.known.contains_key(&origin)
        {
            self.learn(Note::Absent(origin), Vec::new())?;
        }
        Ok(())
    }

    /// A file is about to be written in place.
    fn written(&mut self, place: &Place) -> Result<(), Stop> {
        let Some(node) = node_of(place).filter(|node| node.kind == Kind::File) else {
            return Ok(());
        };
        let Some(origin) = self.inode_origin(place, &node)? else {
            return Ok(());
        };
        let dressed = match self.ledger.known.get(&origin) {
            Some(Known::Absent | Known::Whole(_)) => return Ok(()),
            Some(Known::Dressed { meta, .. }) => Some(meta.clone()),
            None if self.ledger.is_in_new_directory(&origin) => return Ok(()),
            None => None,
        };
        let (image, bytes) = self.content(place, &node, dressed)?;
        let written = node.is_shared.then_some(node.identity.ino);
        self.note_first(&node, &origin);
        self.learn(
            Note::Whole {
                path: origin,
                image,
                written,
            },
            bytes,
        )
    }

    /// Remembers under which name an inode of several names is noted.
    fn note_first(&mut self, node: &Node, origin: &TargetPath) {
        if node.is_shared && node.kind == Kind::File {
            let key = (node.identity.dev, node.identity.ino);
            self.firsts.insert(key, origin.clone());
        }
    }

    /// Finds under which name of before an inode that changes in place is noted: all its names show the change, one
    /// is enough to take it back.
    fn inode_origin(&mut self, place: &Place, node: &Node) -> Result<Option<TargetPath>, Stop> {
        let origin = self.origin(place)?;
        if !node.is_shared || node.kind != Kind::File {
            return Ok(origin);
        }
        let (dev, ino) = (node.identity.dev, node.identity.ino);
        let first = self.firsts.get(&(dev, ino));
        if let Some(first) = first.filter(|first| self.is_noted(first, ino)) {
            return Ok(Some(first.clone()));
        }
        let path = TargetPath::new(place.path()).ok();
        let alias = path.and_then(|path| self.ledger.aliases.get(&path).cloned());
        Ok(alias.or(origin))
    }

    fn is_noted(&self, first: &TargetPath, ino: u64) -> bool {
        match self.ledger.known.get(first) {
            Some(Known::Dressed { identity, .. }) => identity.ino == ino,
            Some(Known::Whole(_)) => self.ledger.written.get(first) == Some(&ino),
            Some(Known::Absent) | None => false,
        }
    }

    /// A file of several names that was written in place is about to lose one: its inode is kept beside its bytes.
    fn keep_written(&mut self, place: &Place, node: &Node) -> Result<(), Stop> {
        let key = (node.identity.dev, node.identity.ino);
        let Some(first) = self.firsts.get(&key).cloned() else {
            return Ok(());
        };
        let is_written = self.ledger.written.get(&first) == Some(&node.identity.ino);
        if !node.is_shared || !is_written || self.ledger.shelved.contains_key(&first) {
            return Ok(());
        }
        let depots = Arc::clone(&self.depots);
        if let Some(image) = self.shelf.slotted(&*depots, place, node, None)? {
            let shelved = Note::Shelved {
                path: first,
                image: image.clone(),
            };
            self.learn(shelved, Vec::new())?;
            // If it cannot be, the slot stays empty, and what was in the file comes back as a file of its own.
            let _linked = self.shelf.link(place, &image);
        }
        Ok(())
    }

    fn content(&mut self, place: &Place, node: &Node, dressed: Option<Meta>) -> Result<Kept, Stop> {
        match self.shelf.by_value(place, node) {
            Ok(Some((image, bytes))) => return Ok((with_meta(image, dressed), bytes)),
            Ok(None) | Err(KeepError::Changing) => {}
            Err(error) => return Err(error.into()),
        }
        let depots = Arc::clone(&self.depots);
        let syncs = self.limits.syncs;
        let copied = self
            .shelf
            .copied(&*depots, place, node, dressed.clone(), syncs);
        let image = match copied {
            Err(KeepError::NoDepot) => self.shelf.stashed(&*self.stash, place, node, dressed)?,
            other => other?,
        };
        Ok((image, Vec::new()))
    }

    /// Mode, owner, attributes or times are about to change.
    fn dressed(&mut self, place: &Place, act: Act) -> Result<(), Stop> {
        let Some(node) = node_of(place) else {
            return Ok(());
        };
        let Some(origin) = self.inode_origin(place, &node)? else {
            return Ok(());
        };
        if self.ledger.known.contains_key(&origin) || self.ledger.is_in_new_directory(&origin) {
            return Ok(());
        }
        if node.kind == Kind::Directory {
            if !self.ledger.parents.contains_key(&origin) {
                let (path, times) = (origin.clone(), node.times);
                self.learn(Note::Parent { path, times }, Vec::new())?;
            }
            if act == Act::Times {
                return Ok(());
            }
        }
        let meta = meta_of(place, &node)?;
        self.note_first(&node, &origin);
        let dressed = Note::Dressed {
            path: origin,
            node: node.kind,
            meta,
            identity: node.identity,
        };
        self.learn(dressed, Vec::new())
    }

    /// A directory goes away, if it is empty. One that is not stays: it must not count as known when it moves later.
    fn rmdir(&mut self, place: &Place) -> Result<Answer, Stop> {
        if node_of(place).is_none_or(|node| node.kind != Kind::Directory) {
            return Ok(Answer::Continue);
        }
        if is_filled(place) {
            return Ok(Answer::Refuse(ENOTEMPTY));
        }
        self.whole(place).map(|()| Answer::Continue)
    }

    /// What stands at a name goes away or is replaced, and is no file.
    fn whole(&mut self, place: &Place) -> Result<(), Stop> {
        let Some(node) = node_of(place) else {
            return Ok(());
        };
        let Some(origin) = self.origin_to_keep(place)? else {
            return Ok(());
        };
        // The times of a directory whose entries went first are those it had before that.
        let dressed = self.dressed_as(&origin);
        let times = self.ledger.parents.get(&origin).copied();
        if let Some((image, bytes)) = self.shelf.by_value(place, &node)? {
            let image = with_times(with_meta(image, dressed), times);
            self.learn(
                Note::Whole {
                    path: origin,
                    image,
                    written: None,
                },
                bytes,
            )?;
        }
        Ok(())
    }

    /// Gives the name of before if what stands there must be kept whole.
    fn origin_to_keep(&mut self, place: &Place) -> Result<Option<TargetPath>, Stop> {
        let Some(origin) = self.origin(place)? else {
            return Ok(None);
        };
        let is_kept = matches!(
            self.ledger.known.get(&origin),
            Some(Known::Absent | Known::Whole(_))
        );
        let is_needless = is_kept || self.ledger.is_in_new_directory(&origin);
        Ok((!is_needless).then_some(origin))
    }

    fn dressed_as(&self, origin: &TargetPath) -> Option<Meta> {
        match self.ledger.known.get(origin) {
            Some(Known::Dressed { meta, .. }) => Some(meta.clone()),
            _ => None,
        }
    }

    /// A name goes away: the inode moves into the depot, and that is the removal.
    fn unlink(&mut self, place: &Place, may_act: bool) -> Result<Answer, Stop> {
        let Some(node) = node_of(place).filter(|node| node.kind != Kind::Directory) else {
            return Ok(Answer::Continue);
        };
        let Some(origin) = self.origin_to_keep(place)? else {
            self.keep_written(place, &node)?;
            return Ok(Answer::Continue);
        };
        let is_inode = node.kind == Kind::File && node.identity.size > 0 || node.is_shared;
        if !is_inode {
            self.whole(place)?;
            return Ok(Answer::Continue);
        }
        let dressed = self.dressed_as(&origin);
        if may_act && self.shelved(place, &node, &origin, dressed.clone(), Shelf::shelve)? {
            return Ok(Answer::Done);
        }
        self.shelved_or_copied(place, &node, origin, dressed)?;
        Ok(Answer::Continue)
    }

    /// Puts an inode into a slot. The note comes first: after a crash the slot tells whether it happened.
    fn shelved(
        &mut self,
        place: &Place,
        node: &Node,
        origin: &TargetPath,
        dressed: Option<Meta>,
        put: fn(&Shelf, &Place, &Image) -> Result<(), Errno>,
    ) -> Result<bool, Stop> {
        let depots = Arc::clone(&self.depots);
        let before = dressed.clone();
        let Some(image) = self.shelf.slotted(&*depots, place, node, dressed)? else {
            return Ok(false);
        };
        let path = origin.clone();
        let was = self.ledger.known.get(origin).cloned();
        self.learn(
            Note::Whole {
                path,
                image: image.clone(),
                written: None,
            },
            Vec::new(),
        )?;
        if put(&self.shelf, place, &image).is_ok() {
            crash_point("command.kept");
            return Ok(true);
        }
        self.learn(Note::Forget(origin.clone()), Vec::new())?;
        if let (Some(Known::Dressed { node, identity, .. }), Some(meta)) = (was, before) {
            let path = origin.clone();
            let again = Note::Dressed {
                path,
                node,
                meta,
                identity,
            };
            self.learn(again, Vec::new())?;
        }
        Ok(false)
    }

    /// Keeps an inode that the kernel will take the name from.
    fn shelved_or_copied(
        &mut self,
        place: &Place,
        node: &Node,
        origin: TargetPath,
        dressed: Option<Meta>,
    ) -> Result<(), Stop> {
        let is_linkable = node.kind == Kind::File || node.is_shared;
        if is_linkable && self.shelved(place, node, &origin, dressed.clone(), Shelf::link)? {
            return Ok(());
        }
        let (image, bytes) = if node.kind == Kind::File {
            self.content(place, node, dressed)?
        } else {
            let kept = self.shelf.by_value(place, node)?;
            let (image, bytes) = kept.ok_or(KeepError::Changing)?;
            (with_meta(image, dressed), bytes)
        };
        self.learn(
            Note::Whole {
                path: origin,
                image,
                written: None,
            },
            bytes,
        )
    }

    fn link(&mut self, old: &Place, new: &Place) -> Result<Answer, Stop> {
        self.made(new)?;
        let (Ok(of), Ok(name)) = (TargetPath::new(old.path()), TargetPath::new(new.path())) else {
            return Ok(Answer::Continue);
        };
        if let Some(of) = self.ledger.is_untouched(&of) {
            self.learn(Note::Alias { name, of }, Vec::new())?;
        }
        Ok(Answer::Continue)
    }

    fn read(&mut self, place: &Place) -> Result<Answer, Stop> {
        if let (Some(node), Ok(path)) = (node_of(place), TargetPath::new(place.path()))
            && node.kind == Kind::File
            && !self.ledger.reads.contains(&path)
        {
            self.learn(Note::Read(path), Vec::new())?;
        }
        Ok(Answer::Continue)
    }

    fn rename(
        &mut self,
        from: &Place,
        to: &Place,
        flags: u32,
        may_act: bool,
    ) -> Result<Answer, Stop> {
        let Some(node) = node_of(from) else {
            return Ok(Answer::Continue);
        };
        let flags = RenameFlags::from_bits_retain(flags);
        let is_exchange = flags.contains(RenameFlags::EXCHANGE);
        self.origin(from)?;
        match node_of(to) {
            None => self.made(to)?,
            // Two names of one file: the kernel does nothing.
            Some(other) if other.identity.ino == node.identity.ino => return Ok(Answer::Continue),
            Some(_) if is_exchange => drop(self.origin(to)?),
            Some(_) if flags.contains(RenameFlags::NOREPLACE) => return Ok(Answer::Continue),
            // Into itself: the kernel says no.
            Some(_) if to.path().starts_with(from.path()) => return Ok(Answer::Continue),
            Some(other) if other.kind == Kind::Directory && node.kind != Kind::Directory => {
                return Ok(Answer::Refuse(EISDIR));
            }
            Some(other) if other.kind == Kind::Directory && is_filled(to) => {
                return Ok(Answer::Refuse(ENOTEMPTY));
            }
            Some(other) => self.replaced(to, &other)?,
        }
        let (Ok(source), Ok(target)) = (TargetPath::new(from.path()), TargetPath::new(to.path()))
        else {
            return Ok(Answer::Continue);
        };
        let moving = Move {
            from: source,
            to: target,
            ino: node.identity.ino,
            is_directory: node.kind == Kind::Directory || is_exchange,
            is_exchange,
        };
        self.learn(Note::Moving(moving), Vec::new())?;
        if !may_act {
            return Ok(Answer::Watch);
        }
        match renameat_with(&from.dir, &from.name, &to.dir, &to.name, flags) {
            Ok(()) => {
                crash_point("command.moved");
                self.learn(Note::Moved, Vec::new())?;
                Ok(Answer::Done)
            }
            Err(errno) => {
                self.learn(Note::NotMoved, Vec::new())?;
                Ok(Answer::Refuse(errno.raw_os_error()))
            }
        }
    }

    /// Something is about to lose its name to another.
    fn replaced(&mut self, place: &Place, node: &Node) -> Result<(), Stop> {
        let is_inode = node.kind == Kind::File && node.identity.size > 0 || node.is_shared;
        if node.kind == Kind::Directory || !is_inode {
            return self.whole(place);
        }
        let Some(origin) = self.origin_to_keep(place)? else {
            return self.keep_written(place, node);
        };
        let dressed = self.dressed_as(&origin);
        self.shelved_or_copied(place, node, origin, dressed)
    }

    /// Tells whether a place is in our own state, which nothing may write.
    fn is_ours(&self, place: &Place, directory: Option<(u64, u64)>) -> bool {
        let itself = place.stat.as_ref().map(|stat| (stat.st_dev, stat.st_ino));
        directory.is_some_and(|number| self.own.contains(&number))
            || itself.is_some_and(|number| self.own.contains(&number))
            || self
                .own_paths
                .iter()
                .any(|own| place.dir_path.starts_with(own))
            || self.is_in_depot(place)
    }

    /// Tells whether a place is in a depot of another file system.
    fn is_in_depot(&self, place: &Place) -> bool {
        let mut parts = place.dir_path.components().map(|part| part.as_os_str());
        *place.name == *self.depot_name || parts.any(|part| *part == *self.depot_name)
    }

    /// Tells whether our own state is below a place: with another name above it, nobody would find it.
    fn holds_ours(&self, place: &Place) -> bool {
        let path = place.path();
        self.own_paths.iter().any(|own| own.starts_with(&path))
    }

    /// Tells whether a place is in a file system that the kernel makes up: nothing of it can be kept.
    fn is_kernels(&mut self, place: &Place, directory: Option<(u64, u64)>) -> bool {
        let Some((device, _)) = directory else {
            return false;
        };
        *self.kernel.entry(device).or_insert_with(|| {
            rustix::fs::fstatfs(place.dir.as_fd())
                .is_ok_and(|found| KERNEL_FILE_SYSTEMS.contains(&found.f_type))
        })
    }

    /// Tells whether a path is the same place for us as for the process.
    fn is_seen(place: &Place) -> bool {
        let here = rustix::fs::stat(&place.dir_path);
        let there = fstat(&place.dir);
        matches!((here, there), (Ok(here), Ok(there))
            if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino))
    }

    fn too_large(&mut self, place: &Place, size: u64) -> Answer {
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
        let origin = self.ledger.origin(&path).unwrap_or(path);
        match self.learn(Note::Unkept { path: origin, why }, Vec::new()) {
            Ok(()) => Answer::Continue,
            Err(stop) => self.stop(place, stop),
        }
    }

    fn stop(&mut self, place: &Place, stop: Stop) -> Answer {
        match stop {
            Stop::Keep(KeepError::TooLarge { size }) => self.too_large(place, size),
            Stop::Keep(KeepError::System {
                errno: Errno::NOENT,
                ..
            }) => Answer::Continue,
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
                self.failure = Some(why);
                Answer::Refuse(error.raw_os_error().unwrap_or(EIO))
            }
        }
    }

    /// Takes what is known, to settle it.
    pub(crate) fn into_ledger(self) -> Ledger {
        self.ledger
    }

    /// Makes everything that was kept durable.
    pub fn sync(&mut self) -> io::Result<()> {
        self.shelf.sync()
    }
}

impl Observer for Recorder {
    fn before(&mut self, touch: &mut Touch) -> Answer {
        match touch.act {
            Act::Standing => return Answer::Continue,
            Act::Mounts => {
                self.note("it changed what is mounted; that is not undone".to_owned());
                return Answer::Continue;
            }
            Act::Exec => {
                self.executed(touch);
                return Answer::Continue;
            }
            Act::Read => {}
            _ => {
                for place in [&touch.first, &touch.second].into_iter().flatten() {
                    let directory = fstat(&place.dir)
                        .ok()
                        .map(|stat| (stat.st_dev, stat.st_ino));
                    let is_rename = matches!(touch.act, Act::Rename { .. });
                    if self.is_ours(place, directory) || (is_rename && self.holds_ours(place)) {
                        let note =
                            "writing our own state was refused; nothing of it may change here";
                        self.note(note.to_owned());
                        return Answer::Refuse(EPERM);
                    }
                    if self.is_kernels(place, directory) {
                        let path = place.path();
                        if path.starts_with("/sys") || path.starts_with("/proc/sys") {
                            self.note(format!(
                                "`{}` belongs to the kernel; it is not undone",
                                path.display()
                            ));
                        }
                        return Answer::Continue;
                    }
                    if !touch.has_our_mounts && !Self::is_seen(place) {
                        self.note("it wrote where only it can see; that is not undone".to_owned());
                        return Answer::Continue;
                    }
                }
            }
        }
        match self.act(touch) {
            Ok(answer) => answer,
            Err(stop) => match touch.first.take() {
                Some(place) => self.stop(&place, stop),
                None => Answer::Refuse(EIO),
            },
        }
    }

    fn is_settled(&self, path: &std::path::Path) -> bool {
        let Ok(path) = TargetPath::new(path) else {
            return false;
        };
        let is_known = |origin: TargetPath| self.ledger.known.contains_key(&origin);
        self.ledger.origin(&path).is_none_or(is_known)
    }

    fn after(&mut self, touch: &mut Touch) {
        let Some(moving) = self.ledger.pending.clone() else {
            return;
        };
        let is_moved = touch.second.as_mut().is_some_and(|to| {
            to.look().is_ok() && node_of(to).is_some_and(|node| node.identity.ino == moving.ino)
        });
        let note = if is_moved {
            Note::Moved
        } else {
            Note::NotMoved
        };
        if let Err(stop) = self.learn(note, Vec::new()) {
            let why = stop.why();
            self.failure.get_or_insert(why);
        }
    }

    fn refused(&mut self, thread: u32, why: &str) {
        self.note(format!("a call of process {thread} was refused: {why}"));
    }
}

impl Recorder {
    /// Explains why a program that would gain rights does not.
    fn executed(&mut self, touch: &Touch) {
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

impl Stop {
    fn why(&self) -> String {
        match self {
            Self::Keep(error) => error.to_string(),
            Self::Log(error) => format!("the capture log could not be written: {error}"),
        }
    }
}

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

const EISDIR: i32 = Errno::ISDIR.raw_os_error();
const ENOTEMPTY: i32 = Errno::NOTEMPTY.raw_os_error();
const EPERM: i32 = Errno::PERM.raw_os_error();
const EIO: i32 = Errno::IO.raw_os_error();
const EFBIG: i32 = Errno::FBIG.raw_os_error();

fn node_of(place: &Place) -> Option<Node> {
    place.stat.as_ref().map(Node::of)
}

/// Tells whether a directory has entries that this process may see, in a directory that it may write to: else the
/// system itself says why it cannot go.
fn is_filled(place: &Place) -> bool {
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

fn with_times(mut image: Image, times: Option<crate::file::recipe::Times>) -> Image {
    if let (Some(times), Image::Directory { meta }) = (times, &mut image) {
        meta.times = Some(times);
    }
    image
}
