//! Phases B and D: names change, each in one step, and what they stood for is put away.

use std::collections::HashSet;

use backout_model::TargetPath;

use super::{Done, Run, Seen};
use crate::file::error::{FileError, Naming as _};
use crate::file::recipe::{Change, Image, Kind, Meta};
use crate::file::sys::{Dir, Node, Place, meta, names};

impl Run<'_> {
    /// Makes one change visible.
    pub(super) fn swap(&mut self, index: usize) -> Result<(), FileError> {
        let Some(step) = self.steps.get(index) else {
            return Ok(());
        };
        if self.carried.get(index) == Some(&true) {
            return Ok(());
        }
        self.context.reach("file.swap")?;
        match &step.change {
            Change::Set {
                path,
                before,
                after,
            } => {
                self.set(index, path, before, after, step.seen)?;
                if self.is_below_later(index, path) {
                    self.dispose(index)?;
                }
            }
            Change::Move {
                from, to, replaced, ..
            } => {
                self.rename(index, (from, to), replaced, (step.seen, step.seen_at_new))?;
                // What was replaced has the old name now, and may have to make room there, or to be out of a directory
                // that goes away.
                let must_go = self.is_taken_later(index, from) || self.is_below_later(index, from);
                if !replaced.is_absent() && must_go {
                    self.dispose(index)?;
                }
            }
            Change::Retouch {
                path,
                before,
                after,
                ..
            } => {
                self.retouch(index, path, (before, after), step.seen)?;
            }
            Change::Rewrite { path, after, .. } => self.rewrite(index, path, after, step.seen)?,
        }
        self.note_shared(step.seen);
        self.note_shared(step.seen_at_new);
        self.context.reach("file.swapped")
    }

    fn set(
        &mut self,
        index: usize,
        path: &TargetPath,
        before: &Image,
        after: &Image,
        seen: Seen,
    ) -> Result<(), FileError> {
        let place = Dir::of(path)?;
        let Some(stage) = self.stages.get(index) else {
            return Ok(());
        };
        let stage = place.dir.place(stage.file_name().unwrap_or_default());
        self.touch(path);
        match (before.is_absent(), after.is_absent()) {
            (true, true) => {}
            (true, false) => {
                names::rename_to_free(&stage, &place)?;
                self.done.push(Done::Placed(index));
                self.note_placed(index, &place)?;
            }
            (false, true) => {
                self.check_seen(&place, seen, true)?;
                names::rename_to_free(&place, &stage)?;
                self.done.push(Done::Withdrawn(index));
                self.check_seen(&stage, seen, false)
                    .map_err(|error| found_changed(error, path))?;
            }
            (false, false) => {
                self.check_seen(&place, seen, true)?;
                exchange(&stage, &place)?;
                self.done.push(Done::Exchanged(index));
                self.note_placed(index, &place)?;
                self.check_seen(&stage, seen, false)
                    .map_err(|error| found_changed(error, path))?;
            }
        }
        Ok(())
    }

    /// Remembers what was just put under a name, to tell later whether somebody else was there.
    fn note_placed(&mut self, index: usize, place: &Place) -> Result<(), FileError> {
        if let Some(node) = place.node()? {
            self.placed.insert(index, node);
        }
        Ok(())
    }

    fn rename(
        &mut self,
        index: usize,
        (from, to): (&TargetPath, &TargetPath),
        replaced: &Image,
        (seen, seen_at_new): (Seen, Seen),
    ) -> Result<(), FileError> {
        let (old, new) = (Dir::of(from)?, Dir::of(to)?);
        self.check_seen(&old, seen, true)?;
        self.check_seen(&new, seen_at_new, true)?;
        self.touch(from);
        self.touch(to);
        // Of what is written into by another step this one touches the change time.
        if let Seen::There(node) = seen {
            self.shared.insert(node.identity.ino);
        }
        if replaced.is_absent() {
            names::rename_to_free(&old, &new)?;
            self.done.push(Done::Moved(index, false));
        } else {
            exchange(&old, &new)?;
            self.done.push(Done::Moved(index, true));
            self.check_seen(&old, seen_at_new, false)
                .map_err(|error| found_changed(error, to))?;
        }
        self.check_seen(&new, seen, false)
            .map(drop)
            .map_err(|error| found_changed(error, from))
    }

    fn retouch(
        &mut self,
        index: usize,
        path: &TargetPath,
        (before, after): (&Meta, &Meta),
        seen: Seen,
    ) -> Result<(), FileError> {
        let place = Dir::of(path)?;
        let node = self
            .check_seen(&place, seen, true)?
            .ok_or_else(|| changed(path))?;
        // Opened before the change: afterwards the mode may forbid it.
        let readable = matches!(node.kind, Kind::File | Kind::Directory)
            .then(|| {
                rustix::fs::openat(
                    &place.dir,
                    &place.name,
                    rustix::fs::OFlags::RDONLY
                        | rustix::fs::OFlags::NOFOLLOW
                        | rustix::fs::OFlags::NONBLOCK
                        | rustix::fs::OFlags::CLOEXEC,
                    rustix::fs::Mode::empty(),
                )
            })
            .and_then(Result::ok);
        let handle = place.handle()?;
        self.done.push(Done::Retouched(index));
        if node.is_shared {
            self.rewritten.insert(node.identity.ino);
        }
        let mut wanted = after.clone();
        // Times are only put back where the change itself is an undo of one that set them.
        if !before.changes_times_to(after) {
            wanted.times = None;
        }
        let gaps = meta::write(&handle, node.kind, &wanted, path)?;
        if !gaps.is_empty() && before != after {
            return Err(FileError::Permission {
                path: path.to_string(),
                action: "change",
            });
        }
        match readable {
            Some(file) => self.context.syncs.file(file, path, self.sync_name(true)),
            None => self
                .context
                .syncs
                .file_system(&place.dir, self.sync_name(true)),
        }
    }

    /// Compares with what was captured.
    pub(super) fn check_seen(
        &self,
        place: &Place,
        seen: Seen,
        with_ctime: bool,
    ) -> Result<Option<Node>, FileError> {
        let now = place.node()?;
        let is_same = match (seen, &now) {
            (Seen::Absent, None) => true,
            // Of what our own steps wrote into, only the number is left to ask for.
            (Seen::There(node), Some(now)) if self.rewritten.contains(&node.identity.ino) => {
                now.identity.ino == node.identity.ino
            }
            (Seen::There(node), Some(now)) => {
                // Our own steps touch change times: of an inode that another of its names was taken from.
                let is_touched = self.shared.contains(&node.identity.ino);
                let with_ctime = with_ctime && !is_touched;
                now.is_still(&node, with_ctime)
            }
            (Seen::Absent, Some(_)) | (Seen::There(_), None) => false,
        };
        if is_same {
            Ok(now)
        } else {
            Err(changed(&place.path()))
        }
    }

    fn note_shared(&mut self, seen: Seen) {
        if let Seen::There(node) = seen
            && node.is_shared
        {
            self.shared.insert(node.identity.ino);
        }
    }

    /// Puts away everything that was exchanged out: first what goes into slots, last what is dropped.
    pub(super) fn dispose_all(&mut self) -> Result<(), FileError> {
        let put_away: HashSet<usize> = self
            .done
            .iter()
            .filter_map(|done| match done {
                Done::Parked(index) | Done::Dropped(index) => Some(*index),
                Done::Made(_)
                | Done::Taken(_)
                | Done::Placed(_)
                | Done::Exchanged(_)
                | Done::Withdrawn(_)
                | Done::Moved(..)
                | Done::Retouched(_)
                | Done::Rewritten(_) => None,
            })
            .collect();
        let out: Vec<usize> = self
            .done
            .iter()
            .filter_map(|done| match done {
                Done::Exchanged(index) | Done::Withdrawn(index) | Done::Moved(index, true) => {
                    Some(*index)
                }
                Done::Made(_)
                | Done::Taken(_)
                | Done::Placed(_)
                | Done::Moved(_, false)
                | Done::Retouched(_)
                | Done::Rewritten(_)
                | Done::Parked(_)
                | Done::Dropped(_) => None,
            })
            .filter(|index| !put_away.contains(index))
            .collect();
        let is_kept = |index: &usize| {
            self.steps.get(*index).is_some_and(|step| {
                matches!(
                    &step.change,
                    Change::Set {
                        before: Image::Kept { .. },
                        ..
                    } | Change::Move {
                        replaced: Image::Kept { .. },
                        ..
                    }
                )
            })
        };
        let (kept, dropped): (Vec<usize>, Vec<usize>) = out.into_iter().partition(is_kept);
        for index in kept.into_iter().chain(dropped) {
            self.dispose(index)?;
        }
        Ok(())
    }

    pub(super) fn dispose(&mut self, index: usize) -> Result<(), FileError> {
        let Some((old, image)) = self.exchanged_out(index)? else {
            return Ok(());
        };
        match image {
            Image::Absent | Image::Unkept { .. } => return Ok(()),
            Image::Kept { slot, .. } => {
                let depot = slot.depot.clone();
                names::put_into_slot(&old, &Dir::of(&slot.path())?, image.is_directory())?;
                self.depots.insert(depot);
                self.done.push(Done::Parked(index));
            }
            Image::Directory { .. } => {
                names::rmdir(&old)?;
                self.done.push(Done::Dropped(index));
            }
            Image::File { .. }
            | Image::Symlink { .. }
            | Image::Special { .. }
            | Image::Linked { .. } => {
                names::unlink(&old)?;
                self.done.push(Done::Dropped(index));
            }
        }
        self.context.reach("file.disposed")
    }

    /// Gives the place and the image of what a step exchanged out.
    pub(super) fn exchanged_out(&self, index: usize) -> Result<Option<(Place, &Image)>, FileError> {
        let Some(step) = self.steps.get(index) else {
            return Ok(None);
        };
        match &step.change {
            Change::Set { path, before, .. } => {
                let place = Dir::of(path)?;
                let Some(stage) = self.stages.get(index) else {
                    return Ok(None);
                };
                let stage = place.dir.place(stage.file_name().unwrap_or_default());
                Ok(Some((stage, before)))
            }
            Change::Move { from, replaced, .. } => Ok(Some((Dir::of(from)?, replaced))),
            Change::Retouch { .. } | Change::Rewrite { .. } => Ok(None),
        }
    }

    /// Tells whether a later step puts something under a name.
    fn is_taken_later(&self, index: usize, path: &TargetPath) -> bool {
        let mut later = self.steps.iter().skip(index + 1);
        later.any(|step| match &step.change {
            Change::Set { path: other, .. } => other == path,
            Change::Move { to, .. } => to == path,
            Change::Retouch { .. } | Change::Rewrite { .. } => false,
        })
    }

    /// Tells whether a later step takes away or moves a directory above this one.
    pub(super) fn is_below_later(&self, index: usize, path: &TargetPath) -> bool {
        path.ancestors().any(|above| {
            self.taken_away
                .get(&above)
                .is_some_and(|last| *last > index)
        })
    }
}

/// Swaps two names; where the file system cannot, by way of a third name.
pub(crate) fn exchange(stage: &Place, place: &Place) -> Result<(), FileError> {
    if names::exchange(stage, place)? {
        return Ok(());
    }
    let mut third = stage.name.clone();
    third.push("-old");
    let third = stage.dir.place(&third);
    names::rename_to_free(place, &third)?;
    if let Err(error) = names::rename_to_free(stage, place) {
        names::rename_to_free(&third, place)?;
        return Err(error);
    }
    rustix::fs::renameat(&third.dir, &third.name, &stage.dir, &stage.name)
        .naming(&stage.path(), "name")
}

pub(super) fn changed(path: &TargetPath) -> FileError {
    FileError::Changed {
        path: path.to_string(),
    }
}

/// Says of the target what was found of another of its names. That nobody could look is not that it changed.
fn found_changed(error: FileError, path: &TargetPath) -> FileError {
    if matches!(error, FileError::Changed { .. }) {
        changed(path)
    } else {
        error
    }
}
