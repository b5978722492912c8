//! Reading the bytes that a file had.

use std::io::Read;

use backout_model::{Digest, TargetPath};

use super::{Base, Body, Shown, Was};
use crate::file::before_image::digest_of;
use crate::file::compare::Current;
use crate::file::context::FileContext;
use crate::file::error::{FileError, Naming as _};
use crate::file::recipe::{Identity, Kind};
use crate::file::reversed;
use crate::file::sys::{Node, Place};

/// Where the bytes of a file are now.
pub(crate) enum Source {
    /// In the content store.
    Stored(Digest),
    /// In this file.
    File(Place, Node),
    /// In the content store, as a change of what can be had elsewhere.
    Made(Digest, Box<Base>),
    /// Nowhere, and why.
    Nowhere(String),
}

/// Reads the bytes that a file had, if they are not more than `bytes_max`.
pub(crate) fn read(context: &FileContext, was: &Was, bytes_max: u64) -> Result<Shown, FileError> {
    if was.size.is_some_and(|size| size > bytes_max) {
        return Ok(Shown::TooMany);
    }
    match &was.body {
        Body::None => return Ok(Shown::Bytes(Vec::new())),
        Body::Bytes(bytes) => return Ok(Shown::Bytes(bytes.clone())),
        Body::Stored(_) | Body::Somewhere { .. } | Body::SameAs(_) | Body::Lost(_) => {}
    }
    match source(was, context)? {
        Source::Stored(digest) => Ok(Shown::Bytes(match &was.made_at {
            Some(path) => reversed::read(context, path, &digest)?,
            None => context.contents.read(&digest)?,
        })),
        Source::File(_, node) if node.identity.size > bytes_max => Ok(Shown::TooMany),
        Source::File(place, _) => Ok(Shown::Bytes(bytes_of(&place)?)),
        Source::Made(digest, base) => {
            let mut all = Vec::new();
            let mut from = made(context, &digest, &base)?;
            let path = was.made_at.as_ref().map(ToString::to_string);
            let read = from.read_to_end(&mut all);
            read.map_err(|source| FileError::Io {
                path: path.unwrap_or_default(),
                action: "read the kept content of",
                source,
            })?;
            Ok(Shown::Bytes(all))
        }
        Source::Nowhere(why) => Ok(Shown::Lost(why)),
    }
}

/// Opens stored bytes that are made from what is had elsewhere.
pub(crate) fn made(
    context: &FileContext,
    digest: &Digest,
    base: &Base,
) -> Result<Box<dyn Read + Send>, FileError> {
    let from: Box<dyn Read + Send> = match source(&base.was, context)? {
        Source::Stored(stored) => match &base.was.made_at {
            Some(path) => reversed::open(context, path, &stored)?,
            None => context.contents.open(&stored)?,
        },
        Source::File(place, _) => Box::new(place.read()?),
        Source::Made(stored, below) => made(context, &stored, &below)?,
        Source::Nowhere(why) => {
            let path = base.was.made_at.as_ref().map(ToString::to_string);
            let path = path.unwrap_or_default();
            return Err(FileError::Lost { path, why });
        }
    };
    Ok(context.contents.open_over(digest, &base.digest, from)?)
}

/// Lists the bytes that those of a file can be made from, if they are told as a change of something that is not in the store.
pub(crate) fn bases(context: &FileContext, was: &Was) -> Result<Vec<Digest>, FileError> {
    Ok(match was.digest() {
        Some(digest) if context.contents.has(&digest)? => context.contents.outside(&digest)?,
        Some(_) | None => Vec::new(),
    })
}

/// Tells which of some bytes a file has, in something that has them still.
pub(crate) fn has_one_of(
    context: &FileContext,
    bytes: &[Digest],
    was: &Was,
) -> Result<Option<Digest>, FileError> {
    if bytes.is_empty() || !was.is_file() {
        return Ok(None);
    }
    let found = digest(context, was)?.filter(|found| bytes.contains(found));
    let is_there = found.is_some() && !matches!(source(was, context)?, Source::Nowhere(_));
    Ok(found.filter(|_| is_there))
}

/// Names the bytes that a file had, if they can be had.
pub(crate) fn digest(context: &FileContext, was: &Was) -> Result<Option<Digest>, FileError> {
    let is_kept = matches!(
        was.body,
        Body::Somewhere {
            identity: Some(_),
            ..
        }
    );
    if !is_kept || !was.is_file() || was.digest().is_some() {
        return Ok(was.digest());
    }
    Ok(match source(was, context)? {
        Source::Stored(digest) | Source::Made(digest, _) => Some(digest),
        Source::File(place, _) => Some(digest_of(&place)?.0),
        Source::Nowhere(_) => None,
    })
}

