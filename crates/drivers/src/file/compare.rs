//! The one rule that guards every undo: compare what is there with what was before and what came after.
//!
//! Type, mode, owner, attributes, link target, size and digest must match; times need not. A large file
//! that is the very inode the effect left, untouched, is not read again.

use std::cell::OnceCell;
use std::collections::HashSet;

use backout_model::{Digest, TargetPath};

use super::error::FileError;
use super::keep::{digest_of, link_target, meta_of};
use super::recipe::{Change, FileCompletion, FileRecipe, Identity, Image, Kind, Meta};
use super::sys::{Dir, Node, Place, meta};

/// Above this size an untouched inode is believed without reading it.
pub(crate) const BELIEVED_BYTES_MIN: u64 = 1024 * 1024;

/// How what is there relates to an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// As it was before.
    Before,
    /// As the operation made it.
    After,
    /// Neither.
    Other {
        /// What differs from how the operation made it.
        why: String,
    },
}

/// What is at a path now. Digest and metadata are read when first asked for.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) path: TargetPath,
    /// The name in its open directory; none if the directory is not there.
    pub(crate) place: Option<Place>,
    /// What it is; none if nothing is there.
    pub(crate) node: Option<Node>,
    /// Why the path cannot be reached, if it cannot.
    blocked: Option<String>,
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
            Err(error @ FileError::ThroughSymlink { .. }) => (None, Some(error.to_string())),
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
            Image::Absent => Ok(Some(format!("it exists: {}", node.kind.noun()))),
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
                Ok(differs_in_meta(self.meta(place, node)?, meta, Kind::File))
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
            Image::Directory { meta } => Ok(differs_in_kind(node, Kind::Directory).or(
                differs_in_meta(self.meta(place, node)?, meta, Kind::Directory),
            )),
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
            Image::Linked { to, identity } => {
                let first = match identity {
                    Some(identity) => Some(identity.ino),
                    None => Self::at(to)?.node.map(|node| node.identity.ino),
                };
                let is_same = first == Some(node.identity.ino);
                Ok((!is_same).then(|| "it is another file now".to_owned()))
            }
            Image::Kept {
                node: kind,
                identity,
                meta,
                copy,
                ..
            } => self.differs_from_kept(place, node, (*kind, identity, meta), copy.as_ref()),
        }
    }

    fn differs_from_kept(
        &self,
        place: &Place,
        node: &Node,
        (kind, identity, meta): (Kind, &Identity, &Meta),
        copy: Option<&Digest>,
    ) -> Result<Option<String>, FileError> {
        if let Some(why) = differs_in_kind(node, kind) {
            return Ok(Some(why));
        }
        if !node.is_kept(kind, identity) {
            let why = match copy {
                Some(digest) => self.differs_in_bytes(place, node, digest, identity.size)?,
                None if node.identity.ino == identity.ino => {
                    Some(changed_bytes(identity.size, node.identity.size))
                }
                None => Some(format!("it is another {} now", kind.word())),
            };
            if why.is_some() {
                return Ok(why);
            }
        }
        // A tree is known by its inode; what its owner made of its mode since is not ours to judge.
        if kind == Kind::Directory {
            return Ok(None);
        }
        Ok(differs_in_meta(self.meta(place, node)?, meta, kind))
    }

    fn differs_in_bytes(
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

    fn meta(&self, place: &Place, node: &Node) -> Result<&Meta, FileError> {
        if let Some(known) = self.meta.get() {
            return Ok(known);
        }
        let read = meta_of(place, node)?;
        Ok(self.meta.get_or_init(|| read))
    }

    /// Tells which of two images is there.
    fn state(
        &self,
        before: &Image,
        after: &Image,
        left: Option<&Identity>,
    ) -> Result<State, FileError> {
        // An old tree is known by its inode, a new directory only by its looks: ask for the tree first.
        if before.is_kept() && self.differs(before, None)?.is_none() {
            return Ok(State::Before);
        }
        let Some(why) = self.differs(after, left)? else {
            return Ok(State::After);
        };
        match self.differs(before, None)? {
            None => Ok(State::Before),
            Some(_) => Ok(State::Other { why }),
        }
    }
}

/// Tells where the world stands with respect to every change of a recipe.
pub(crate) fn judge_all(
    recipe: &FileRecipe,
    completion: &FileCompletion,
) -> Result<Vec<State>, FileError> {
    let set: HashSet<&TargetPath> = recipe.changes.iter().filter_map(Change::set_path).collect();
    let mut not_yet: HashSet<TargetPath> = HashSet::new();
    let mut states = Vec::with_capacity(recipe.changes.len());
    for (index, change) in recipe.changes.iter().enumerate() {
        let mut names = std::iter::once(change.path().clone()).chain(change.path().ancestors());
        // Where an old tree or a file to be moved still stands (or stands again), nothing is of this
        // effect: what comes later in the recipe did not happen yet.
        let state = if change.set_path().is_some() && names.any(|name| not_yet.contains(&name)) {
            State::Before
        } else {
            judge(change, completion.identity(index), &set)?
        };
        if state == State::Before {
            match change {
                Change::Set {
                    path,
                    before:
                        Image::Kept {
                            node: Kind::Directory,
                            ..
                        },
                    ..
                }
                | Change::Move { from: path, .. } => drop(not_yet.insert(path.clone())),
                Change::Set { .. } | Change::Retouch { .. } => {}
            }
        }
        states.push(state);
    }
    Ok(states)
}

