//! A part of what a command did, told by itself: another operation is about to write what the command has touched, or
//! somebody wrote it, and the command is about to write over that.
//!
//! So the journal has the true order: the command's part, what others did, and what the command does after that, with what
//! the others left as its before. Only plain names can be cut. Where names were moved or share an inode, the parts hang
//! together; then the other write is seen as somebody else's, and an undo of the command asks before it touches that.

use std::collections::{BTreeSet, HashSet};
use std::io;

use backout_capture::live::{Act, Touch};
use backout_model::{Digest, OperationId, Target, TargetPath};

use super::ledger::{Known, Ledger};
use super::log::Note;
use super::recorder::{Recorder, node_of};
use crate::file::recipe::{Image, Kind};

/// So many parts of one command are told by themselves because others wrote. Two that write by turns would fill the
/// journal.
const PARTS_MAX: usize = 64;

impl Recorder {
    /// Names what a call is about to take from others: what they made of something that the command had touched, or put into
    /// a directory of its own.
    pub fn taken_from_others(&mut self, touch: &Touch) -> Option<Target> {
        let place = match touch.act {
            Act::Open { writes: true, .. } | Act::Truncate | Act::Unlink | Act::Attributes => {
                touch.first.as_ref()?
            }
            Act::Rename { .. } => touch.second.as_ref()?,
            _ => return None,
        };
        // Nothing is in a device or a pipe that could be brought back.
        node_of(place).filter(|node| matches!(node.kind, Kind::File | Kind::Symlink))?;
        // What cannot be noted stops the call itself.
        let _told = self.look_around();
        let path = TargetPath::new(place.path()).ok()?;
        let is_theirs = self.ledger.foreign.contains(&path) || self.is_strangers(&path);
        if !is_theirs || self.parts == PARTS_MAX {
            return None;
        }
        self.parts += 1;
        Some(Target::node(path))
    }

    /// Tells whether something in a directory of the command was put there by somebody else: the command makes nothing
    /// unnoted.
    fn is_strangers(&self, path: &TargetPath) -> bool {
        let ledger = &self.ledger;
        ledger.is_in_new_directory(path)
            && !ledger.known.contains_key(path)
            && !ledger.aliases.contains_key(path)
            && ledger.origin(path).as_ref() == Some(path)
    }

    /// Names what the command has touched of some targets, with the directories that it made for them. None if that is
    /// nothing, or hangs together with the rest.
    pub fn part(&self, targets: &[Target]) -> Option<Vec<TargetPath>> {
        let touches = |path: &TargetPath| {
            let name = Target::node(path.clone());
            targets.iter().any(|target| target.overlap(&name).is_some())
        };
        let known = &self.ledger.known;
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
        if part.is_empty() || part.iter().any(|path| self.hangs_together(path)) {
            return None;
        }
        Some(part.into_iter().cloned().collect())
    }

    /// Tells whether a name cannot be told without others.
    fn hangs_together(&self, path: &TargetPath) -> bool {
        let ledger = &self.ledger;
        let touches =
            |other: &TargetPath| other == path || other.is_below(path) || path.is_below(other);
        ledger.names.keys().any(touches)
            || ledger
                .aliases
                .iter()
                .any(|(name, of)| name == path || of == path)
            || ledger.written.contains_key(path)
            || ledger.shelved.contains_key(path)
            || ledger.unkept.contains_key(path)
            || ledger.scanned.contains_key(path)
    }

    /// Takes a part out, to be recorded as the operation `by`.
    pub(crate) fn cut(&mut self, by: OperationId, paths: Vec<TargetPath>) -> io::Result<Ledger> {
        let mut part = Ledger {
            parents: self.ledger.times_around(&paths),
            ..Ledger::default()
        };
        let is_cut = |path: &&TargetPath| paths.contains(path);
        part.foreign = self.ledger.foreign.iter().filter(is_cut).cloned().collect();
        let is_inside = |path: &&TargetPath| paths.iter().any(|cut| path.is_below(cut));
        let strangers = self.ledger.strangers.iter().filter(is_inside);
        part.strangers = strangers.cloned().collect();
        let mut digests: HashSet<Digest> = HashSet::new();
        for path in &paths {
            self.others.forget(path);
            if let Some(known) = self.ledger.known.get(path) {
                if let Known::Whole(image) = known {
                    digests.extend(Image::stored(image));
                }
                part.known.insert(path.clone(), known.clone());
            }
        }
        let contents = self.ledger.contents.iter();
        let needed = contents.filter(|content| digests.contains(&content.digest));
        part.contents = needed.cloned().collect();
        let note = Note::Cut { by, paths };
        self.pay()?;
        self.log.add(&note, &[])?;
        self.ledger.apply(note, Vec::new());
        Ok(part)
    }

    /// Puts a part back that could not be recorded.
    pub fn uncut(&mut self, by: OperationId) {
        self.is_so(Note::Uncut(by));
    }
}
