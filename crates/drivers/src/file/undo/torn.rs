//! Steps that a crash cut short: what they left is neither before nor after, and is nobody else's work.

use backout_model::TargetPath;

use super::obtain::first_of_both;
use super::prepare::Undo;
use crate::file::compare::{Current, differs_in_meta};
use crate::file::error::FileError;
use crate::file::recipe::{Change, Image, Kind, Meta};
use crate::file::written::locate;

impl Undo<'_> {
    /// Tells whether a change of an unfinished effect was cut short between two steps: a swap on a file system that
    /// cannot exchange names, a move that had replaced something, bytes or metadata half written.
    pub(super) fn is_torn(&self, change: &Change) -> Result<bool, FileError> {
        if !self.how.is_unfinished {
            return Ok(false);
        }
        match change {
            Change::Set {
                path,
                before,
                after,
            } => {
                let is_swap = !before.is_absent() && !after.is_absent();
                Ok(is_swap && is_free(path)?)
            }
            Change::Move {
                from,
                to,
                node,
                identity,
                replaced,
                ..
            } => {
                let old = Current::at(from)?.node;
                let is_there = old.is_some_and(|old| old.is_kept(*node, identity));
                Ok(!replaced.is_absent() && is_there && is_free(to)?)
            }
            // Writing is not one step: what is in the inode may be neither. It is kept like everything else.
            Change::Rewrite { path, ino, .. } => {
                let node = Current::at(&locate(self.changes, path, *ino)?)?.node;
                Ok(node.is_some_and(|node| node.identity.ino == *ino))
            }
            Change::Retouch {
                path,
                before,
                after,
                node,
            } => is_half_dressed(path, *node, before, after),
        }
    }

    /// Finds the file that a name was a second name of where a crash came before the first had it: it may have a third, or be
    /// in its slot.
    pub(super) fn by_another_name(
        &self,
        path: &TargetPath,
        image: &Image,
    ) -> Result<Option<Image>, FileError> {
        let Image::Linked {
            to,
            identity: Some(known),
            copy,
        } = image
        else {
            return Ok(None);
        };
        if !self.how.is_unfinished || first_of_both(to, known, copy.as_ref())?.is_some() {
            return Ok(None);
        }
        let is_it = |name: &TargetPath| {
            let node = Current::at(name).map(|current| current.node);
            node.is_ok_and(|node| node.is_some_and(|node| node.identity.ino == known.ino))
        };
        let is_used = |name: &TargetPath| self.steps.iter().any(|it| it.change.path() == name);
        let names = self.changes.iter().map(Change::path);
        let mut names = names.filter(|name| *name != path && !is_used(name));
        let images = self.changes.iter().flat_map(Change::images);
        let mut slots = images
            .filter_map(Image::slot)
            .map(backout_model::Slot::path);
        let found = names.find(|name| is_it(name)).cloned();
        let found = found.or_else(|| slots.find(|slot| is_it(slot)));
        Ok(found.map(|to| Image::Linked {
            to,
            identity: Some(*known),
            copy: copy.clone(),
        }))
    }
}

fn is_free(path: &TargetPath) -> Result<bool, FileError> {
    Ok(Current::at(path)?.node.is_none())
}

/// Tells whether every part of the metadata is one of the two that it was and was to become.
fn is_half_dressed(
    path: &TargetPath,
    kind: Option<Kind>,
    before: &Meta,
    after: &Meta,
) -> Result<bool, FileError> {
    let current = Current::at(path)?;
    let (Some(place), Some(node)) = (&current.place, &current.node) else {
        return Ok(false);
    };
    if kind.is_some_and(|kind| kind != node.kind) {
        return Ok(false);
    }
    let now = current.meta(place, node)?;
    let is_one_of = |part: fn(&Meta, &Meta) -> Meta| {
        let is_side = |side: &Meta| differs_in_meta(&part(now, side), side, node.kind).is_none();
        is_side(before) || is_side(after)
    };
    // Each part is put into an otherwise equal whole.
    let mode: fn(&Meta, &Meta) -> Meta = |now, side| Meta {
        mode: now.mode,
        ..side.clone()
    };
    let owner: fn(&Meta, &Meta) -> Meta = |now, side| Meta {
        uid: now.uid,
        gid: now.gid,
        ..side.clone()
    };
    let attributes: fn(&Meta, &Meta) -> Meta = |now, side| Meta {
        xattrs: now.xattrs.clone(),
        ..side.clone()
    };
    Ok([mode, owner, attributes].into_iter().all(is_one_of))
}
