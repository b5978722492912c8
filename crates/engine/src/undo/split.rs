//! What is chosen of a tree that went as one and comes back as one: such a tree is not split, and that is said. And what
//! stays of directories that go.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use backout_files::Was;
use backout_model::{History, Key, OperationId, PlanError, Target, TargetPath, UndoPlan};

use super::preview::way_of;
use crate::{Engine, EngineError, Selection, UndoOptions};

/// So many names below a directory are looked at for what was excluded. Where there are more, the directory stays.
const LOOKED_AT_MAX: usize = 100_000;

impl Engine {
    /// Refuses a plan that would bring back with a tree what was excluded.
    pub(super) fn refuse_split(
        &self,
        history: &History,
        plan: &UndoPlan,
        options: &UndoOptions,
    ) -> Result<(), EngineError> {
        let exclude = &options.selection.exclude;
        for step in plan.steps.iter().filter(|_| !exclude.is_empty()) {
            let is_meant = |tree: &Key| step.targets.iter().any(|it| it.key() == tree);
            let is_excluded = |path: &Key| {
                let path = path.file();
                path.is_some_and(|path| exclude.iter().any(|it| it.matches(path.as_path())))
            };
            let tree = self.tree_with(step.with, &is_meant, &is_excluded)?;
            if let (Some(tree), Some(operation)) = (tree, history.get(step.id)) {
                return Err(EngineError::Inseparable {
                    id: step.id,
                    way: way_of(operation),
                    tree: Some(tree),
                });
            }
        }
        Ok(())
    }

    /// Keeps the directories that would go and that hold what was excluded, whoever wrote it. If nothing else is meant, that is
    /// refused.
    pub(super) fn keep_homes(
        &self,
        history: &History,
        plan: &mut UndoPlan,
        options: &UndoOptions,
    ) -> Result<(), EngineError> {
        if options.selection.exclude.is_empty() {
            return Ok(());
        }
        let mut kept = None;
        let taken: HashSet<(OperationId, Key)> = each_target(plan).collect();
        for step in &mut plan.steps {
            let Some(operation) = history.get(step.id) else {
                continue;
            };
            let stay = operation.in_effect().map(|standing| standing.target.key());
            let stay = stay.filter(|key| !taken.contains(&(step.id, (*key).clone())));
            let stay = stay.filter(|key| key.file().is_some_and(is_there));
            let homes: HashSet<Key> = stay.flat_map(Key::ancestors).collect();
            let sides = self.sides_of(&self.store.effect(step.with)?)?.into_iter();
            let goes: HashSet<Key> = sides
                .filter(|side| !side.before.as_ref().is_some_and(Was::is_directory))
                .map(|side| Key::from(side.path))
                .collect();
            let is_home = |target: &Target| {
                let is_held = || homes.contains(target.key()) || holds(target, &options.selection);
                goes.contains(target.key()) && is_held()
            };
            let home = step.targets.iter().find(|it| is_home(it));
            kept = kept.or_else(|| {
                Some(EngineError::Inseparable {
                    id: step.id,
                    way: way_of(operation),
                    tree: Some(home?.key().clone()),
                })
            });
            step.targets.retain(|target| !is_home(target));
        }
        plan.steps.retain(|step| !step.targets.is_empty());
        match kept {
            Some(error) if plan.steps.is_empty() => Err(error),
            Some(_) | None => Ok(()),
        }
    }

    /// Says of an operation of which nothing is chosen that what is chosen is in a tree, if it is.
    pub(super) fn chosen_in_tree(
        &self,
        error: EngineError,
        options: &UndoOptions,
    ) -> Result<EngineError, EngineError> {
        let EngineError::Plan(PlanError::NothingChosen { id }) = error else {
            return Ok(error);
        };
        let Some(operation) = self.store.operation(id)?.filter(|it| it.retained) else {
            return Ok(error);
        };
        let in_effect = |tree: &Key| operation.in_effect().any(|it| it.target.key() == tree);
        let is_chosen = |path: &Key| {
            let path = path.file();
            path.is_some_and(|path| options.selection.has(std::iter::once(path.as_path())))
        };
        let tree = self.tree_with(id, &in_effect, &is_chosen)?;
        Ok(match tree {
            Some(tree) => EngineError::Inseparable {
                id,
                way: way_of(&operation),
                tree: Some(tree),
            },
            None => error,
        })
    }

    /// Finds such a tree that went as one, with such a thing in it.
    fn tree_with(
        &self,
        id: OperationId,
        is_it: &dyn Fn(&Key) -> bool,
        is_in_it: &dyn Fn(&Key) -> bool,
    ) -> Result<Option<Key>, EngineError> {
        let effect = self.store.effect(id)?;
        let gone = self.driver_of(&effect)?.outline(&effect)?.gone;
        let mut trees = gone.into_iter().filter(|tree| is_it(tree)).peekable();
        if trees.peek().is_none() {
            return Ok(None);
        }
        let sides = self.sides_of(&effect)?.into_iter();
        let was_there = sides.filter(|side| side.before.is_some());
        let inside: Vec<Key> = was_there.map(|side| Key::from(side.path)).collect();
        let has = |tree: &Key| {
            let below = inside.iter().filter(|it| it.ancestors().contains(tree));
            below.into_iter().any(is_in_it)
        };
        Ok(trees.find(has))
    }
}

/// Refuses a plan that would take what was excluded along with a directory that moved.
pub(super) fn refuse_moved(
    history: &History,
    plan: &UndoPlan,
    along: &BTreeSet<Key>,
    options: &UndoOptions,
) -> Result<(), EngineError> {
    for step in &plan.steps {
        let excluded = step.targets.iter().find_map(|target| {
            let above = target.key().ancestors().into_iter();
            let moved = above.filter(|it| along.contains(it)).last()?;
            is_excluded(&options.selection, target).then_some(moved)
        });
        if let (Some(tree), Some(operation)) = (excluded, history.get(step.id)) {
            return Err(EngineError::Inseparable {
                id: step.id,
                way: way_of(operation),
                tree: Some(tree),
            });
        }
    }
    Ok(())
}

fn is_excluded(selection: &Selection, target: &Target) -> bool {
    let exclusion = Selection {
        only: Vec::new(),
        exclude: selection.exclude.clone(),
    };
    !exclusion.has_target(target)
}

/// Tells whether a directory holds something that was excluded, as it is now.
fn holds(target: &Target, selection: &Selection) -> bool {
    let Some(root) = target.file() else {
        return false;
    };
    let is_directory = |path: &Path| path.symlink_metadata().is_ok_and(|it| it.is_dir());
    let mut directories = vec![root.as_path().to_path_buf()];
    let mut looked_at = 0;
    while let Some(directory) = directories.pop().filter(|it| is_directory(it)) {
        let entries = std::fs::read_dir(&directory).into_iter().flatten();
        for path in entries.flatten().map(|entry| entry.path()) {
            looked_at += 1;
            let mut exclude = selection.exclude.iter();
            if looked_at > LOOKED_AT_MAX || exclude.any(|glob| glob.matches(&path)) {
                return true;
            }
            if is_directory(&path) {
                directories.push(path);
            }
        }
    }
    false
}

/// Lists what a plan takes back, each with its operation.
fn each_target(plan: &UndoPlan) -> impl Iterator<Item = (OperationId, Key)> + '_ {
    let steps = plan.steps.iter();
    steps.flat_map(|step| {
        let targets = step.targets.iter();
        targets.map(|target| (step.id, target.key().clone()))
    })
}

fn is_there(path: &TargetPath) -> bool {
    path.as_path().symlink_metadata().is_ok()
}
