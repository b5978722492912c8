//! Keeping what a name is, by the cheapest exact means that the coming call leaves.
//!
//! | what happens to the file | how it is kept |
//! | --- | --- |
//! | its name goes away | the inode itself moves into the depot: nothing is copied, and that *is* the removal |
//! | another takes its name | a second name in the depot, then the rename |
//! | it is written in place | few bytes into the log, many as a clone or a copy in the depot |
//! | only mode, owner, times, attributes change | those |
//!
//! An empty file, a link, a pipe or a directory is kept by value.

use std::collections::HashMap;
use std::fs::File;
use std::io::Seek as _;
use std::os::fd::{AsFd as _, OwnedFd};

use backout_capture::live::Place;
use backout_model::ports::{Depots, WriteContents};
use backout_model::{Digest, OperationId, Slot, TargetPath};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, linkat, openat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::orphans::{as_copy, slot_name};
use crate::file::any_bytes::AnyBytes;
use crate::file::before_image::INLINE_BYTES_MAX;
use crate::file::recipe::{Holes, Image, Kind, Meta};
use crate::file::sys::{Node, as_owner, bytes, flags, meta};

/// All bytes in the log together: more are kept in the depot, where they cost less to bring back.
const LOGGED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How often a file that changes while it is read is read again.
const TRIES_MAX: usize = 3;

/// Why something could not be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepError {
    /// The system said no.
    #[error("{action}: {errno}")]
    System { action: &'static str, errno: Errno },
    /// It would have to be copied and is larger than that is allowed.
    #[error("it is {size} bytes, and would have to be copied")]
    TooLarge { size: u64 },
    /// Somebody else writes it at this very moment.
    #[error("it keeps changing while it is read")]
    Changing,
    /// Nothing can be kept on its file system.
    #[error("there is no depot on its file system")]
    NoDepot,
    /// Its metadata could not be read.
    #[error("{0}")]
    Meta(String),
}

/// Says what was being done when the system said no.
trait During<T> {
    fn during(self, action: &'static str) -> Result<T, KeepError>;
}

impl<T> During<T> for Result<T, Errno> {
    fn during(self, action: &'static str) -> Result<T, KeepError> {
        self.map_err(|errno| KeepError::System { action, errno })
    }
}

impl<T> During<T> for std::io::Result<T> {
    fn during(self, action: &'static str) -> Result<T, KeepError> {
        self.map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            KeepError::System { action, errno }
        })
    }
}

/// A directory that keeps inodes, open.
#[derive(Debug)]
pub(crate) struct Depot {
    pub(crate) path: TargetPath,
    pub(crate) dir: OwnedFd,
}

/// Keeps things for one operation.
#[derive(Debug)]
pub(crate) struct Shelf {
    id: OperationId,
    slots: usize,
    logged_bytes: u64,
    copy_bytes_max: u64,
    depots: HashMap<u64, Option<Depot>>,
    /// Copies that are not synced yet.
    copies: Vec<Slot>,
}

/// An image, and the bytes that must stand in the log with it.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) image: Image,
    pub(crate) bytes: Vec<u8>,
    /// Whether the file has flags that one made of its bytes would not have, where that was looked at.
    pub(crate) has_flags: Option<bool>,
}

impl From<Image> for Kept {
    fn from(image: Image) -> Self {
        Self {
            image,
            bytes: Vec::new(),
            has_flags: None,
        }
    }
}

impl Shelf {
    pub(crate) fn new(id: OperationId, copy_bytes_max: u64) -> Self {
        Self {
            id,
            slots: 0,
            logged_bytes: 0,
            copy_bytes_max,
            depots: HashMap::new(),
            copies: Vec::new(),
        }
    }

