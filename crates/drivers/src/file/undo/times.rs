//! The times of the directories that an undo writes in.
//!
//! - A directory gets back the times that it had before the effect, if nothing of the effect stays in it and nobody else
//!   wrote there since.
//! - Nobody else: its time is the one that the effect left, or one that an undo of another part of it left, which found it
//!   like that. A directory that the effect removed is made by the first of them.
//! - While a part stays, the times are those of the undo: what reads a directory again when its time changes must see it.

use std::collections::{HashMap, HashSet};

use backout_model::TargetPath;
use backout_model::wide::Wide;

use super::prepare::Undo;
use crate::file::error::FileError;
use crate::file::recipe::{Change, FileCompletion, FileRecipe, Image, ParentTimes, Times};
use crate::file::sys::{Dir, meta};

impl Undo<'_> {
    /// Plans to give directories the times they had. If all of the effect goes, so do the times of a directory in which it
    /// changed nothing else.
    pub(super) fn put_back_times(
        &self,
        parents: &mut Vec<ParentTimes>,
        (recipe, completion): (&FileRecipe, &FileCompletion),
        stay: &[&Change],
        is_all: bool,
    ) -> Result<(), FileError> {
        let written: Vec<Written> = self.written_earlier()?;
        let stay: HashSet<TargetPath> = stay.iter().flat_map(|change| written_in(change)).collect();
        for (other, left) in std::iter::zip(&recipe.parents, &completion.parents) {
            let Some(Wide(left)) = *left else {
                continue;
            };
            if let Some(parent) = parents.iter_mut().find(|parent| parent.path == other.path) {
                let now = parent.before.mtime;
                if !stay.contains(&other.path) && is_ours(&written, &other.path, (left, now)) {
                    parent.after = Some(other.before);
                }
                continue;
            }
            let now = Dir::open(&other.path).and_then(|dir| dir.node());
            if let Ok(now) = now
                && is_all
                && left == now.times.mtime
                && now.times.mtime != other.before.mtime
            {
                parents.push(ParentTimes {
                    path: other.path.clone(),
                    before: now.times,
                    after: Some(other.before),
                });
            }
        }
        self.put_back_times_of_removed(parents, recipe, &written, &stay)
    }

    /// The same for directories that the effect removed and that an undo of another part has brought back.
    fn put_back_times_of_removed(
        &self,
        parents: &mut [ParentTimes],
        recipe: &FileRecipe,
        written: &[Written],
        stay: &HashSet<TargetPath>,
    ) -> Result<(), FileError> {
        let brought = self.brought_earlier()?;
        if brought.is_empty() {
            return Ok(());
        }
        let removed = recipe.changes.iter().filter_map(|change| match change {
            Change::Set {
                path,
                before: Image::Directory { meta },
                ..
            } => Some((path, meta.times?)),
            Change::Set { .. }
            | Change::Move { .. }
            | Change::Retouch { .. }
            | Change::Rewrite { .. } => None,
        });
        let removed: HashMap<&TargetPath, Times> = removed.collect();
        for parent in parents.iter_mut().filter(|parent| parent.after.is_none()) {
            let (path, now) = (&parent.path, parent.before.mtime);
            let is_ours = |(other, left): &(TargetPath, i128)| {
                other == path && is_ours(written, path, (*left, now))
            };
            if !stay.contains(path) && brought.iter().any(is_ours) {
                parent.after = removed.get(path).copied();
            }
        }
        Ok(())
    }

    /// Lists the directories that undos of other parts made, with the modification times that they left.
    fn brought_earlier(&self) -> Result<Vec<(TargetPath, i128)>, FileError> {
        let mut all = Vec::new();
        for effect in self.how.earlier {
            let recipe = FileRecipe::decode(&effect.recipe)?;
            let completion = FileCompletion::of(effect)?;
            for (index, change) in recipe.changes.iter().enumerate() {
                if change.is_new_directory()
                    && let Some(left) = completion.identity(index)
                {
                    all.push((change.path().clone(), left.mtime));
                }
            }
        }
        Ok(all)
    }

    /// Leaves the times of directories that only somebody else may set, and says so.
    pub(super) fn leave_times_of_others(&mut self, parents: &mut [ParentTimes]) {
        let node = |path: &TargetPath| Dir::open(path).and_then(|dir| dir.node());
        for parent in parents.iter_mut().filter(|parent| parent.after.is_some()) {
            if node(&parent.path).is_ok_and(|node| !meta::may_set_times(&node)) {
                parent.after = None;
                let path = &parent.path;
                self.keeper.notes.push(format!(
                    "the times of the directory `{path}` stay as they are: only its owner may set them"
                ));
            }
        }
    }

    /// Lists what undos of other parts did to the times of directories.
    fn written_earlier(&self) -> Result<Vec<Written>, FileError> {
        let mut all = Vec::new();
        for effect in self.how.earlier {
            let recipe = FileRecipe::decode(&effect.recipe)?;
            let completion = FileCompletion::of(effect)?;
            let each = std::iter::zip(recipe.parents, completion.parents);
            all.extend(each.filter_map(|(parent, left)| {
                Some(Written {
                    path: parent.path,
                    found: parent.before.mtime,
                    left: left?.0,
                })
            }));
        }
        Ok(all)
    }
}

/// A directory in which an earlier undo wrote, with the modification times that it found and left.
struct Written {
    path: TargetPath,
    found: i128,
    left: i128,
}

/// Tells whether the time `now` of a directory goes back to the one that an effect `left` by our own hands alone.
fn is_ours(written: &[Written], path: &TargetPath, (left, now): (i128, i128)) -> bool {
    let mut at = now;
    for _ in 0..=written.len() {
        if at == left {
            return true;
        }
        let is_it = |it: &&Written| it.path == *path && it.left == at;
        let Some(earlier) = written.iter().find(is_it) else {
            return false;
        };
        at = earlier.found;
    }
    false
}

/// Names the directories in which a change writes.
fn written_in(change: &Change) -> impl Iterator<Item = TargetPath> {
    let from = match change {
        Change::Move { from, .. } => from.parent(),
        Change::Set { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => None,
    };
    change.path().parent().into_iter().chain(from)
}
