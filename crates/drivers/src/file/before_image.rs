//! Keeping what is there now, by the cheapest means that is exact, before anything may change.
//!
//! | what | how |
//! | --- | --- |
//! | file up to 64 KiB with one name, that we could make anew | its bytes ride with the recipe: no further sync |
//! | larger file, or one of very many, or with several names, or with what only root may give | its inode moves into the depot when it is replaced: O(1) |
//! | tree | the same, whole |
//! | symbolic link, empty directory | by value |
//! | pipe, socket, device | its inode; where that cannot be, by value |
//! | what cannot move into a depot | copied into the content store |
//! | a file whose strategy is *transaction* | its reverse change rides with the recipe (`reversed.rs`) |
//!
//! Moving the inode instead of linking it beforehand leaves the target untouched until the recipe is
//! durable, needs no sync before that, and works for files that may not be linked.

use std::collections::HashMap;
use std::io::{Read as _, Seek as _};

use backout_model::ports::NewContent;
use backout_model::{Digest, OperationId, RIDING_BYTES_MAX, Slot, TargetPath};
use rustix::fs::{AtFlags, StatxFlags, statx};
use rustix::io::Errno;

use super::any_bytes::AnyBytes;
use super::context::FileContext;
use super::error::{FileError, Naming as _};
use super::recipe::{Copied, Holes, Image, Kind, Meta, Written};
use super::sys::{Dir, Node, Place, bytes, flags, meta};

/// Up to this size a content rides with the record that needs it.
pub(crate) const INLINE_BYTES_MAX: u64 = RIDING_BYTES_MAX;

/// All contents that ride with one record together, where whole inodes can be kept as well: with many
/// files that is cheaper to do and much cheaper to undo.
pub(crate) const INLINE_TOTAL_USUAL: u64 = 4 * 1024 * 1024;

/// How many they are then at most.
pub(crate) const INLINE_COUNT_USUAL: usize = 512;

/// All contents that ride with one record together, where nothing else can be done.
const INLINE_TOTAL_MAX: u64 = 64 * 1024 * 1024;

/// How often a file that changes while it is read is read again.
const TRIES_MAX: usize = 3;

/// Collects what an operation keeps.
#[derive(Debug)]
pub(crate) struct Keeper<'t> {
    pub(super) context: &'t FileContext,
    id: OperationId,
    slots: usize,
    inline_bytes: u64,
    /// How many bytes were copied into the store.
    pub(crate) copied_bytes: u64,
    depots: HashMap<TargetPath, Option<TargetPath>>,
    /// The contents that must become durable with the recipe.
    pub(crate) contents: Vec<NewContent>,
    /// Things worth knowing.
    pub(crate) notes: Vec<String>,
}

