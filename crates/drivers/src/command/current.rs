//! What is at a name now, against what was there.

use std::io::Seek as _;

use backout_model::{Slot, TargetPath};
use rustix::fs::{Mode, OFlags, openat};

use super::before_image::with_meta;
use super::inodes::key_of;
use super::settle::{Before, Settling, missing, redressed};
use super::tracker::Known;
use crate::file::before_image::{digest_of, link_target, meta_of};
use crate::file::compare::differs_in_meta;
use crate::file::error::{FileError, Naming as _};
use crate::file::recipe::{Change, Holes, Identity, Image, Kind, Meta};
use crate::file::sys::{Dir, Node, Place, bytes, meta};

impl Settling<'_> {
    /// Keeps what is at a name now, as it was before its metadata changed.
    pub(super) fn kept_now(
        &mut self,
        path: &TargetPath,
        dressed: Option<Known>,
    ) -> Result<Image, FileError> {
        let image = self.image(path)?;
        let image = match image {
            Image::File { meta, .. } => self.copied(path, meta)?,
            // Another name of the same file tells of its content.
            Image::Linked { .. } => {
                let place = Dir::of(path)?;
                let node = place.node()?.ok_or_else(|| missing(path))?;
                self.copied(path, meta_of(&place, &node)?)?
            }
            Image::Absent
            | Image::Symlink { .. }
            | Image::Directory { .. }
            | Image::Special { .. }
            | Image::Kept { .. }
            | Image::Unkept { .. } => image,
        };
        Ok(match dressed {
            Some(Known::Dressed { meta, .. }) => with_meta(image, Some(meta)),
            _ => image,
        })
    }

    /// Copies a file into the depot, or into the store where there is none.
    pub(super) fn copied(&mut self, path: &TargetPath, meta: Meta) -> Result<Image, FileError> {
        let place = Dir::of(path)?;
        let mut file = place.read()?;
        let Some(depot) = self.context.depots.depot_for(place.dir.path()) else {
            let holes = bytes::holes(&file, file.metadata().naming(path, "look at")?.len());
            file.rewind().naming(path, "read")?;
            let (digest, size) = self.context.stash.stash(self.id, &mut file)?;
            return Ok(Image::File {
                digest,
                size,
                stored: true,
                meta,
                without: None,
                holes,
            });
        };
        let slot = Slot {
            depot,
            name: format!("{}-settled-{}", self.id, self.copies),
        };
        self.copies += 1;
        let to = Dir::of(&slot.path())?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let made = openat(&to.dir, &to.name, flags, Mode::from_raw_mode(0o600));
        let made = std::fs::File::from(made.naming(&slot.path(), "make")?);
        bytes::clone_file(&file, &made).naming(path, "copy")?;
        meta::write(&made, Kind::File, &meta, path)?;
        made.sync_all().naming(&slot.path(), "sync")?;
        let node = to.node()?.ok_or_else(|| missing(path))?;
        Ok(Image::Kept {
            slot,
            node: Kind::File,
            identity: node.identity,
            meta,
            copy: None,
            entries: None,
            digest: None,
        })
    }

    /// Says how a name changed; nothing if it did not.
    pub(super) fn compare(
        &mut self,
        path: &TargetPath,
        was: Option<&Before>,
    ) -> Result<Option<Change>, FileError> {
        let before = match was {
            Some(Before::Image(image)) => image.clone(),
            Some(Before::Dressed(kind, meta, identity)) => {
                return self.retouched(path, *kind, meta, identity);
            }
            Some(Before::Rewritten) => return Ok(None),
            Some(Before::MovedTo(_)) | None => Image::Absent,
        };
        let now = self.node(path)?;
        if self.is_where_it_was(now, &before)? || self.is_as_scanned(path)? {
            return Ok(None);
        }
        let before = self.dress(before)?;
        let mut after = self.image_of(path, now)?;
        if let (Some(was), Some(is)) = (before.meta(), after.meta_mut())
            && let Some(place) = self.place(path)?
            && let Some(node) = now
        {
            is.flags = flags_like(&place, &node, was)?;
        }
        let is_same = match (&before, &after) {
            (Image::Absent, Image::Absent) => true,
            (Image::Directory { meta: was }, Image::Directory { meta: is }) => {
                return Ok(redressed(path, Kind::Directory, was, is));
            }
            (
                Image::File {
                    digest: was,
                    meta: old,
                    holes,
                    size,
                    ..
                },
                Image::File {
                    digest: is,
                    meta: new,
                    ..
                },
            ) => {
                if was == is && bytes::holes(&Dir::of(path)?.read()?, *size) == *holes {
                    return Ok(redressed(path, Kind::File, old, new));
                }
                false
            }
            (Image::Symlink { to: was, meta: old }, Image::Symlink { to: is, meta: new }) => {
                was == is
                    && old.times.map(|times| times.mtime) == new.times.map(|times| times.mtime)
                    && differs_in_meta(new, old, Kind::Symlink).is_none()
            }
            _ => false,
        };
        Ok((!is_same).then(|| Change::Set {
            path: path.clone(),
            before,
            after,
        }))
    }

    /// Says how a name changed whose directory went away whole and was replaced by another.
    pub(super) fn gone(
        &mut self,
        path: &TargetPath,
        was: Option<&Before>,
    ) -> Result<Option<Change>, FileError> {
        let Some(Before::Image(image)) = was else {
            return Ok(None);
        };
        if image.is_absent() {
            return Ok(None);
        }
        Ok(Some(Change::Set {
            path: path.clone(),
            before: self.dress(image.clone())?,
            after: Image::Absent,
        }))
    }

    /// Tells whether a file that was to be kept still has its name: the call never happened. Its second name goes.
    pub(super) fn is_where_it_was(
        &mut self,
        now: Option<Node>,
        before: &Image,
    ) -> Result<bool, FileError> {
        let Image::Kept { slot, identity, .. } = before else {
            return Ok(false);
        };
        let ino = identity.ino;
        let Some(node) = now.filter(|node| node.identity.ino == ino) else {
            return Ok(false);
        };
        if self.context.depots.out_of_reach(slot).is_some() {
            return Ok(true);
        }
        let place = self.slot(slot)?;
        if place.node()?.is_some_and(|kept| kept.identity.ino == ino) {
            self.touch(&node);
            rustix::fs::unlinkat(&place.dir, &place.name, rustix::fs::AtFlags::empty())
                .naming(&slot.path(), "take back")?;
        }
        Ok(true)
    }

    /// Gives a kept inode the metadata that it had before the command. What is out of reach stays as it was noted, and what
    /// is gone is told as that.
    pub(super) fn dress(&mut self, image: Image) -> Result<Image, FileError> {
        if let Some(slot) = image.slot()
            && self.context.depots.out_of_reach(slot).is_some()
        {
            return Ok(image);
        }
        let Image::Kept {
            slot,
            node: kind,
            meta: wanted,
            copy,
            entries,
            digest,
            ..
        } = image
        else {
            return Ok(image);
        };
        let place = self.slot(&slot)?;
        let seen = self.alone.remove(&slot);
        let Some(node) = seen.map_or_else(|| place.node(), |node| Ok(Some(node)))? else {
            let why = "what was kept is not in its depot any more".to_owned();
            return Ok(Image::Unkept { node: kind, why });
        };
        // What was written in place has another name, and is dressed with its bytes.
        let is_written = self.is_written(node.identity.ino);
        let is_dressed = is_written
            || (node.mode, node.uid, node.gid) == (wanted.mode, wanted.uid, wanted.gid)
                && wanted
                    .times
                    .is_none_or(|times| times.mtime == node.times.mtime)
                && differs_in_meta(&meta_like(&place, &node, &wanted)?, &wanted, kind).is_none();
        let identity = if is_dressed {
            node.identity
        } else {
            meta::write(place.handle()?, kind, &wanted, &slot.path())?;
            let dressed = place.node()?.ok_or_else(|| missing(&slot.path()))?;
            dressed.identity
        };
        Ok(Image::Kept {
            slot,
            node: kind,
            identity,
            meta: wanted,
            copy,
            entries,
            digest,
        })
    }

    pub(super) fn retouched(
        &mut self,
        path: &TargetPath,
        kind: Kind,
        was: &Meta,
        identity: &Identity,
    ) -> Result<Option<Change>, FileError> {
        let Some(place) = self.place(path)? else {
            return Ok(None);
        };
        let Some(node) = place
            .node()?
            .filter(|node| node.kind == kind && node.identity.ino == identity.ino)
        else {
            return Ok(None);
        };
        let is = meta_like(&place, &node, was)?;
        Ok(redressed(path, kind, was, &is))
    }

    /// Describes what is at a name now. Bytes are only named.
    pub(super) fn image(&mut self, path: &TargetPath) -> Result<Image, FileError> {
        let now = self.node(path)?;
        self.image_of(path, now)
    }

    /// Describes what was seen at a name.
    fn image_of(&mut self, path: &TargetPath, now: Option<Node>) -> Result<Image, FileError> {
        let (Some(node), Some(place)) = (now, self.place(path)?) else {
            return Ok(Image::Absent);
        };
        if node.is_shared {
            self.seen.remove(path);
            let key = key_of(&node);
            // A file of before is known by its number; one that the command made is whatever its first name stands for.
            let old = self.old.get(&key);
            let identity = old.map(|_| node.identity);
            let first = old.or_else(|| self.firsts.get(&key));
            if let Some(to) = first.filter(|first| *first != path).cloned() {
                let copy = None;
                return Ok(Image::Linked { to, identity, copy });
            }
            self.firsts.insert(key, path.clone());
        } else {
            self.seen.insert(path.clone(), node);
        }
        let mut file = if node.kind == Kind::File {
            Some(place.read()?)
        } else {
            None
        };
        // Of what is open anyway it costs less to learn that it has no attributes.
        let plain = file.as_ref().and_then(|file| meta::plain_of(&node, file));
        let meta = plain.map_or_else(|| meta_of(&place, &node), Ok)?;
        Ok(match node.kind {
            Kind::File => {
                let (digest, size) = match (self.tracker.left.get(path), &mut file) {
                    (Some(Image::File { digest, size, .. }), _) => (*digest, *size),
                    (Some(Image::Kept { slot, .. }), _) => digest_of(&Dir::of(&slot.path())?)?,
                    (_, Some(file)) => {
                        let seen = node.identity.size;
                        bytes::digest_of_seen(file, seen).naming(path, "read")?
                    }
                    (_, None) => digest_of(&place)?,
                };
                Image::File {
                    digest,
                    size,
                    stored: false,
                    meta,
                    without: None,
                    holes: Holes::new(),
                }
            }
            Kind::Symlink => Image::Symlink {
                to: link_target(&place)?,
                meta,
            },
            Kind::Directory => Image::Directory { meta },
            Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharacterDevice => {
                Image::Special {
                    node: node.kind,
                    device: node.device,
                    meta,
                }
            }
        })
    }

    pub(super) fn names_in(
        &mut self,
        path: &TargetPath,
    ) -> Result<Vec<std::ffi::OsString>, FileError> {
        match self.place(path)? {
            Some(place) => place.enter()?.names(),
            None => Ok(Vec::new()),
        }
    }

    /// Tells whether a name is as a scan saw it: then its bytes need not be read.
    pub(super) fn is_as_scanned(&mut self, path: &TargetPath) -> Result<bool, FileError> {
        let Some(seen) = self.tracker.scanned.get(path).copied() else {
            return Ok(false);
        };
        let node = self.node(path)?;
        Ok(node.is_some_and(|node| node.identity == seen && node.kind != Kind::Directory))
    }
}

/// Reads the inode flags of what is there, if it is told which they were.
fn flags_like(place: &Place, node: &Node, was: &Meta) -> Result<Option<u32>, FileError> {
    Ok(match was.flags {
        Some(_) => meta::flags_of(place.handle()?, node.kind),
        None => None,
    })
}

/// Reads everything but the content, with the inode flags if it is told which they were.
pub(super) fn meta_like(place: &Place, node: &Node, was: &Meta) -> Result<Meta, FileError> {
    Ok(Meta {
        flags: flags_like(place, node, was)?,
        ..meta_of(place, node)?
    })
}
