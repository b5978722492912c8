//! Commands that run beside this one: what it must ask them about before it touches it, and what it goes on with when they ask.
//!
//! Each first touch of a name is asked about ([`Claim`]), so that what another has done there is told by itself first and the
//! journal has the true order. What a process of the command still has open for writing when its part is cut can change
//! without a call: there the rest of the command begins with what the part ends with, and what both may have written is
//! shared.

use std::path::{Path, PathBuf};

use backout_capture::live::{Act, Place, Touch};
use backout_files::Claim;
use backout_model::{Target, TargetPath};

use super::log::Note;
use super::recorder::{Recorder, node_of};
use super::tracker::{Known, Tracker};
use crate::file::recipe::Kind;

/// So many parts of one command are told because commands beside it wrote.
const PARTS_MAX: usize = 256;

/// Adds what a call touches to a claim.
fn add(claim: &mut Claim, place: &Place, path: TargetPath, is_tree: bool) {
    let node = node_of(place);
    if let Some(node) = node.filter(|node| node.is_shared && node.kind != Kind::Directory) {
        let number = (node.identity.dev, node.identity.ino);
        claim.numbers.push(number);
    }
    claim.targets.push(if is_tree {
        Target::tree(path)
    } else {
        Target::node(path)
    });
}

impl Recorder {
    /// Hears of commands that begin or end, by the directory that their logs are in.
    pub(super) fn hear_of_neighbours(&mut self, logs: &Path) {
        self.others.hear_of_neighbours(logs);
    }

    /// Tells whether others may have begun or ended since this was last asked.
    pub(super) const fn has_new_neighbours(&mut self) -> bool {
        self.others.has_new_neighbours()
    }

    /// Names what a call that was prepared is about to touch, and the command has not touched yet.
    pub(super) fn claim(&self, touch: &Touch) -> Claim {
        let mut claim = Claim::default();
        let is_named = if let Act::Open {
            creates, writes, ..
        } = touch.act
        {
            let is_new = touch.first.as_ref().is_some_and(|it| it.stat.is_none());
            writes || creates && is_new
        } else {
            touch.act.changes_files()
        };
        if !is_named {
            return claim;
        }
        for place in [&touch.first, &touch.second].into_iter().flatten() {
            let Ok(path) = TargetPath::new(place.path()) else {
                continue;
            };
            let is_directory = node_of(place).is_some_and(|node| node.kind == Kind::Directory);
            let is_tree = is_directory && matches!(touch.act, Act::Rename { .. });
            if !self.is_own(&path, is_tree) {
                add(&mut claim, place, path, is_tree);
            }
        }
        claim
    }

    /// Tells whether a name is the command's: it has touched it, and nobody has asked for it since.
    fn is_own(&self, path: &TargetPath, is_tree: bool) -> bool {
        let tracker = &self.tracker;
        let Some(origin) = tracker.origin(path) else {
            return true;
        };
        let is_known = tracker.known.contains_key(&origin) || tracker.timed.contains(&origin);
        let is_others = || tracker.foreign.contains(path) || tracker.strangers.contains(path);
        // What is in a directory that moves may be others'.
        is_known && !is_tree || tracker.is_in_new_directory(&origin) && !is_others()
    }

    /// Tells whether the command touched a file of several names by any of them, and gives the name that it is known by.
    pub(super) fn touched_number(&self, number: (u64, u64)) -> Option<TargetPath> {
        let first = self.firsts.get(&number)?;
        let is_known = self.tracker.known.contains_key(first);
        is_known.then(|| self.tracker.now_of(first))
    }

    /// Tells whether another part may be told because a command beside this one is about to write: two that write by turns
    /// would fill the journal.
    pub(super) const fn has_part_left(&self) -> bool {
        self.parts_beside < PARTS_MAX
    }

    /// Counts a part that was told for that.
    pub(super) const fn count_part(&mut self) {
        self.parts_beside += 1;
    }

    /// Says of names that the command has touched that what is there now is not its alone.
    pub(super) fn shares(&mut self, targets: &[Target]) {
        for path in targets.iter().filter_map(Target::file) {
            let origin = self.tracker.origin(path);
            let is_known = origin.is_some_and(|origin| self.tracker.known.contains_key(&origin));
            if is_known && !self.tracker.foreign.contains(path) {
                self.is_so(Note::Foreign(path.clone()));
            }
        }
    }

    /// Says of what lies in directories that are compared that others write it.
    pub(super) fn spares(&mut self, targets: &[Target]) {
        for path in targets.iter().filter_map(Target::file) {
            let mut roots = self.tracker.roots.iter();
            let is_compared = roots.any(|root| path.is_below(root));
            if is_compared && !self.tracker.foreign.contains(path) {
                self.is_so(Note::Foreign(path.clone()));
            }
        }
    }

    /// Goes on with files of a part that was cut which processes of the command have `open` for writing: with what is in them
    /// now, which is what the part ends with.
    pub(super) fn go_on_writing(&mut self, part: &mut Tracker, open: &[PathBuf]) {
        for file in open {
            let Ok(path) = TargetPath::new(file) else {
                continue;
            };
            let is_cut = part.origin(&path).is_none_or(|origin| {
                part.known.contains_key(&origin) || part.is_in_new_directory(&origin)
            });
            if !is_cut {
                continue;
            }
            if !self.tracker.known.contains_key(&path) {
                self.opened_before(file);
            }
            if let Some(Known::Whole(image)) = self.tracker.known.get(&path) {
                part.left.insert(path, image.clone());
            }
        }
    }
}
