//! The way back of bytes that changed in place: into the same inode, so that all its names have them.

use backout_model::ports::OnConflict;
use backout_model::{OutcomeKind, TargetPath};

use super::prepare::Undo;
use super::recover::{Aim, Settling};
use crate::file::compare::Current;
use crate::file::error::FileError;
use crate::file::execute::{Seen, Step};
use crate::file::judge::State;
use crate::file::recipe::{Change, Kind, Written};
use crate::file::stage::Material;
use crate::file::sys::Node;
use crate::file::written::locate;

impl Undo<'_> {
    pub(super) fn take_back_rewrite(
        &mut self,
        (path, ino): (&TargetPath, u64),
        before: &Written,
        state: State,
    ) -> Result<OutcomeKind, FileError> {
        match (state, self.on_conflict) {
            (State::Before, _) => return Ok(OutcomeKind::AlreadyGone),
            (State::Other { why }, OnConflict::Refuse | OnConflict::Merge) => {
                return Ok(OutcomeKind::Conflict { why });
            }
            (State::After, _) | (State::Other { .. }, OnConflict::Force) => {}
        }
        let current = Current::at(&locate(self.changes, path, ino)?)?;
        let there = current.node.filter(|node| node.kind == Kind::File);
        let (Some(place), Some(_)) = (&current.place, there) else {
            return Ok(OutcomeKind::Conflict {
                why: "it is gone, or no file any more".to_owned(),
            });
        };
        if !before.is_in(place)?
            && let Some(why) = before.lacks(self.tools)?
        {
            return Ok(OutcomeKind::Failed { why });
        }
        let (now, node) = self.keeper.keep_written(place)?;
        let euid = rustix::process::geteuid().as_raw();
        if euid != 0 && now.meta.uid != before.meta.uid {
            let (uid, gid) = (before.meta.uid, before.meta.gid);
            let why = format!("owner {uid}:{gid} can only be restored by root");
            return Ok(OutcomeKind::Failed { why });
        }
        let change = Change::Rewrite {
            path: path.clone(),
            ino: node.identity.ino,
            before: now,
            after: before.clone(),
        };
        self.steps.push(Step {
            seen: Seen::There(node),
            ..Step::new(0, change, Material::Image)
        });
        Ok(OutcomeKind::Restored)
    }
}

impl Settling<'_> {
    /// Gives the inode of a rewrite, if it is anywhere to be found.
    pub(super) fn located(&self, path: &TargetPath, ino: u64) -> Result<Option<Node>, FileError> {
        let node = Current::at(&locate(&self.recipe.changes, path, ino)?)?.node;
        Ok(node.filter(|node| node.identity.ino == ino))
    }

    /// Tells whether an unfinished write left the right bytes with the time at which they were written.
    pub(super) fn is_untimely(&self, change: &Change, aim: Aim) -> Result<bool, FileError> {
        let Change::Rewrite {
            path,
            ino,
            before,
            after,
        } = change
        else {
            return Ok(false);
        };
        let wanted = if aim == Aim::Before { before } else { after };
        let node = self.located(path, *ino)?;
        let is_other = node.is_some_and(|node| {
            let times = wanted.meta.times;
            times.is_some_and(|times| times.mtime != node.times.mtime)
        });
        Ok(is_other && !self.has_completion)
    }

    pub(super) fn rewrite_step(
        &self,
        (index, path, ino): (usize, &TargetPath, u64),
        was: &Written,
        wanted: &Written,
    ) -> Result<Result<Step, OutcomeKind>, FileError> {
        let failed = |why: String| Ok(Err(OutcomeKind::Failed { why }));
        let current = Current::at(&locate(&self.recipe.changes, path, ino)?)?;
        let (Some(place), Some(node)) = (&current.place, current.node) else {
            return failed("it is gone".to_owned());
        };
        if !wanted.is_in(place)?
            && let Some(why) = wanted.lacks(self.tools)?
        {
            return failed(why);
        }
        let change = Change::Rewrite {
            path: path.clone(),
            ino,
            before: was.clone(),
            after: wanted.clone(),
        };
        Ok(Ok(Step {
            seen: Seen::There(node),
            ..Step::new(index, change, Material::Image)
        }))
    }
}
