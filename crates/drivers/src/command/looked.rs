//! Looking: what stands at some names is kept before somebody else writes them, and compared when they have.
//!
//! For writers that tell us the names beforehand and are not watched while they write: the file tools of an agent. What was
//! found rides with the record that arms the operation, so there is no log, and one sync makes all of it durable.
//!
//! - Only the names that were told are looked at, before and after, with the directories above that are not there yet. What
//!   else came to be in such a directory is somebody else's.
//! - A name that is a link stands for itself and for what it leads to: nobody says which of the two will be written.

use std::path::Path;

use backout_files::{Left, Looked, Past, Settled, Since, Was};
use backout_model::ports::NewContent;
use backout_model::{Digest, JsonText, OperationId, TargetPath};
use serde::{Deserialize, Serialize};

use super::log::Note;
use super::settle::settle;
use super::tracker::Tracker;
use crate::file::before_image::{INLINE_BYTES_MAX, digest_of, link_target, meta_of};
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::past::digest;
use crate::file::recipe::{Holes, Image, Kind};
use crate::file::resolve::{Last, resolve};
use crate::file::sys::{Dir, Node, Place, bytes};

/// All contents that ride with the record together; more are put into the store first.
const RIDING_TOTAL_MAX: u64 = 4 * 1024 * 1024;

/// One name, with the number of its inode if that has several names.
#[derive(Debug, Serialize, Deserialize)]
struct Found {
    note: Note,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shared: Option<u64>,
}

/// A look in the making.
struct Looking<'c> {
    context: &'c FileContext,
    id: OperationId,
    found: Vec<Found>,
    paths: Vec<TargetPath>,
    contents: Vec<NewContent>,
    digests: Vec<Digest>,
    riding: u64,
}

/// Finds the names that a path as given stands for: itself, and what it leads to.
pub(crate) fn names(context: &FileContext, given: &Path) -> Result<Vec<TargetPath>, FileError> {
    let name = resolve(context, given, Last::Itself)?.path;
    let end = resolve(context, given, Last::Followed)?.path;
    Ok(if name == end {
        vec![name]
    } else {
        vec![name, end]
    })
}

/// Keeps what stands at some names.
pub(crate) fn look(
    context: &FileContext,
    id: OperationId,
    paths: &[TargetPath],
) -> Result<Looked, FileError> {
    let mut looking = Looking {
        context,
        id,
        found: Vec::new(),
        paths: Vec::new(),
        contents: Vec::new(),
        digests: Vec::new(),
        riding: 0,
    };
    for path in paths {
        looking.path(path)?;
    }
    looking.digests.sort_unstable();
    looking.digests.dedup();
    Ok(Looked {
        found: written_down(&looking.found)?,
        paths: looking.paths,
        contents: looking.contents,
        digests: looking.digests,
    })
}

