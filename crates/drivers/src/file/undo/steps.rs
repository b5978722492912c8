//! The steps that settle one change of an unfinished effect, back or forward.

use backout_model::{OutcomeKind, TargetPath};

use super::obtain::obtain;
use super::put_back_changed;
use super::recover::{Aim, Settling};
use crate::file::compare::Current;
use crate::file::error::FileError;
use crate::file::execute::{Seen, Step, exchange};
use crate::file::judge::State;
use crate::file::keep::meta_of;
use crate::file::recipe::{Change, Image, Meta};
use crate::file::stage::Material;
use crate::file::sys::Dir;

impl Settling<'_> {
    /// Gives the steps that settle one change: none if it is settled, or the outcome if it cannot be.
    pub(super) fn steps(
        &self,
        index: usize,
        change: &Change,
        state: &State,
        aim: Aim,
    ) -> Result<Result<Vec<Step>, OutcomeKind>, FileError> {
        match (state, aim) {
            (State::Before, Aim::Before) | (State::After, Aim::After)
                if !self.is_untimely(change, aim)? =>
            {
                return Ok(Ok(Vec::new()));
            }
            (State::Other { why }, _) if !self.is_torn(change)? => {
                return Ok(Err(OutcomeKind::Conflict { why: why.clone() }));
            }
            (State::Before | State::After | State::Other { .. }, _) => {}
        }
        match change {
            Change::Set {
                path,
                before,
                after,
            } => {
                let (now, wanted) = if aim == Aim::Before {
                    (after, before)
                } else {
                    (before, after)
                };
                self.set_step(index, path, now, wanted)
                    .map(|step| step.map(|step| vec![step]))
            }
            Change::Move {
                from, to, replaced, ..
            } => {
                let (from, to) = if aim == Aim::Before {
                    (to, from)
                } else {
                    (from, to)
                };
                self.move_steps(index, (from, to), replaced, aim)
            }
            Change::Retouch {
                path,
                before,
                after,
                ..
            } => {
                let (was, wanted) = if aim == Aim::Before {
                    (after, before)
                } else {
                    (before, after)
                };
                retouch_step(index, path, was, wanted).map(|step| step.map(|step| vec![step]))
            }
            Change::Rewrite {
                path,
                ino,
                before,
                after,
            } => {
                let (was, wanted) = if aim == Aim::Before {
                    (after, before)
                } else {
                    (before, after)
                };
                self.rewrite_step((index, path, *ino), was, wanted)
                    .map(|step| step.map(|step| vec![step]))
            }
        }
    }

    fn set_step(
        &self,
        index: usize,
        path: &TargetPath,
        now: &Image,
        wanted: &Image,
    ) -> Result<Result<Step, OutcomeKind>, FileError> {
        let obtained = match obtain(self.tools, path, wanted, true, &self.recipe.rewritten())? {
            Ok(obtained) => obtained,
            Err(why) => return Ok(Err(OutcomeKind::Failed { why })),
        };
        // In an old tree that is about to go, or in a directory about to come, nothing is met.
        let node = Current::at(path)?.node.filter(|_| !now.is_absent());
        let before = if node.is_some() {
            now.clone()
        } else {
            Image::Absent
        };
        let change = Change::Set {
            path: path.clone(),
            before,
            after: obtained.image,
        };
        let seen = node.map_or(Seen::Absent, Seen::There);
        Ok(Ok(Step {
            seen,
            ..Step::new(index, change, obtained.material)
        }))
    }

    fn move_steps(
        &self,
        index: usize,
        (from, to): (&TargetPath, &TargetPath),
        replaced: &Image,
        aim: Aim,
    ) -> Result<Result<Vec<Step>, OutcomeKind>, FileError> {
        let (at_from, at_to) = (Current::at(from)?, Current::at(to)?);
        let Some(node) = at_from.node else {
            // Torn, and already back under its old name: only what it had replaced is missing.
            return self
                .replaced_step(index, from, replaced)
                .map(|step| step.map(|step| vec![step]));
        };
        if aim == Aim::Before && at_to.node.is_some() && !replaced.is_absent() {
            // An exchange that was cut short: exchanging once more is all there is to do.
            exchange(&Dir::of(from)?, &Dir::of(to)?)?;
            for path in [from, to] {
                self.tools.syncs.dir(&Dir::of(path)?.dir, "undo.dir")?;
            }
            return Ok(Ok(Vec::new()));
        }
        let there = match at_to.node {
            Some(_) if aim == Aim::After => replaced.clone(),
            Some(_) | None => Image::Absent,
        };
        let change = Change::Move {
            from: from.clone(),
            to: to.clone(),
            node: node.kind,
            identity: node.identity,
            replaced: there,
        };
        let met = at_to
            .node
            .filter(|_| aim == Aim::After && !replaced.is_absent());
        let seen_at_new = met.map_or(Seen::Absent, Seen::There);
        let step = Step::new(index, change, Material::Image);
        let mut steps = vec![Step {
            seen: Seen::There(node),
            seen_at_new,
            ..step
        }];
        if aim == Aim::Before && !replaced.is_absent() {
            match self.replaced_step(index, from, replaced)? {
                Ok(step) => steps.push(step),
                Err(kind) => return Ok(Err(kind)),
            }
        }
        Ok(Ok(steps))
    }

    /// Gives the step that brings back what a move had replaced.
    fn replaced_step(
        &self,
        index: usize,
        path: &TargetPath,
        replaced: &Image,
    ) -> Result<Result<Step, OutcomeKind>, FileError> {
        Ok(
            match obtain(self.tools, path, replaced, true, &self.recipe.rewritten())? {
                Ok(obtained) => {
                    let (before, after) = (Image::Absent, obtained.image);
                    let change = Change::Set {
                        path: path.clone(),
                        before,
                        after,
                    };
                    Ok(Step::new(index, change, obtained.material))
                }
                Err(why) => Err(OutcomeKind::Failed { why }),
            },
        )
    }

    /// Tells whether a name is free only because a change of two steps was cut short between them: a
    /// swap on a file system that cannot exchange names, or a move that had replaced something.
    fn is_torn(&self, change: &Change) -> Result<bool, FileError> {
        match change {
            Change::Set {
                path,
                before,
                after,
            } => {
                let is_free = Current::at(path)?.node.is_none();
                let is_swap = !before.is_absent() && !after.is_absent();
                Ok(!self.has_completion && is_free && is_swap)
            }
            Change::Move {
                from,
                to,
                node,
                identity,
                replaced,
            } => {
                let is_free = Current::at(to)?.node.is_none();
                let old = Current::at(from)?.node;
                let is_there = old.is_some_and(|old| old.is_kept(*node, identity));
                Ok(is_free && is_there && !replaced.is_absent())
            }
            // Writing is not one step: what is in the inode may be neither.
            Change::Rewrite { path, ino, .. } => {
                Ok(!self.has_completion && self.located(path, *ino)?.is_some())
            }
            Change::Retouch { .. } => Ok(false),
        }
    }
}

fn retouch_step(
    index: usize,
    path: &TargetPath,
    was: &Meta,
    wanted: &Meta,
) -> Result<Result<Step, OutcomeKind>, FileError> {
    let current = Current::at(path)?;
    let (Some(place), Some(node)) = (&current.place, current.node) else {
        return Ok(Err(OutcomeKind::Failed {
            why: "it is gone".to_owned(),
        }));
    };
    let mut now = meta_of(place, &node)?;
    if !was.changes_times_to(wanted) {
        now.times = None;
    }
    let wanted = put_back_changed(&now, wanted, was);
    let change = Change::Retouch {
        path: path.clone(),
        before: now,
        after: wanted,
        node: Some(node.kind),
    };
    let step = Step::new(index, change, Material::Image);
    Ok(Ok(Step {
        seen: Seen::There(node),
        ..step
    }))
}