    /// Makes everything that was kept durable: the copies, then the names.
    pub(crate) fn sync(&mut self) -> std::io::Result<()> {
        for slot in std::mem::take(&mut self.copies) {
            match File::open(slot.path().as_path()) {
                Ok(copy) => copy.sync_all()?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        for depot in self.used() {
            rustix::fs::fsync(&depot.dir)?;
        }
        Ok(())
    }

    /// Gives the depots that were used.
    fn used(&self) -> impl Iterator<Item = &Depot> {
        self.depots.values().flatten()
    }

    /// Finds the depot of the file system that a thing is on.
    pub(crate) fn depot(
        &mut self,
        depots: &dyn Depots,
        place: &Place,
        device: u64,
    ) -> Option<&Depot> {
        self.depots
            .entry(device)
            .or_insert_with(|| {
                let dir = TargetPath::new(&place.dir_path).ok()?;
                let path = depots.depot_for(&dir)?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let dir = rustix::fs::open(path.as_path(), flags, Mode::empty()).ok()?;
                Some(Depot { path, dir })
            })
            .as_ref()
    }

    fn next_slot(&mut self, depot: &TargetPath, place: &Place) -> Slot {
        let name = slot_name(self.id, self.slots, &place.path());
        self.slots += 1;
        Slot {
            depot: depot.clone(),
            name,
        }
    }

    /// Gives the image of an inode that will be in a slot; the caller puts it there.
    pub(crate) fn slotted(
        &mut self,
        depots: &dyn Depots,
        place: &Place,
        node: &Node,
        dressed: Option<Meta>,
    ) -> Result<Option<Image>, KeepError> {
        let Some(depot) = self.depot(depots, place, node.identity.dev) else {
            return Ok(None);
        };
        let depot = depot.path.clone();
        let own = meta_of(place, node)?;
        let slot = self.next_slot(&depot, place);
        Ok(Some(Image::Kept {
            slot,
            node: node.kind,
            identity: node.identity,
            meta: dressed.unwrap_or(own),
            copy: None,
            entries: None,
            digest: None,
        }))
    }

    /// Moves the inode into its slot: its name is gone.
    pub(crate) fn shelve(&self, place: &Place, image: &Image) -> Result<(), Errno> {
        let (dir, name) = self.slot_of(image).ok_or(Errno::NOENT)?;
        renameat_with(&place.dir, &place.name, dir, name, RenameFlags::NOREPLACE)
    }

    /// Gives the inode a second name in its slot.
    pub(crate) fn link(&self, place: &Place, image: &Image) -> Result<(), Errno> {
        let (dir, name) = self.slot_of(image).ok_or(Errno::NOENT)?;
        linkat(&place.dir, &place.name, dir, name, AtFlags::empty())
    }

    fn slot_of<'s>(&'s self, image: &'s Image) -> Option<(&'s OwnedFd, &'s str)> {
        let Image::Kept { slot, .. } = image else {
            return None;
        };
        let depot = self.used().find(|depot| depot.path == slot.depot)?;
        Some((&depot.dir, slot.name.as_str()))
    }

    /// Keeps a thing by value: everything but a large file.
    pub(crate) fn by_value(
        &mut self,
        place: &Place,
        node: &Node,
    ) -> Result<Option<Kept>, KeepError> {
        if node.kind == Kind::File {
            let is_small = self.is_for_the_log(node);
            return is_small.then(|| self.logged(place, node)).transpose();
        }
        let meta = meta_of(place, node)?;
        let image = match node.kind {
            Kind::File => return Ok(None),
            Kind::Symlink => {
                let to = rustix::fs::readlinkat(&place.dir, &place.name, Vec::new());
                let to = AnyBytes(to.during("read the link")?.into_bytes());
                Image::Symlink { to, meta }
            }
            Kind::Directory => Image::Directory { meta },
            Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharacterDevice => {
                let (node, device) = (node.kind, node.device);
                Image::Special { node, device, meta }
            }
        };
        Ok(Some(Kept::from(image)))
    }

    fn is_for_the_log(&self, node: &Node) -> bool {
        let size = node.identity.size;
        size <= INLINE_BYTES_MAX && self.logged_bytes + size <= LOGGED_BYTES_MAX
    }

    /// Reads a small file whole: its attributes, its flags and its bytes by one descriptor.
    fn logged(&mut self, place: &Place, node: &Node) -> Result<Kept, KeepError> {
        let size = node.identity.size;
        for _ in 0..TRIES_MAX {
            let file = open(place).during("read")?;
            if bytes::has_holes(&file, size) {
                break;
            }
            let plain = meta::plain_of(node, &file);
            let meta = plain.map_or_else(|| meta_of(place, node), Ok)?;
            let content = bytes::read_seen(&file, size).during("read")?;
            let now = Node::of(&rustix::fs::fstat(&file).during("look at")?);
            if now.identity.size != content.len() as u64
                || now.identity.mtime != node.identity.mtime
            {
                continue;
            }
            self.logged_bytes += size;
            let image = Image::File {
                digest: Digest::of(&content),
                size,
                stored: true,
                meta,
                without: None,
                holes: Holes::new(),
            };
            return Ok(Kept {
                image,
                bytes: content,
                has_flags: Some(!flags::read(&file).is_empty()),
            });
        }
        Err(KeepError::Changing)
    }

    /// Keeps a file by a clone or a copy of it in the depot, dressed as the file is.
    pub(crate) fn copied(
        &mut self,
        depots: &dyn Depots,
        place: &Place,
        node: &Node,
        dressed: Option<Meta>,
        syncs: bool,
    ) -> Result<Image, KeepError> {
        let path =
            TargetPath::new(place.path()).map_err(|error| KeepError::Meta(error.to_string()))?;
        let Some(Image::Kept {
            slot,
            node: kind,
            meta: wanted,
            ..
        }) = self.slotted(depots, place, node, dressed)?
        else {
            return Err(KeepError::NoDepot);
        };
        let slot = as_copy(slot);
        let depot = self.used().find(|depot| depot.path == slot.depot);
        let dir = depot
            .map(|depot| depot.dir.as_fd())
            .ok_or(KeepError::Changing)?;
        let from = open(place).during("read")?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let to = openat(dir, slot.name.as_str(), flags, Mode::from_raw_mode(0o600));
        let to = File::from(to.during("make a copy")?);
        let done = self.pour(&from, &to, node).and_then(|()| {
            meta::write(&to, Kind::File, &wanted, &path)
                .map_err(|error| KeepError::Meta(error.to_string()))?;
            if syncs {
                to.sync_all().during("sync the copy")?;
            }
            Ok(())
        });
        if let Err(error) = done {
            let _gone = unlinkat(dir, slot.name.as_str(), AtFlags::empty());
            return Err(error);
        }
        let identity = Node::of(&rustix::fs::fstat(&to).during("look at")?).identity;
        if !syncs {
            self.copies.push(slot.clone());
        }
        Ok(Image::Kept {
            slot,
            node: kind,
            identity,
            meta: wanted,
            copy: None,
            entries: None,
            digest: None,
        })
    }

    /// Keeps a file by a copy of its bytes in the store, where nothing can be kept beside it.
    pub(crate) fn stashed(
        &self,
        stash: &dyn WriteContents,
        place: &Place,
        node: &Node,
        dressed: Option<Meta>,
    ) -> Result<Image, KeepError> {
        let own = meta_of(place, node)?;
        if node.identity.size > self.copy_bytes_max {
            return Err(KeepError::TooLarge {
                size: node.identity.size,
            });
        }
        let mut file = open(place).during("read")?;
        let holes = bytes::holes(&file, node.identity.size);
        file.rewind().during("read")?;
        let stashed = stash.stash(self.id, &mut file);
        let (digest, size) = stashed.map_err(|error| KeepError::Meta(error.to_string()))?;
        if size != node.identity.size {
            return Err(KeepError::Changing);
        }
        Ok(Image::File {
            digest,
            size,
            stored: true,
            meta: dressed.unwrap_or(own),
            without: None,
            holes,
        })
    }

    fn pour(&self, from: &File, to: &File, node: &Node) -> Result<(), KeepError> {
        if rustix::fs::ioctl_ficlone(to, from).is_ok() {
            return Ok(());
        }
        if node.identity.size > self.copy_bytes_max {
            return Err(KeepError::TooLarge {
                size: node.identity.size,
            });
        }
        bytes::clone_file(from, to).during("copy")?;
        let now = Node::of(&rustix::fs::fstat(from).during("look at")?);
        if now.identity.size == node.identity.size && now.identity.mtime == node.identity.mtime {
            Ok(())
        } else {
            Err(KeepError::Changing)
        }
    }
}

/// Opens a regular file without touching its access time, where that is allowed.
fn open(place: &Place) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let quiet = openat(
        &place.dir,
        &place.name,
        flags | OFlags::NOATIME,
        Mode::empty(),
    );
    let opened = match quiet {
        Err(Errno::PERM) => openat(&place.dir, &place.name, flags, Mode::empty()),
        // Who may write it needs not be able to read it.
        Err(errno @ Errno::ACCESS) => {
            as_owner(&place.dir, &place.name, flags | OFlags::NOATIME, errno)
        }
        other => other,
    };
    opened.map(File::from)
}

