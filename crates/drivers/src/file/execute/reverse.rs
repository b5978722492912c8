//! Taking back what a failed operation did so far, newest first.
//!
//! What somebody else changed meanwhile is not touched: it stays, what it replaced is put away where the recipe says, and
//! the operation is left half done, for a recovery to decide about.

use std::collections::HashSet;

use backout_model::TargetPath;

use super::swap::{changed, exchange};
use super::{Done, Run, Step};
use crate::file::compare::Current;
use crate::file::error::FileError;
use crate::file::listing::has_strangers;
use crate::file::recipe::{Change, Image, Kind, Times};
use crate::file::stage::Material;
use crate::file::sys::{Dir, Place, meta, names};

impl Run<'_> {
    /// Takes everything back, and gives the error that says how that went.
    pub(super) fn reverse(&mut self, cause: FileError, times: &[(TargetPath, Times)]) -> FileError {
        let mut failed = None;
        let mut stays = self.cannot_be_made_again();
        // A step in place may have been cut short: what it left is neither before nor after.
        let mut is_cut = true;
        while let Some(done) = self.done.pop() {
            let index = done.index();
            if stays.contains(&index) {
                continue;
            }
            let is_torn = std::mem::take(&mut is_cut);
            if let Err(error) = self.take_back_ours(&done, is_torn) {
                let path = self.steps.get(index);
                let path = path.map(|step| step.change.path().to_string());
                let why = if matches!(error, FileError::Changed { .. }) {
                    "somebody else changed it meanwhile".to_owned()
                } else {
                    error.to_string()
                };
                failed.get_or_insert((path.unwrap_or_default(), why));
                stays.extend(self.carried_by(index));
                self.put_away_again(&done);
            }
        }
        // Deepest first: giving a directory its times touches no other.
        for (path, was) in times.iter().rev() {
            let _as_far_as_possible = super::finish::set_times(path, *was);
        }
        let _synced = self.sync_all();
        match failed {
            None => cause,
            Some((path, putting_back)) => FileError::HalfDone {
                path,
                putting_back,
                cause: Box::new(cause),
            },
        }
    }

    /// Takes one thing back, unless somebody else has changed it since.
    fn take_back_ours(&mut self, done: &Done, is_torn: bool) -> Result<(), FileError> {
        let index = done.index();
        let Some(step) = self.steps.get(index) else {
            return Ok(());
        };
        let path = step.change.path();
        let current = || Current::at(path);
        let is_ours = match (done, &step.change) {
            (Done::Placed(_) | Done::Exchanged(_), _) => {
                let current = current()?;
                !self.is_by_others(index, step, &current)
                    && self.wrong(step, &current)?.is_none()
                    && self.has_only_ours(index)?
            }
            (Done::Moved(..), _) => self.wrong(step, &current()?)?.is_none(),
            (Done::Retouched(_), _) => is_torn || self.wrong(step, &current()?)?.is_none(),
            (Done::Rewritten(_), Change::Rewrite { after, .. }) => {
                is_torn || after.is_in(&Dir::of(path)?)?
            }
            _ => true,
        };
        if is_ours {
            self.take_back(done)
        } else {
            Err(changed(path))
        }
    }

    /// Tells whether a new directory holds what the operation made in it, and nothing else.
    fn has_only_ours(&self, index: usize) -> Result<bool, FileError> {
        let steps = self.carried_by(index);
        let steps: Vec<_> = steps.filter_map(|index| self.steps.get(index)).collect();
        let Some(root) = steps.first().filter(|step| step.change.is_new_directory()) else {
            return Ok(true);
        };
        // A tree that was kept whole is known by its number.
        let is_whole = |step: &&Step| {
            matches!(&step.change, Change::Set { after: Image::Kept { node, .. }, .. }
                if *node == Kind::Directory)
        };
        if !steps.iter().any(is_whole) {
            let own = steps.iter().map(|step| step.change.path().clone());
            if has_strangers(root.change.path(), &own.collect())? {
                return Ok(false);
            }
        }
        for step in steps {
            if let Change::Set { path, after, .. } = &step.change
                && Current::at(path)?.differs(after, None)?.is_some()
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lists a step and those that arrived inside of what it placed.
    fn carried_by(&self, index: usize) -> impl Iterator<Item = usize> {
        let root = self.steps.get(index).map(|step| step.change.path());
        let is_inside = |other: &usize| {
            let path = self.steps.get(*other).map(|step| step.change.path());
            let is_below = matches!((path, root), (Some(path), Some(root)) if path.is_below(root));
            is_below && self.carried.get(*other) == Some(&true)
        };
        let inside: Vec<usize> = (0..self.steps.len()).filter(is_inside).collect();
        std::iter::once(index).chain(inside)
    }

    /// Puts away what a step had exchanged out, where its recipe finds it: the name it had belongs to somebody else now.
    fn put_away_again(&mut self, done: &Done) {
        if let Done::Exchanged(index) | Done::Withdrawn(index) = done {
            // If that fails it stands under its temporary name, which a recovery finds, too.
            let _put_away = self.dispose(*index);
        }
    }

    /// Finds the steps whose old file is gone and whose bytes nobody stored: a command's, which a recovery takes back. What
    /// is in place now stays, rather than an empty file.
    fn cannot_be_made_again(&self) -> HashSet<usize> {
        let is_lost = |index: &usize| {
            let change = self.steps.get(*index).map(|step| &step.change);
            matches!(
                change,
                Some(Change::Set {
                    before: Image::File { stored: false, .. },
                    ..
                })
            )
        };
        let dropped = self.done.iter().filter_map(|done| {
            if let Done::Dropped(index) = done {
                Some(*index)
            } else {
                None
            }
        });
        dropped.filter(is_lost).collect()
    }

    fn take_back(&mut self, done: &Done) -> Result<(), FileError> {
        let Some(step) = self.steps.get(done.index()) else {
            return Ok(());
        };
        match (done, &step.change) {
            (Done::Made(index), _) => {
                let place = self.stage(*index)?;
                let is_directory = matches!(
                    &step.change,
                    Change::Set {
                        after: Image::Directory { .. },
                        ..
                    }
                );
                if is_directory {
                    names::rmdir(&place)
                } else {
                    names::unlink(&place)
                }
            }
            (
                Done::Taken(index),
                Change::Set {
                    after: Image::Kept { slot, node, .. },
                    ..
                },
            ) => {
                let slot = Dir::of(&slot.path())?;
                names::put_into_slot(&self.stage(*index)?, &slot, *node == Kind::Directory)
            }
            (Done::Placed(index), Change::Set { path, .. }) => {
                names::rename_to_free(&Dir::of(path)?, &self.stage(*index)?)
            }
            (Done::Exchanged(index), Change::Set { path, .. }) => {
                exchange(&self.stage(*index)?, &Dir::of(path)?)
            }
            (Done::Withdrawn(index), Change::Set { path, .. }) => {
                names::rename_to_free(&self.stage(*index)?, &Dir::of(path)?)
            }
            (Done::Moved(_, was_exchanged), Change::Move { from, to, .. }) => {
                let (old, new) = (Dir::of(from)?, Dir::of(to)?);
                if *was_exchanged {
                    exchange(&old, &new)
                } else {
                    names::rename_to_free(&new, &old)
                }
            }
            (Done::Retouched(_), Change::Retouch { path, before, .. }) => {
                let place = Dir::of(path)?;
                let Some(node) = place.node()? else {
                    return Ok(());
                };
                meta::write(place.handle()?, node.kind, before, path).map(drop)
            }
            (Done::Rewritten(_), Change::Rewrite { path, before, .. }) => {
                self.put_back_written(path, before)
            }
            (Done::Parked(index), _) => {
                let Some((old, Image::Kept { slot, .. })) = self.exchanged_out(*index)? else {
                    return Ok(());
                };
                names::rename_to_free(&Dir::of(&slot.path())?, &old)
            }
            (Done::Dropped(index), change) => self.remake(*index, change),
            _ => Ok(()),
        }
    }

    /// Makes again what was dropped, from its image, where it was when it was dropped.
    fn remake(&mut self, index: usize, change: &Change) -> Result<(), FileError> {
        let (image, at) = match change {
            Change::Set { before, .. } => (before, None),
            Change::Move { from, replaced, .. } => (replaced, Some(from.clone())),
            Change::Retouch { .. } | Change::Rewrite { .. } => return Ok(()),
        };
        let stage = self.stages.get_mut(index);
        let previous = match (stage, at) {
            (Some(stage), Some(at)) => Some(std::mem::replace(stage, at)),
            _ => None,
        };
        // Making notes itself as done; that is not an effect of the operation.
        let length = self.done.len();
        let made = self.make(index, image, &Material::Stored);
        self.done.truncate(length);
        if let Some(previous) = previous
            && let Some(stage) = self.stages.get_mut(index)
        {
            *stage = previous;
        }
        made?;
        if let (Image::Directory { meta }, Some(stage)) = (image, self.stages.get(index)) {
            let place = Dir::of(stage)?;
            meta::write(
                place.handle()?,
                crate::file::recipe::Kind::Directory,
                meta,
                stage,
            )?;
        }
        Ok(())
    }

    fn stage(&self, index: usize) -> Result<Place, FileError> {
        let stage = self.stages.get(index);
        stage.map_or_else(
            || {
                Err(FileError::Unusable {
                    path: index.to_string(),
                })
            },
            Dir::of,
        )
    }
}

impl Done {
    const fn index(&self) -> usize {
        match self {
            Self::Made(index)
            | Self::Taken(index)
            | Self::Placed(index)
            | Self::Exchanged(index)
            | Self::Withdrawn(index)
            | Self::Moved(index, _)
            | Self::Retouched(index)
            | Self::Rewritten(index)
            | Self::Parked(index)
            | Self::Dropped(index) => *index,
        }
    }
}