/// Tells whether one description is of the same bytes as another, in a file that has them still.
pub(crate) fn is_same(context: &FileContext, was: &Was, other: &Was) -> Result<bool, FileError> {
    let is_alike = match (was.digest(), was.identity) {
        (Some(named), _) => digest(context, other)? == Some(named),
        (None, Some(known)) => is_of(other, &known),
        (None, None) => false,
    };
    Ok(is_alike && !matches!(source(other, context)?, Source::Nowhere(_)))
}

/// Tells whether it is of a file with this number, size and time; of one that is known by its bytes, size and time tell.
fn is_of(was: &Was, known: &Identity) -> bool {
    let mtime = || was.meta.as_ref()?.times.map(|times| times.mtime);
    match &was.identity {
        Some(identity) => {
            (identity.ino, identity.size, identity.mtime) == (known.ino, known.size, known.mtime)
        }
        None => was.size == Some(known.size) && mtime() == Some(known.mtime),
    }
}

/// Tells whether a file is this one, or has its bytes.
pub(crate) fn is_at(was: &Was, place: &Place, node: &Node) -> Result<bool, FileError> {
    if node.kind != Kind::File {
        return Ok(false);
    }
    match (was.digest(), &was.identity) {
        (Some(digest), _) => is_it(was, place, node, None, Some(&digest)),
        (None, Some(identity)) => Ok(node.is_kept(Kind::File, identity)),
        (None, None) => Ok(true),
    }
}

/// Finds the bytes.
pub(crate) fn source(was: &Was, context: &FileContext) -> Result<Source, FileError> {
    let nowhere = || Source::Nowhere("its bytes are not kept, or not any more".to_owned());
    match &was.body {
        Body::Stored(digest) => stored(was, context, digest),
        Body::Lost(why) => Ok(Source::Nowhere(why.clone())),
        Body::None | Body::Bytes(_) => Ok(nowhere()),
        Body::SameAs(path) => Ok(match file_at(path)? {
            Some((place, node)) => Source::File(place, node),
            None => nowhere(),
        }),
        Body::Somewhere {
            at,
            identity,
            digest,
        } => {
            for path in at {
                if let Some((place, node)) = file_at(path)?
                    && is_it(was, &place, &node, identity.as_ref(), digest.as_ref())?
                {
                    return Ok(Source::File(place, node));
                }
            }
            // Another operation may have stored the same bytes.
            let is_stored = |digest: &&Digest| context.contents.has(digest).is_ok_and(|has| has);
            let Some(named) = digest.as_ref().filter(is_stored) else {
                return Ok(nowhere());
            };
            stored(was, context, named)
        }
    }
}

/// Tells what stored bytes are made from.
fn stored(was: &Was, context: &FileContext, digest: &Digest) -> Result<Source, FileError> {
    Ok(match (lacks(was, context, digest)?, &was.made_from) {
        (None, _) => Source::Stored(*digest),
        (Some(_), Some(base)) => Source::Made(*digest, base.clone()),
        (Some(why), None) => Source::Nowhere(why),
    })
}

/// Says why stored bytes cannot be made, if they are told as a change of what is not there any more. What is not in the
/// store at all is told by whoever reads it.
fn lacks(was: &Was, context: &FileContext, digest: &Digest) -> Result<Option<String>, FileError> {
    match &was.made_at {
        Some(path) if context.contents.has(digest)? => reversed::lacks(context, path, digest),
        Some(_) | None => Ok(None),
    }
}

fn is_it(
    was: &Was,
    place: &Place,
    node: &Node,
    identity: Option<&Identity>,
    digest: Option<&Digest>,
) -> Result<bool, FileError> {
    if identity.is_some_and(|identity| node.is_kept(Kind::File, identity)) {
        return Ok(true);
    }
    let is_size = was.size.is_none_or(|size| size == node.identity.size);
    match digest.filter(|_| is_size) {
        Some(digest) => Ok(digest_of(place)?.0 == *digest),
        None => Ok(false),
    }
}

fn file_at(path: &TargetPath) -> Result<Option<(Place, Node)>, FileError> {
    let current = Current::at(path)?;
    Ok(match (current.place, current.node) {
        (Some(place), Some(node)) if node.kind == Kind::File => Some((place, node)),
        _ => None,
    })
}

fn bytes_of(place: &Place) -> Result<Vec<u8>, FileError> {
    let mut content = Vec::new();
    place
        .read()?
        .read_to_end(&mut content)
        .naming(&place.path(), "read")?;
    Ok(content)
}