/// Tells whether a file has flags that one made of its bytes would not have.
pub(crate) fn has_flags(place: &Place) -> bool {
    open(place).is_ok_and(|file| !flags::read(file).is_empty())
}

/// Reads all flags of a file or a directory.
pub(crate) fn all_flags(place: &Place) -> Option<u32> {
    flags::all(open(place).ok()?)
}

/// Reads those of them that people set.
pub(crate) fn flags_of(place: &Place, node: &Node) -> Option<u32> {
    meta::flags_of(open(place).ok()?, node.kind)
}

/// Reads everything but the content.
pub(crate) fn meta_of(place: &Place, node: &Node) -> Result<Meta, KeepError> {
    if let Some(meta) = meta::read_plain(node, &place.dir, &place.name) {
        return Ok(meta);
    }
    let path = TargetPath::new(place.path()).map_err(|error| KeepError::Meta(error.to_string()))?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(&place.dir, &place.name, flags, Mode::empty()).during("open")?;
    meta::read(node, handle, &path).map_err(|error| KeepError::Meta(error.to_string()))
}

/// Gives an image the metadata that the thing had before somebody changed it.
pub(crate) fn with_meta(mut image: Image, dressed: Option<Meta>) -> Image {
    if let (
        Some(dressed),
        Image::File { meta, .. }
        | Image::Symlink { meta, .. }
        | Image::Directory { meta }
        | Image::Special { meta, .. }
        | Image::Kept { meta, .. },
    ) = (dressed, &mut image)
    {
        *meta = dressed;
    }
    image
}
