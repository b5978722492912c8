//! Requests that any later process can carry out, and what they would do as one digest.
//!
//! A request that waits for a decision is carried out by another process, in another directory, when a pipe is long dry. So its
//! paths become absolute and its bytes are kept.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::{Path, PathBuf};

use backout_model::{Digest, OperationId, TargetPath};
use serde_json::Value;

use super::before_image::INLINE_BYTES_MAX;
use super::context::FileContext;
use super::error::FileError;
use super::listing;
use super::past::Body;
use super::recipe::{Change, FileRecipe, is_kept_tree};
use super::request::{FileRequest, Source};
use super::sys::bytes;

/// What is different each time the same request is prepared: where something will be kept, and when it was last touched or read.
const OF_THE_MOMENT: [&str; 3] = ["slot", "ctime", "atime"];

/// Tells whether all that a request reads can be read twice.
pub(crate) fn is_lasting(request: &FileRequest) -> bool {
    match request {
        FileRequest::Write {
            source: Source::Opened(file),
            ..
        }
        | FileRequest::Append {
            source: Source::Opened(file),
            ..
        } => (&mut &*file).stream_position().is_ok(),
        FileRequest::Batch(requests) | FileRequest::Within { requests, .. } => {
            requests.iter().all(is_lasting)
        }
        _ => true,
    }
}

/// Reads an open file from where it stands, and leaves it there if it is one that can be read twice.
pub(crate) fn reading<T>(mut file: &File, read: impl FnOnce(&mut dyn Read) -> T) -> T {
    let stands = file.stream_position();
    let value = read(&mut file);
    if let Ok(position) = stands {
        // What cannot go back is read from its end the next time, and is not what it was: that is noticed.
        let _back = file.seek(io::SeekFrom::Start(position));
    }
    value
}

/// Makes a request one that any later process can carry out.
pub(crate) fn repeatable(
    context: &FileContext,
    by: OperationId,
    request: &FileRequest,
) -> Result<FileRequest, FileError> {
    from_anywhere(request, &|source| kept(context, by, source))
}

/// Gives the digest of what a request asks: its paths from the root, bytes that come with it by their digest, and what it
/// reads by name only by that name.
pub(crate) fn asked(request: &FileRequest) -> Result<Digest, FileError> {
    let request = from_anywhere(request, &named)?;
    let bytes = serde_json::to_vec(&request).map_err(FileError::Request)?;
    Ok(Digest::of(&bytes))
}

/// Makes all paths of a request absolute, and gives each source of bytes another form.
fn from_anywhere(
    request: &FileRequest,
    kept: &dyn Fn(&Source) -> Result<Source, FileError>,
) -> Result<FileRequest, FileError> {
    let all = |requests: &[FileRequest]| {
        let each = requests.iter().map(|one| from_anywhere(one, kept));
        each.collect::<Result<Vec<_>, _>>()
    };
    Ok(match request {
        FileRequest::Write {
            path,
            source,
            expect,
            parents,
            mode,
        } => FileRequest::Write {
            path: absolute(path)?,
            source: kept(source)?,
            expect: *expect,
            parents: *parents,
            mode: *mode,
        },
        FileRequest::Append { path, source } => FileRequest::Append {
            path: absolute(path)?,
            source: kept(source)?,
        },
        FileRequest::Batch(requests) => FileRequest::Batch(all(requests)?),
        FileRequest::Within { base, requests } => FileRequest::Within {
            base: absolute(base)?,
            requests: all(requests)?,
        },
        other => anchored(other)?,
    })
}

/// Makes the paths of a request that brings no bytes from elsewhere absolute.
fn anchored(request: &FileRequest) -> Result<FileRequest, FileError> {
    let mut copy = copied(request)?;
    match &mut copy {
        FileRequest::Edit { path, .. }
        | FileRequest::Remove { path, .. }
        | FileRequest::Mkdir { path, .. }
        | FileRequest::Symlink { path, .. }
        | FileRequest::Chmod { path, .. }
        | FileRequest::Chown { path, .. }
        | FileRequest::Write { path, .. }
        | FileRequest::Append { path, .. } => *path = absolute(path)?,
        FileRequest::Patch { base, .. } | FileRequest::Within { base, .. } => {
            *base = absolute(base)?;
        }
        FileRequest::Move { from, to, .. } | FileRequest::Copy { from, to, .. } => {
            (*from, *to) = (absolute(from)?, absolute(to)?);
        }
        FileRequest::HardLink { path, to } => (*path, *to) = (absolute(path)?, absolute(to)?),
        // Theirs are absolute already.
        FileRequest::Layer { .. } | FileRequest::Restore { .. } | FileRequest::Batch(_) => {}
    }
    Ok(copy)
}

