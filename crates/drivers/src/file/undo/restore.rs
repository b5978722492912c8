//! The way back of one change: what will be put there, and how what is there now is kept.

use std::ffi::OsString;

use backout_files::inode::put_back_changed;
use backout_files::said::names_shown;
use backout_model::ports::OnConflict;
use backout_model::{OutcomeKind, TargetPath};

use super::homes::without_directory;
use super::merge::merge;
use super::obtain::Obtained;
use super::prepare::Undo;
use super::rights::{gap_of_new, only_root, only_root_but_force, without_gap};
use crate::file::before_image::meta_of;
use crate::file::compare::Current;
use crate::file::error::{FileError, Naming as _};
use crate::file::execute::is_closed;
use crate::file::execute::{Seen, Step};
use crate::file::judge::State;
use crate::file::listing::listing;
use crate::file::recipe::{Change, Holes, Identity, Image, Kind};
use crate::file::reversed;
use crate::file::stage::{Incoming, Material, wait};
use crate::file::sys::{Dir, Node, Place, bytes, meta};

/// What is there, kept, and what of it is somebody else's; or why it must stay.
type Keeping = Result<((Image, Seen), Option<String>), String>;

impl Undo<'_> {
    pub(super) fn take_back_set(
        &mut self,
        path: &TargetPath,
        (before, after): (&Image, &Image),
        state: State,
        is_shared: bool,
    ) -> Result<OutcomeKind, FileError> {
        let current = Current::at(path)?;
        match (state, self.how.on_conflict) {
            (State::Before, _) => Ok(OutcomeKind::AlreadyGone),
            // What a later change of the effect put there is gone by the time this one's turn comes. And what a crash
            // cut short may have left nothing.
            (State::After, _) if after.is_absent() || current.node.is_none() => {
                let nothing = Some((Image::Absent, Seen::Absent));
                self.restore(&current, before, nothing, after, None)
            }
            (State::After, _) => self.restore(&current, before, None, after, after.digest()),
            (State::Other { why }, OnConflict::Refuse) => Ok(OutcomeKind::Conflict { why }),
            // Whatever it is, a step so far gives it another name.
            (State::Other { .. }, OnConflict::Merge | OnConflict::Force)
                if after.is_absent() && self.is_moved_away(path) =>
            {
                let nothing = Some((Image::Absent, Seen::Absent));
                self.restore(&current, before, nothing, after, None)
            }
            (State::Other { why }, OnConflict::Merge) if is_shared => Ok(OutcomeKind::Conflict {
                why: format!("{why}; what the command alone made of it is not known"),
            }),
            (State::Other { why }, OnConflict::Merge) => {
                match merge(self.context, &current, before, after)? {
                    Ok(merged) => self.put_merged(&current, merged, (before, after)),
                    // That it is gone is said already.
                    Err(_) if current.node.is_none() => Ok(OutcomeKind::Conflict { why }),
                    Err(cannot) => Ok(OutcomeKind::Conflict {
                        why: format!("{why}; {cannot}"),
                    }),
                }
            }
            (State::Other { why }, OnConflict::Force) => {
                // Who removed it changed it, too.
                let is_changed = current.node.is_some() || !before.is_absent();
                let kind = self.restore(&current, before, None, after, None)?;
                // That it is a directory by now says more than what is in it.
                let is_told_here = kind == OutcomeKind::Restored && is_changed
                    || matches!(kind, OutcomeKind::Overwritten { .. }) && !after.is_directory();
                Ok(if is_told_here {
                    OutcomeKind::Overwritten { why }
                } else {
                    kind
                })
            }
        }
    }

    pub(super) fn restore(
        &mut self,
        current: &Current,
        before: &Image,
        known: Option<(Image, Seen)>,
        after: &Image,
        digest: Option<backout_model::Digest>,
    ) -> Result<OutcomeKind, FileError> {
        let is_homeless = !before.is_absent() && !self.has_directory(current);
        if is_homeless && !(self.is_forced() && self.make_home(&current.path)?) {
            return Ok(OutcomeKind::Conflict {
                why: without_directory(&current.path),
            });
        }
        let obtained = match self.obtain(&current.path, before)? {
            Ok(obtained) => obtained,
            Err(why) => return Ok(OutcomeKind::Failed { why }),
        };
        let (now, foreign) = match known {
            Some(now) => (now, None),
            None => match self.keep_current(current, after)? {
                Ok(((image, seen), foreign)) => ((image.with_digest(digest), seen), foreign),
                Err(why) => return Ok(OutcomeKind::Conflict { why }),
            },
        };
        let kind = self.put(current, now, obtained)?;
        Ok(match (kind, foreign) {
            (OutcomeKind::Restored, Some(why)) => OutcomeKind::Overwritten { why },
            (kind, _) => kind,
        })
    }

    /// Plans a step that puts an obtained image in place.
    pub(super) fn put(
        &mut self,
        current: &Current,
        (now, seen): (Image, Seen),
        obtained: Obtained,
    ) -> Result<OutcomeKind, FileError> {
        let path = &current.path;
        self.keeper.notes.extend(obtained.note);
        let foreseen = gap_of_new(path, &obtained.image);
        let (mut image, material, mut gaps) =
            self.stage(path, obtained.image, obtained.material)?;
        // What is only made when it is time was not tried.
        if let (Some(gap), false) = (foreseen, matches!(material, Material::Nameless(_))) {
            image = without_gap(path, image);
            gaps.push(gap);
        }
        let change = Change::Set {
            path: path.clone(),
            before: now,
            after: image,
        };
        self.steps.push(Step {
            seen,
            ..Step::new(0, change, material)
        });
        Ok(match gaps.first() {
            None => OutcomeKind::Restored,
            // Only with force does an undo that is not whole take place.
            Some(gap) if self.is_forced() => OutcomeKind::Incomplete {
                why: only_root(gap),
            },
            Some(gap) => OutcomeKind::Failed {
                why: only_root_but_force(gap),
            },
        })
    }

    /// Stages stored bytes as a file without a name, and gives the image as it can really be made.
    fn stage(
        &mut self,
        path: &TargetPath,
        image: Image,
        material: Material,
    ) -> Result<(Image, Material, Vec<String>), FileError> {
        let (
            Image::File {
                digest,
                size,
                stored,
                meta: wanted,
                without,
                holes,
            },
            Material::Stored,
        ) = (&image, &material)
        else {
            return Ok((image, material, Vec::new()));
        };
        // A directory that this undo brings back itself is made when it is time.
        let Ok(place) = Dir::of(path) else {
            return Ok((image, material, Vec::new()));
        };
        // So is one that must be opened first.
        if is_closed(&place.dir.node()?) {
            return Ok((image, material, Vec::new()));
        }
        let mut reader = reversed::open(self.context, path, digest)?;
        let incoming = Incoming::of(&mut reader).naming(path, "read the kept content of")?;
        let waiting = wait(self.context, self.id, &place.dir, &mut self.open, incoming)?;
        if waiting.digest != *digest {
            return Err(FileError::WrongContent {
                path: path.to_string(),
                digest: *digest,
            });
        }
        let Material::Nameless(file) = &waiting.material else {
            return Ok((image, waiting.material, Vec::new()));
        };
        bytes::punch(file, holes).naming(path, "write")?;
        let gaps = meta::write(file, Kind::File, wanted, path)?;
        let node = Node::of(&rustix::fs::fstat(file).naming(path, "look at")?);
        let mut real = meta::read(&node, file, path)?;
        real.times = wanted.times;
        let image = Image::File {
            digest: *digest,
            size: *size,
            stored: *stored,
            meta: real,
            without: without.clone(),
            holes: holes.clone(),
        };
        Ok((image, waiting.material, gaps))
    }

    /// Keeps what is there now, so that the undo can itself be undone. The inner error is a conflict.
    fn keep_current(&mut self, current: &Current, after: &Image) -> Result<Keeping, FileError> {
        let (Some(place), Some(node)) = (&current.place, &current.node) else {
            return Ok(Ok(((Image::Absent, Seen::Absent), None)));
        };
        let seen = Seen::There(*node);
        match after {
            // It came out of this slot: back it goes, where the first recipe looks for it. A directory may be the same and
            // hold something else by now; if what took it out never finished, nobody else knows where it would be.
            Image::Kept {
                slot,
                node: kind,
                identity,
                meta,
                copy,
                entries,
                digest,
            } if (*kind != Kind::Directory
                && (node.is_kept(*kind, identity) || self.is_rewritten(node, identity)))
                || self.goes_back_as_it_is(node, *kind, identity)
                || current.differs(after, None)?.is_none() =>
            {
                let is_free = self.context.depots.out_of_reach(slot).is_none()
                    && Dir::of(&slot.path())?.node()?.is_none();
                if is_free {
                    let image = Image::Kept {
                        slot: slot.clone(),
                        node: *kind,
                        // Its number may be a new one by now.
                        identity: node.identity,
                        meta: meta.clone(),
                        copy: *copy,
                        entries: *entries,
                        digest: *digest,
                    };
                    return Ok(Ok(((image, seen), None)));
                }
            }
            // A redo names once more what the first name stands for: if it is still this, or comes back as this with
            // the tree that it is in.
            Image::Linked { to, identity, .. }
                if is_at(to, node)? || self.brings(to, *identity, node)? =>
            {
                // A redo begins with the names of before.
                let now = is_at(to, node)?.then_some(to);
                let before = self.name_of_before(now, node, &current.path);
                let is_own = before.is_none() && now.is_some() && self.makes(to);
                let identity = (!is_own).then_some(node.identity);
                let to = before.unwrap_or_else(|| to.clone());
                let image = self.second_name(place, node, to, identity)?;
                return Ok(Ok(((image, seen), None)));
            }
            Image::Absent
            | Image::File { .. }
            | Image::Symlink { .. }
            | Image::Directory { .. }
            | Image::Special { .. }
            | Image::Linked { .. }
            | Image::Kept { .. }
            | Image::Unkept { .. } => {}
        }
        if node.kind == Kind::Directory {
            return self.keep_directory(&current.path, place, node);
        }
        // The same file comes back under another name by this very undo: keeping it twice would leave it one name more.
        if let Some(to) = self
            .returning
            .get(&node.identity.ino)
            .filter(|to| **to != current.path)
        {
            let (to, identity) = (to.clone(), Some(node.identity));
            let image = self.second_name(place, node, to, identity)?;
            return Ok(Ok(((image, seen), None)));
        }
        let (image, node) = self.keeper.keep(place)?;
        Ok(Ok(((image, Seen::There(node)), None)))
    }

    /// Keeps a second name that goes. Nobody promises that the first is still there when it is to come back, so its bytes
    /// are kept as well; those of a file that the effect made go with its own first name.
    fn second_name(
        &mut self,
        place: &Place,
        node: &Node,
        to: TargetPath,
        identity: Option<Identity>,
    ) -> Result<Image, FileError> {
        let is_file = node.kind == Kind::File;
        let copy = match identity.filter(|_| is_file) {
            Some(_) => Some(self.keeper.copied(place, node)?),
            None => None,
        };
        Ok(Image::Linked { to, identity, copy })
    }

    /// Tells whether what this undo takes back brought a name, by itself or in a tree that it brought as one.
    fn makes(&self, name: &TargetPath) -> bool {
        let is_tree_above = |change: &Change| match change {
            Change::Set { path, after, .. } => {
                matches!(
                    after,
                    Image::Kept {
                        node: Kind::Directory,
                        ..
                    }
                ) && name.is_below(path)
            }
            Change::Move { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => false,
        };
        self.names.contains(name) || self.meant.iter().any(|change| is_tree_above(change))
    }

    /// Gives a name that a file with several had before the effect and has again after this undo. If that is the same
    /// name, only because the tree that it is in comes back there.
    fn name_of_before(
        &self,
        now: Option<&TargetPath>,
        node: &Node,
        except: &TargetPath,
    ) -> Option<TargetPath> {
        let returning = self.returning.get(&node.identity.ino);
        let returning = returning.filter(|name| *name != except);
        let moved = || {
            let now = now?;
            self.meant.iter().rev().find_map(|change| match change {
                Change::Move { from, to, .. } if now.is_below(to) => now.rebase(to, from),
                Change::Set { .. }
                | Change::Move { .. }
                | Change::Retouch { .. }
                | Change::Rewrite { .. } => None,
            })
        };
        returning.cloned().or_else(moved)
    }

    /// Tells whether it is the kept inode, changed in place by this very effect.
    fn is_rewritten(&self, node: &Node, kept: &Identity) -> bool {
        let number = node.identity.ino;
        number == kept.ino && self.rewritten.contains(&number)
    }

    /// Tells whether a kept tree goes back to its slot with whatever somebody put into it meanwhile.
    fn goes_back_as_it_is(&self, node: &Node, kept: Kind, identity: &Identity) -> bool {
        let is_tree = kept == Kind::Directory && node.kind == Kind::Directory;
        let is_meant = self.how.is_unfinished && self.is_forced();
        is_meant && is_tree && node.identity.ino == identity.ino
    }

    /// Tells whether a tree that this undo brings back holds the first name of an inode.
    fn brings(
        &self,
        to: &TargetPath,
        known: Option<Identity>,
        node: &Node,
    ) -> Result<bool, FileError> {
        let is_it = known.is_some_and(|known| known.ino == node.identity.ino);
        let is_below = to.ancestors().any(|above| self.listed.contains(&above));
        if is_it && is_below && Current::at(to)?.node.is_none() {
            return Ok(true);
        }
        for change in self.changes.iter().filter(|_| is_it) {
            if let Change::Move {
                from, to: moved, ..
            } = change
                && to.is_below(from)
                && let Some(now) = to.rebase(from, moved)
                && is_at(&now, node)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn keep_directory(
        &mut self,
        path: &TargetPath,
        place: &Place,
        node: &Node,
    ) -> Result<Keeping, FileError> {
        let is_whole = self.whole.contains_key(path);
        let foreign = if is_whole {
            self.unlisted(path, place)?
        } else {
            self.left(path, place)?
        };
        let foreign = (!foreign.is_empty())
            .then(|| format!("the directory is not empty: {}", names_shown(&foreign)));
        match (&foreign, self.is_forced()) {
            (Some(why), false) => return Ok(Err(why.clone())),
            (None, _) if !is_whole => {
                let (image, node) = self.keeper.keep(place)?;
                return Ok(Ok(((image, Seen::There(node)), None)));
            }
            (Some(_), true) | (None, _) => {}
        }
        match self.park_whole(place, node)? {
            Some(image) => {
                self.leave_what_stays(path);
                Ok(Ok(((image, Seen::There(*node)), foreign)))
            }
            None => Ok(Err(
                "the directory is not empty, and nothing on its file system can keep it".to_owned(),
            )),
        }
    }

    /// Leaves out the steps about what is kept in a tree. What an effect that never finished had taken out of slots leaves the
    /// tree before: the first recipe looks for it there.
    fn leave_what_stays(&mut self, path: &TargetPath) {
        let id = self.id.to_string();
        let is_taken = |change: &Change| match change {
            Change::Set {
                before: Image::Kept { slot, .. },
                after,
                ..
            } => after.is_absent() && !slot.name.starts_with(&id),
            Change::Set { .. }
            | Change::Move { .. }
            | Change::Retouch { .. }
            | Change::Rewrite { .. } => false,
        };
        let is_unfinished = self.how.is_unfinished;
        let is_below = |step: &Step| step.change.path().is_below(path);
        self.steps
            .retain(|step| !is_below(step) || is_unfinished && is_taken(&step.change));
    }

    /// Keeps a directory with all that is in it; nothing if there is no depot for it.
    pub(super) fn park_whole(
        &mut self,
        place: &Place,
        node: &Node,
    ) -> Result<Option<Image>, FileError> {
        let mut parked = self.keeper.park(place, node)?;
        if let Some(Image::Kept { entries, .. }) = &mut parked {
            *entries = listing(place)?;
        }
        Ok(parked)
    }

    /// Lists what a directory will still hold when the steps so far are done.
    pub(super) fn left(
        &self,
        path: &TargetPath,
        place: &Place,
    ) -> Result<Vec<OsString>, FileError> {
        let mut names = place.enter()?.names()?;
        names.retain(|name| {
            let entry = path.join(name);
            !self.steps.iter().any(|step| match &step.change {
                Change::Set { path, after, .. } => *path == entry && after.is_absent(),
                Change::Move { from, .. } => *from == entry,
                Change::Retouch { .. } | Change::Rewrite { .. } => false,
            })
        });
        Ok(names)
    }

    /// Lists what a tree holds that the effect did not put there.
    fn unlisted(&self, path: &TargetPath, place: &Place) -> Result<Vec<OsString>, FileError> {
        let mut found = Vec::new();
        let dir = place.enter()?;
        for name in dir.names()? {
            let (entry, place) = (path.join(&name), dir.place(&name));
            if !self.listed.contains(&entry) {
                found.push(name);
            } else if place
                .node()?
                .is_some_and(|node| node.kind == Kind::Directory)
            {
                found.extend(self.unlisted(&entry, &place)?);
            }
        }
        Ok(found)
    }

    /// Puts a merged text in place. What the change did to mode, owner and attributes is taken back with it.
    fn put_merged(
        &mut self,
        current: &Current,
        merged: Vec<u8>,
        (before, after): (&Image, &Image),
    ) -> Result<OutcomeKind, FileError> {
        let (Some(place), Some(node)) = (&current.place, &current.node) else {
            return Ok(OutcomeKind::Conflict {
                why: "it is gone".to_owned(),
            });
        };
        let path = &current.path;
        let mut wanted = meta_of(place, node)?;
        if let (Some(before), Some(after)) = (before.meta(), after.meta()) {
            wanted = put_back_changed(&wanted, before, after);
        }
        wanted.times = None;
        let digest = backout_model::Digest::of(&merged);
        let size = u64::try_from(merged.len()).unwrap_or(u64::MAX);
        if !self.keeper.inline(digest, &merged) {
            self.context.stash.stash(self.id, &mut merged.as_slice())?;
        }
        let (now, seen) = self.keeper.keep(place)?;
        let incoming = Incoming::Bytes(merged);
        let waiting = wait(self.context, self.id, &place.dir, &mut self.open, incoming)?;
        if let Material::Nameless(file) = &waiting.material {
            meta::write(file, Kind::File, &wanted, path)?;
        }
        let after = Image::File {
            digest,
            size,
            stored: true,
            meta: wanted,
            without: None,
            holes: Holes::new(),
        };
        let change = Change::Set {
            path: path.clone(),
            before: now,
            after,
        };
        let step = Step::new(0, change, waiting.material);
        self.steps.push(Step {
            seen: Seen::There(seen),
            ..step
        });
        Ok(OutcomeKind::Merged)
    }
}

/// Tells whether a name stands for this inode.
fn is_at(path: &TargetPath, node: &Node) -> Result<bool, FileError> {
    let first = Current::at(path)?.node;
    Ok(first.is_some_and(|first| first.identity.ino == node.identity.ino))
}