impl<'t> Keeper<'t> {
    /// Begins an operation.
    pub(crate) fn new(context: &'t FileContext, id: OperationId) -> Self {
        Self {
            context,
            id,
            slots: 0,
            inline_bytes: 0,
            copied_bytes: 0,
            depots: HashMap::new(),
            contents: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Gives the image of what is there, such that it can be put back, and the node as it was seen.
    /// A directory is kept without its entries.
    pub(crate) fn keep(&mut self, place: &Place) -> Result<(Image, Node), FileError> {
        let path = place.path();
        for _ in 0..TRIES_MAX {
            let missing = || FileError::NotFound {
                path: path.to_string(),
            };
            let node = place.node()?.ok_or_else(missing)?;
            let image = match node.kind {
                Kind::File => self.keep_file(place, &node)?,
                Kind::Symlink => self.keep_link(place, &node)?,
                Kind::Directory => Image::Directory {
                    meta: meta_of(place, &node)?,
                },
                Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharacterDevice => {
                    self.keep_special(place, &node)?
                }
            };
            // What changed while it was read is read again.
            if place.node()?.is_some_and(|now| now.is_still(&node, true)) {
                return Ok((image, node));
            }
        }
        Err(FileError::Changed {
            path: path.to_string(),
        })
    }

    /// Parks an empty directory that this process could not make anew as it is.
    pub(crate) fn park_if_odd(
        &mut self,
        place: &Place,
        node: &Node,
    ) -> Result<Option<Image>, FileError> {
        let Some(what) = unmakable(place, node)? else {
            return Ok(None);
        };
        let parked = if can_leave(place) {
            self.park(place, node)?
        } else {
            None
        };
        if parked.is_none() {
            let path = place.path();
            self.notes
                .push(format!("undoing makes `{path}` anew, without its {what}"));
        }
        Ok(parked)
    }

    /// Gives the image of an inode that will move, whole, into the depot; nothing if it cannot.
    pub(crate) fn park(&mut self, place: &Place, node: &Node) -> Result<Option<Image>, FileError> {
        let Some(depot) = self.depot_of(&place.dir)? else {
            return Ok(None);
        };
        if node.kind == Kind::Directory && !can_leave(place) {
            let path = place.path().to_string();
            let action = "take away";
            return Err(match flags::lock(place) {
                Some(flag) => FileError::Locked { path, flag },
                None => FileError::Permission { path, action },
            });
        }
        if depot == place.path() || depot.is_below(&place.path()) {
            return Err(FileError::Ours {
                path: place.path().to_string(),
            });
        }
        let slot = self.next_slot(depot);
        Ok(Some(Image::Kept {
            slot,
            node: node.kind,
            identity: node.identity,
            meta: meta_of(place, node)?,
            copy: None,
            entries: None,
            digest: None,
        }))
    }

    /// Lets the bytes of a new state ride with the recipe: good to have for showing and merging, but not
    /// at the price of a huge record. Returns whether they do.
    pub(crate) fn inline_new(&mut self, digest: Digest, content: &[u8]) -> bool {
        let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
        self.is_usual(size) && self.inline(digest, content)
    }

    /// Tells whether the record stays small with so many bytes more.
    fn is_usual(&self, size: u64) -> bool {
        self.inline_bytes.saturating_add(size) <= INLINE_TOTAL_USUAL
            && self.contents.len() < INLINE_COUNT_USUAL
    }

    /// Lets bytes ride with the recipe, if they are few enough. Returns whether they do.
    pub(crate) fn inline(&mut self, digest: Digest, content: &[u8]) -> bool {
        let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
        if size > INLINE_BYTES_MAX || self.inline_bytes + size > INLINE_TOTAL_MAX {
            return false;
        }
        self.inline_bytes += size;
        self.contents.push(NewContent {
            digest,
            bytes: content.to_vec(),
            over: None,
        });
        true
    }

    fn keep_file(&mut self, place: &Place, node: &Node) -> Result<Image, FileError> {
        let size = node.identity.size;
        let is_small = size <= INLINE_BYTES_MAX && self.inline_bytes + size <= INLINE_TOTAL_MAX;
        let unmakable = unmakable(place, node)?;
        let is_makable = unmakable.is_none();
        if is_small && self.is_usual(size) && is_makable && !node.is_shared {
            return self.keep_bytes(place, node, None);
        }
        match self.park(place, node)? {
            Some(Image::Kept {
                slot,
                node: kind,
                identity,
                meta,
                ..
            }) => {
                // Other names can change a shared inode in place; a copy tells, and is a way back.
                let copy = if node.is_shared {
                    Some(self.copy(place, node)?)
                } else {
                    None
                };
                Ok(Image::Kept {
                    slot,
                    node: kind,
                    identity,
                    meta,
                    copy,
                    entries: None,
                    digest: None,
                })
            }
            // Said now, while the write can still be left.
            kept => {
                debug_assert!(kept.is_none(), "a parked file is kept");
                let unmakable = unmakable.filter(|what| !matches!(what, Unmakable::Holes));
                if let Some(what) = &unmakable {
                    self.notes.push(format!(
                        "undoing gives back the content of `{}`, but not its {what}",
                        place.path()
                    ));
                }
                // What only root may give, the undo finds out when it tries; holes are kept beside the bytes.
                let without = unmakable.and_then(|what| match what {
                    Unmakable::ForRoot(_) | Unmakable::Holes => None,
                    Unmakable::Lost(what) => Some(what.to_owned()),
                });
                if is_small {
                    return self.keep_bytes(place, node, without);
                }
                let (digest, meta) = (self.copy(place, node)?, meta_of(place, node)?);
                self.notes
                    .push(format!("`{}` was copied before the change", place.path()));
                Ok(Image::File {
                    digest,
                    size: node.identity.size,
                    stored: true,
                    meta,
                    without,
                    holes: bytes::holes(&place.read()?, size),
                })
            }
        }
    }

    /// Keeps what is in a file that is about to be written into, by value: the inode itself stays where it is.
    pub(crate) fn keep_written(&mut self, place: &Place) -> Result<(Written, Node), FileError> {
        let path = place.path();
        for _ in 0..TRIES_MAX {
            let missing = || FileError::NotFound {
                path: path.to_string(),
            };
            let node = place.node()?.ok_or_else(missing)?;
            let size = node.identity.size;
            let holes = bytes::holes(&place.read()?, size);
            let has_holes = bytes::has_holes(&place.read()?, size);
            let depot = self.depot_of(&place.dir)?.filter(|_| has_holes);
            let meta = meta_of(place, &node)?;
            let (digest, slot) = match depot {
                Some(depot) => {
                    let slot = self.next_slot(depot);
                    (copy_into(self.context, &slot, place, &meta)?, Some(slot))
                }
                None => (self.copy(place, &node)?, None),
            };
            if place.node()?.is_some_and(|now| now.is_still(&node, true)) {
                let stored = slot.is_none();
                let written = Written {
                    digest,
                    size,
                    holes: if stored { holes } else { Holes::new() },
                    stored,
                    slot,
                    meta,
                };
                return Ok((written, node));
            }
        }
        Err(FileError::Changed {
            path: path.to_string(),
        })
    }

    fn next_slot(&mut self, depot: TargetPath) -> Slot {
        let name = format!("{}-{}", self.id, self.slots);
        self.slots += 1;
        Slot { depot, name }
    }

    fn keep_bytes(
        &mut self,
        place: &Place,
        node: &Node,
        without: Option<String>,
    ) -> Result<Image, FileError> {
        let digest = self.copy(place, node)?;
        if node.is_shared {
            self.notes.push(format!(
                "`{}` has other names; undoing gives back its content, not the shared inode",
                place.path()
            ));
        }
        let meta = meta_of(place, node)?;
        Ok(Image::File {
            digest,
            size: node.identity.size,
            stored: true,
            meta,
            without,
            holes: bytes::holes(&place.read()?, node.identity.size),
        })
    }

    /// Keeps a file by its bytes.
    pub(crate) fn copied(&mut self, place: &Place, node: &Node) -> Result<Copied, FileError> {
        Ok(Copied {
            digest: self.copy(place, node)?,
            size: node.identity.size,
            meta: meta_of(place, node)?,
            born: place.born(),
            holes: bytes::holes(&place.read()?, node.identity.size),
        })
    }

    /// Stores a copy of a file's bytes: with the recipe if they are few, else at once.
    fn copy(&mut self, place: &Place, node: &Node) -> Result<Digest, FileError> {
        let path = place.path();
        let mut file = place.read()?;
        if node.identity.size <= INLINE_BYTES_MAX {
            let mut content = Vec::new();
            let limit = INLINE_BYTES_MAX + 1;
            file.by_ref()
                .take(limit)
                .read_to_end(&mut content)
                .naming(&path, "read")?;
            let digest = Digest::of(&content);
            if self.inline(digest, &content) {
                return Ok(digest);
            }
            file = place.read()?;
        }
        self.context.reach("file.stash")?;
        let stashed = self.context.stash.stash(self.id, &mut file);
        let (digest, size) = stashed.map_err(|error| {
            let first: &dyn std::error::Error = &error;
            let causes = std::iter::successors(Some(first), |error| error.source());
            let causes: Vec<String> = causes.map(ToString::to_string).collect();
            FileError::NoWayToKeep {
                path: path.to_string(),
                why: format!("it cannot move into a depot, and {}", causes.join(": ")),
            }
        })?;
        self.copied_bytes += size;
        Ok(digest)
    }

    fn keep_link(&mut self, place: &Place, node: &Node) -> Result<Image, FileError> {
        // Even a symbolic link can have several names; only the inode itself keeps them together.
        let is_odd = node.is_shared || unmakable(place, node)?.is_some();
        if is_odd && let Some(image) = self.park(place, node)? {
            return Ok(image);
        }
        Ok(Image::Symlink {
            to: link_target(place)?,
            meta: meta_of(place, node)?,
        })
    }

    fn keep_special(&mut self, place: &Place, node: &Node) -> Result<Image, FileError> {
        if let Some(image) = self.park(place, node)? {
            return Ok(image);
        }
        self.notes.push(format!(
            "`{}` is kept by value, not as the same inode",
            place.path()
        ));
        Ok(Image::Special {
            node: node.kind,
            device: node.device,
            meta: meta_of(place, node)?,
        })
    }

    /// Tells whether entries of `dir` can move into a depot.
    pub(crate) fn can_park(&mut self, dir: &Dir) -> Result<bool, FileError> {
        Ok(self.depot_of(dir)?.is_some())
    }

    /// Finds the depot that an entry of `dir` can be renamed into.
    fn depot_of(&mut self, dir: &Dir) -> Result<Option<TargetPath>, FileError> {
        if let Some(known) = self.depots.get(dir.path()) {
            return Ok(known.clone());
        }
        let depot = self.context.depots.depot_for(dir.path());
        let usable = match depot {
            Some(depot) => is_same_mount(dir, &*Dir::open(&depot)?)?.then_some(depot),
            None => None,
        };
        self.depots.insert(dir.path().clone(), usable.clone());
        Ok(usable)
    }
}

/// Makes a durable copy of a file in a slot, dressed alike, and tells which bytes it has.
fn copy_into(
    context: &FileContext,
    slot: &Slot,
    place: &Place,
    wanted: &Meta,
) -> Result<Digest, FileError> {
    use rustix::fs::{Mode, OFlags, openat};
    let (path, to) = (slot.path(), Dir::of(&slot.path())?);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let made = openat(&to.dir, &to.name, flags, Mode::from_raw_mode(0o600));
    let mut made = std::fs::File::from(made.naming(&path, "make")?);
    bytes::clone_file(&place.read()?, &made).naming(&path, "write")?;
    made.rewind().naming(&path, "read")?;
    let (digest, _) = bytes::digest(&mut made).naming(&path, "read")?;
    meta::write(&made, Kind::File, wanted, &path)?;
    context.syncs.file(&made, &path, "keep.file")?;
    context.syncs.dir(&to.dir, "depot.link")?;
    Ok(digest)
}

/// What a file has that this process could not give to a new one.
#[derive(Debug)]
pub(super) enum Unmakable {
    /// Something that only root may give.
    ForRoot(String),
    /// Something that bytes do not tell.
    Lost(&'static str),
    /// Holes: they are told beside the bytes, but the inode itself is cheaper.
    Holes,
}

impl Unmakable {
    /// Tells whether it is told beside the bytes.
    pub(super) const fn is_holes(&self) -> bool {
        matches!(self, Self::Holes)
    }
}

impl std::fmt::Display for Unmakable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ForRoot(what) => f.write_str(what),
            Self::Lost(what) => f.write_str(what),
            Self::Holes => f.write_str("holes"),
        }
    }
}

