//! What is in a tree: whether all of it is ours, and a digest that is enough to notice that somebody was there, without
//! reading a single file.
//!
//! The digest speaks of names, kinds, sizes, modes, owners and the times of everything but directories. Work that was
//! done in the tree and taken back exactly leaves no trace in it.

use std::collections::HashSet;

use backout_model::{Digest, TargetPath};

use super::compare::Current;
use super::error::FileError;
use super::recipe::{Identity, Kind};
use super::sys::{Node, Place};

/// A larger tree is not looked through: it stays as cheap to remove and to bring back as a small one.
pub(crate) const ENTRIES_MAX: usize = 10_000;

/// Tells mode, user and group of something in a tree.
pub(crate) type Looks<'l> = dyn Fn(&Node) -> (u32, u32, u32) + 'l;

/// Gives the digest of what is in a tree; none if it is too large or cannot be looked through.
pub(crate) fn listing(tree: &Place) -> Result<Option<Digest>, FileError> {
    listing_as(tree, &|node| (node.mode, node.uid, node.gid))
}

/// The same, with another mode, user and group for some of it.
pub(crate) fn listing_as(tree: &Place, looks: &Looks<'_>) -> Result<Option<Digest>, FileError> {
    let mut lines = Vec::new();
    Ok(match list(tree, looks, &mut Vec::new(), &mut lines) {
        Ok(true) => Some(Digest::of(&lines.concat())),
        Ok(false) | Err(FileError::Permission { .. }) => None,
        Err(error) => return Err(error),
    })
}

fn list(
    place: &Place,
    looks: &Looks<'_>,
    above: &mut Vec<u8>,
    lines: &mut Vec<Vec<u8>>,
) -> Result<bool, FileError> {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = place.enter()?;
    for name in dir.names()? {
        let entry = dir.place(&name);
        let Some(node) = entry.node()? else {
            continue;
        };
        if lines.len() >= ENTRIES_MAX {
            return Ok(false);
        }
        let is_directory = node.kind == Kind::Directory;
        let (size, mtime) = if is_directory {
            (0, 0)
        } else {
            (node.identity.size, node.identity.mtime)
        };
        let length = above.len();
        above.push(b'/');
        above.extend(name.as_bytes());
        let mut line = above.clone();
        let (mode, uid, gid) = looks(&node);
        let state = (node.kind.word(), mode, uid, gid, size, mtime);
        line.extend(format!("\0{state:?}\0").into_bytes());
        lines.push(line);
        if is_directory && !list(&entry, looks, above, lines)? {
            return Ok(false);
        }
        above.truncate(length);
    }
    Ok(true)
}

/// Gives a digest that no change of what a name stands for, or of anything below it, leaves as it is: names, kinds, modes,
/// owners, inodes, sizes and times, the change time among them. Nothing is read, however large it is.
pub(crate) fn whole(path: &TargetPath) -> Result<Digest, FileError> {
    let mut lines = Vec::new();
    let current = Current::at(path)?;
    if let (Some(place), Some(node)) = (&current.place, &current.node) {
        lines.extend(format!("{:?}\0", state_of(node)).into_bytes());
        if node.kind == Kind::Directory {
            list_whole(place, &mut lines)?;
        }
    }
    Ok(Digest::of(&lines))
}

fn list_whole(place: &Place, lines: &mut Vec<u8>) -> Result<(), FileError> {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = match place.enter() {
        // What nobody can look into is known by its own times.
        Err(FileError::Permission { .. }) => return Ok(()),
        entered => entered?,
    };
    let mut names = dir.names()?;
    names.sort_unstable();
    for name in names {
        let entry = dir.place(&name);
        let Some(node) = entry.node()? else {
            continue;
        };
        lines.extend(name.as_bytes());
        lines.extend(format!("\0{:?}\0", state_of(&node)).into_bytes());
        if node.kind == Kind::Directory {
            list_whole(&entry, lines)?;
            lines.extend(b"/\0");
        }
    }
    Ok(())
}

fn state_of(node: &Node) -> (&'static str, u32, u32, u32, Identity) {
    // The number of a device is another one after a restart.
    let identity = Identity {
        dev: 0,
        ..node.identity
    };
    (node.kind.word(), node.mode, node.uid, node.gid, identity)
}

/// Tells whether there is something in a tree that is not listed.
pub(crate) fn has_strangers(
    root: &TargetPath,
    listed: &HashSet<TargetPath>,
) -> Result<bool, FileError> {
    let current = Current::at(root)?;
    let (Some(place), Some(node)) = (&current.place, &current.node) else {
        return Ok(false);
    };
    if node.kind != Kind::Directory {
        return Ok(false);
    }
    for name in place.enter()?.names()? {
        let path = root.join(&name);
        if !listed.contains(&path) || has_strangers(&path, listed)? {
            return Ok(true);
        }
    }
    Ok(false)
}
