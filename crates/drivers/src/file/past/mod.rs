//! What names were: before or after an effect, or now. For previews, differences and restoring.
//!
//! Nothing is read until somebody asks for bytes. A tree that was kept as one is shown with all that is in it.

mod effect;
mod moved;
mod read;
mod shared;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use backout_model::{Digest, TargetPath};
use serde::{Deserialize, Serialize};

use super::any_bytes::AnyBytes;
use super::before_image::{link_target, meta_of};
use super::compare::Current;
use super::error::FileError;
use super::recipe::{Identity, Image, Kind, Meta};
use super::sys::meta::is_overlay_note;
use super::sys::{Node, Place};

pub use effect::FileChange;
pub(crate) use effect::{changes_of, sides_of, walk};
pub(crate) use moved::sides_with_moved;
pub use read::Shown;
pub(crate) use read::{Source, bases, digest, has_one_of, is_same, made, read};

/// A name with what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// The name.
    pub path: TargetPath,
    /// What it was; none if nothing was there.
    pub was: Option<Was>,
}

/// What a name stood for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Was {
    pub(crate) kind: Kind,
    /// Everything but the bytes; of what shares an inode with another name, or was not kept, nothing is known.
    pub(crate) meta: Option<Meta>,
    pub(crate) size: Option<u64>,
    pub(crate) link: Option<AnyBytes>,
    pub(crate) device: u64,
    pub(crate) body: Body,
    /// Which inode it was, where that is known.
    pub(crate) identity: Option<Identity>,
    /// Another name of the same file.
    pub(crate) shares: Option<TargetPath>,
    /// Whether only mode, owner, attributes or times were changed: the bytes are told by nobody.
    pub(crate) is_dress: bool,
    /// Where the file is that stored bytes may be told as a change of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made_at: Option<TargetPath>,
    /// What else stored bytes can be made from, where that file is not what they are told as a change of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made_from: Option<Box<Base>>,
}

/// Bytes that others are told as a change of, and what has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Base {
    digest: Digest,
    was: Was,
}

/// Where the bytes of a file can be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Body {
    /// It has none.
    None,
    /// In the content store.
    Stored(Digest),
    /// In the file at one of these paths, if it is that one or has these bytes.
    Somewhere {
        at: Vec<TargetPath>,
        identity: Option<Identity>,
        digest: Option<Digest>,
    },
    /// In whatever this other name stands for.
    SameAs(TargetPath),
    /// In memory.
    Bytes(Vec<u8>),
    /// Nowhere, and why.
    Lost(String),
}

impl Body {
    /// Bytes known by name only, which may be in the file at this path.
    fn named(path: TargetPath, digest: Digest) -> Self {
        Self::Somewhere {
            at: vec![path],
            identity: None,
            digest: Some(digest),
        }
    }
}

