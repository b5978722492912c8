//! What names were: before or after an effect, or now. For previews, differences and restoring.
//!
//! Nothing is read until somebody asks for bytes. A tree that was kept as one is shown with all that is in it.

mod differing;
mod effect;
mod inside;
mod moved;
mod read;
mod shared;

use backout_model::{Digest, TargetPath};

use super::before_image::{digest_of, link_target, meta_of};
use super::compare::Current;
use super::error::FileError;
use super::recipe::{Image, Kind};
use super::sys::{Node, Place};

pub(crate) use backout_files::{Base, Body, FileChange, Past, Shown, Was};
pub(crate) use differing::{differing, left_inode};
pub(crate) use effect::{changes_of, sides_of, walk};
pub(crate) use inside::inside_of;
pub(crate) use moved::{moves_of, sides_with_moved};
pub(crate) use read::{Source, bases, digest, has_one_of, is_at, is_same, made, read, source};

/// Describes an image; none if it is nothing.
fn was_of(path: &TargetPath, image: &Image) -> Option<Was> {
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
    Some(Was {
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
fn was_there(place: &Place, node: &Node) -> Result<Was, FileError> {
    let body = match node.kind {
        Kind::File => Body::Somewhere {
            at: vec![place.path()],
            identity: Some(node.identity),
            digest: None,
        },
        _ => Body::None,
    };
    Ok(Was {
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
        (Some(place), Some(node)) => was_there(place, node).map(Some),
        _ => Ok(None),
    }
}

/// Names the bytes of the file that is there.
fn digest_at(place: &Place) -> Result<Digest, FileError> {
    Ok(digest_of(place)?.0)
}
