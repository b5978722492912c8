//! The steps that are planned so far: a later entry of the batch may add to them, change them or take them out again.

use backout_model::TargetPath;

use super::{Planner, number_of};
use crate::file::error::FileError;
use crate::file::execute::{Seen, Step};
use crate::file::recipe::{Change, Image, Kind, Meta};
use crate::file::stage::Material;

impl Planner<'_> {
    /// Lets an empty directory live that was to be removed and made again; only its metadata may change.
    pub(super) fn revive_directory(&mut self, path: &TargetPath, wanted: &Meta) -> bool {
        let is_it = |step: &Step| match &step.change {
            Change::Set {
                path: other,
                before: Image::Directory { .. },
                ..
            } => other == path,
            Change::Set { .. }
            | Change::Move { .. }
            | Change::Retouch { .. }
            | Change::Rewrite { .. } => false,
        };
        let Some(index) = self.steps.iter().position(is_it) else {
            return false;
        };
        let step = self.steps.remove(index);
        if let Change::Set {
            path,
            before: Image::Directory { meta },
            ..
        } = step.change
        {
            let before = Meta {
                times: None,
                ..meta
            };
            let after = Meta {
                times: None,
                ..wanted.clone()
            };
            let change = Change::Retouch {
                path,
                before,
                after,
                node: Some(Kind::Directory),
            };
            let step = Step { change, ..step };
            self.steps.push(step);
        }
        self.index_again();
        true
    }

    pub(super) fn push_set(
        &mut self,
        path: &TargetPath,
        (before, seen): (Image, Seen),
        after: Image,
        material: Material,
    ) {
        self.sets.insert(path.clone(), self.steps.len());
        let change = Change::Set {
            path: path.clone(),
            before,
            after,
        };
        self.steps.push(Step {
            seen,
            ..Step::new(0, change, material)
        });
    }

    /// Forgets the planned steps about names below `path`.
    pub(super) fn drop_below(&mut self, path: &TargetPath) -> Result<(), FileError> {
        let entangled = || {
            Err(FileError::Entangled {
                path: path.to_string(),
            })
        };
        let is_below = |step: &Step| match &step.change {
            // By its other names it stays, and stays changed.
            Change::Retouch { path: other, .. } if other.is_below(path) && self.is_shared(step) => {
                entangled()
            }
            Change::Set { path: other, .. } if other.is_below(path) && self.is_first(other) => {
                entangled()
            }
            Change::Set { path: other, .. }
            | Change::Retouch { path: other, .. }
            | Change::Rewrite { path: other, .. } => Ok(other.is_below(path)),
            Change::Move { from, to, .. } if from.is_below(path) || to.is_below(path) => {
                entangled()
            }
            Change::Move { .. } => Ok(false),
        };
        let dropped: Result<Vec<bool>, FileError> = self.steps.iter().map(is_below).collect();
        let mut dropped = dropped?.into_iter();
        self.steps.retain(|_| dropped.next() != Some(true));
        self.index_again();
        Ok(())
    }

    /// Takes the planned change of a name's mode or owner out of the plan: what replaces it has its own.
    pub(super) fn drop_retouch(&mut self, path: &TargetPath) -> Result<Option<Step>, FileError> {
        let Some(index) = self.retouches.get(path).copied() else {
            return Ok(None);
        };
        self.take_out(index, path).map(Some)
    }

    /// Takes a step out of the plan, unless it is about a file that has other names.
    pub(super) fn take_out(&mut self, index: usize, path: &TargetPath) -> Result<Step, FileError> {
        let step = self.steps.get(index);
        if step.is_some_and(|step| self.is_shared(step)) {
            return Err(FileError::Entangled {
                path: path.to_string(),
            });
        }
        let step = self.steps.remove(index);
        self.index_again();
        Ok(step)
    }

    pub(super) fn index_again(&mut self) {
        self.sets.clear();
        self.retouches.clear();
        self.retouched.clear();
        self.moved_from.clear();
        self.moved_to.clear();
        for (index, step) in self.steps.iter().enumerate() {
            match &step.change {
                Change::Set { path, .. } => drop(self.sets.insert(path.clone(), index)),
                Change::Retouch { path, .. } => {
                    self.retouches.insert(path.clone(), index);
                    if let Seen::There(node) = step.seen {
                        self.retouched.insert(number_of(&node), index);
                    }
                }
                Change::Move { from, to, .. } => {
                    self.moved_from.insert(from.clone(), index);
                    self.moved_to.insert(to.clone(), index);
                }
                Change::Rewrite { .. } => {}
            }
        }
    }
}
