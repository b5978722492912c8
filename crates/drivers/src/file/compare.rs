//! The one rule that guards every undo: compare what is there with what was before and what came after.
//!
//! Type, mode, owner, attributes, link target, size and digest must match; times need not. A large file
//! that is the very inode the effect left, untouched, is not read again.

use std::borrow::Cow;
use std::cell::OnceCell;

pub(crate) use backout_files::inode::differs_in_meta;
pub(crate) use backout_files::said::changed_bytes;
use backout_files::said::names_shown;
use backout_model::{Digest, TargetPath};

use super::before_image::{digest_of, link_target, meta_of};
use super::error::FileError;
use super::recipe::{Identity, Image, Kind, Meta};
use super::sys::{Dir, Node, Place, meta};

/// Above this size an untouched inode is believed without reading it.
pub(crate) const BELIEVED_BYTES_MIN: u64 = 1024 * 1024;

/// What is at a path now. Digest and metadata are read when first asked for.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) path: TargetPath,
    /// The name in its open directory; none if the directory is not there.
    pub(crate) place: Option<Place>,
    /// What it is; none if nothing is there.
    pub(crate) node: Option<Node>,
    /// Why the path cannot be reached, if it cannot.
    pub(crate) blocked: Option<String>,
    digest: OnceCell<(Digest, u64)>,
    meta: OnceCell<Meta>,
}

impl Current {
    /// Looks.
    pub(crate) fn at(path: &TargetPath) -> Result<Self, FileError> {
        let (place, blocked) = match Dir::of(path) {
            Ok(place) => (Some(place), None),
            Err(FileError::NotFound { .. }) => (None, None),
            Err(FileError::NotADirectory { path }) => {
                (None, Some(format!("`{path}` is not a directory any more")))
            }
            Err(error @ FileError::ThroughSymlink { .. }) => {
                let is_link = |above: &TargetPath| above.as_path().is_symlink();
                let link = path.ancestors().find(is_link);
                let told = link.map(|link| format!("`{link}` is a symbolic link now"));
                (None, Some(told.unwrap_or_else(|| error.to_string())))
            }
            Err(error) => return Err(error),
        };
        let node = place.as_ref().map(Place::node).transpose()?.flatten();
        Ok(Self {
            path: path.clone(),
            place,
            node,
            blocked,
            digest: OnceCell::new(),
            meta: OnceCell::new(),
        })
    }

    /// Takes nothing to be there.
    pub(crate) const fn nothing(path: TargetPath) -> Self {
        Self {
            path,
            place: None,
            node: None,
            blocked: None,
            digest: OnceCell::new(),
            meta: OnceCell::new(),
        }
    }

    /// Says how it differs from an image; nothing if it does not. `believed` is the inode that the
    /// effect left there.
    pub(crate) fn differs(
        &self,
        image: &Image,
        believed: Option<&Identity>,
    ) -> Result<Option<String>, FileError> {
        if let Some(why) = &self.blocked {
            // Behind a link or a file there is nothing of ours, so a name that was to be gone is gone.
            return Ok((!image.is_absent()).then(|| why.clone()));
        }
        let (Some(place), Some(node)) = (&self.place, &self.node) else {
            return Ok((!image.is_absent()).then(|| "it is gone".to_owned()));
        };
        match image {
            Image::Absent => Ok(Some(said_of_what_exists(place, node)?)),
            Image::File {
                digest, size, meta, ..
            } => {
                if let Some(why) = differs_in_kind(node, Kind::File) {
                    return Ok(Some(why));
                }
                if believed.is_some_and(|left| is_untouched(node, left)) {
                    return Ok(None);
                }
                if let Some(why) = self.differs_in_bytes(place, node, digest, *size)? {
                    return Ok(Some(why));
                }
                let now = self.meta_like(place, node, meta)?;
                Ok(differs_in_meta(&now, meta, Kind::File))
            }
            Image::Symlink { to, meta } => {
                if let Some(why) = differs_in_kind(node, Kind::Symlink) {
                    return Ok(Some(why));
                }
                let now = link_target(place)?;
                if now != *to {
                    return Ok(Some(format!("the link points to {now:?}, not to {to:?}")));
                }
                Ok(differs_in_meta(
                    self.meta(place, node)?,
                    meta,
                    Kind::Symlink,
                ))
            }
            Image::Directory { meta } => {
                let now = self.meta_like(place, node, meta)?;
                let other = differs_in_meta(&now, meta, Kind::Directory);
                Ok(differs_in_kind(node, Kind::Directory).or(other))
            }
            Image::Special {
                node: kind,
                device,
                meta,
            } => {
                let other = (node.device != *device).then(|| "it is another device".to_owned());
                Ok(differs_in_kind(node, *kind).or(other).or(differs_in_meta(
                    self.meta(place, node)?,
                    meta,
                    *kind,
                )))
            }
            Image::Linked { to, identity, .. } => {
                differs_from_first(node, to, identity.as_ref().or(believed))
            }
            Image::Kept { .. } => self.differs_from_kept(place, node, image),
            Image::Unkept { .. } => Ok(Some("nobody kept what it was".to_owned())),
        }
    }

