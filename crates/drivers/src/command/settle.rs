//! Settling: what each name was against what it is now, as a recipe of the file driver.
//!
//! Every name that the command touched is looked at once. What is as it was is left out: a file that was made and
//! removed again, a write of the same bytes at the same time. So the recipe is the net effect, however the command got
//! there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::mem::take;
use std::path::Path;

use backout_files::{Counts, Reading, Settled};
use backout_model::ports::NewContent;
use backout_model::{OperationId, Slot, TargetPath};

use super::before_image::with_meta;
use super::dirs::Opened;
use super::inodes::{Number, Rewriting};
use super::log::read_log;
use super::order::in_order;
use super::orphans::{self, slot_in};
use super::tracker::{Known, Standing, Tracker};
use crate::file::before_image::meta_of_moved;
use crate::file::compare::differs_in_meta;
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::recipe::{Change, Identity, Image, Kind, Meta, Times};
use crate::file::sys::{Dir, Node, nanoseconds};

/// What was at a name.
#[derive(Debug, Clone)]
pub(super) enum Before {
    Image(Image),
    /// Something that is still there, with this metadata.
    Dressed(Kind, Meta, Identity),
    /// Something that has another name now, untouched.
    MovedTo(TargetPath),
    /// The same inode, with other bytes: that is told by itself.
    Rewritten,
}

/// Settles what a log tells.
pub(crate) fn settle_log(
    context: &FileContext,
    id: OperationId,
    log: &Path,
    is_recorded: &dyn Fn(OperationId) -> bool,
    reading: Reading,
) -> Result<Settled, FileError> {
    let told = read_log(log).map_err(|source| FileError::Io {
        path: log.display().to_string(),
        action: "read",
        source,
    })?;
    let mut doubts = Vec::new();
    if told.gaps > 0 {
        let log = log.display();
        doubts.push(format!(
            "its log is damaged (`{log}`, {} times); what was noted there is lost",
            told.gaps
        ));
    }
    let slots = told.notes.iter().filter_map(|(note, _)| slot_in(note));
    let is_lost = reading.may_be_cut || told.gaps > 0;
    let noted: HashSet<String> = slots.map(|slot| slot.name.clone()).collect();
    let mut tracker = Tracker {
        is_read: true,
        ..Tracker::default()
    };
    for (note, bytes) in told.notes {
        tracker.apply(note, bytes);
    }
    let cuts: Vec<OperationId> = tracker.cuts.keys().copied().collect();
    for by in cuts.into_iter().filter(|by| !is_recorded(*by)) {
        tracker.uncut(by);
    }
    doubts.extend(out_of_reach(context, &mut tracker, reading.anyway)?);
    doubts.extend(orphans::find(context, id, (&noted, is_lost), &mut tracker)?);
    // What was changed later than that may be anybody's.
    let watched_until = std::fs::metadata(log).ok().map(|found| mtime_of(&found));
    let settled = settle_until(context, id, tracker, watched_until)?;
    Ok(Settled { doubts, ..settled })
}

/// Says what is kept where nobody can look now. Unless it is settled `anyway`, that waits: what else the command did there
/// cannot be seen either.
fn out_of_reach(
    context: &FileContext,
    tracker: &mut Tracker,
    anyway: bool,
) -> Result<Vec<String>, FileError> {
    let away = |image: &Image| context.depots.out_of_reach(image.slot()?);
    let mut doubts = Vec::new();
    for (path, known) in &mut tracker.known {
        let Known::Whole(image) = known else { continue };
        let Some(why) = away(image) else { continue };
        if !anyway {
            let path = path.to_string();
            return Err(FileError::OutOfReach { path, why });
        }
        doubts.push(format!(
            "what `{path}` was is out of reach, and nobody looked what became of the files there: {why}"
        ));
        // A copy, of which nothing else is known.
        if let (Some(_), Image::Kept { node, .. }) = (tracker.written.get(path), &*image) {
            *image = Image::Unkept { node: *node, why };
        }
    }
    tracker.shelved.retain(|_, image| away(image).is_none());
    doubts.sort_unstable();
    Ok(doubts)
}

fn mtime_of(found: &std::fs::Metadata) -> i128 {
    use std::os::unix::fs::MetadataExt as _;
    nanoseconds(found.mtime(), found.mtime_nsec())
}

/// Settles what is known.
pub(crate) fn settle(
    context: &FileContext,
    id: OperationId,
    tracker: Tracker,
) -> Result<Settled, FileError> {
    settle_until(context, id, tracker, None)
}

