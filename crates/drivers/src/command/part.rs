//! A part of what a command did, told by itself: another operation is about to write what the command has touched, or
//! somebody wrote it, and the command is about to write over that.
//!
//! So the journal has the true order: the command's part, what others did, and what the command does after that, with what
//! the others left as its before. Plain names are cut by themselves. Where names were moved, they hang together, and all
//! that the command has done so far is cut. A file of several names that was written in place is cut by the name that it was
//! written by. Where the command gave such a file other names, or took some away, nothing is; then the other write is seen as
//! somebody else's, and an undo of the command asks before it touches that.

use std::collections::{BTreeSet, HashSet};
use std::io;

use backout_capture::live::{Act, Touch};
use backout_files::{Part, Share};
use backout_model::{Digest, OperationId, Target, TargetPath};

use super::log::Note;
use super::recorder::{Recorder, node_of};
use super::tracker::{Known, Tracker};
use crate::file::recipe::{Identity, Image, Kind};
use crate::sqlite::{database_of, is_beside};

/// So many parts of one command are told by themselves because others wrote. Two that write by turns would fill the
/// journal.
const PARTS_MAX: usize = 64;

/// So many of the files that a command wrote are looked at for databases.
const LOOKED_AT_MAX: usize = 10_000;

/// No database that has a table is smaller: it has at least one page.
const DATABASE_BYTES_MIN: u64 = 512;

impl Recorder {
    /// Leaves names out of what the command did, whatever it did to them.
    pub(super) fn leave_out(&mut self, paths: &[std::path::PathBuf]) {
        let names = paths.iter().filter_map(|path| TargetPath::new(path).ok());
        for name in names {
            self.tracker.known.remove(&name);
            self.tracker.foreign.remove(&name);
        }
    }

    /// Names what a call that was prepared is about to take from others: what they made of something that the command had
    /// touched, or put into a directory of its own.
    pub(super) fn taken_from_others(&mut self, touch: &Touch) -> Option<Target> {
        let place = match touch.act {
            Act::Open { writes: true, .. } | Act::Truncate | Act::Unlink | Act::Attributes => {
                touch.first.as_ref()?
            }
            Act::Rename { .. } => touch.second.as_ref()?,
            Act::Open { .. }
            | Act::Rmdir
            | Act::Link
            | Act::Make
            | Act::Times
            | Act::Flags { .. }
            | Act::Read
            | Act::Exec
            | Act::Standing
            | Act::Mounts
            | Act::Quotas
            | Act::Sync => return None,
        };
        if node_of(place).is_none() {
            self.forget_what_went(&place.path());
        }
        // Nothing is in a device or a pipe that could be brought back.
        node_of(place).filter(|node| matches!(node.kind, Kind::File | Kind::Symlink))?;
        let path = TargetPath::new(place.path()).ok()?;
        let is_theirs = self.tracker.foreign.contains(&path) || self.is_strangers(&path);
        if !is_theirs || self.parts == PARTS_MAX {
            return None;
        }
        self.parts += 1;
        Some(Target::node(path))
    }

    /// Takes a name for the command's own again that somebody else made and removed, where nothing was before the command
    /// either: what it makes there now is not theirs, as with the journal of a database that both write.
    fn forget_what_went(&mut self, path: &std::path::Path) {
        let Ok(path) = TargetPath::new(path) else {
            return;
        };
        let before = self.tracker.known.get(&path);
        if matches!(before, None | Some(Known::Absent)) {
            self.tracker.foreign.remove(&path);
        }
    }

    /// Tells whether something in a directory of the command was put there by somebody else: the command makes nothing
    /// unnoted.
    fn is_strangers(&self, path: &TargetPath) -> bool {
        let tracker = &self.tracker;
        tracker.is_in_new_directory(path)
            && !tracker.known.contains_key(path)
            && !tracker.aliases.contains_key(path)
            && tracker.origin(path).as_ref() == Some(path)
    }

