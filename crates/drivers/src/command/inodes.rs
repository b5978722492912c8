//! Files with several names: which of them each file had before the command, and which it has now.
//!
//! A name says little of such a file: the command may have given it others, taken some away, and written through any of
//! them. So it is followed by its number. What it was is noted under one of its names of before, whichever it was
//! touched by. Here its names of before are held against those of now:
//!
//! - A name that it has as before is no change, whatever lay in between.
//! - A name that it lost and one that it got are a move.
//! - A name that it lost for nothing comes back out of a slot; one that it got for nothing is a second name of it.
//! - What is in it is told once, by its number, and the undo writes that into the same inode after all names are back.

use std::collections::{BTreeMap, BTreeSet};

use backout_model::{Slot, TargetPath};

use super::before_image::with_meta;
use super::settle::{Before, Settling};
use super::tracker::Known;
use crate::file::before_image::{digest_of, meta_of};
use crate::file::compare::differs_in_meta;
use crate::file::error::FileError;
use crate::file::recipe::{Identity, Image, Kind, Meta};
use crate::file::sys::{Dir, Node, bytes, names};

/// The device of the directory that a file is in, and the number of the file.
pub(super) type Number = (u64, u64);

/// A file whose bytes or metadata changed in place.
#[derive(Debug, Clone)]
pub(super) struct Rewriting {
    pub(super) ino: u64,
    /// What was in it.
    pub(super) image: Image,
    /// Where the inode is now.
    pub(super) at: TargetPath,
    /// Whether nothing became of its names.
    pub(super) is_alone: bool,
}

impl Rewriting {
    const fn of((_, ino): Number, image: Image, at: TargetPath, is_alone: bool) -> Self {
        Self {
            ino,
            image,
            at,
            is_alone,
        }
    }
}

/// A file of before with several names.
#[derive(Debug, Default)]
struct Followed {
    /// Its names of before that the command touched, each with the slot that it was put into when that name went.
    names: BTreeMap<TargetPath, Option<Image>>,
    /// A slot that it was put into beside its bytes.
    spare: Option<Image>,
    /// What was in it, if somebody wrote there.
    bytes: Option<Image>,
    /// What else it was, if that changed.
    meta: Option<Meta>,
    /// The names that it has now, as far as the command touched them.
    now: BTreeSet<TargetPath>,
}

