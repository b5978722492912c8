//! The way back of bytes that changed in place: into the same inode, so that all its names have them.

use backout_model::{Digest, OutcomeKind, TargetPath};

use super::prepare::Undo;
use super::rights::{gap_of, only_root, only_root_but_force};
use crate::file::compare::Current;
use crate::file::error::FileError;
use crate::file::execute::{Seen, Step};
use crate::file::judge::State;
use crate::file::recipe::{Change, Image, Kind, Written};
use crate::file::stage::Material;
use crate::file::sys::{Dir, Node, meta};
use crate::file::written::locate;

impl Undo<'_> {
    pub(super) fn take_back_rewrite(
        &mut self,
        (path, ino): (&TargetPath, u64),
        (before, after): (&Written, &Written),
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
            if self.is_forced() {
                return self.make_anew(&current, before, after);
            }
            return Ok(OutcomeKind::Conflict {
                why: "it is gone, or no file any more".to_owned(),
            });
        };
        if !before.is_in(place)?
            && let Some(why) = before.lacks(self.context)?
        {
            return Ok(OutcomeKind::Failed { why });
        }
        let (mut now, node) = self.keeper.keep_written(place)?;
        if before.meta.flags.is_some() {
            now.meta.flags = meta::flags_of(place.handle()?, node.kind);
        }
        let (mut before, mut outcome) = (before.clone(), outcome);
        if let Some(gap) = gap_of(&node, &before.meta) {
            if !self.is_forced() {
                let why = only_root_but_force(&gap);
                return Ok(OutcomeKind::Failed { why });
            }
            (before.meta.uid, before.meta.gid) = (node.uid, node.gid);
            let why = only_root(&gap);
            outcome = OutcomeKind::Incomplete { why };
        }
        let change = Change::Rewrite {
            path: path.clone(),
            ino: node.identity.ino,
            before: now,
            after: before,
        };
        self.steps.push(Step {
            seen: Seen::There(node),
            ..Step::new(0, change, Material::Image)
        });
        Ok(outcome)
    }

    /// Makes a file anew that is gone by all of its names, under the one that was written by.
    fn make_anew(
        &mut self,
        current: &Current,
        before: &Written,
        after: &Written,
    ) -> Result<OutcomeKind, FileError> {
        if let Some(why) = before.lacks(self.context)? {
            return Ok(OutcomeKind::Failed { why });
        }
        let digest = self.stored(before, &current.path)?;
        let image = Image::File {
            digest,
            size: before.size,
            stored: true,
            meta: before.meta.clone(),
            without: None,
            holes: before.layout()?,
        };
        let path = &current.path;
        let was = match current.node {
            Some(_) => "not the file any more",
            None => "gone",
        };
        self.keeper.notes.push(format!(
            "`{path}` was {was} and is made anew, as a file of its own"
        ));
        self.restore(current, &image, None, &after.image(), None)
    }

    /// Sees to it that the content store has what was in a file.
    fn stored(&self, written: &Written, path: &TargetPath) -> Result<Digest, FileError> {
        let Some(slot) = &written.slot else {
            return Ok(written.digest);
        };
        let mut copy = Dir::of(&slot.path())?.read()?;
        let stashed = self.context.stash.stash(self.id, &mut copy);
        let (digest, _) = stashed.map_err(|error| FileError::NoWayToKeep {
            path: path.to_string(),
            why: error.to_string(),
        })?;
        Ok(digest)
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