/// Says what a file has that this process could not give to a new one; nothing if it could make it anew.
pub(super) fn unmakable(place: &Place, node: &Node) -> Result<Option<Unmakable>, FileError> {
    let euid = rustix::process::geteuid().as_raw();
    if euid != 0 {
        if node.uid != euid || !meta::is_our_group(node.gid) {
            let owner = format!("owner {}:{}", node.uid, node.gid);
            return Ok(Some(Unmakable::ForRoot(owner)));
        }
        let meta = meta_of(place, node)?;
        let names = meta.xattrs.iter().map(|(name, _)| &name.0);
        let mut for_root = names.filter(|name| meta::is_for_root(name));
        if let Some(name) = for_root.next() {
            let attribute = format!("attribute {}", String::from_utf8_lossy(name));
            return Ok(Some(Unmakable::ForRoot(attribute)));
        }
    }
    let has = match node.kind {
        Kind::Directory => place.enter().map(|dir| (flags::read(&*dir), false)),
        Kind::File => place.read().map(|file| {
            let has_holes = bytes::has_holes(&file, node.identity.size);
            (flags::read(&file), has_holes)
        }),
        Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharacterDevice => {
            return Ok(None);
        }
    };
    // What its directory passes on, a new file has as well.
    let inherits = flags::read(&*place.dir);
    Ok(match has {
        Ok((has, _)) if has != inherits => Some(Unmakable::Lost("inode flags")),
        Ok((_, true)) => Some(Unmakable::Holes),
        Ok(_) | Err(_) => None,
    })
}