impl Was {
    /// Says what it is: a file, a directory, a symbolic link, and so on.
    pub fn word(&self) -> &'static str {
        self.kind.word()
    }

    /// Tells whether it is a directory.
    pub const fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory)
    }

    /// Tells whether it has bytes.
    pub const fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File)
    }

    /// Gives the permission bits, which a symbolic link has none of.
    pub fn mode(&self) -> Option<u32> {
        let meta = self.meta.as_ref().filter(|_| self.kind != Kind::Symlink);
        meta.map(|meta| meta.mode)
    }

    /// Gives user and group.
    pub fn owner(&self) -> Option<(u32, u32)> {
        self.meta.as_ref().map(|meta| (meta.uid, meta.gid))
    }

    /// Gives the number of bytes of a file.
    pub fn size(&self) -> Option<u64> {
        self.size.filter(|_| self.is_file())
    }

    /// Names the bytes, if they are known by name.
    pub const fn digest(&self) -> Option<Digest> {
        match &self.body {
            Body::Stored(digest) => Some(*digest),
            Body::Somewhere { digest, .. } => *digest,
            Body::None | Body::SameAs(_) | Body::Bytes(_) | Body::Lost(_) => None,
        }
    }

    /// Gives when it was last changed, in nanoseconds since 1970.
    pub fn modified(&self) -> Option<i64> {
        let times = self.meta.as_ref().and_then(|meta| meta.times);
        times.and_then(|times| i64::try_from(times.mtime).ok())
    }

    /// Gives where a symbolic link points.
    pub fn points_to(&self) -> Option<&OsStr> {
        self.link.as_ref().map(|to| OsStr::from_bytes(&to.0))
    }

    /// Gives the other name of a file that has two.
    pub const fn same_as(&self) -> Option<&TargetPath> {
        self.shares.as_ref()
    }

    /// Tells whether only mode, owner, attributes or times were changed.
    pub const fn is_dress(&self) -> bool {
        self.is_dress
    }

    /// Lists the names that it may be found under, `path` first.
    pub fn names<'w>(&'w self, path: &'w TargetPath) -> Vec<&'w TargetPath> {
        let at = match &self.body {
            Body::Somewhere { at, .. } => at.as_slice(),
            Body::None | Body::Stored(_) | Body::SameAs(_) | Body::Bytes(_) | Body::Lost(_) => &[],
        };
        let mut names = vec![path];
        for name in at.iter().chain(&self.shares) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Adds a name that the bytes may be found under.
    fn also_at(&mut self, name: &TargetPath) {
        if let Body::Somewhere { at, .. } = &mut self.body
            && !at.contains(name)
        {
            at.push(name.clone());
        }
    }

    /// Gives what is kept of the same file, with the mode, owner and attributes that are known of this one.
    #[must_use]
    pub fn kept_as(&self, kept: Self) -> Self {
        let times = kept.meta.as_ref().and_then(|meta| meta.times);
        let meta = self.meta.clone().map(|meta| Meta {
            times: meta.times.or(times),
            ..meta
        });
        Self {
            meta: meta.or(kept.meta),
            shares: self.shares.clone(),
            is_dress: false,
            ..kept
        }
    }

    /// Gives the same, with another place where what its bytes are a change of can be had.
    #[must_use]
    pub fn made_from(&self, digest: Digest, was: Self) -> Self {
        Self {
            made_from: Some(Box::new(Base { digest, was })),
            ..self.clone()
        }
    }

    /// Gives the same with other bytes.
    #[must_use]
    pub fn with_bytes(self, bytes: Vec<u8>) -> Self {
        Self {
            size: u64::try_from(bytes.len()).ok(),
            body: Body::Bytes(bytes),
            ..self
        }
    }

    /// Lists extended attributes and ACLs: names with their values. What an overlay notes for itself is none of them.
    pub fn attributes(&self) -> Vec<(String, Vec<u8>)> {
        let all = self.meta.iter().flat_map(|meta| &meta.xattrs);
        let all = all.filter(|(name, _)| !is_overlay_note(&name.0));
        all.map(|(name, value)| {
            let name = String::from_utf8_lossy(&name.0).into_owned();
            (name, value.0.clone())
        })
        .collect()
    }

    /// Describes an image; none if it is nothing.
    fn of(path: &TargetPath, image: &Image) -> Option<Self> {
        let (kind, size, body) = match image {
            Image::Absent => return None,
            Image::File {
                digest,
                size,
                stored,
                ..
            } => {
                let body = if *stored {
                    Body::Stored(*digest)
                } else {
                    Body::named(path.clone(), *digest)
                };
                (Kind::File, Some(*size), body)
            }
            Image::Symlink { .. } => (Kind::Symlink, None, Body::None),
            Image::Directory { .. } => (Kind::Directory, None, Body::None),
            Image::Special { node, .. } => (*node, None, Body::None),
            Image::Linked { to, .. } => (Kind::File, None, Body::SameAs(to.clone())),
            Image::Kept {
                node,
                identity,
                copy,
                slot,
                digest,
                ..
            } => {
                let body = match (copy, *node) {
                    (Some(copy), _) => Body::Stored(*copy),
                    // It may be back at its path.
                    (None, Kind::File) => Body::Somewhere {
                        at: vec![slot.path(), path.clone()],
                        identity: Some(*identity),
                        digest: *digest,
                    },
                    (None, _) => Body::None,
                };
                (*node, Some(identity.size), body)
            }
            Image::Unkept { node, why } => {
                let why = format!("it was not kept: {why}");
                (*node, None, Body::Lost(why))
            }
        };
        let (link, device) = match image {
            Image::Symlink { to, .. } => (Some(to.clone()), 0),
            Image::Special { device, .. } => (None, *device),
            _ => (None, 0),
        };
        Some(Self {
            kind,
            meta: image.meta().cloned(),
            size,
            link,
            device,
            body,
            identity: match image {
                Image::Kept { identity, .. } => Some(*identity),
                _ => None,
            },
            shares: match image {
                Image::Linked { to, .. } => Some(to.clone()),
                _ => None,
            },
            is_dress: false,
            made_at: match image {
                Image::File { .. } => Some(path.clone()),
                _ => None,
            },
            made_from: None,
        })
    }

    /// Describes what is there now.
    fn there(place: &Place, node: &Node) -> Result<Self, FileError> {
        let body = match node.kind {
            Kind::File => Body::Somewhere {
                at: vec![place.path()],
                identity: Some(node.identity),
                digest: None,
            },
            _ => Body::None,
        };
        Ok(Self {
            kind: node.kind,
            meta: Some(meta_of(place, node)?),
            size: Some(node.identity.size),
            link: match node.kind {
                Kind::Symlink => Some(link_target(place)?),
                _ => None,
            },
            device: node.device,
            body,
            identity: Some(node.identity),
            shares: None,
            is_dress: false,
            made_at: None,
            made_from: None,
        })
    }
}

/// Describes what is in a directory now, with all below; nothing if it is none.
pub(crate) fn below(path: &TargetPath) -> Result<Vec<Past>, FileError> {
    let current = Current::at(path)?;
    let mut all = Vec::new();
    if let (Some(place), Some(node)) = (&current.place, &current.node)
        && node.kind == Kind::Directory
    {
        walk(place, path, &mut all)?;
    }
    let past = |(path, was)| Past {
        path,
        was: Some(was),
    };
    Ok(all.into_iter().map(past).collect())
}

/// Describes what a name stands for now; none if it is nothing.
pub(crate) fn now(path: &TargetPath) -> Result<Option<Was>, FileError> {
    let current = Current::at(path)?;
    match (&current.place, &current.node) {
        (Some(place), Some(node)) => Was::there(place, node).map(Some),
        _ => Ok(None),
    }
}
