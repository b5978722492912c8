//! The way back of bytes that changed in place: into the same inode, so that all its names have them.

use backout_model::{OutcomeKind, TargetPath};

use super::prepare::Undo;
use crate::file::compare::Current;
use crate::file::error::FileError;
use crate::file::execute::{Seen, Step};
use crate::file::judge::State;
use crate::file::recipe::{Change, Kind, Written};
use crate::file::stage::Material;
use crate::file::sys::{Node, meta};
use crate::file::written::locate;

impl Undo<'_> {
    pub(super) fn take_back_rewrite(
        &mut self,
        (path, ino): (&TargetPath, u64),
        before: &Written,
        state: State,
    ) -> Result<OutcomeKind, FileError> {
        let outcome = match (state, self.is_forced()) {
            (State::Before, _) if !self.is_untimely((path, ino), before)? => {
                return Ok(OutcomeKind::AlreadyGone);
            }
            (State::Other { why }, false) => return Ok(OutcomeKind::Conflict { why }),
            (State::Other { why }, true) => OutcomeKind::Overwritten { why },
            (State::Before | State::After, _) => OutcomeKind::Restored,
        };
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
        let (mut now, node) = self.keeper.keep_written(place)?;
        if before.meta.flags.is_some() {
            now.meta.flags = meta::flags_of(place.handle()?, node.kind);
        }
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
        Ok(outcome)
    }

    /// Tells whether an unfinished write left the right bytes with the time at which they were written.
    fn is_untimely(
        &self,
        (path, ino): (&TargetPath, u64),
        wanted: &Written,
    ) -> Result<bool, FileError> {
        if !self.how.is_unfinished {
            return Ok(false);
        }
        let node = Current::at(&locate(self.changes, path, ino)?)?.node;
        let is_other = |node: Node| {
            let times = wanted.meta.times;
            times.is_some_and(|times| times.mtime != node.times.mtime)
        };
        Ok(node
            .filter(|node| node.identity.ino == ino)
            .is_some_and(is_other))
    }
}