/// Tells whether this process may take a directory out of the one it is in: its entry for the one above changes.
fn can_leave(place: &Place) -> bool {
    use rustix::fs::{Access, accessat};
    accessat(&place.dir, &place.name, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// A rename works within one mount of one file system, and nowhere else.
pub(crate) fn is_same_mount(one: &Dir, other: &Dir) -> Result<bool, FileError> {
    let mount = |dir: &Dir| {
        let flags = StatxFlags::MNT_ID | StatxFlags::BASIC_STATS;
        let found = statx(dir, "", AtFlags::EMPTY_PATH, flags).naming(dir.path(), "look at")?;
        Ok::<_, FileError>((found.stx_mnt_id, found.stx_dev_major, found.stx_dev_minor))
    };
    Ok(mount(one)? == mount(other)?)
}

/// Reads everything but the content of what is there.
pub(crate) fn meta_of(place: &Place, node: &Node) -> Result<Meta, FileError> {
    match meta::read_plain(node, &place.dir, &place.name) {
        Some(meta) => Ok(meta),
        None => meta::read(node, place.handle()?, &place.path()),
    }
}

/// Reads the metadata that something that is moved must still have for the move to be all that happened to it. What has
/// several names may get another by any of them.
pub(crate) fn meta_of_moved(place: &Place, node: &Node) -> Result<Option<Meta>, FileError> {
    if node.is_shared {
        return Ok(None);
    }
    let meta = meta_of(place, node)?;
    Ok(Some(Meta {
        times: None,
        ..meta
    }))
}

/// Reads where a symbolic link points.
pub(crate) fn link_target(place: &Place) -> Result<AnyBytes, FileError> {
    let target = match rustix::fs::readlinkat(&place.dir, &place.name, Vec::new()) {
        // In a directory that is closed to its owner.
        Err(Errno::ACCESS) => rustix::fs::readlinkat(place.handle()?, "", Vec::new()),
        other => other,
    };
    Ok(AnyBytes(
        target.naming(&place.path(), "read the link")?.into_bytes(),
    ))
}

/// Computes the digest of the file that is there.
pub(crate) fn digest_of(place: &Place) -> Result<(Digest, u64), FileError> {
    bytes::digest_of_file(&mut place.read()?).naming(&place.path(), "read")
}
