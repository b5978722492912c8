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
    let mut was = Was {
        kind: Kind::File,
        meta: image.meta().cloned(),
        size: None,
        link: None,
        device: 0,
        body: Body::None,
        identity: None,
        shares: None,
        is_dress: false,
        made_at: None,
        made_from: None,
    };
    match image {
        Image::Absent => return None,
        Image::File {
            digest,
            size,
            stored,
            ..
        } => {
            was.size = Some(*size);
            was.body = if *stored {
                Body::Stored(*digest)
            } else {
                Body::named(path.clone(), *digest)
            };
            was.made_at = Some(path.clone());
        }
        Image::Symlink { to, .. } => {
            was.kind = Kind::Symlink;
            was.link = Some(to.clone());
        }
        Image::Directory { .. } => was.kind = Kind::Directory,
        Image::Special { node, device, .. } => {
            was.kind = *node;
            was.device = *device;
        }
        Image::Linked { to, .. } => {
            was.body = Body::SameAs(to.clone());
            was.shares = Some(to.clone());
        }
        Image::Kept {
            node,
            identity,
            copy,
            slot,
            digest,
            ..
        } => {
            was.kind = *node;
            was.size = Some(identity.size);
            was.identity = Some(*identity);
            if let Some(copy) = copy {
                was.body = Body::Stored(*copy);
            } else if *node == Kind::File {
                was.body = Body::Somewhere {
                    // It may be back at its path.
                    at: vec![slot.path(), path.clone()],
                    identity: Some(*identity),
                    digest: *digest,
                };
            }
        }
        Image::Unkept { node, why } => {
            was.kind = *node;
            was.body = Body::Lost(format!("it was not kept: {why}"));
        }
    }
    Some(was)
}

/// Describes what is there now.
fn was_there(place: &Place, node: &Node) -> Result<Was, FileError> {
    let body = if node.kind == Kind::File {
        Body::Somewhere {
            at: vec![place.path()],
            identity: Some(node.identity),
            digest: None,
        }
    } else {
        Body::None
    };
    Ok(Was {
        kind: node.kind,
        meta: Some(meta_of(place, node)?),
        size: Some(node.identity.size),
        link: if node.kind == Kind::Symlink {
            Some(link_target(place)?)
        } else {
            None
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
