//! What the names of one file were, where an effect tells what is in the file by one of them only.
//!
//! A name that went, came or moved tells which inode it stood for. What was in that is told by the change that wrote into
//! it, or by the name that it was a second one of. By now both may stand for something else: that is never asked.

use std::collections::HashMap;

use backout_model::{Slot, TargetPath};

use super::{Body, Was, was_of};
use crate::file::recipe::{
    Change, Copied, FileCompletion, FileRecipe, Identity, Image, Kind, Written,
};

/// Which side of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// A second name, as an image tells of it.
struct Second<'i> {
    /// The number of its change.
    index: usize,
    to: &'i TargetPath,
    identity: Option<&'i Identity>,
    copy: Option<&'i Copied>,
}

/// What an effect tells of inodes.
pub(super) struct Inodes<'r> {
    recipe: &'r FileRecipe,
    completion: &'r FileCompletion,
    /// What was and came to be in an inode that changed in place, with the name that tells of it.
    written: HashMap<u64, (&'r TargetPath, [&'r Written; 2])>,
}

impl<'r> Inodes<'r> {
    pub(super) fn of(recipe: &'r FileRecipe, completion: &'r FileCompletion) -> Self {
        let written = recipe.changes.iter().filter_map(|change| match change {
            Change::Rewrite {
                path,
                ino,
                before,
                after,
            } => Some((*ino, (path, [before, after]))),
            Change::Set { .. } | Change::Move { .. } | Change::Retouch { .. } => None,
        });
        Self {
            recipe,
            completion,
            written: written.collect(),
        }
    }

    /// Describes one side of change number `index`; none if it is nothing.
    pub(super) fn image(
        &self,
        index: usize,
        path: &TargetPath,
        image: &Image,
        side: Side,
    ) -> Option<Was> {
        if let Image::Linked { to, identity, copy } = image {
            let second = Second {
                index,
                to,
                identity: identity.as_ref(),
                copy: copy.as_ref(),
            };
            return Some(self.second(path, &second, side));
        }
        was_of(path, image).map(|was| self.told(path, was, side))
    }

    /// Gives what was in a file, where the effect wrote into it: by now there is something else in it.
    pub(super) fn told(&self, path: &TargetPath, was: Was, side: Side) -> Was {
        let number = was.identity.filter(|_| was.kind == Kind::File);
        match number.and_then(|identity| self.written_in(identity.ino, side)) {
            Some(mut told) => {
                for name in was.names(path) {
                    told.also_at(name);
                }
                told
            }
            None => was,
        }
    }

    /// Describes what was or came to be in a file, by its copy if it has one.
    pub(super) fn written(path: &TargetPath, written: &Written) -> Was {
        let at = written.slot.as_ref().map(Slot::path);
        let body = if written.stored {
            Body::Stored(written.digest)
        } else {
            Body::named(at.unwrap_or_else(|| path.clone()), written.digest)
        };
        Was {
            kind: Kind::File,
            meta: Some(written.meta.clone()),
            size: Some(written.size),
            link: None,
            device: 0,
            body,
            identity: None,
            shares: None,
            is_dress: false,
            made_at: None,
            made_from: None,
        }
    }

    fn written_in(&self, ino: u64, side: Side) -> Option<Was> {
        let (path, [before, after]) = self.written.get(&ino)?;
        let written = match side {
            Side::Before => before,
            Side::After => after,
        };
        Some(Self::written(path, written))
    }

    /// Describes a second name: by what was written into its file, by a copy of it, by what its first name was, or by its
    /// number alone.
    fn second(&self, path: &TargetPath, second: &Second<'_>, side: Side) -> Was {
        let written = || self.written_in(second.identity?.ino, side);
        let copied = || was_of(path, &second.copy?.image());
        let known = written()
            .or_else(copied)
            .or_else(|| self.first(second, side));
        let mut was = known.unwrap_or_else(|| self.by_number(path, second, side));
        was.also_at(path);
        was.shares = Some(second.to.clone());
        was
    }

    /// Describes what the first name of a file was, as the effect tells it.
    fn first(&self, second: &Second<'_>, side: Side) -> Option<Was> {
        let mut changes = self.recipe.changes.iter().enumerate();
        let (index, before, after) = changes.find_map(|(index, change)| match change {
            Change::Set {
                path,
                before,
                after,
            } if path == second.to => Some((index, before, after)),
            Change::Set { .. }
            | Change::Move { .. }
            | Change::Retouch { .. }
            | Change::Rewrite { .. } => None,
        })?;
        let left = self.completion.identity(index);
        let is_left = |known: &Identity| left.is_some_and(|left| left.ino == known.ino);
        let image = match (side, second.identity) {
            (Side::After, None) => after,
            (Side::After, Some(known)) if is_left(known) => after,
            // The file was there before, and its first name stands for another one since.
            (Side::After, Some(_)) | (Side::Before, _) => before,
        };
        match image {
            Image::File { .. } | Image::Kept { .. } => {
                let was = was_of(second.to, image)?;
                Some(self.told(second.to, was, side))
            }
            Image::Absent
            | Image::Symlink { .. }
            | Image::Directory { .. }
            | Image::Special { .. }
            | Image::Linked { .. }
            | Image::Unkept { .. } => None,
        }
    }

    fn by_number(&self, path: &TargetPath, second: &Second<'_>, side: Side) -> Was {
        let left = match side {
            Side::Before => None,
            Side::After => self.completion.identity(second.index),
        };
        let identity = second.identity.or(left).copied();
        let body = match identity {
            Some(_) => Body::Somewhere {
                at: vec![path.clone(), second.to.clone()],
                identity,
                digest: None,
            },
            None => Body::SameAs(second.to.clone()),
        };
        Was {
            kind: Kind::File,
            meta: None,
            size: identity.map(|identity| identity.size),
            link: None,
            device: 0,
            body,
            identity,
            shares: None,
            is_dress: false,
            made_at: None,
            made_from: None,
        }
    }
}
