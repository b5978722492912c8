//! Phase C: the second look. What is at a name is what was meant, or everything goes back.
//!
//! What somebody else made of a name since is theirs: it is told, and nothing goes back for it.

use std::collections::HashMap;

use backout_files::inode::differs_where_changed;
use backout_model::{OutcomeKind, TargetOutcome, TargetPath};

use super::{Purpose, Run, Step};
use crate::file::before_image::INLINE_BYTES_MAX;
use crate::file::compare::{Current, differs_in_kind};
use crate::file::error::FileError;
use crate::file::plan::targets_of;
use crate::file::recipe::{Change, Image, Kind};
use crate::file::sys::{Nearby, Node};

impl Run<'_> {
    /// Looks at every name that a step has changed and no later one changes again.
    pub(super) fn check_all(&mut self) -> Result<(), FileError> {
        let last = last_on(self.steps);
        let mut near = Nearby::default();
        for (index, step) in self.steps.iter().enumerate() {
            let current = Current::near(&mut near, step.change.path())?;
            let mut found = None;
            if self.is_final(index, step, &last) {
                match self.wrong(step, &current)? {
                    None => found = current.node,
                    Some(_) if self.is_by_others(index, step, &current) => {
                        self.by_others.insert(index);
                    }
                    Some(why) => {
                        let path = current.path.to_string();
                        return Err(FileError::Damaged { path, why });
                    }
                }
            }
            self.found.push(found);
            self.context.check_stopped()?;
        }
        self.context.reach("file.checked")
    }

    fn is_final(&self, index: usize, step: &Step, last: &HashMap<&TargetPath, usize>) -> bool {
        let path = step.change.path();
        let is_last = last.get(path).is_none_or(|last| *last == index);
        is_last && !self.is_below_later(index, path)
    }

    /// Says how what is at the name of a step is not what the step put there.
    pub(super) fn wrong(
        &self,
        step: &Step,
        current: &Current,
    ) -> Result<Option<String>, FileError> {
        Ok(match &step.change {
            Change::Set { path, after, .. } => {
                let is_gap = self.gaps.iter().any(|(other, _)| other == path);
                self.wrong_with(current, after)?.filter(|_| !is_gap)
            }
            Change::Move { identity, .. } => {
                let number = current.node.map(|node| node.identity.ino);
                (number != Some(identity.ino)).then(|| "something else has its name".to_owned())
            }
            Change::Retouch { before, after, .. } => match (&current.place, &current.node) {
                (Some(place), Some(node)) if !node.is_shared => {
                    let now = current.meta_like(place, node, after)?;
                    differs_where_changed(&now, after, before)
                }
                (Some(_), Some(_)) => None,
                (_, _) => Some("it is gone".to_owned()),
            },
            // Read back when it was written: a later step may have taken it elsewhere.
            Change::Rewrite { .. } => None,
        })
    }

    /// Tells whether it is somebody else who changed a name since a step of ours put something there, or took it away.
    pub(super) fn is_by_others(&self, index: usize, step: &Step, current: &Current) -> bool {
        // What arrived inside of a new directory was not looked at by itself.
        if self.carried.get(index) == Some(&true) {
            return false;
        }
        match (&step.change, self.placed.get(&index), &current.node) {
            // The name was free, and somebody took it; or it was not, and is. What was moved had its new name.
            (Change::Set { .. }, None, Some(_))
            | (Change::Set { .. }, Some(_), None)
            | (Change::Move { .. }, ..) => true,
            (Change::Set { .. }, Some(placed), Some(now)) => {
                let is_touched = self.shared.contains(&now.identity.ino);
                !now.is_still(placed, !is_touched)
            }
            (Change::Set { .. }, None, None)
            | (Change::Retouch { .. } | Change::Rewrite { .. }, ..) => false,
        }
    }

    /// Says how what is there is not what was meant.
    fn wrong_with(&self, current: &Current, wanted: &Image) -> Result<Option<String>, FileError> {
        match (wanted, self.purpose, &current.place, &current.node) {
            (Image::Absent, ..) | (_, _, _, None) => current.differs(wanted, None),
            // Of what our own steps wrote into, only the number is left to ask for.
            (Image::Kept { identity, .. }, _, _, Some(node))
                if self.rewritten.contains(&identity.ino) =>
            {
                Ok((node.identity.ino != identity.ino).then(|| "it is another file".to_owned()))
            }
            (_, Purpose::Undo, ..) => current.differs(&as_shared(current, wanted)?, None),
            // Its bytes were read when they were staged; few are read again.
            (Image::File { digest, size, .. }, Purpose::Apply, Some(place), Some(node)) => {
                let other = differs_in_kind(node, Kind::File);
                if other.is_some() || *size > INLINE_BYTES_MAX || self.is_as_made(node) {
                    let is_same = node.identity.size == *size;
                    return Ok(other.or((!is_same).then(|| "it has another size".to_owned())));
                }
                current.differs_in_bytes(place, node, digest, *size)
            }
            (Image::Directory { .. }, Purpose::Apply, _, Some(node)) => {
                Ok(differs_in_kind(node, Kind::Directory))
            }
            (Image::Symlink { .. }, Purpose::Apply, _, Some(node)) => {
                Ok(differs_in_kind(node, Kind::Symlink))
            }
            (_, Purpose::Apply, ..) => Ok(None),
        }
    }

    /// Tells whether a new file has the stamps that it had when its bytes were written: then these need not be read again.
    fn is_as_made(&self, node: &Node) -> bool {
        let made = self.made.get(&node.identity.ino);
        made.is_some_and(|made| node.is_still(made, true))
    }

    /// Finds what somebody else has changed since the second look.
    pub(super) fn unlike(&self, now: &[Option<Node>]) -> Vec<TargetOutcome> {
        let looked = std::iter::zip(self.steps, std::iter::zip(&self.found, now)).enumerate();
        let changed = looked.filter(|(index, (_, (found, now)))| match (found, now) {
            _ if self.by_others.contains(index) => true,
            (Some(found), Some(now)) => {
                let is_ours = self.rewritten.contains(&now.identity.ino)
                    || self.shared.contains(&now.identity.ino);
                !now.is_still(found, false) && !is_ours
            }
            (Some(_), None) => true,
            (None, _) => false,
        });
        let why = "it was put in place, and somebody else changed it at once".to_owned();
        let overtaken = OutcomeKind::Overtaken { why };
        changed
            .flat_map(|(_, (step, _))| targets_of(&step.change))
            .map(|target| TargetOutcome::new(target, overtaken.clone()))
            .collect()
    }
}

/// Finds the last step that changes each name.
fn last_on(steps: &[Step]) -> HashMap<&TargetPath, usize> {
    let mut last = HashMap::new();
    for (index, step) in steps.iter().enumerate() {
        match &step.change {
            Change::Set { path, .. } => drop(last.insert(path, index)),
            Change::Move { from, to, .. } => {
                last.insert(from, index);
                last.insert(to, index);
            }
            Change::Retouch { .. } | Change::Rewrite { .. } => {}
        }
    }
    last
}

/// Mode and owner of a kept inode with several names are what the same steps make of its other names.
fn as_shared(current: &Current, image: &Image) -> Result<Image, FileError> {
    let mut image = image.clone();
    if let (Image::Kept { meta, .. }, Some(place), Some(node)) =
        (&mut image, &current.place, &current.node)
        && node.is_shared
    {
        meta.clone_from(current.meta(place, node)?);
    }
    Ok(image)
}
