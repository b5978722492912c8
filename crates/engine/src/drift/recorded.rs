//! What was recorded of something that differs, and where that can be had.
//!
//! An operation tells what it left. The bytes of that may be with a later operation that replaced them, or with an earlier one that wrote
//! the same file: of a tree that came back as one nobody notes the bytes a second time.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use backout_files::{FileChange, Was};
use backout_model::drift::DriftKind;
use backout_model::{OperationId, TargetPath};

use super::sweep::Candidate;
use crate::{Engine, EngineError};

impl Engine {
    /// Says what was left of each file that differs, in the order of these; none of what is no file, or of which nobody told.
    pub(super) fn recorded_of(
        &self,
        members: &[Candidate],
    ) -> Result<Vec<Option<FileChange>>, EngineError> {
        let mut known: BTreeMap<OperationId, BTreeMap<TargetPath, FileChange>> = BTreeMap::new();
        let mut all = Vec::with_capacity(members.len());
        for it in members {
            let Some(name) = it.told_name() else {
                all.push(None);
                continue;
            };
            let sides = match known.entry(it.by) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let sides = self.sides_of(&self.store.effect(it.by)?)?.into_iter();
                    entry.insert(sides.map(|side| (side.path.clone(), side)).collect())
                }
            };
            all.push(sides.get(name).cloned());
        }
        Ok(all)
    }

    /// Says what was left of a file that differs.
    pub(super) fn recorded(&self, it: &Candidate) -> Result<Option<FileChange>, EngineError> {
        let all = self.recorded_of(std::slice::from_ref(it))?;
        Ok(all.into_iter().next().flatten())
    }

    /// Gives what was left with bytes that can be had, if anybody has them.
    pub(super) fn at_hand(&self, it: &Candidate, was: Was) -> Result<Was, EngineError> {
        if !was.is_file() || was.is_dress() || self.files.is_at_hand(&was)? {
            return Ok(was);
        }
        let operation = self.store.operation(it.by)?;
        let (Some(operation), Some(name)) = (operation, it.told_name()) else {
            return Ok(was);
        };
        let kept = self.kept_elsewhere(&operation, name, &was)?;
        Ok(kept.map_or_else(|| was.clone(), |kept| was.kept_as(kept)))
    }

    /// Tells whether all of these can be made what was recorded.
    pub(super) fn can_restore(&self, members: &[Candidate]) -> bool {
        let Ok(recorded) = self.recorded_of(members) else {
            return false;
        };
        let each = std::iter::zip(members, recorded);
        each.into_iter()
            .all(|(it, change)| self.can_restore_one(it, change.and_then(|it| it.after)))
    }

    fn can_restore_one(&self, it: &Candidate, was: Option<Was>) -> bool {
        let key = it.differing.target.key();
        let Some(path) = key.file() else {
            return true;
        };
        if !key.parts().is_empty() {
            return path.as_path().exists();
        }
        if !is_straight(path) {
            return false;
        }
        let Some(was) = was else {
            return it.differing.kind == DriftKind::Added;
        };
        if was.is_dress() {
            let now = self.files.now(path).ok().flatten();
            return now.is_some_and(|now| now.kind == was.kind);
        }
        if !was.is_file() {
            return was.meta.is_some();
        }
        let had = self.at_hand(it, was);
        had.is_ok_and(|was| self.files.is_at_hand(&was).unwrap_or_default())
    }
}

impl Candidate {
    /// Gives the name that the operation tells a file by; none if it is no file.
    pub(super) fn told_name(&self) -> Option<&TargetPath> {
        let key = self.differing.target.key();
        let now = key.file().filter(|_| key.parts().is_empty());
        now.map(|now| self.differing.told_as.as_ref().unwrap_or(now))
    }
}

/// Tells whether no link stands between the root and a name, as far as there are directories.
pub(super) fn is_straight(path: &TargetPath) -> bool {
    link_above(path).is_none()
}

/// Finds a directory above a name that is a link.
pub(super) fn link_above(path: &TargetPath) -> Option<TargetPath> {
    path.ancestors().find(|above| above.as_path().is_symlink())
}