    /// Tells which part the command has in some targets.
    pub(super) fn share(&self, targets: &[Target]) -> Share {
        if !self.has_moved(targets) {
            return self.names_in(targets);
        }
        if self.can_be_cut() {
            Share::Part(Part::All)
        } else {
            Share::Stuck
        }
    }

    /// Names the databases that the command has written and that were there before.
    pub(super) fn databases(&self) -> Vec<std::path::PathBuf> {
        let known = &self.tracker.known;
        let is_written = |(path, known): &(&TargetPath, &Known)| match known {
            Known::Whole(image) => is_beside(path.as_path()) || may_be_database(image),
            // What the command made may be a log beside a database that was there.
            Known::Absent => is_beside(path.as_path()),
            Known::Dressed { .. } => false,
        };
        let written = known.iter().filter(is_written).take(LOOKED_AT_MAX);
        let mains = written.filter_map(|(path, _)| database_of(path.as_path()));
        let was_there = |main: &std::path::PathBuf| {
            let main = TargetPath::new(main).ok();
            main.is_some_and(|main| known.get(&main) != Some(&Known::Absent))
        };
        let mut mains: Vec<_> = mains.filter(was_there).collect();
        mains.sort();
        mains.dedup();
        mains
    }

    /// Tells whether something that moved, or the name that it left, is at some targets, above them or in them.
    fn has_moved(&self, targets: &[Target]) -> bool {
        let mut names = self.tracker.names.keys();
        names.any(|name| {
            let node = Target::node(name.clone());
            targets.iter().any(|target| {
                let is_inside = target.file().is_some_and(|path| path.is_below(name));
                is_inside || target.overlap(&node).is_some()
            })
        })
    }

    /// Tells whether all that the command did so far can be told: no file of it has several names, nothing is missing, and no
    /// call is under way that moves something.
    fn can_be_cut(&self) -> bool {
        let tracker = &self.tracker;
        let is_plain = tracker.aliases.is_empty()
            && tracker.written.is_empty()
            && tracker.shelved.is_empty()
            && tracker.unkept.is_empty()
            && tracker.scanned.is_empty();
        is_plain && tracker.left.is_empty() && tracker.pending.is_none() && self.linking.is_none()
    }

    /// Names what the command has touched of some targets, with the directories that it made for them.
    fn names_in(&self, targets: &[Target]) -> Share {
        let touches = |path: &TargetPath| {
            let name = Target::node(path.clone());
            targets.iter().any(|target| target.overlap(&name).is_some())
        };
        let known = &self.tracker.known;
        let mut part: BTreeSet<&TargetPath> = known.keys().filter(|path| touches(path)).collect();
        let mut above: HashSet<TargetPath> =
            part.iter().flat_map(|path| path.ancestors()).collect();
        let names = targets.iter().filter_map(Target::file);
        above.extend(names.flat_map(TargetPath::ancestors));
        let made = known
            .iter()
            .filter(|(path, known)| **known == Known::Absent && above.contains(path));
        part.extend(made.map(|(path, _)| path));
        // What was in a directory that went can only come back after it.
        let is_directory = |path: &&&TargetPath| matches!(known.get(path), Some(Known::Whole(image)) if image.is_directory());
        let gone: HashSet<TargetPath> =
            part.iter().filter(is_directory).copied().cloned().collect();
        let inside = |path: &&TargetPath| path.ancestors().any(|above| gone.contains(&above));
        part.extend(known.keys().filter(inside));
        if part.is_empty() {
            Share::Nothing
        } else if part.iter().any(|path| self.hangs_together(path)) {
            Share::Stuck
        } else {
            Share::Part(Part::Names(part.into_iter().cloned().collect()))
        }
    }

    /// Tells whether a name cannot be told without others.
    fn hangs_together(&self, path: &TargetPath) -> bool {
        let tracker = &self.tracker;
        let touches =
            |other: &TargetPath| other == path || other.is_below(path) || path.is_below(other);
        tracker.names.keys().any(touches)
            || tracker
                .aliases
                .iter()
                .any(|(name, of)| name == path || of == path)
            || self.is_dressed_elsewhere(path)
            || tracker.shelved.contains_key(path)
            || tracker.unkept.contains_key(path)
            || tracker.scanned.contains_key(path)
    }

