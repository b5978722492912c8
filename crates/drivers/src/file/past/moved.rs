//! What was in directories that an effect moved: it tells only their names.
//!
//! All of it is read where it is now, and believed as far as nothing of it changed since the move. The system stamps what
//! is moved with the time, so whatever has a later stamp, or the same, may have been changed after it.

use std::collections::BTreeMap;

use backout_model::{Effect, TargetPath};

use super::{Body, FileChange, Was, sides_of, was_there};
use crate::file::compare::Current;
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::recipe::{Change, FileCompletion, FileRecipe, Identity, Kind};
use crate::file::sys::{Node, Place};

/// Lists every name that an effect changed, once, and every name in a directory that it moved.
pub(crate) fn sides_with_moved(
    context: &FileContext,
    effect: &Effect,
) -> Result<Vec<FileChange>, FileError> {
    let sides = sides_of(context, effect)?.into_iter();
    let mut sides: BTreeMap<TargetPath, FileChange> =
        sides.map(|side| (side.path.clone(), side)).collect();
    let recipe = FileRecipe::decode(&effect.recipe)?;
    let completion = FileCompletion::of(effect)?;
    for (index, change) in recipe.changes.iter().enumerate() {
        match change {
            Change::Move {
                from,
                to,
                node,
                identity,
                ..
            } if *node != Kind::File => {
                let left = completion.identity(index).unwrap_or(identity);
                for (inside, was) in there(from, to, *node, left)? {
                    note(&mut sides, (from, to), &inside, was);
                }
            }
            Change::Move { .. }
            | Change::Set { .. }
            | Change::Retouch { .. }
            | Change::Rewrite { .. } => {}
        }
    }
    Ok(sides.into_values().collect())
}

/// Lists what an effect moved, in its order: old names with new ones.
pub(crate) fn moves_of(effect: &Effect) -> Result<Vec<(TargetPath, TargetPath)>, FileError> {
    let recipe = FileRecipe::decode(&effect.recipe)?;
    let moves = recipe
        .changes
        .into_iter()
        .filter_map(|change| match change {
            Change::Move { from, to, .. } => Some((from, to)),
            Change::Set { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => None,
        });
    Ok(moves.collect())
}

/// Notes what has one name before a move and another after it, unless the effect itself tells of it.
fn note(
    sides: &mut BTreeMap<TargetPath, FileChange>,
    (from, to): (&TargetPath, &TargetPath),
    new: &TargetPath,
    was: Was,
) {
    let Some(old) = new.rebase(to, from) else {
        return;
    };
    let is_untold = |known: &Option<Was>| known.as_ref().is_none_or(|known| known.meta.is_none());
    let nothing = |path: &TargetPath| FileChange::new(path.clone(), None, None);
    let is_root = new == to;
    let is_told = sides.contains_key(new) && !is_root;
    let after = sides.entry(new.clone()).or_insert_with(|| nothing(new));
    if !is_told && is_untold(&after.after) {
        after.after = Some(was.clone());
    }
    // What the effect changed there after the move was there before it, or was made by the effect.
    let before = if is_told {
        after.before.take()
    } else {
        Some(was)
    };
    if before.is_none() {
        return;
    }
    let old = sides.entry(old.clone()).or_insert_with(|| nothing(&old));
    if is_untold(&old.before) {
        old.before = before;
    }
}

/// Describes what was moved, with all that is in it, by its new names.
fn there(
    from: &TargetPath,
    to: &TargetPath,
    kind: Kind,
    left: &Identity,
) -> Result<Vec<(TargetPath, Was)>, FileError> {
    for at in [to, from] {
        let current = Current::at(at)?;
        if let (Some(place), Some(node)) = (&current.place, &current.node)
            && node.is_kept(kind, left)
        {
            let mut root = was_there(place, node)?;
            if node.identity.ctime > left.ctime && kind == Kind::Directory {
                root.body = changed_since(at);
            }
            let mut all = vec![(to.clone(), root)];
            walk((place, at), to, left, &mut all)?;
            return Ok(all);
        }
    }
    Ok(Vec::new())
}

fn walk(
    (place, at): (&Place, &TargetPath),
    path: &TargetPath,
    left: &Identity,
    all: &mut Vec<(TargetPath, Was)>,
) -> Result<(), FileError> {
    let is_directory = |node: &Node| node.kind == Kind::Directory;
    if !place.node()?.as_ref().is_some_and(is_directory) {
        return Ok(());
    }
    let dir = place.enter()?;
    for name in dir.names()? {
        let (entry, at, path) = (dir.place(&name), at.join(&name), path.join(&name));
        let Some(node) = entry.node()? else {
            continue;
        };
        let mut was = was_there(&entry, &node)?;
        if node.identity.ctime >= left.ctime {
            was.body = changed_since(&at);
        }
        all.push((path.clone(), was));
        walk((&entry, &at), &path, left, all)?;
    }
    Ok(())
}

fn changed_since(at: &TargetPath) -> Body {
    Body::Lost(format!(
        "only its name was changed, and `{at}` may have changed since"
    ))
}