impl Looking<'_> {
    fn path(&mut self, path: &TargetPath) -> Result<(), FileError> {
        if self.paths.contains(path) {
            return Ok(());
        }
        self.paths.push(path.clone());
        if let Some((place, node)) = standing(path)? {
            self.times_above(path)?;
            let image = self.image(&place, &node)?;
            self.digests.extend(image.stored());
            let whole = Note::Whole {
                path: path.clone(),
                image,
                written: None,
            };
            let shared = node.is_shared.then_some(node.identity.ino);
            self.found.push(Found {
                note: whole,
                shared,
            });
            return Ok(());
        }
        // The directory first: what is in it comes after it.
        match path.parent() {
            Some(parent) if standing(&parent)?.is_none() => self.path(&parent)?,
            Some(_) | None => self.times_above(path)?,
        }
        self.note(Note::Absent(path.clone()));
        Ok(())
    }

    fn note(&mut self, note: Note) {
        self.found.push(Found { note, shared: None });
    }

    fn times_above(&mut self, path: &TargetPath) -> Result<(), FileError> {
        let Some(parent) = path.parent() else {
            return Ok(());
        };
        if let Some((_, node)) = standing(&parent)? {
            self.note(Note::Parent {
                path: parent,
                times: node.times,
            });
        }
        Ok(())
    }

    fn image(&mut self, place: &Place, node: &Node) -> Result<Image, FileError> {
        let meta = meta_of(place, node)?;
        Ok(match node.kind {
            Kind::File => {
                let (digest, size, holes) = self.content(place, node)?;
                Image::File {
                    digest,
                    size,
                    stored: true,
                    meta,
                    without: None,
                    holes,
                }
            }
            Kind::Symlink => Image::Symlink {
                to: link_target(place)?,
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

    /// Keeps the bytes of a file: few ride with the record, many go into the store first.
    fn content(&mut self, place: &Place, node: &Node) -> Result<(Digest, u64, Holes), FileError> {
        use std::io::{Read as _, Seek as _};
        let unread = |source| FileError::Io {
            path: place.path().to_string(),
            action: "read",
            source,
        };
        let size = node.identity.size;
        let mut file = place.read()?;
        let holes = bytes::holes(&file, size);
        file.rewind().map_err(unread)?;
        if size > INLINE_BYTES_MAX || self.riding + size > RIDING_TOTAL_MAX {
            let (digest, size) = self.context.stash.stash(self.id, &mut file)?;
            return Ok((digest, size, holes));
        }
        let mut content = Vec::new();
        file.take(INLINE_BYTES_MAX + 1)
            .read_to_end(&mut content)
            .map_err(unread)?;
        let new = NewContent::of(content);
        let (digest, size) = (new.digest, new.bytes.len() as u64);
        self.riding += size;
        self.contents.push(new);
        Ok((digest, size, holes))
    }
}

/// Gives what stands at a name; none if nothing does, or its directory is not there.
fn standing(path: &TargetPath) -> Result<Option<(Place, Node)>, FileError> {
    let is_missing = |error: &FileError| matches!(error, FileError::NotFound { .. });
    let place = match Dir::of(path) {
        Ok(place) => place,
        Err(error) if is_missing(&error) || !above_is_there(path) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(place.node()?.map(|node| (place, node)))
}

fn above_is_there(path: &TargetPath) -> bool {
    path.parent().is_none_or(|parent| parent.as_path().is_dir())
}

/// Says what was done to names that were looked at.
pub(crate) fn settle_looked(
    context: &FileContext,
    id: OperationId,
    found: &JsonText,
) -> Result<Settled, FileError> {
    let mut tracker = Tracker::default();
    for Found { mut note, shared } in read(found)? {
        // The same inode with other bytes shows them under all its names.
        if let (Note::Whole { path, written, .. }, Some(number)) = (&mut note, shared)
            && let Some((_, node)) = standing(path)?
            && node.identity.ino == number
        {
            *written = Some(number);
        }
        tracker.apply(note, Vec::new());
    }
    settle(context, id, tracker)
}

fn read(found: &JsonText) -> Result<Vec<Found>, FileError> {
    found.read().map_err(|error| FileError::Io {
        path: "what was found".to_owned(),
        action: "read",
        source: error.into(),
    })
}

fn written_down(found: &[Found]) -> Result<JsonText, FileError> {
    JsonText::of(&found).map_err(|error| FileError::Io {
        path: "what was found".to_owned(),
        action: "write down",
        source: error.into(),
    })
}

/// Gives the name that a note of a look is about; none if it is about the times of a directory above.
const fn name_of(note: &Note) -> Option<&TargetPath> {
    if let Note::Absent(path) | Note::Whole { path, .. } = note {
        Some(path)
    } else {
        None
    }
}

/// Lists the names that were to be written. A directory that was missing is told before what was to be in it.
pub(crate) fn names_in(found: &JsonText) -> Result<Vec<TargetPath>, FileError> {
    let found = read(found)?;
    let all = || found.iter().filter_map(|it| name_of(&it.note));
    let is_above = |name: &TargetPath| all().any(|other| other.is_below(name));
    Ok(all().filter(|name| !is_above(name)).cloned().collect())
}

/// Takes what was recorded of names since for what was found there: who looked then did not do that.
pub(crate) fn brought_up(
    context: &FileContext,
    found: &JsonText,
    since: &[Since],
) -> Result<JsonText, FileError> {
    let mut found = read(found)?;
    for Since {
        path,
        found: first,
        left,
    } in since
    {
        let is_it = |it: &Found| name_of(&it.note) == Some(path);
        let Some(at) = found.iter().position(is_it) else {
            continue;
        };
        let known = found.get_mut(at).zip(first.as_ref());
        match (known, left) {
            (Some((it, first)), _) if !is_like(context, &it.note, first.was.as_ref())? => {}
            (_, Left::Stands) => {
                found.remove(at);
            }
            (_, Left::Was(was)) => {
                if let Some(it) = found.get_mut(at) {
                    it.note = recorded(context, path, was.as_deref())?;
                    it.shared = None;
                }
            }
        }
    }
    written_down(&found)
}

/// Tells whether what was found is what somebody else found later, as far as that can be told.
fn is_like(context: &FileContext, note: &Note, was: Option<&Was>) -> Result<bool, FileError> {
    let (Note::Whole { image, .. }, Some(was)) = (note, was) else {
        return Ok(matches!(note, Note::Absent(_)) && was.is_none());
    };
    if was.is_dress() {
        return Ok(true);
    }
    Ok(match image {
        Image::File { digest: found, .. } => {
            was.kind == Kind::File && digest(context, was)? == Some(*found)
        }
        Image::Directory { .. } => was.kind == Kind::Directory,
        Image::Symlink { to, .. } => was.kind == Kind::Symlink && was.link.as_ref() == Some(to),
        Image::Special { node, .. } | Image::Unkept { node, .. } => was.kind == *node,
        // No look makes these.
        Image::Absent | Image::Linked { .. } | Image::Kept { .. } => false,
    })
}

fn recorded(
    context: &FileContext,
    path: &TargetPath,
    was: Option<&Was>,
) -> Result<Note, FileError> {
    Ok(match was {
        Some(was) => Note::Whole {
            path: path.clone(),
            image: image_of(context, path, was)?,
            written: None,
        },
        None => Note::Absent(path.clone()),
    })
}

/// Writes down what was recorded of names. Where nobody has the bytes any more, that is what is written.
pub(crate) fn believe(context: &FileContext, names: &[Past]) -> Result<JsonText, FileError> {
    let mut found = Vec::with_capacity(names.len());
    for Past { path, was } in names {
        let note = recorded(context, path, was.as_ref())?;
        found.push(Found { note, shared: None });
    }
    written_down(&found)
}

fn image_of(context: &FileContext, path: &TargetPath, was: &Was) -> Result<Image, FileError> {
    let unkept = |why: &str| Image::Unkept {
        node: was.kind,
        why: why.to_owned(),
    };
    let Some(meta) = was.meta.clone() else {
        return Ok(unkept("only its name was recorded"));
    };
    Ok(match was.kind {
        Kind::File => {
            // Where only mode, owner or attributes were recorded, the bytes are those that are there.
            let digest = match (was.is_dress(), standing(path)?) {
                (true, Some((place, node))) if node.kind == Kind::File => {
                    Some((digest_of(&place)?.0, node.identity.size))
                }
                _ => digest(context, was)?.zip(was.size),
            };
            let is_kept = |digest: &Digest| {
                let contents = &context.contents;
                contents.has(digest).is_ok_and(|has| has)
                    && contents.outside(digest).is_ok_and(|it| it.is_empty())
            };
            match digest.filter(|(digest, _)| is_kept(digest)) {
                Some((digest, size)) => Image::File {
                    digest,
                    size,
                    stored: true,
                    meta,
                    without: None,
                    holes: Holes::new(),
                },
                None => unkept("nobody had it when somebody else replaced it"),
            }
        }
        Kind::Directory => Image::Directory { meta },
        Kind::Symlink => match was.link.clone() {
            Some(to) => Image::Symlink { to, meta },
            None => unkept("nobody noted where the link led"),
        },
        Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharacterDevice => Image::Special {
            node: was.kind,
            device: was.device,
            meta,
        },
    })
}