    /// Tells whether something is known of a file of several names by another name than the one that it was written by.
    fn is_dressed_elsewhere(&self, path: &TargetPath) -> bool {
        let Some(number) = self.tracker.written.get(path) else {
            return false;
        };
        let is_it = |(name, known): (&TargetPath, &Known)| match known {
            Known::Dressed { identity, .. } => identity.ino == *number && name != path,
            Known::Absent | Known::Whole(_) => false,
        };
        self.tracker.known.iter().any(is_it)
    }

    /// Takes a part out, to be recorded as the operation `by`.
    pub(crate) fn cut(&mut self, by: OperationId, part: Part) -> io::Result<Tracker> {
        self.made.clear();
        match part {
            Part::Names(paths) => self.cut_names(by, paths),
            Part::All => self.cut_all(by),
        }
    }

    fn cut_all(&mut self, by: OperationId) -> io::Result<Tracker> {
        let tracker = &self.tracker;
        let part = Tracker {
            known: tracker.known.clone(),
            parents: tracker.parents.clone(),
            timed: tracker.timed.clone(),
            names: tracker.names.clone(),
            foreign: tracker.foreign.clone(),
            strangers: tracker.strangers.clone(),
            contents: tracker.contents.clone(),
            ..Tracker::default()
        };
        self.others.forget_all();
        self.firsts.clear();
        self.note_cut(Note::CutAll(by))?;
        Ok(part)
    }

    fn cut_names(&mut self, by: OperationId, paths: Vec<TargetPath>) -> io::Result<Tracker> {
        let mut part = Tracker {
            parents: self.tracker.times_around(&paths),
            ..Tracker::default()
        };
        let is_cut = |path: &&TargetPath| paths.contains(path);
        part.foreign = self
            .tracker
            .foreign
            .iter()
            .filter(is_cut)
            .cloned()
            .collect();
        let is_inside = |path: &&TargetPath| paths.iter().any(|cut| path.is_below(cut));
        let strangers = self.tracker.strangers.iter().filter(is_inside);
        part.strangers = strangers.cloned().collect();
        let mut digests: HashSet<Digest> = HashSet::new();
        self.firsts.retain(|_, first| !paths.contains(first));
        for path in &paths {
            self.others.forget(path);
            let number = self.tracker.written.get(path);
            part.written
                .extend(number.map(|number| (path.clone(), *number)));
            if let Some(known) = self.tracker.known.get(path) {
                if let Known::Whole(image) = known {
                    digests.extend(Image::stored(image));
                }
                part.known.insert(path.clone(), known.clone());
            }
        }
        let contents = self.tracker.contents.iter();
        let needed = contents.filter(|content| digests.contains(&content.digest));
        part.contents = needed.cloned().collect();
        for unsaid in self.tracker.unsaid_beside(&paths) {
            self.pay()?;
            self.log.add(&Note::Absent(unsaid), &[])?;
        }
        self.note_cut(Note::Cut { by, paths })?;
        Ok(part)
    }

    fn note_cut(&mut self, note: Note) -> io::Result<()> {
        self.pay()?;
        self.log.add(&note, &[])?;
        self.tracker.apply(note, Vec::new());
        Ok(())
    }

    /// Puts a part back that could not be recorded.
    pub fn uncut(&mut self, by: OperationId) {
        self.is_so(Note::Uncut(by));
    }
}

/// Tells whether what stood at a name was large enough to be a database with something in it.
fn may_be_database(image: &Image) -> bool {
    let (Image::File { size, .. }
    | Image::Kept {
        identity: Identity { size, .. },
        ..
    }) = image
    else {
        return false;
    };
    *size >= DATABASE_BYTES_MIN
}