/// Settles what is known of a command that nobody watched any more after a moment.
fn settle_until(
    context: &FileContext,
    id: OperationId,
    mut tracker: Tracker,
    watched_until: Option<i128>,
) -> Result<Settled, FileError> {
    decide_pending(&mut tracker)?;
    let mut settling = Settling {
        context,
        id,
        before: BTreeMap::new(),
        look_at: BTreeSet::new(),
        rewrites: BTreeMap::new(),
        contents: take(&mut tracker.contents),
        firsts: HashMap::new(),
        old: HashMap::new(),
        in_place: BTreeSet::new(),
        seen: HashMap::new(),
        touched: HashSet::new(),
        opened: Opened::default(),
        alone: HashMap::new(),
        copies: 0,
        shared: foreign(&tracker),
        watched_until,
        known: take(&mut tracker.known),
        tracker,
    };
    settling.find_new()?;
    settling.gather()?;
    settling.finish()
}

/// Says of names that somebody else changed them, too.
fn foreign(tracker: &Tracker) -> BTreeMap<TargetPath, String> {
    let why = "somebody else changed it while the command ran";
    // What was there before is gone with its directory; what is there now came with somebody else's.
    let is_theirs = |(path, known): &(&TargetPath, &Known)| {
        let mut above = path.ancestors();
        **known != Known::Absent && above.any(|above| tracker.strangers.contains(&above))
    };
    let below = tracker.known.iter().filter(is_theirs).map(|(path, _)| path);
    let names = tracker.foreign.iter().chain(below);
    names.map(|name| (name.clone(), why.to_owned())).collect()
}

/// A move that nobody saw the end of: the disk tells.
fn decide_pending(tracker: &mut Tracker) -> Result<(), FileError> {
    if let Some(what) = tracker.pending.take() {
        let place = Dir::of(&what.to);
        let node = match place {
            Ok(place) => place.node()?,
            Err(_) => None,
        };
        if node.is_some_and(|node| node.identity.ino == what.ino) {
            tracker.moved(&what);
        }
    }
    Ok(())
}

pub(super) struct Settling<'t> {
    pub(super) context: &'t FileContext,
    pub(super) id: OperationId,
    pub(super) known: HashMap<TargetPath, Known>,
    pub(super) tracker: Tracker,
    pub(super) before: BTreeMap<TargetPath, Before>,
    /// Names of now that may stand for something new.
    pub(super) look_at: BTreeSet<TargetPath>,
    /// Files with several names that were written in place, by the names of before.
    pub(super) rewrites: BTreeMap<TargetPath, Rewriting>,
    pub(super) contents: Vec<NewContent>,
    /// The first name of each inode that has several.
    pub(super) firsts: HashMap<(u64, u64), TargetPath>,
    /// A name of each inode of before that has several now.
    pub(super) old: HashMap<Number, TargetPath>,
    /// Names of before whose inode moved in a circle: it comes back out of a slot.
    pub(super) in_place: BTreeSet<TargetPath>,
    /// What stood at names when what is there was read.
    pub(super) seen: HashMap<TargetPath, Node>,
    /// Inodes that settling itself gave a name or took one from.
    pub(super) touched: HashSet<Number>,
    pub(super) opened: Opened,
    /// What was seen in slots that are the only names of their inodes: settling gives those no other name.
    pub(super) alone: HashMap<Slot, Node>,
    pub(super) copies: usize,
    /// Names whose new state is not the command's alone, and why.
    pub(super) shared: BTreeMap<TargetPath, String>,
    /// The last moment that somebody watched, in nanoseconds; none if that is now.
    pub(super) watched_until: Option<i128>,
}

