//! What a list of steps is to the engine: a recipe, targets, contents, and the times of directories.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use backout_model::ports::Prepared;
use backout_model::{OperationId, Strategy, Target, TargetPath};

use crate::file::before_image::Keeper;
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::execute::{Step, opened, secure};
use crate::file::mounted::mounts_of;
use crate::file::past::inside_of;
use crate::file::recipe::{Change, FileRecipe, Image, Kind, ParentTimes, leave_to_others};
use crate::file::stage::Staged;
use crate::file::sys::Dir;

/// Wraps steps and what they keep into what the engine arms. An `undo` may open these directories.
pub(crate) fn prepared(
    context: &FileContext,
    id: OperationId,
    mut keeper: Keeper<'_>,
    steps: Vec<Step>,
    parents: Vec<ParentTimes>,
    undo: Option<BTreeSet<TargetPath>>,
) -> Result<Prepared<Staged>, FileError> {
    secure(context, &steps)?;
    let mut changes: Vec<Change> = steps.iter().map(|step| step.change.clone()).collect();
    leave_to_others(&mut changes);
    let recipe = FileRecipe {
        operation: id,
        inside: inside_of(context, &mut keeper, &changes)?,
        mounts: mounts_of(&changes),
        changes,
        parents: parents.clone(),
        shared: BTreeMap::new(),
        opened: match &undo {
            Some(own) => opened(&steps, own),
            None => BTreeSet::new(),
        },
    };
    let needed: BTreeSet<_> = recipe.stored().collect();
    let mut contents = keeper.contents;
    contents.retain(|content| needed.contains(&content.digest));
    contents.sort_by_key(|content| content.digest);
    contents.dedup_by_key(|content| content.digest);
    Ok(Prepared {
        targets: recipe.changes.iter().flat_map(targets_of).collect(),
        recipe: recipe.encode()?,
        strategy: Strategy::Snapshot,
        copied_bytes: keeper.copied_bytes,
        contents,
        is_noop: steps.is_empty(),
        staged: Staged::new(steps, parents, undo, Arc::clone(&context.contents)),
        notes: keeper.notes,
    })
}

/// Names what a change writes.
pub(crate) fn targets_of(change: &Change) -> Vec<Target> {
    let target = |path: &TargetPath, is_tree: bool| {
        if is_tree {
            Target::tree(path.clone())
        } else {
            Target::node(path.clone())
        }
    };
    match change {
        Change::Set {
            path,
            before,
            after,
        } => {
            let is_whole = |image: &Image| {
                matches!(
                    image,
                    Image::Kept {
                        node: Kind::Directory,
                        ..
                    }
                )
            };
            // What comes to be below a new directory stands on it.
            let comes_or_goes = is_directory(before) != is_directory(after);
            let is_tree = comes_or_goes || is_whole(before) || is_whole(after);
            vec![target(path, is_tree)]
        }
        Change::Move { from, to, node, .. } => {
            let is_tree = *node == Kind::Directory;
            vec![target(from, is_tree), target(to, is_tree)]
        }
        Change::Retouch { path, .. } | Change::Rewrite { path, .. } => {
            vec![target(path, false)]
        }
    }
}

fn is_directory(image: &Image) -> bool {
    matches!(image, Image::Directory { .. })
}

/// Notes the times of the directories that exist and whose entries change.
pub(crate) fn parents_of<'c>(
    changes: impl Iterator<Item = &'c Change>,
) -> Result<Vec<ParentTimes>, FileError> {
    let mut paths = BTreeSet::new();
    let mut own = BTreeSet::new();
    for change in changes {
        match change {
            Change::Set { path, .. } => {
                paths.extend(path.parent());
                own.insert(path.clone());
            }
            Change::Move { from, to, .. } => {
                paths.extend(from.parent());
                paths.extend(to.parent());
            }
            Change::Retouch { .. } | Change::Rewrite { .. } => {}
        }
    }
    let mut parents = Vec::new();
    for path in paths.into_iter().filter(|path| !own.contains(path)) {
        match Dir::open(&path) {
            Ok(dir) => {
                let before = dir.node()?.times;
                parents.push(ParentTimes {
                    path,
                    before,
                    after: None,
                });
            }
            Err(FileError::NotFound { .. } | FileError::NotADirectory { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(parents)
}
