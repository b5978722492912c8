//! Files with several names that the command wrote in place: the undo writes into the same inode.
//!
//! The change is told under a name of before. The inode may be there still, under another name, or, if that name went,
//! in a slot: the changes that took it there come after the rewrite, so that their way back comes first.

use super::current::meta_like;
use super::settle::{Settling, redressed};
use crate::file::before_image::digest_of;
use crate::file::compare::differs_in_meta;
use crate::file::error::FileError;
use crate::file::recipe::{Change, Holes, Image, Kind, Written};
use crate::file::sys::{Dir, bytes};

impl Settling<'_> {
    /// Says what is in them now and was before.
    pub(super) fn rewritten(&mut self) -> Result<Vec<Change>, FileError> {
        let mut changes = Vec::new();
        for (path, rewriting) in self.rewrites.clone() {
            let Some(place) = self.place(&rewriting.at)? else {
                continue;
            };
            let Some(node) = place.node()? else {
                continue;
            };
            let Some(before) = written(&rewriting.image)? else {
                continue;
            };
            let (digest, size) = digest_of(&place)?;
            let after = Written {
                digest,
                size,
                stored: false,
                slot: None,
                holes: bytes::holes(&place.read()?, size),
                meta: meta_like(&place, &node, &before.meta)?,
            };
            let mtime = |written: &Written| written.meta.times.map(|times| times.mtime);
            let is_same = before.digest == after.digest && before.layout()? == after.holes;
            let is_alike = mtime(&before) == mtime(&after)
                && differs_in_meta(&after.meta, &before.meta, Kind::File).is_none();
            // What else speaks of it knows it by its number, if the change is told as one of the inode.
            match (is_same, rewriting.is_alone) {
                (true, true) => {
                    changes.extend(redressed(&path, Kind::File, &before.meta, &after.meta));
                }
                (true, false) if is_alike => {}
                _ => changes.push(Change::Rewrite {
                    path,
                    ino: rewriting.ino,
                    before,
                    after,
                }),
            }
        }
        Ok(changes)
    }
}

/// Says what was in a file, by how it was kept.
fn written(image: &Image) -> Result<Option<Written>, FileError> {
    Ok(match image {
        Image::File {
            digest,
            size,
            stored,
            meta,
            holes,
            ..
        } => Some(Written {
            digest: *digest,
            size: *size,
            stored: *stored,
            slot: None,
            holes: holes.clone(),
            meta: meta.clone(),
        }),
        Image::Kept {
            slot,
            identity,
            meta,
            ..
        } => Some(Written {
            digest: digest_of(&Dir::of(&slot.path())?)?.0,
            size: identity.size,
            stored: false,
            slot: Some(slot.clone()),
            holes: Holes::new(),
            meta: meta.clone(),
        }),
        Image::Absent
        | Image::Symlink { .. }
        | Image::Directory { .. }
        | Image::Special { .. }
        | Image::Linked { .. }
        | Image::Unkept { .. } => None,
    })
}