impl Settling<'_> {
    /// Finds what is new below the directories that were scanned.
    fn find_new(&mut self) -> Result<(), FileError> {
        for root in self.tracker.roots.clone() {
            self.find_new_below(&root)?;
        }
        Ok(())
    }

    fn find_new_below(&mut self, path: &TargetPath) -> Result<(), FileError> {
        let Some(node) = self
            .node(path)?
            .filter(|_| !self.context.depots.is_ours(path))
        else {
            return Ok(());
        };
        self.known.entry(path.clone()).or_insert(Known::Absent);
        if node.kind == Kind::Directory {
            for name in self.names_in(path)? {
                self.find_new_below(&path.join(&name))?;
            }
        }
        Ok(())
    }

    /// Collects what was at every name that matters.
    fn gather(&mut self) -> Result<(), FileError> {
        let names = self.tracker.names.clone();
        let mut moved = Vec::new();
        for (now, standing) in &names {
            match standing {
                Standing::From(origin) if self.node(now)?.is_some() => {
                    moved.push((origin.clone(), now.clone()));
                }
                Standing::From(_) => {}
                Standing::Born => self.walk_new(now, &names)?,
            }
        }
        if self.tracker.is_read {
            self.find_unsaid(&names)?;
        }
        for (path, known) in &self.known {
            let before = match known {
                Known::Absent => Before::Image(Image::Absent),
                Known::Whole(image) => Before::Image(image.clone()),
                Known::Dressed {
                    node,
                    meta,
                    identity,
                } => Before::Dressed(*node, meta.clone(), *identity),
            };
            self.before.insert(path.clone(), before);
        }
        for (origin, now) in moved {
            self.moved(&origin, &now, &names)?;
        }
        self.find_unkept()?;
        self.follow()
    }

    /// Finds what came to be in directories that the command made: the log says no word of it.
    fn find_unsaid(&mut self, names: &BTreeMap<TargetPath, Standing>) -> Result<(), FileError> {
        let made = self
            .known
            .iter()
            .filter(|(_, known)| **known == Known::Absent);
        let made: Vec<TargetPath> = made.map(|(path, _)| path.clone()).collect();
        for origin in made {
            let now = self.tracker.now_of(&origin);
            // What else stands there was found by its own name.
            if self.tracker.origin(&now).as_ref() == Some(&origin) {
                self.walk_new(&now, names)?;
            }
        }
        Ok(())
    }

    /// What nobody kept is told, if it changed. If it is gone it was kept when it went, but not as it was before.
    fn find_unkept(&mut self) -> Result<(), FileError> {
        for (path, (identity, why)) in self.tracker.unkept.clone() {
            if self.before.contains_key(&path) {
                let why = format!("what it was is not kept: {why}");
                self.shared.insert(path, why);
                continue;
            }
            let node = self.node(&path)?;
            let is_as_it_was = identity.is_some() && node.map(|node| node.identity) == identity;
            if !is_as_it_was {
                let node = node.map_or(Kind::File, |node| node.kind);
                let image = Image::Unkept { node, why };
                self.before.insert(path, Before::Image(image));
            }
        }
        Ok(())
    }

    /// Compares, and puts the changes in order. What moved in a circle is told as contents that changed.
    fn finish(mut self) -> Result<Settled, FileError> {
        loop {
            let (changes, parents, counts) = self.changes()?;
            let ordered = in_order(changes);
            let mut moves = moves_in(&ordered.circular);
            if moves.is_empty() {
                moves = moves_in(&ordered.behind);
            }
            if moves.is_empty() {
                let rest = ordered.circular.into_iter().chain(ordered.behind);
                let changes = ordered.sorted.into_iter().chain(rest).collect();
                return self.recipe(changes, &parents, counts);
            }
            for (from, to) in moves {
                self.keep_in_place(&from, &to)?;
            }
            self.follow()?;
        }
    }

    /// Keeps the content of something that moved, instead of its move. What is in a directory moves by itself then.
    fn keep_in_place(&mut self, from: &TargetPath, to: &TargetPath) -> Result<(), FileError> {
        self.look_at.insert(to.clone());
        let is_shared = self.node(to)?.is_some_and(|node| node.is_shared);
        if is_shared && let Some(kept) = self.another_slot(Some(to))? {
            let was = self.rewrites.get(from).and_then(|what| what.image.meta());
            let kept = with_meta(kept, was.cloned());
            self.before.insert(from.clone(), Before::Image(kept));
            self.in_place.insert(from.clone());
            return Ok(());
        }
        let image = self.kept_now(to, self.known.get(from).cloned())?;
        let is_directory = image.is_directory();
        self.before.insert(from.clone(), Before::Image(image));
        if is_directory {
            for name in self.names_in(to)? {
                let (from, to) = (from.join(&name), to.join(&name));
                let node = self.node(&to)?;
                if node.is_some_and(|node| node.kind == Kind::Directory) {
                    self.keep_in_place(&from, &to)?;
                } else {
                    self.look_at.insert(to.clone());
                    self.before.insert(from, Before::MovedTo(to));
                }
            }
        }
        Ok(())
    }

    #[expect(
        clippy::type_complexity,
        reason = "three lists that belong together, used once"
    )]
    fn changes(&mut self) -> Result<(Vec<Change>, BTreeMap<TargetPath, Times>, Counts), FileError> {
        let mut counts = Counts::default();
        self.firsts.clear();
        let mut changes = self.rewritten()?;
        counts.changed += changes.len() as u64;
        let trees = self.arrived_trees()?;
        // Nothing below looks at these two, and copies of them would be large.
        let (before, look_at) = (take(&mut self.before), take(&mut self.look_at));
        let mut arrived: BTreeSet<&TargetPath> = BTreeSet::new();
        for (path, what) in &before {
            if let Before::MovedTo(to) = what {
                changes.extend(self.move_of(path, to, &before)?);
                arrived.insert(to);
                counts.changed += 1;
            }
        }
        let mut parents = self.known_times()?;
        let mut names: Vec<&TargetPath> = before.keys().chain(&look_at).collect();
        names.sort();
        names.dedup();
        for path in names.into_iter().filter(|path| !arrived.contains(path)) {
            let was = before.get(path);
            // What is below a tree that moved there came along with it.
            let is_along =
                !trees.is_empty() && path.ancestors().any(|above| trees.contains(&above));
            let found = if is_along {
                self.gone(path, was)?
            } else {
                self.compare(path, was)?
            };
            count(found.as_ref(), &mut counts);
            if let Some(times) = was.and_then(times_of)
                && !matches!(found, Some(Change::Set { .. }))
            {
                parents.entry(path.clone()).or_insert(times);
            }
            changes.extend(found);
        }
        (self.before, self.look_at) = (before, look_at);
        Ok((changes, parents, counts))
    }

    /// Gives the times that directories had. One that was cut and in which nothing changed since has those that it has now:
    /// what it had before is told by the part.
    fn known_times(&mut self) -> Result<BTreeMap<TargetPath, Times>, FileError> {
        let mut times = self.tracker.parents.clone();
        let cuts = self.tracker.cuts.values();
        let cut: BTreeSet<TargetPath> = cuts.flat_map(|cut| cut.parents.keys().cloned()).collect();
        for path in cut {
            if let Some(node) = self.node(&path)? {
                times.entry(path).or_insert(node.times);
            }
        }
        Ok(times)
    }

    /// Finds the directories that moved: where they are now.
    pub(super) fn arrived_trees(&mut self) -> Result<BTreeSet<TargetPath>, FileError> {
        let moved = self.before.values().filter_map(|before| match before {
            Before::MovedTo(to) => Some(to.clone()),
            Before::Image(_) | Before::Dressed(..) | Before::Rewritten => None,
        });
        let mut trees = BTreeSet::new();
        for to in moved.collect::<Vec<_>>() {
            let node = self.node(&to)?;
            if node.is_some_and(|node| node.kind == Kind::Directory) {
                trees.insert(to);
            }
        }
        Ok(trees)
    }

    fn move_of(
        &mut self,
        from: &TargetPath,
        to: &TargetPath,
        before: &BTreeMap<TargetPath, Before>,
    ) -> Result<Vec<Change>, FileError> {
        let Some(place) = self.place(to)? else {
            return Ok(Vec::new());
        };
        let Some(node) = place.node()? else {
            return Ok(Vec::new());
        };
        let mut changes = Vec::new();
        let replaced = match before.get(to) {
            // Its entries went first, so it went by itself.
            Some(Before::Image(image)) if image.is_directory() => {
                changes.push(Change::Set {
                    path: to.clone(),
                    before: image.clone(),
                    after: Image::Absent,
                });
                Image::Absent
            }
            Some(Before::Image(image)) => self.dress(image.clone())?,
            _ => Image::Absent,
        };
        changes.push(Change::Move {
            from: from.clone(),
            to: to.clone(),
            node: node.kind,
            identity: node.identity,
            replaced,
            meta: meta_of_moved(&place, &node)?,
        });
        Ok(changes)
    }
}

