//! What is known of the world before the command, and where its things are now.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::mem::take;

use backout_model::ports::NewContent;
use backout_model::{OperationId, TargetPath};

use super::log::{Move, Note};
use crate::file::recipe::{Identity, Image, Kind, Meta, Times};

/// What a name was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing.
    Absent,
    /// Something whose content nobody touched, with this metadata.
    Dressed {
        node: Kind,
        meta: Meta,
        identity: Identity,
    },
    /// All of it.
    Whole(Image),
}

/// What stands at a name that is not what always stood there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// What had this name before the command, untouched.
    From(TargetPath),
    /// Something that the command made, or nothing.
    Born,
}

/// What was known of names that were cut, and the times of their directories; of all of them also what moved, and what
/// others did.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    known: Vec<(TargetPath, Known)>,
    pub(crate) parents: BTreeMap<TargetPath, Times>,
    timed: BTreeSet<TargetPath>,
    names: BTreeMap<TargetPath, Standing>,
    foreign: BTreeSet<TargetPath>,
    strangers: BTreeSet<TargetPath>,
    written: Vec<(TargetPath, u64)>,
}

/// All that is known.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    /// By the names before the command.
    pub(crate) known: HashMap<TargetPath, Known>,
    pub(crate) parents: BTreeMap<TargetPath, Times>,
    /// Directories that were given times.
    pub(crate) timed: BTreeSet<TargetPath>,
    /// By the names of now: only where things moved.
    pub(crate) names: BTreeMap<TargetPath, Standing>,
    /// Second names that were given to files of before, by the names of now.
    pub(crate) aliases: HashMap<TargetPath, TargetPath>,
    /// The inodes with several names that were written in place, by the names of before.
    pub(crate) written: HashMap<TargetPath, u64>,
    /// Those of them that lost that name.
    pub(crate) shelved: HashMap<TargetPath, Image>,
    /// What nobody keeps, by the names of before: what it was, as far as that is known, and why.
    pub(crate) unkept: BTreeMap<TargetPath, (Option<Identity>, String)>,
    /// What somebody else changed after the command had touched it, by the names of now.
    pub(crate) foreign: BTreeSet<TargetPath>,
    /// What somebody else made in directories of the command, by the names of now.
    pub(crate) strangers: BTreeSet<TargetPath>,
    /// What the command left in files that are written on by what it left running: there the next operation begins.
    pub(crate) left: HashMap<TargetPath, Image>,
    /// What was known of names that are told by operations of their own.
    pub(crate) cuts: BTreeMap<OperationId, Cut>,
    /// What the command read, and which inode that was, where that was seen.
    pub(crate) reads: BTreeMap<TargetPath, Option<Identity>>,
    pub(crate) contents: Vec<NewContent>,
    pub(crate) pending: Option<Move>,
    /// Directories that were scanned, and what stood there.
    pub(crate) roots: Vec<TargetPath>,
    pub(crate) scanned: HashMap<TargetPath, Identity>,
    /// Whether this comes from a log: there no word is said of what came to be in directories that the command made.
    pub(crate) is_read: bool,
}

impl Tracker {
    /// Takes a note in, with the bytes that came with it.
    pub(crate) fn apply(&mut self, note: Note, bytes: Vec<u8>) {
        match note {
            Note::Absent(path) => self.learn(path, Known::Absent),
            Note::Dressed {
                path,
                node,
                meta,
                identity,
            } => {
                let dressed = Known::Dressed {
                    node,
                    meta,
                    identity,
                };
                self.learn(path, dressed);
            }
            Note::Whole {
                path,
                image,
                written,
            } => {
                match written {
                    Some(number) => drop(self.written.insert(path.clone(), number)),
                    None => drop(self.written.remove(&path)),
                }
                // What does not stand in the log is in the store already.
                let is_here =
                    matches!(&image, Image::File { size, .. } if *size == bytes.len() as u64);
                if let Some(digest) = image.stored().filter(|_| is_here) {
                    self.contents.push(NewContent {
                        digest,
                        bytes,
                        over: None,
                    });
                }
                self.learn(path, Known::Whole(image));
            }
            Note::Shelved { path, image } => drop(self.shelved.insert(path, image)),
            Note::Flags { path, flags } => self.flagged(&path, flags),
            Note::Forget(path) => drop(self.known.remove(&path)),
            Note::Parent { path, times } => {
                self.parents.entry(path).or_insert(times);
            }
            Note::Timed(path) => drop(self.timed.insert(path)),
            Note::Moving(what) => self.pending = Some(what),
            Note::Moved => {
                if let Some(what) = self.pending.take() {
                    self.moved(&what);
                }
            }
            Note::NotMoved => self.pending = None,
            Note::Alias { name, of } => drop(self.aliases.insert(name, of)),
            Note::Unkept {
                path,
                why,
                identity,
            } => {
                self.unkept.entry(path).or_insert((identity, why));
            }
            Note::Foreign(path) => drop(self.foreign.insert(path)),
            Note::Stranger(path) => drop(self.strangers.insert(path)),
            Note::Cut { by, paths } => self.cut(by, &paths),
            Note::CutAll(by) => self.cut_all(by),
            Note::Uncut(by) => self.uncut(by),
            Note::Read(path) => drop(self.reads.entry(path).or_default()),
            Note::Root(path) => self.roots.push(path),
            Note::Scanned {
                path,
                image,
                identity,
            } => self.scanned(path, image, identity),
        }
    }