    /// Says that a file has other bytes.
    pub(super) fn differs_in_bytes(
        &self,
        place: &Place,
        node: &Node,
        digest: &Digest,
        size: u64,
    ) -> Result<Option<String>, FileError> {
        if node.identity.size != size {
            return Ok(Some(changed_bytes(size, node.identity.size)));
        }
        let (now, _) = self.digest(place)?;
        Ok((now != *digest).then(|| changed_bytes(size, size)))
    }

    /// Gives the digest of the file that is there.
    fn digest(&self, place: &Place) -> Result<(Digest, u64), FileError> {
        if let Some(known) = self.digest.get() {
            return Ok(*known);
        }
        let computed = digest_of(place)?;
        Ok(*self.digest.get_or_init(|| computed))
    }

    /// Gives the metadata of what is there, with the inode flags if another tells of them.
    pub(crate) fn meta_like(
        &self,
        place: &Place,
        node: &Node,
        other: &Meta,
    ) -> Result<Cow<'_, Meta>, FileError> {
        let mut now = Cow::Borrowed(self.meta(place, node)?);
        if other.flags.is_some() {
            now.to_mut().flags = meta::flags_of(place.handle()?, node.kind);
        }
        Ok(now)
    }

    /// Gives the metadata of what is there.
    pub(crate) fn meta(&self, place: &Place, node: &Node) -> Result<&Meta, FileError> {
        if let Some(known) = self.meta.get() {
            return Ok(known);
        }
        let read = meta_of(place, node)?;
        Ok(self.meta.get_or_init(|| read))
    }
}

/// Says that something is there, and of a directory what it holds: force would take that along.
fn said_of_what_exists(place: &Place, node: &Node) -> Result<String, FileError> {
    let noun = node.kind.noun();
    let names = if node.kind == Kind::Directory {
        place.enter()?.names()?
    } else {
        Vec::new()
    };
    Ok(if names.is_empty() {
        format!("it exists: {noun}")
    } else {
        format!("it exists: {noun} that holds {}", names_shown(&names))
    })
}

/// Says that a name is not the file that it was a second name of. What the effect left there tells, whatever became of
/// the first name since.
fn differs_from_first(
    node: &Node,
    to: &TargetPath,
    known: Option<&Identity>,
) -> Result<Option<String>, FileError> {
    let first = match known {
        Some(identity) => Some(identity.ino),
        None => Current::at(to)?.node.map(|node| node.identity.ino),
    };
    let is_same = first == Some(node.identity.ino);
    Ok((!is_same).then(|| "it is another file now".to_owned()))
}

/// Says that it is something else than it was.
pub(crate) fn differs_in_kind(node: &Node, kind: Kind) -> Option<String> {
    (node.kind != kind).then(|| format!("it is {} now, was {}", node.kind.noun(), kind.noun()))
}

/// Tells whether the inode is the very one the effect left, in the very state. Small files are cheap to
/// read, so only large ones are believed.
fn is_untouched(node: &Node, left: &Identity) -> bool {
    let now = &node.identity;
    left.size >= BELIEVED_BYTES_MIN
        && (now.ino, now.size, now.mtime, now.ctime)
            == (left.ino, left.size, left.mtime, left.ctime)
}
