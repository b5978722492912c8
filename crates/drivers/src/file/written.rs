//! Files with several names whose bytes change in place: what was in them, and putting that back into the same inode.
//!
//! The only place where the driver writes into a file that has a name. A file with other names cannot be replaced: they
//! would keep the old inode. So an undo writes, and since that is not one step, both sides are kept by value (few bytes
//! in the store, many or holes in a slot that they never leave), and after a crash it is written once more.

use std::fs::File;
use std::io::{Read, Seek as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;

use backout_model::{Digest, Slot, TargetPath, wide};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, chmodat, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::compare::Current;
use super::context::FileContext;
use super::error::{FileError, Naming as _};
use super::kept::{look_into, why_empty};
use super::recipe::{Change, Holes, Image, Kind, Meta};
use super::sys::{Dir, Node, Place, bytes, meta};

/// How many bytes are written at a time.
const PIECE_BYTES: usize = 32 * 1024;

/// What is in a file: bytes and everything else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    /// The bytes' name.
    pub(crate) digest: Digest,
    /// How many they are.
    #[serde(deserialize_with = "wide::deserialize")]
    pub(crate) size: u64,
    /// Whether the content store has them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) stored: bool,
    /// A copy in a depot, holes included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) slot: Option<Slot>,
    /// Where it has holes, where there is no such copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) holes: Holes,
    /// Everything else.
    pub(crate) meta: Meta,
}

impl Written {
    /// Gives it as an image, to compare with.
    pub(crate) fn image(&self) -> Image {
        Image::File {
            digest: self.digest,
            size: self.size,
            stored: self.stored,
            meta: self.meta.clone(),
            without: None,
            holes: self.holes.clone(),
        }
    }

    /// Tells whether these are the bytes of a file already, with the same holes.
    pub(crate) fn is_in(&self, place: &Place) -> Result<bool, FileError> {
        let path = place.path();
        let mut file = place.read()?;
        if bytes::holes(&file, self.size) != self.layout()? {
            return Ok(false);
        }
        file.rewind().naming(&path, "read")?;
        let (digest, _) = bytes::digest(&mut file).naming(&path, "read")?;
        Ok(digest == self.digest)
    }

    /// Tells where it has holes.
    pub(crate) fn layout(&self) -> Result<Holes, FileError> {
        match &self.slot {
            None => Ok(self.holes.clone()),
            Some(slot) => match Dir::of(&slot.path()).and_then(|place| place.read()) {
                Ok(copy) => Ok(bytes::holes(&copy, self.size)),
                // That it is gone is told by whoever needs it.
                Err(FileError::NotFound { .. }) => Ok(Holes::new()),
                Err(error) => Err(error),
            },
        }
    }

    /// Says why it cannot be written again, if it cannot.
    pub(crate) fn lacks(&self, context: &FileContext) -> Result<Option<String>, FileError> {
        if let Some(slot) = &self.slot {
            let current = look_into(context, slot)?;
            let Some(place) = current.place.as_ref().filter(|_| current.node.is_some()) else {
                return Ok(Some(why_empty(context, slot)));
            };
            let is_same = self.is_in(place)?;
            return Ok((!is_same).then(|| "what was kept was changed since".to_owned()));
        }
        if !self.stored {
            return Ok(Some("its bytes were never stored".to_owned()));
        }
        Ok(match context.contents.has(&self.digest) {
            Ok(true) => None,
            Ok(false) => Some(format!(
                "its content {} is missing from the store",
                self.digest.short()
            )),
            Err(error) => Some(error.to_string()),
        })
    }