impl Settling<'_> {
    /// Tells whether an inode was written in place and has other names.
    pub(super) fn is_written(&self, ino: u64) -> bool {
        self.rewrites.values().any(|rewriting| rewriting.ino == ino)
    }

    /// Says of every file with several names what became of each of them.
    pub(super) fn follow(&mut self) -> Result<(), FileError> {
        self.rewrites.clear();
        self.old.clear();
        let mut all = self.followed()?;
        if !all.is_empty() {
            self.find_names(&mut all)?;
        }
        for (number, followed) in all {
            self.conclude(number, followed)?;
        }
        self.find_second_names()
    }

    /// Collects the files of before that have or had several names.
    fn followed(&mut self) -> Result<BTreeMap<Number, Followed>, FileError> {
        let mut all: BTreeMap<Number, Followed> = BTreeMap::new();
        let all_before = std::mem::take(&mut self.before);
        for (origin, before) in &all_before {
            let at = match before {
                Before::MovedTo(now) => now,
                Before::Dressed(Kind::Directory, ..) => continue,
                Before::Dressed(..) | Before::Rewritten => origin,
                Before::Image(image) => {
                    self.follow_kept(&mut all, origin, image)?;
                    continue;
                }
            };
            if let Some((number, _)) = self.number(at)?.filter(|(_, node)| node.is_shared) {
                let meta = match self.known.get(origin) {
                    Some(Known::Dressed { meta, .. }) => Some(meta.clone()),
                    // It was in a slot that is not needed: a name that it got counts as the one that it lost.
                    Some(Known::Whole(image @ Image::Kept { identity, .. })) => {
                        let is_it = identity.ino == number.1;
                        image.meta().filter(|_| is_it).cloned()
                    }
                    Some(Known::Absent | Known::Whole(_)) | None => None,
                };
                let followed = all.entry(number).or_default();
                followed.names.insert(origin.clone(), None);
                followed.meta = meta.or(followed.meta.take());
            }
        }
        self.before = all_before;
        self.follow_written(&mut all)?;
        Ok(all)
    }

    /// An inode that lost a name is in a slot, and others of its names may be elsewhere.
    fn follow_kept(
        &mut self,
        all: &mut BTreeMap<Number, Followed>,
        origin: &TargetPath,
        image: &Image,
    ) -> Result<(), FileError> {
        let Image::Kept {
            slot,
            node: kind,
            identity,
            ..
        } = image
        else {
            return Ok(());
        };
        let written = self.tracker.written.get(origin);
        let is_copy = written.is_some_and(|number| *number != identity.ino);
        if *kind == Kind::Directory || is_copy {
            return Ok(());
        }
        if self.context.depots.out_of_reach(slot).is_some() {
            return Ok(());
        }
        let place = self.slot(slot)?;
        let kept = place.node()?;
        // If it has one name only, that is the slot, and nothing is to be followed.
        if let Some(node) = kept.filter(|node| !node.is_shared) {
            self.alone.insert(slot.clone(), node);
        } else {
            let is_there = kept.is_some_and(|node| node.identity.ino == identity.ino);
            let device = place.dir.node()?.identity.dev;
            let followed = all.entry((device, identity.ino)).or_default();
            followed.meta = followed.meta.take().or_else(|| image.meta().cloned());
            let kept = is_there.then(|| image.clone());
            followed.names.insert(origin.clone(), kept);
        }
        Ok(())
    }

    /// What was written in place is noted by its number.
    fn follow_written(&mut self, all: &mut BTreeMap<Number, Followed>) -> Result<(), FileError> {
        for (origin, ino) in self.tracker.written.clone() {
            let Some(Known::Whole(image)) = self.known.get(&origin).cloned() else {
                continue;
            };
            let Some(device) = self.device_of(&origin)? else {
                continue;
            };
            let spare = self.shelved(&origin, ino)?;
            let followed = all.entry((device, ino)).or_default();
            followed.names.entry(origin).or_insert(None);
            followed.bytes = Some(image);
            followed.spare = spare;
        }
        Ok(())
    }

    /// Finds which of the names that the command touched stand for one of them now.
    fn find_names(&mut self, all: &mut BTreeMap<Number, Followed>) -> Result<(), FileError> {
        let mut names = self.look_at.clone();
        names.extend(self.before.keys().cloned());
        // What is below a tree that moved comes back with it.
        let trees = self.arrived_trees()?;
        names.retain(|name| !name.ancestors().any(|above| trees.contains(&above)));
        for name in names {
            let found = self.number(&name)?;
            if let Some(followed) = found.and_then(|(number, _)| all.get_mut(&number)) {
                followed.now.insert(name);
            }
        }
        Ok(())
    }

    /// A file that has all its names has changed in its metadata alone. The name that this is noted under may be in a
    /// directory that changed places, and counts as moved.
    fn only_dressed(&mut self, names: impl Iterator<Item = TargetPath>) {
        for name in names {
            if let Some(Known::Dressed {
                node,
                meta,
                identity,
            }) = self.known.get(&name)
            {
                let dressed = Before::Dressed(*node, meta.clone(), *identity);
                self.before.insert(name, dressed);
            } else if matches!(self.before.get(&name), Some(Before::MovedTo(_))) {
                self.before.insert(name, Before::Rewritten);
            }
        }
    }

    /// Holds the names of before against those of now.
    fn conclude(&mut self, number: Number, followed: Followed) -> Result<(), FileError> {
        let Followed {
            names,
            spare,
            bytes,
            meta,
            now,
        } = followed;
        let is_used =
            |slot: Option<&Slot>| names.values().flatten().any(|kept| kept.slot() == slot);
        let mut spare = spare.filter(|spare| !is_used(spare.slot()));
        let (home, lost): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|(name, _)| now.contains(name));
        let mut gained = now.clone();
        for (name, _) in &home {
            gained.remove(name);
        }
        let was = bytes.as_ref().and_then(Image::meta).cloned().or(meta);
        let kept = lost.iter().chain(&home).find_map(|(_, kept)| kept.clone());
        let was = was.or_else(|| kept.as_ref().and_then(Image::meta).cloned());
        let is_alone = lost.is_empty() && gained.is_empty() && kept.is_none();
        if is_alone && bytes.is_none() {
            self.only_dressed(home.into_iter().map(|(name, _)| name));
            return Ok(());
        }
        // The first is where what was in it is written back.
        let mut places: Vec<(TargetPath, TargetPath)> = Vec::new();
        for (name, kept) in home {
            self.drop_slot(kept.as_ref(), number)?;
            places.push((name.clone(), name.clone()));
            // Only bytes are told by themselves.
            if !matches!(self.before.get(&name), Some(Before::Dressed(kind, ..)) if *kind != Kind::File)
            {
                self.before.insert(name, Before::Rewritten);
            }
        }
        for (name, kept, to) in self.paired(lost, &mut gained) {
            if let Some(to) = to {
                self.drop_slot(kept.as_ref(), number)?;
                self.look_at.insert(to.clone());
                places.push((name.clone(), to.clone()));
                self.before.insert(name, Before::MovedTo(to));
                continue;
            }
            let kept = match kept.or_else(|| spare.take()) {
                Some(kept) => Some(kept),
                None => self.another_slot(now.first())?,
            };
            if let Some(kept) = kept.map(|kept| with_meta(kept, was.clone())) {
                places.extend(kept.slot().map(|slot| (name.clone(), slot.path())));
                self.before.insert(name, Before::Image(kept));
            } else if let Some(bytes) = &bytes {
                // Nobody has the inode any more: it comes back as a file of its own.
                let image = Before::Image(bytes.clone());
                self.before.insert(name, image);
            }
        }
        self.drop_slot(spare.as_ref(), number)?;
        let Some((path, at)) = places.into_iter().next() else {
            return Ok(());
        };
        let image = match (bytes, was) {
            (Some(bytes), _) => Some(bytes),
            (None, Some(was)) => self.with_its_bytes(&at, was)?,
            (None, None) => None,
        };
        if let Some(image) = image {
            let rewriting = Rewriting::of(number, image, at, is_alone);
            self.rewrites.insert(path, rewriting);
        }
        Ok(())
    }

    /// Gives each lost name the one that came for it: as it moved, else any, and first where nothing else is left of the
    /// name.
    fn paired(
        &self,
        lost: Vec<(TargetPath, Option<Image>)>,
        gained: &mut BTreeSet<TargetPath>,
    ) -> Vec<(TargetPath, Option<Image>, Option<TargetPath>)> {
        let mut pairs = Vec::new();
        let mut open = Vec::new();
        for (name, kept) in lost {
            match self.before.get(&name) {
                Some(Before::MovedTo(to)) if gained.remove(to) => {
                    pairs.push((name, kept, Some(to.clone())));
                }
                _ => open.push((name, kept)),
            }
        }
        open.sort_by_key(|(_, kept)| kept.is_some());
        for (name, kept) in open {
            let is_free = !self.in_place.contains(&name);
            let to = is_free.then(|| gained.pop_first()).flatten();
            pairs.push((name, kept, to));
        }
        pairs
    }

    /// Takes a slot away that is not needed: it would be a name too many.
    fn drop_slot(&mut self, kept: Option<&Image>, number: Number) -> Result<(), FileError> {
        let Some(slot) = kept.and_then(Image::slot) else {
            return Ok(());
        };
        let place = self.slot(slot)?;
        match place.node()? {
            Some(node) if node.identity.ino == number.1 => {
                self.touch(&node);
                names::unlink(&place)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Remembers that the time of an inode's last change is ours from now on, unless somebody was there after the watcher.
    pub(super) fn touch(&mut self, node: &Node) {
        if self
            .watched_until
            .is_none_or(|until| node.identity.ctime <= until)
        {
            self.touched.insert(key_of(node));
        }
    }

    /// Puts an inode into a slot by one of its names.
    pub(super) fn another_slot(
        &mut self,
        name: Option<&TargetPath>,
    ) -> Result<Option<Image>, FileError> {
        let Some(place) = name.map(|name| self.place(name)).transpose()?.flatten() else {
            return Ok(None);
        };
        let Some(depot) = self.context.depots.depot_for(place.dir.path()) else {
            return Ok(None);
        };
        let slot = Slot {
            depot,
            name: format!("{}-settled-{}", self.id, self.copies),
        };
        self.copies += 1;
        let to = self.slot(&slot)?;
        // Left there by a settling that was cut short.
        if to.node()?.is_some() {
            names::unlink(&to)?;
        }
        if let Some(node) = place.node()? {
            self.touch(&node);
        }
        if names::link(&place, &to).is_err() {
            return Ok(None);
        }
        let Some(node) = to.node()? else {
            return Ok(None);
        };
        Ok(Some(Image::Kept {
            slot,
            node: node.kind,
            identity: node.identity,
            meta: meta_of(&to, &node)?,
            copy: None,
            entries: None,
            digest: None,
        }))
    }

    /// Gives the image of a file whose bytes are as they were, and the rest is not.
    fn with_its_bytes(&mut self, at: &TargetPath, meta: Meta) -> Result<Option<Image>, FileError> {
        let Some(place) = self.place(at)? else {
            return Ok(None);
        };
        let Some(node) = place.node()?.filter(|node| node.kind == Kind::File) else {
            return Ok(None);
        };
        let is_timely = meta
            .times
            .is_none_or(|times| times.mtime == node.times.mtime);
        if is_timely && differs_in_meta(&meta_of(&place, &node)?, &meta, Kind::File).is_none() {
            return Ok(None);
        }
        let (digest, size) = digest_of(&place)?;
        Ok(Some(Image::File {
            digest,
            size,
            stored: false,
            meta,
            without: None,
            holes: bytes::holes(&place.read()?, size),
        }))
    }

    /// Finds, for each file of before that has new names, one that stands for it now and is none of those.
    fn find_second_names(&mut self) -> Result<(), FileError> {
        let aliases: BTreeMap<_, _> = self.tracker.aliases.clone().into_iter().collect();
        let trees = self.arrived_trees()?;
        let mut firsts: Vec<(TargetPath, TargetPath)> = Vec::new();
        for (name, before) in &self.before {
            match before {
                Before::Rewritten | Before::Dressed(..) => {
                    firsts.push((name.clone(), name.clone()));
                }
                Before::MovedTo(to) => firsts.push((to.clone(), to.clone())),
                Before::Image(_) => {}
            }
        }
        for (name, of) in aliases {
            let first = self.tracker.now_of(&of);
            let is_along = first.ancestors().any(|above| trees.contains(&above));
            if is_along || !self.before.contains_key(&first) {
                firsts.push((name, first));
            }
        }
        for (name, first) in firsts {
            let Some(node) = self.node(&name)?.filter(|node| node.is_shared) else {
                continue;
            };
            let is_it = name == first
                || self
                    .node(&first)?
                    .is_some_and(|it| key_of(&it) == key_of(&node));
            if is_it {
                self.old.entry(key_of(&node)).or_insert(first);
            }
        }
        Ok(())
    }

    /// Gives the image of an inode that was put into a slot when it lost its name, if it is there.
    fn shelved(&mut self, origin: &TargetPath, ino: u64) -> Result<Option<Image>, FileError> {
        let Some(image) = self.tracker.shelved.get(origin).cloned() else {
            return Ok(None);
        };
        let Some(slot) = image.slot() else {
            return Ok(None);
        };
        let node = self.slot(slot)?.node()?;
        let is_it = node.is_some_and(|node| node.identity.ino == ino);
        Ok(is_it.then_some(image))
    }

    /// Looks at a name: which file it is, wherever else that has names.
    pub(super) fn number(
        &mut self,
        path: &TargetPath,
    ) -> Result<Option<(Number, Node)>, FileError> {
        let Some(place) = self.place(path)? else {
            return Ok(None);
        };
        let Some(node) = place.node()?.filter(|node| node.kind != Kind::Directory) else {
            return Ok(None);
        };
        let device = place.dir.node()?.identity.dev;
        Ok(Some(((device, node.identity.ino), node)))
    }

    /// Gives the device that a name of before is on: that of its directory, or of one above.
    fn device_of(&mut self, origin: &TargetPath) -> Result<Option<u64>, FileError> {
        for above in origin.ancestors() {
            let now = self.tracker.now_of(&above);
            match Dir::open(&now) {
                Ok(dir) => return Ok(Some(dir.node()?.identity.dev)),
                Err(error) if error.leads_nowhere() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// How a file is told from others while all of them are there.
pub(super) const fn key_of(node: &Node) -> Number {
    let Identity { dev, ino, .. } = node.identity;
    (dev, ino)
}