/// Copies a request that holds no open file, by way of what it is kept as.
fn copied(request: &FileRequest) -> Result<FileRequest, FileError> {
    let bytes = serde_json::to_vec(request).map_err(FileError::Request)?;
    serde_json::from_slice(&bytes).map_err(FileError::Request)
}

/// Says where a path leads from here.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, FileError> {
    std::path::absolute(path).map_err(|source| FileError::Io {
        path: path.display().to_string(),
        action: "find",
        source,
    })
}

/// Names the bytes of a source instead of giving them.
fn named(source: &Source) -> Result<Source, FileError> {
    Ok(match source {
        Source::Stored(digest) => Source::Stored(*digest),
        Source::Bytes(bytes) => Source::Stored(Digest::of(bytes)),
        Source::Opened(file) => {
            let read = reading(file, |from| bytes::digest(from));
            Source::Stored(read.map_err(unread("input"))?.0)
        }
        Source::Path(path) => Source::Path(absolute(path)?),
    })
}

/// Takes the bytes of a source into the request, or into the store if they are many.
fn kept(context: &FileContext, by: OperationId, source: &Source) -> Result<Source, FileError> {
    match source {
        Source::Stored(digest) => Ok(Source::Stored(*digest)),
        Source::Bytes(bytes) => taken(context, by, &mut bytes.as_slice(), "input"),
        Source::Opened(file) => reading(file, |from| taken(context, by, from, "input")),
        Source::Path(path) => {
            let shown = path.display().to_string();
            let mut file = File::open(path).map_err(unread(&shown))?;
            taken(context, by, &mut file, &shown)
        }
    }
}

fn taken(
    context: &FileContext,
    by: OperationId,
    from: &mut dyn Read,
    shown: &str,
) -> Result<Source, FileError> {
    let mut head = Vec::new();
    let read = Read::take(&mut *from, INLINE_BYTES_MAX + 1).read_to_end(&mut head);
    read.map_err(unread(shown))?;
    if u64::try_from(head.len()).unwrap_or(u64::MAX) <= INLINE_BYTES_MAX {
        return Ok(Source::Bytes(head));
    }
    let (digest, _) = context.stash.stash(by, &mut head.as_slice().chain(from))?;
    Ok(Source::Stored(digest))
}

fn unread(shown: &str) -> impl Fn(io::Error) -> FileError {
    let path = shown.to_owned();
    move |source| FileError::Io {
        path: path.clone(),
        action: "read",
        source,
    }
}

/// Names the contents that a request refers to.
pub(crate) fn needed(request: &FileRequest) -> Vec<Digest> {
    match request {
        FileRequest::Write {
            source: Source::Stored(digest),
            ..
        }
        | FileRequest::Append {
            source: Source::Stored(digest),
            ..
        } => vec![*digest],
        FileRequest::Batch(requests) | FileRequest::Within { requests, .. } => {
            requests.iter().flat_map(needed).collect()
        }
        FileRequest::Restore { names, .. } => {
            let bodies = names
                .iter()
                .filter_map(|past| Some(&past.was.as_ref()?.body));
            let stored = bodies.filter_map(|body| {
                if let Body::Stored(digest) = body {
                    Some(*digest)
                } else {
                    None
                }
            });
            stored.collect()
        }
        _ => Vec::new(),
    }
}

/// Gives the digest of what a recipe would do. What moves, and a tree that goes, is looked at with all that is in it.
pub(crate) fn fingerprint(recipe: &FileRecipe) -> Result<Digest, FileError> {
    let mut changes = serde_json::to_value(&recipe.changes).map_err(FileError::Request)?;
    forget_the_moment(&mut changes);
    let mut bytes = serde_json::to_vec(&changes).map_err(FileError::Request)?;
    for path in recipe.changes.iter().flat_map(as_one) {
        bytes.extend(listing::whole(path)?.as_bytes());
    }
    Ok(Digest::of(&bytes))
}

/// Names what a change takes as it is, with all that is in it.
fn as_one(change: &Change) -> Vec<&TargetPath> {
    match change {
        Change::Set { path, before, .. } if is_kept_tree(before) => vec![path],
        Change::Move {
            from, to, replaced, ..
        } if is_kept_tree(replaced) => vec![from, to],
        Change::Move { from, .. } => vec![from],
        // Its recipe says nothing of what is in it.
        Change::Retouch { path, .. } => vec![path],
        Change::Set { .. } | Change::Rewrite { .. } => Vec::new(),
    }
}

fn forget_the_moment(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in OF_THE_MOMENT {
                fields.remove(name);
            }
            fields.values_mut().for_each(forget_the_moment);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_the_moment),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