    /// Takes in which flags something had that is known already.
    fn flagged(&mut self, path: &TargetPath, flags: u32) {
        let meta = match self.known.get_mut(path) {
            Some(Known::Dressed { meta, .. }) => Some(meta),
            Some(Known::Whole(image)) => image.meta_mut(),
            Some(Known::Absent) | None => None,
        };
        if let Some(meta) = meta {
            meta.flags.get_or_insert(flags);
        }
    }

    /// Takes in what a scan saw.
    fn scanned(&mut self, path: TargetPath, image: Image, identity: Identity) {
        if let Image::Directory { meta } = &image
            && let Some(times) = meta.times
        {
            self.parents.entry(path.clone()).or_insert(times);
        }
        self.scanned.insert(path.clone(), identity);
        self.known.insert(path, Known::Whole(image));
    }

    /// Gives the name that what is at `path` had before the command; none if the command made it.
    pub(crate) fn origin(&self, path: &TargetPath) -> Option<TargetPath> {
        if self.names.is_empty() {
            return Some(path.clone());
        }
        let mut above = std::iter::once(path.clone()).chain(path.ancestors());
        let found = above.find_map(|at| self.names.get(&at).map(|standing| (at, standing)));
        match found {
            None => Some(path.clone()),
            Some((at, Standing::From(origin))) => path.rebase(&at, origin),
            Some((_, Standing::Born)) => None,
        }
    }

    /// Gives the name that what was at `origin` before the command has now, if it moved.
    pub(crate) fn now_of(&self, origin: &TargetPath) -> TargetPath {
        let moved = self
            .names
            .iter()
            .filter_map(|(now, standing)| match standing {
                Standing::From(from) if from == origin || origin.is_below(from) => {
                    let now = origin.rebase(from, now)?;
                    Some((from.as_path().components().count(), now))
                }
                Standing::From(_) | Standing::Born => None,
            });
        // What was taken out of a directory did not move on with it.
        let nearest = moved.max_by_key(|(depth, _)| *depth);
        nearest.map_or_else(|| origin.clone(), |(_, now)| now)
    }

    /// Learns what a name was. What others did to it before the command touched it is part of that, by the name that it
    /// has now: another may have its old one.
    fn learn(&mut self, path: TargetPath, known: Known) {
        if !self.known.contains_key(&path) {
            let now = self.now_of(&path);
            self.foreign.remove(&now);
        }
        self.known.insert(path, known);
    }

    /// Gives the times that names, and the directories that they are in, had before their entries changed.
    pub(crate) fn times_around(&self, paths: &[TargetPath]) -> BTreeMap<TargetPath, Times> {
        let around = paths.iter().cloned();
        let around = around.chain(paths.iter().filter_map(TargetPath::parent));
        let known = around.filter_map(|path| {
            let times = *self.parents.get(&path)?;
            Some((path, times))
        });
        known.collect()
    }

    /// Forgets what is known of names and of the times of their directories, so that it is learnt anew.
    fn cut(&mut self, by: OperationId, paths: &[TargetPath]) {
        let parents = self.times_around(paths);
        self.parents.retain(|path, _| !parents.contains_key(path));
        // What others put there is there before what comes now.
        let is_inside = |path: &TargetPath| paths.iter().any(|cut| path.is_below(cut));
        self.strangers.retain(|path| !is_inside(path));
        let cut = self.cuts.entry(by).or_default();
        cut.parents = parents;
        for path in paths {
            self.foreign.remove(path);
            if let Some(known) = self.known.remove(path) {
                cut.known.push((path.clone(), known));
            }
            cut.written.extend(self.written.remove_entry(path));
        }
    }

    /// Forgets all that is known, so that it is learnt anew.
    fn cut_all(&mut self, by: OperationId) {
        let cut = Cut {
            known: self.known.drain().collect(),
            parents: take(&mut self.parents),
            timed: take(&mut self.timed),
            names: take(&mut self.names),
            foreign: take(&mut self.foreign),
            strangers: take(&mut self.strangers),
            written: Vec::new(),
        };
        self.cuts.insert(by, cut);
    }

