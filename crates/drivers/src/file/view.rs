//! Showing an effect: where each target stands now, and what it was before and after.

use std::collections::HashSet;
use std::io::Read as _;

use backout_model::{Effect, Target, TargetPath};

use super::compare::Current;
use super::error::{FileError, Naming as _};
use super::judge::{State, judge_all};
use super::locks::Locks;
use super::plan::targets_of;
use super::recipe::{Change, FileCompletion, FileRecipe, Image, Kind, Meta, Written};
use super::sys::{Dir, Place};
use super::tools::Tools;
use super::undo::without_directory;

/// The largest content that is shown.
const SHOWN_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// A target and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// The target.
    pub target: Target,
    /// How what is there now relates to the operation.
    pub state: State,
    /// The number of the change that it is part of: the two names of a move stand and fall together.
    pub change: usize,
    /// Why what it was cannot be brought back, if it cannot.
    pub lost: Option<String>,
}

/// One side of a change.
#[derive(Clone, PartialEq, Eq)]
pub enum Version {
    /// Nothing was there.
    Absent,
    /// A file with these bytes.
    Bytes(Vec<u8>),
    /// What cannot be shown as bytes, in words: a directory, a link, a file too large or not at hand.
    Described(String),
}

impl std::fmt::Debug for Version {
    // Contents may be secrets: only their size is ever shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => f.write_str("Absent"),
            Self::Bytes(content) => write!(f, "Bytes({} bytes)", content.len()),
            Self::Described(words) => write!(f, "Described({words:?})"),
        }
    }
}

/// A name with what it was before and after an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVersions {
    /// The name.
    pub path: TargetPath,
    /// What it was.
    pub before: Version,
    /// What the operation made of it.
    pub after: Version,
}

/// Tells where each target of an effect stands.
pub(crate) fn examine(tools: &Tools, effect: &Effect) -> Result<Vec<Examined>, FileError> {
    let recipe = FileRecipe::decode(&effect.recipe)?;
    let completion = FileCompletion::of(effect)?;
    let mut examined = Vec::new();
    let mut locks = Locks::default();
    let states = judge_all(tools, &recipe, &completion)?;
    let paths: HashSet<&TargetPath> = recipe.changes.iter().map(Change::path).collect();
    let brought: HashSet<&TargetPath> = recipe.changes.iter().filter_map(brings).collect();
    for (number, (change, state)) in std::iter::zip(&recipe.changes, states).enumerate() {
        let state = match state {
            State::After => {
                let locked = locks.why(change);
                let hindered = locked.or(filled(change, &paths)?.or(homeless(change, &brought)?));
                hindered.map_or(State::After, |why| State::Other { why })
            }
            state => state,
        };
        let lost = match state {
            State::Before => None,
            State::After | State::Other { .. } => lost(tools, change)?,
        };
        let of = |target| Examined {
            target,
            state: state.clone(),
            change: number,
            lost: lost.clone(),
        };
        examined.extend(targets_of(change).into_iter().map(of));
    }
    Ok(examined)
}

/// Says why what a change replaced cannot be brought back, if it is not kept or not kept any more.
fn lost(tools: &Tools, change: &Change) -> Result<Option<String>, FileError> {
    match change {
        Change::Set { before, .. } => lost_image(tools, before),
        Change::Move { replaced, .. } => lost_image(tools, replaced),
        Change::Rewrite { before, .. } => before.lacks(tools),
        Change::Retouch { .. } => Ok(None),
    }
}

fn lost_image(tools: &Tools, image: &Image) -> Result<Option<String>, FileError> {
    let is_stored = |digest| match tools.contents.has(digest) {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "its content {} is missing from the store",
            digest.short()
        )),
        Err(error) => Some(error.to_string()),
    };
    Ok(match image {
        Image::Unkept { why, .. } => Some(format!("it was not kept: {why}")),
        Image::File {
            digest,
            stored: true,
            ..
        } => is_stored(digest),
        Image::File { .. } => Some("its bytes were never stored".to_owned()),
        Image::Kept { slot, copy, .. } if Current::at(&slot.path())?.node.is_none() => match copy {
            Some(copy) => is_stored(copy),
            None => Some("what was kept is not in its depot any more".to_owned()),
        },
        Image::Kept { .. }
        | Image::Absent
        | Image::Symlink { .. }
        | Image::Directory { .. }
        | Image::Special { .. }
        | Image::Linked { .. } => None,
    })
}

/// Tells what stands in a directory that the operation made and that is not its own.
fn filled(change: &Change, own: &HashSet<&TargetPath>) -> Result<Option<String>, FileError> {
    let Change::Set {
        path,
        before,
        after: Image::Directory { .. },
    } = change
    else {
        return Ok(None);
    };
    if matches!(before, Image::Directory { .. }) {
        return Ok(None);
    }
    let mut names = Dir::of(path)?.enter()?.names()?;
    names.retain(|name| !own.contains(&path.join(name)));
    let Some(first) = names.first() else {
        return Ok(None);
    };
    let more = match names.len() {
        1 => String::new(),
        number => format!(" and {} more", number - 1),
    };
    let first = first.to_string_lossy();
    Ok(Some(format!("the directory is not empty: {first}{more}")))
}