pub(super) fn missing(path: &TargetPath) -> FileError {
    FileError::NotFound {
        path: path.to_string(),
    }
}

/// Lists moves, each by its old and its new name.
fn moves_in(changes: &[Change]) -> Vec<(TargetPath, TargetPath)> {
    let moves = changes.iter().filter_map(|change| match change {
        Change::Move { from, to, .. } => Some((from.clone(), to.clone())),
        Change::Set { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => None,
    });
    moves.collect()
}

fn times_of(before: &Before) -> Option<Times> {
    let Before::Image(Image::Directory { meta }) = before else {
        return None;
    };
    meta.times
}

fn count(change: Option<&Change>, counts: &mut Counts) {
    match change {
        None => {}
        Some(Change::Set { before, after, .. }) => match (before.is_absent(), after.is_absent()) {
            (true, _) => counts.created += 1,
            (_, true) => counts.deleted += 1,
            _ => counts.changed += 1,
        },
        Some(Change::Move { .. } | Change::Retouch { .. } | Change::Rewrite { .. }) => {
            counts.changed += 1;
        }
    }
}

/// Says how metadata changed.
pub(super) fn redressed(path: &TargetPath, kind: Kind, was: &Meta, is: &Meta) -> Option<Change> {
    let (mut before, mut after) = (was.clone(), is.clone());
    // The times of a directory speak of its entries.
    let mtime = |meta: &Meta| meta.times.map(|times| times.mtime);
    if kind == Kind::Directory || mtime(&before) == mtime(&after) {
        (before.times, after.times) = (None, None);
    }
    let is_same = before.times == after.times && differs_in_meta(&after, &before, kind).is_none();
    (!is_same).then(|| Change::Retouch {
        path: path.clone(),
        before,
        after,
        node: Some(kind),
    })
}
