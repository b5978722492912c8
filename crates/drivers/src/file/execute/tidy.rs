//! Clearing away the temporary names that a crash left behind, found by the recipe alone.
//!
//! A kept inode that stands under a temporary name goes back into its slot; everything else under such a
//! name is a copy of something stored, and goes away. In a half-built directory only the names that the
//! recipe lists are removed: what anybody else put there stays. What a move replaced and was not put away goes where it was
//! to go: its recipe has it.

use std::collections::HashSet;

use backout_model::{Slot, TargetPath};

use super::temporary_name;
use crate::file::compare::Current;
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::recipe::{Change, FileRecipe, Identity, Image, Kind};
use crate::file::sys::{Dir, Place, names};

/// Clears the temporary names of an operation, those of settling it included.
pub(crate) fn tidy(context: &FileContext, recipe: &FileRecipe) -> Result<(), FileError> {
    for (number, change) in recipe.changes.iter().enumerate() {
        let Some(parent) = change.path().parent() else {
            continue;
        };
        let stage = parent.join(&temporary_name(recipe.operation, number));
        for place in names_of(&stage)? {
            // The kept inode of this very change first: what is in it is not ours to clear.
            if rescue(&place, change)? && place.node()?.is_some() {
                clear(&place, change, recipe)?;
            }
            context.reach("file.tidied")?;
        }
        if let Change::Move {
            from,
            to,
            node,
            identity,
            replaced,
            ..
        } = change
        {
            put_away(recipe, from, to, (*node, identity), replaced)?;
        }
    }
    Ok(())
}

/// Tells whether an operation left something to clear: then it did not come to its end.
pub(crate) fn is_left(recipe: &FileRecipe) -> Result<bool, FileError> {
    let paths: HashSet<_> = recipe.changes.iter().map(Change::path).collect();
    for (number, change) in recipe.changes.iter().enumerate() {
        let parent = change.path().parent();
        let stage = parent.map(|parent| parent.join(&temporary_name(recipe.operation, number)));
        if let Some(stage) = stage
            && !names_of(&stage)?.is_empty()
        {
            return Ok(true);
        }
        if let Change::Move {
            from,
            to,
            node,
            identity,
            replaced,
            ..
        } = change
            && !paths.contains(from)
            && exchanged_out(from, to, (*node, identity), replaced)?.is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Finds what a move exchanged out and did not put away: it still has the old name of what was moved.
fn exchanged_out(
    from: &TargetPath,
    to: &TargetPath,
    (kind, identity): (Kind, &Identity),
    replaced: &Image,
) -> Result<Option<Place>, FileError> {
    if replaced.is_absent() {
        return Ok(None);
    }
    let (old, new) = (Current::at(from)?, Current::at(to)?);
    let is_moved = new.node.is_some_and(|node| node.is_kept(kind, identity));
    if !is_moved || old.place.is_none() || old.differs(replaced, None)?.is_some() {
        return Ok(None);
    }
    Ok(old.place)
}

/// Tells whether a name has a kept inode that one of some changes brings there. It may look like what a move exchanged out.
pub(crate) fn is_out_of_slot(changes: &[Change], current: &Current) -> bool {
    let there = current.node.map(|node| node.identity.ino);
    let brought = changes.iter().filter(|it| *it.path() == current.path);
    let mut brought = brought.flat_map(Change::images).filter_map(kept);
    brought.any(|(_, _, identity)| there == Some(identity.ino))
}

/// Puts away what a move exchanged out. What another change brought to that name out of its slot may look the same.
fn put_away(
    recipe: &FileRecipe,
    from: &TargetPath,
    to: &TargetPath,
    it: (Kind, &Identity),
    replaced: &Image,
) -> Result<(), FileError> {
    let Some(place) = &exchanged_out(from, to, it, replaced)? else {
        return Ok(());
    };
    if is_out_of_slot(&recipe.changes, &Current::at(from)?) {
        return Ok(());
    }
    match replaced.slot() {
        Some(slot) => match open(Dir::of(&slot.path()))? {
            Some(home) if home.node()?.is_none() => {
                names::put_into_slot(place, &home, replaced.is_directory())
            }
            Some(_) | None => Ok(()),
        },
        None => remove(place),
    }
}

/// Clears a temporary name and, if it is a half-built directory, the entries that the recipe lists.
fn clear(place: &Place, change: &Change, recipe: &FileRecipe) -> Result<(), FileError> {
    let (root, stage) = (change.path(), place.path());
    let mut entries: Vec<_> = recipe
        .changes
        .iter()
        .filter(|other| other.path().is_below(root))
        .filter_map(|other| Some((other.path().rebase(root, &stage)?, other)))
        .collect();
    // Deepest first.
    entries.sort_by(|one, other| other.0.cmp(&one.0));
    for (path, change) in entries {
        if let Some(entry) = open(Dir::of(&path))?
            && rescue(&entry, change)?
        {
            remove(&entry)?;
        }
    }
    remove(place)
}

/// Gives the one or two temporary names of a change that something stands under.
fn names_of(stage: &TargetPath) -> Result<Vec<Place>, FileError> {
    let Some(place) = open(Dir::of(stage))? else {
        return Ok(Vec::new());
    };
    let mut old = place.name.clone();
    old.push("-old");
    let mut found = Vec::new();
    for place in [place.dir.place(&old), place] {
        if place.node()?.is_some() {
            found.push(place);
        }
    }
    Ok(found)
}

/// Puts a kept inode back into its slot. Gives false if one is there and cannot go back.
fn rescue(place: &Place, change: &Change) -> Result<bool, FileError> {
    let Some(node) = place.node()? else {
        return Ok(true);
    };
    for (slot, kind, identity) in change.images().into_iter().filter_map(kept) {
        // By its number alone: even one that changed since is not ours to remove.
        if node.kind != kind || node.identity.ino != identity.ino {
            continue;
        }
        return match open(Dir::of(&slot.path()))? {
            Some(home) if home.node()?.is_none() => {
                let is_tree = kind == Kind::Directory;
                names::put_into_slot(place, &home, is_tree).map(|()| true)
            }
            Some(_) | None => Ok(false),
        };
    }
    Ok(true)
}

fn remove(place: &Place) -> Result<(), FileError> {
    match place.node()? {
        None => Ok(()),
        Some(node) if node.kind != Kind::Directory => names::unlink(place),
        Some(_) => match names::rmdir(place) {
            Err(FileError::NotEmpty { .. }) => Ok(()),
            other => other,
        },
    }
}

fn kept(image: &Image) -> Option<(&Slot, Kind, &Identity)> {
    match image {
        Image::Kept {
            slot,
            node,
            identity,
            ..
        } => Some((slot, *node, identity)),
        Image::Absent
        | Image::File { .. }
        | Image::Symlink { .. }
        | Image::Directory { .. }
        | Image::Special { .. }
        | Image::Linked { .. }
        | Image::Unkept { .. } => None,
    }
}

/// What is not there needs no clearing.
fn open(found: Result<Place, FileError>) -> Result<Option<Place>, FileError> {
    match found {
        Ok(place) => Ok(Some(place)),
        Err(error) if error.leads_nowhere() => Ok(None),
        Err(error) => Err(error),
    }
}