/// Gives the name that an undo of a change brings something back to.
fn brings(change: &Change) -> Option<&TargetPath> {
    match change {
        Change::Set { path, .. } => Some(path),
        Change::Move { from, .. } => Some(from),
        Change::Retouch { .. } | Change::Rewrite { .. } => None,
    }
}

/// Tells that what is to come back has no directory any more to come back to.
fn homeless(change: &Change, brought: &HashSet<&TargetPath>) -> Result<Option<String>, FileError> {
    let (path, comes_back) = match change {
        Change::Set { path, before, .. } => (path, !before.is_absent()),
        Change::Move { from, .. } => (from, true),
        Change::Retouch { .. } | Change::Rewrite { .. } => return Ok(None),
    };
    let is_there = || Ok::<_, FileError>(Current::at(path)?.place.is_some());
    let is_homeless = comes_back && !path.ancestors().any(|above| brought.contains(&above));
    Ok((is_homeless && !is_there()?).then(|| without_directory(path)))
}

/// Gives both sides of each change.
pub(crate) fn versions(tools: &Tools, effect: &Effect) -> Result<Vec<FileVersions>, FileError> {
    let recipe = FileRecipe::decode(&effect.recipe)?;
    let mut all = Vec::new();
    for change in &recipe.changes {
        match change {
            Change::Set {
                path,
                before,
                after,
            } => all.push(FileVersions {
                path: path.clone(),
                before: version(tools, path, before)?,
                after: version(tools, path, after)?,
            }),
            Change::Move {
                from,
                to,
                node,
                replaced,
                ..
            } => {
                let moved = || Version::Described(node.noun().to_owned());
                all.push(FileVersions {
                    path: from.clone(),
                    before: moved(),
                    after: Version::Described(format!("moved to `{to}`")),
                });
                let before = version(tools, to, replaced)?;
                all.push(FileVersions {
                    path: to.clone(),
                    before,
                    after: moved(),
                });
            }
            Change::Retouch {
                path,
                before,
                after,
                ..
            } => all.push(FileVersions {
                path: path.clone(),
                before: Version::Described(described(before)),
                after: Version::Described(described(after)),
            }),
            Change::Rewrite {
                path,
                before,
                after,
                ..
            } => all.push(FileVersions {
                path: path.clone(),
                before: version_of(tools, path, before)?,
                after: version_of(tools, path, after)?,
            }),
        }
    }
    Ok(all)
}

fn described(meta: &Meta) -> String {
    format!("mode {:04o}, owner {}:{}", meta.mode, meta.uid, meta.gid)
}

/// Shows what was or came to be in a file, from its copy if it has one.
fn version_of(tools: &Tools, path: &TargetPath, written: &Written) -> Result<Version, FileError> {
    let slot = written.slot.as_ref().map(backout_model::Slot::path);
    version(tools, slot.as_ref().unwrap_or(path), &written.image())
}

fn version(tools: &Tools, path: &TargetPath, image: &Image) -> Result<Version, FileError> {
    let too_large =
        |size: u64| Version::Described(format!("a file of {size} bytes, too large to show"));
    match image {
        Image::Absent => Ok(Version::Absent),
        Image::Directory { .. } => Ok(Version::Described("a directory".to_owned())),
        Image::Symlink { to, .. } => Ok(Version::Described(format!("a symbolic link to {to:?}"))),
        Image::Linked { to, .. } => Ok(Version::Described(format!("another name of `{to}`"))),
        Image::File { size, .. } if *size > SHOWN_BYTES_MAX => Ok(too_large(*size)),
        Image::File {
            digest,
            stored: true,
            ..
        } => Ok(Version::Bytes(tools.contents.read(digest)?)),
        Image::File { size, .. } => {
            // Never stored, but perhaps still there.
            let current = Current::at(path)?;
            match (&current.place, current.differs(image, None)?) {
                (Some(place), None) => Ok(Version::Bytes(read(place)?)),
                (_, _) => Ok(Version::Described(format!(
                    "a file of {size} bytes, not kept"
                ))),
            }
        }
        Image::Kept {
            node: Kind::Directory,
            ..
        } => Ok(Version::Described(
            "a directory with all that is in it".to_owned(),
        )),
        Image::Kept {
            node: Kind::File,
            identity,
            ..
        } if identity.size > SHOWN_BYTES_MAX => Ok(too_large(identity.size)),
        Image::Kept {
            slot,
            node: Kind::File,
            identity,
            copy,
            ..
        } => {
            if let Some(digest) = copy {
                return Ok(Version::Bytes(tools.contents.read(digest)?));
            }
            for path in [&slot.path(), path] {
                let current = Current::at(path)?;
                if let (Some(place), Some(node)) = (&current.place, &current.node)
                    && node.is_kept(Kind::File, identity)
                {
                    return Ok(Version::Bytes(read(place)?));
                }
            }
            Ok(Version::Described(format!(
                "a file of {} bytes, not kept",
                identity.size
            )))
        }
        Image::Special { node, .. } | Image::Kept { node, .. } => {
            Ok(Version::Described(node.noun().to_owned()))
        }
        Image::Unkept { node, why } => Ok(Version::Described(format!(
            "{} that was not kept: {why}",
            node.noun()
        ))),
    }
}

fn read(place: &Place) -> Result<Vec<u8>, FileError> {
    let mut content = Vec::new();
    place
        .read()?
        .read_to_end(&mut content)
        .naming(&place.path(), "read")?;
    Ok(content)
}