    /// Knows again what was cut, as it was first known.
    pub(crate) fn uncut(&mut self, by: OperationId) {
        let cut = self.cuts.remove(&by).unwrap_or_default();
        self.known.extend(cut.known);
        self.parents.extend(cut.parents);
        self.timed.extend(cut.timed);
        self.names.extend(cut.names);
        self.foreign.extend(cut.foreign);
        self.strangers.extend(cut.strangers);
        self.written.extend(cut.written);
    }

    /// Tells whether a name lies in a directory that the command made.
    pub(crate) fn is_in_own_directory(&self, path: &TargetPath) -> bool {
        let Some(parent) = path.parent() else {
            return false;
        };
        match self.origin(&parent) {
            None => true,
            Some(origin) => self.known.get(&origin) == Some(&Known::Absent),
        }
    }

    /// Tells whether nothing can have been at a name of before: its directory was not there.
    pub(crate) fn is_in_new_directory(&self, origin: &TargetPath) -> bool {
        let mut above = origin.parent();
        while let Some(directory) = above {
            match self.known.get(&directory) {
                Some(known) => return *known == Known::Absent,
                None if !self.is_read || self.strangers.contains(&directory) => return false,
                None => above = directory.parent(),
            }
        }
        false
    }

    /// Tells whether a note can be left out: it says that a name was not there, and its directory was not there either. Who
    /// reads the log finds in that directory what came to be.
    pub(crate) fn goes_without_saying(&self, note: &Note) -> bool {
        let Note::Absent(path) = note else {
            return false;
        };
        let is_others = || {
            let now = self.now_of(path);
            self.strangers.contains(&now) || self.foreign.contains(&now)
        };
        self.is_in_new_directory(path) && !is_others()
    }

    /// Lists the names of which no word was said, since their directories were not there, and of which one must be said when
    /// some names are told by an operation of their own.
    pub(crate) fn unsaid_beside(&self, cut: &[TargetPath]) -> Vec<TargetPath> {
        let cut: HashSet<&TargetPath> = cut.iter().collect();
        let is_left = |path: &TargetPath| {
            let parent = path.parent();
            parent.is_some_and(|parent| cut.contains(&parent)) && !cut.contains(path)
        };
        let absent = self
            .known
            .iter()
            .filter(|(_, known)| **known == Known::Absent);
        let left = absent.map(|(path, _)| path).filter(|path| is_left(path));
        left.cloned().collect()
    }

    /// Tells whether what is at a name is as it was before the command, wherever it was then.
    pub(crate) fn is_untouched(&self, path: &TargetPath) -> Option<TargetPath> {
        let origin = self.origin(path)?;
        let is_untouched = match self.known.get(&origin) {
            None => !self.is_in_new_directory(&origin),
            Some(Known::Dressed { .. }) => true,
            Some(Known::Absent | Known::Whole(_)) => false,
        };
        is_untouched.then_some(origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> TargetPath {
        TargetPath::new(text).unwrap()
    }

    fn mv(tracker: &mut Tracker, from: &str, to: &str) {
        tracker.moved(&Move {
            from: name(from),
            to: name(to),
            ino: 0,
            is_directory: true,
            is_exchange: false,
        });
    }

    #[test]
    fn things_are_found_under_the_name_they_had() {
        let mut tracker = Tracker::default();
        mv(&mut tracker, "/a", "/b");
        assert_eq!(tracker.origin(&name("/b/x")), Some(name("/a/x")));
        assert_eq!(
            tracker.origin(&name("/a/x")),
            None,
            "nothing of before is there"
        );
        mv(&mut tracker, "/b/x", "/c");
        assert_eq!(tracker.origin(&name("/c/y")), Some(name("/a/x/y")));
        assert_eq!(tracker.origin(&name("/b/x")), None);
        mv(&mut tracker, "/b", "/d");
        assert_eq!(tracker.origin(&name("/d/z")), Some(name("/a/z")));
        assert_eq!(tracker.origin(&name("/d/x")), None);
        mv(&mut tracker, "/d", "/a");
        assert_eq!(
            tracker.origin(&name("/a/z")),
            Some(name("/a/z")),
            "back again"
        );
    }

    #[test]
    fn what_the_command_made_has_no_name_of_before() {
        let mut tracker = Tracker::default();
        tracker.apply(Note::Absent(name("/new")), Vec::new());
        assert!(tracker.is_in_new_directory(&name("/new/x")));
        tracker.apply(Note::Absent(name("/to")), Vec::new());
        mv(&mut tracker, "/new", "/to");
        assert_eq!(tracker.origin(&name("/to/x")), None);
    }

    #[test]
    fn an_exchange_swaps_both() {
        let mut tracker = Tracker::default();
        tracker.moved(&Move {
            from: name("/a"),
            to: name("/b"),
            ino: 0,
            is_directory: true,
            is_exchange: true,
        });
        assert_eq!(tracker.origin(&name("/a/x")), Some(name("/b/x")));
        assert_eq!(tracker.origin(&name("/b/x")), Some(name("/a/x")));
    }
}