fn judge(
    change: &Change,
    left: Option<&Identity>,
    set: &HashSet<&TargetPath>,
) -> Result<State, FileError> {
    match change {
        Change::Set {
            path,
            before,
            after,
        } => Current::at(path)?.state(before, after, left),
        Change::Move {
            from,
            to,
            node,
            identity,
            replaced,
        } => judge_move((from, to), (*node, identity), replaced, set.contains(from)),
        Change::Retouch {
            path,
            before,
            after,
        } => {
            let current = Current::at(path)?;
            let (Some(place), Some(node)) = (&current.place, &current.node) else {
                return Ok(State::Other {
                    why: "it is gone".to_owned(),
                });
            };
            let now = current.meta(place, node)?;
            match differs_where_changed(now, after, before) {
                None => Ok(State::After),
                Some(why) => match differs_where_changed(now, before, after) {
                    None => Ok(State::Before),
                    Some(_) => Ok(State::Other { why }),
                },
            }
        }
    }
}

/// `is_reused` says that the same recipe puts something else under the old name.
fn judge_move(
    (from, to): (&TargetPath, &TargetPath),
    (kind, identity): (Kind, &Identity),
    replaced: &Image,
    is_reused: bool,
) -> Result<State, FileError> {
    let (old, new) = (Current::at(from)?, Current::at(to)?);
    let is_it = |current: &Current| {
        current
            .node
            .is_some_and(|node| node.is_kept(kind, identity))
    };
    if is_it(&new) {
        // An exchange that was cut short leaves the replaced file under the old name.
        let is_free = old.node.is_none() || is_reused;
        let is_exchanged =
            !is_free && !replaced.is_absent() && old.differs(replaced, None)?.is_none();
        if is_free || is_exchanged {
            return Ok(State::After);
        }
        return Ok(State::Other {
            why: format!("`{from}` exists again"),
        });
    }
    if is_it(&old) && new.differs(replaced, None)?.is_none() {
        return Ok(State::Before);
    }
    let why = match &new.node {
        None => format!("`{to}` is gone"),
        Some(node) if node.identity.ino == identity.ino => {
            format!(
                "`{to}`: {}",
                changed_bytes(identity.size, node.identity.size)
            )
        }
        Some(node) => format!("`{to}` is now another {}", node.kind.word()),
    };
    Ok(State::Other { why })
}

/// Compares only the fields that the change changed: others may change theirs.
fn differs_where_changed(now: &Meta, wanted: &Meta, other: &Meta) -> Option<String> {
    let mut seen = wanted.clone();
    let mut reference = wanted.clone();
    if wanted.mode != other.mode {
        seen.mode = now.mode;
    }
    if (wanted.uid, wanted.gid) != (other.uid, other.gid) {
        (seen.uid, seen.gid) = (now.uid, now.gid);
    }
    if wanted.xattrs != other.xattrs {
        seen.xattrs.clone_from(&now.xattrs);
    }
    seen.times = None;
    reference.times = None;
    differs_in_meta(&seen, &reference, Kind::File)
}

/// Says how metadata differs, times aside.
pub(crate) fn differs_in_meta(now: &Meta, wanted: &Meta, kind: Kind) -> Option<String> {
    if kind != Kind::Symlink && now.mode != wanted.mode {
        return Some(format!("mode is {:04o}, was {:04o}", now.mode, wanted.mode));
    }
    if (now.uid, now.gid) != (wanted.uid, wanted.gid) {
        let (now, was) = ((now.uid, now.gid), (wanted.uid, wanted.gid));
        return Some(format!(
            "owner is {}:{}, was {}:{}",
            now.0, now.1, was.0, was.1
        ));
    }
    for (name, value) in &wanted.xattrs {
        match now.xattrs.iter().find(|(other, _)| other == name) {
            None => return Some(format!("attribute {name:?} is gone")),
            Some((_, other)) if other != value => {
                return Some(format!("attribute {name:?} changed"));
            }
            Some(_) => {}
        }
    }
    let extra = now.xattrs.iter().find(|(name, _)| {
        !meta::is_system_given(&name.0) && !wanted.xattrs.iter().any(|(other, _)| other == name)
    });
    extra.map(|(name, _)| format!("attribute {name:?} is new"))
}

fn differs_in_kind(node: &Node, kind: Kind) -> Option<String> {
    (node.kind != kind).then(|| format!("it is {} now, was {}", node.kind.noun(), kind.noun()))
}

fn changed_bytes(was: u64, is: u64) -> String {
    if was == is {
        format!("content changed since ({was} bytes)")
    } else {
        format!("content changed since ({was} -> {is} bytes)")
    }
}

/// Tells whether the inode is the very one the effect left, in the very state. Small files are cheap to
/// read, so only large ones are believed.
fn is_untouched(node: &Node, left: &Identity) -> bool {
    let now = &node.identity;
    left.size >= BELIEVED_BYTES_MIN
        && (now.ino, now.size, now.mtime, now.ctime)
            == (left.ino, left.size, left.mtime, left.ctime)
}