    /// Writes it into an open file and makes it all that is in there. `midway` is told when a part is written.
    pub(crate) fn pour(
        &self,
        context: &FileContext,
        to: &File,
        path: &TargetPath,
        midway: &dyn Fn() -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let found = if let Some(slot) = &self.slot {
            let mut from = Dir::of(&slot.path())?.read()?;
            if bytes::has_holes(&from, self.size) {
                to.set_len(0).naming(path, "write")?;
                midway()?;
                bytes::clone_file(&from, to).naming(path, "write")?;
                from.rewind().naming(path, "read")?;
                bytes::digest(&mut from).naming(path, "read")?.0
            } else {
                from.rewind().naming(path, "read")?;
                overwrite(&mut from, to, path, midway)?
            }
        } else {
            overwrite(&mut context.contents.open(&self.digest)?, to, path, midway)?
        };
        // Blocks that are shared with a copy are copied when a length is set, also the one it has, and a hole before them with
        // them.
        if to.metadata().naming(path, "look at")?.len() != self.size {
            to.set_len(self.size).naming(path, "write")?;
        }
        bytes::punch(to, &self.holes).naming(path, "write")?;
        if found != self.digest {
            return Err(FileError::WrongContent {
                path: path.to_string(),
                digest: self.digest,
            });
        }
        Ok(())
    }
}

/// Writes a stream over what is in a file, from its beginning.
fn overwrite(
    from: &mut dyn Read,
    to: &File,
    path: &TargetPath,
    midway: &dyn Fn() -> Result<(), FileError>,
) -> Result<Digest, FileError> {
    let mut hasher = blake3::Hasher::new();
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    let mut at = 0_u64;
    loop {
        piece.clear();
        let limit = u64::try_from(PIECE_BYTES).unwrap_or(u64::MAX);
        let count = Read::take(&mut *from, limit).read_to_end(&mut piece);
        if count.naming(path, "read")? == 0 {
            break;
        }
        hasher.update(&piece);
        let (first, second) = piece.split_at(piece.len() / 2);
        to.write_all_at(first, at).naming(path, "write")?;
        if at == 0 {
            midway()?;
        }
        at += u64::try_from(first.len()).unwrap_or(0);
        to.write_all_at(second, at).naming(path, "write")?;
        at += u64::try_from(second.len()).unwrap_or(0);
    }
    Ok(Digest::from_bytes(*hasher.finalize().as_bytes()))
}

/// Opens a file to write into it. One that its own owner may not write becomes writable for as long as it takes.
pub(crate) fn open_to_write(place: &Place, node: &Node) -> Result<File, FileError> {
    let path = place.path();
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let open = || openat(&place.dir, &place.name, flags, Mode::empty());
    let opened = match open() {
        Err(Errno::ACCESS) => {
            let handle = place.handle()?;
            let mode = Mode::from_raw_mode(node.mode | 0o200);
            let named = meta::proc_path(handle.as_fd());
            chmodat(CWD, named, mode, AtFlags::empty()).naming(&path, "write")?;
            open()
        }
        other => other,
    };
    let file = File::from(opened.naming(&path, "write")?);
    let now = Node::of(&rustix::fs::fstat(&file).naming(&path, "look at")?);
    if now.kind != Kind::File || now.identity.ino != node.identity.ino {
        return Err(FileError::Changed {
            path: path.to_string(),
        });
    }
    Ok(file)
}

/// Finds where the inode of a rewrite is now: at its name, or where another change of the same recipe takes it from or
/// to.
pub(crate) fn locate(
    changes: &[Change],
    path: &TargetPath,
    ino: u64,
) -> Result<TargetPath, FileError> {
    let is_it = |at: &TargetPath| {
        let node = Current::at(at)?.node;
        Ok::<_, FileError>(node.is_some_and(|node| node.identity.ino == ino))
    };
    let mut places = vec![path.clone()];
    for change in changes {
        match change {
            Change::Set { path: other, .. } if other == path => {}
            Change::Move { from, to, .. } if from == path || to == path => {
                places.extend([from.clone(), to.clone()]);
            }
            Change::Set { .. }
            | Change::Move { .. }
            | Change::Retouch { .. }
            | Change::Rewrite { .. } => continue,
        }
        let slots = change.images().into_iter().filter_map(Image::slot);
        places.extend(slots.map(Slot::path));
    }
    for place in places {
        if is_it(&place)? {
            return Ok(place);
        }
    }
    Ok(path.clone())
}
