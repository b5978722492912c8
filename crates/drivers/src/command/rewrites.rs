//! Files with several names that the command wrote in place: the undo writes into the same inode.
//!
//! The change is told under a name of before. The inode may be there still, under another name, or, if that name went,
//! in a slot: the changes that took it there come after the rewrite, so that their way back comes first.

use backout_model::TargetPath;

use super::ledger::Known;
use super::settle::{Before, Settling, redressed};
use crate::file::compare::differs_in_meta;
use crate::file::error::FileError;
use crate::file::keep::{digest_of, meta_of};
use crate::file::recipe::{Change, Image, Kind, Written};
use crate::file::sys::{Dir, Node, names};

/// A file that was written in place.
#[derive(Debug, Clone)]
pub(super) struct Rewriting {
    ino: u64,
    /// What was in it.
    pub(super) image: Image,
    /// Where the inode is now.
    at: TargetPath,
}

impl Settling<'_> {
    /// Tells whether an inode was written in place and has other names.
    pub(super) fn is_written(&self, ino: u64) -> bool {
        self.ledger.written.values().any(|written| *written == ino)
    }

    /// Finds the inodes that were written in place.
    pub(super) fn find_rewritten(&mut self) -> Result<(), FileError> {
        let mut written: Vec<_> = self.ledger.written.clone().into_iter().collect();
        written.sort_unstable();
        for (origin, ino) in written {
            let Some(Known::Whole(image)) = self.known.get(&origin).cloned() else {
                continue;
            };
            let Some((at, before)) = self.find(&origin, ino)? else {
                continue;
            };
            self.before.insert(origin.clone(), before);
            self.rewrites.insert(origin, Rewriting { ino, image, at });
        }
        Ok(())
    }

    /// A file that got another name and lost the old one has moved: it need not be kept.
    pub(super) fn find_renamed(&mut self) -> Result<(), FileError> {
        for (name, origin) in self.ledger.aliases.clone() {
            let Some(Known::Whole(image)) = self.known.get(&origin) else {
                continue;
            };
            let Image::Kept {
                slot,
                node: kind,
                identity,
                meta,
                ..
            } = image.clone()
            else {
                continue;
            };
            let (kept, there) = (Dir::of(&slot.path())?, self.place(&name)?);
            let (Some(kept_node), Some(place)) = (kept.node()?, there) else {
                continue;
            };
            let is_it = place.node()?.is_some_and(|node| {
                node.identity.ino == identity.ino && kept_node.identity.ino == identity.ino
            });
            let is_as_it_was = kept_node.is_kept(kind, &identity)
                && differs_in_meta(&meta_of(&kept, &kept_node)?, &meta, kind).is_none();
            let is_home = self
                .node(&origin)?
                .is_some_and(|node| node.identity.ino == identity.ino);
            if is_it && is_as_it_was && !is_home && !self.is_arrived(&name) {
                names::unlink(&kept)?;
                self.look_at.insert(name.clone());
                self.known.remove(&origin);
                self.before.insert(origin, Before::MovedTo(name));
            }
        }
        Ok(())
    }

    /// A file in a slot that has other names still must not be dressed there: they would show it. Its way back is.
    pub(super) fn find_redressed(&mut self) -> Result<(), FileError> {
        let mut kept: Vec<_> = self.before.clone().into_iter().collect();
        kept.retain(|(_, before)| {
            matches!(before, Before::Image(Image::Kept { node, .. }) if *node == Kind::File)
        });
        for (origin, before) in kept {
            let Before::Image(Image::Kept {
                slot,
                identity,
                meta,
                ..
            }) = before
            else {
                continue;
            };
            let place = Dir::of(&slot.path())?;
            let number = identity.ino;
            let shared = place.node()?.filter(|node| node.is_shared);
            let Some(node) = shared.filter(|_| !self.is_written(number)) else {
                continue;
            };
            let home = self.node(&origin)?.map(|node| node.identity.ino);
            let times = meta.times.map(|times| times.mtime);
            let is_dressed = times == Some(node.times.mtime)
                && differs_in_meta(&meta_of(&place, &node)?, &meta, Kind::File).is_none();
            if node.identity.ino != number || home == Some(number) || is_dressed {
                continue;
            }
            let (digest, size) = digest_of(&place)?;
            let image = Image::File {
                digest,
                size,
                stored: false,
                meta,
                without: None,
            };
            self.ledger.written.insert(origin.clone(), number);
            let (ino, at) = (number, slot.path());
            self.rewrites.insert(origin, Rewriting { ino, image, at });
        }
        Ok(())
    }

    /// Finds where an inode is that was written by a name of before, and what became of that name.
    fn find(
        &mut self,
        origin: &TargetPath,
        ino: u64,
    ) -> Result<Option<(TargetPath, Before)>, FileError> {
        let shelved = self.shelved(origin, ino)?;
        if let Some(node) = self.node(origin)?.filter(|node| node.identity.ino == ino) {
            if let Some(slot) = shelved.as_ref().and_then(Image::slot) {
                names::unlink(&Dir::of(&slot.path())?)?;
            }
            let is_shared = node.is_shared || shelved.is_some();
            return Ok(is_shared.then(|| (origin.clone(), Before::Rewritten)));
        }
        if let Some(image) = shelved {
            let at = image.slot().map(backout_model::Slot::path);
            return Ok(at.map(|at| (at, Before::Image(image))));
        }
        let mut all = self.look_at.clone();
        all.extend(self.before.keys().cloned());
        for name in all {
            let is_it = |node: Node| node.identity.ino == ino && node.is_shared;
            if self.node(&name)?.is_some_and(is_it) && !self.is_arrived(&name) {
                return Ok(Some((name.clone(), Before::MovedTo(name))));
            }
        }
        Ok(None)
    }

    /// Gives the image of an inode that was put into a slot when it lost its name, if it is there.
    fn shelved(&self, origin: &TargetPath, ino: u64) -> Result<Option<Image>, FileError> {
        let Some(image) = self.ledger.shelved.get(origin) else {
            return Ok(None);
        };
        let Some(slot) = image.slot() else {
            return Ok(None);
        };
        let node = Dir::of(&slot.path())?.node()?;
        let is_it = node.is_some_and(|node| node.identity.ino == ino);
        Ok(is_it.then(|| image.clone()))
    }

    /// Tells whether an inode is in a slot, by another of its names.
    fn is_kept(&self, ino: u64) -> bool {
        self.before.values().any(|before| {
            matches!(before, Before::Image(Image::Kept { identity, .. }) if identity.ino == ino)
        })
    }

    /// Tells whether something else of before has this name now.
    fn is_arrived(&self, name: &TargetPath) -> bool {
        let is_it = |before: &Before| matches!(before, Before::MovedTo(to) if to == name);
        self.before.values().any(is_it)
    }

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
            let is_home = rewriting.at == path;
            if is_home {
                let key = (node.identity.dev, node.identity.ino);
                self.firsts.insert(key, path.clone());
            }
            let Some(before) = written(&rewriting.image)? else {
                continue;
            };
            let (digest, size) = digest_of(&place)?;
            let after = Written {
                digest,
                size,
                stored: false,
                slot: None,
                meta: meta_of(&place, &node)?,
            };
            let mtime = |written: &Written| written.meta.times.map(|times| times.mtime);
            let is_same = before.digest == after.digest;
            let is_alike = mtime(&before) == mtime(&after)
                && differs_in_meta(&after.meta, &before.meta, Kind::File).is_none();
            // A slot that holds it too knows it by its number, if the change is told as one of the inode.
            match (is_same, is_home && !self.is_kept(rewriting.ino)) {
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
            ..
        } => Some(Written {
            digest: *digest,
            size: *size,
            stored: *stored,
            slot: None,
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
