//! What is chosen of a tree that went as one and comes back as one: such a tree is not split, and that is said. And what
//! stays of directories that go.

use std::collections::{BTreeSet, HashSet};

use backout_files::Was;
use backout_model::{
    History, Key, Operation, OperationId, PlanError, Reach, Target, TargetPath, UndoPlan,
};

use super::preview::way_of;
use crate::{Engine, EngineError, PlannedTarget, TargetState, UndoOptions};

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

    /// Refuses a plan that would take what was excluded along with something that moved: the other name of a file, or what is in a directory,
    /// by the name that it has or would get.
    pub(super) fn refuse_moved(
        &self,
        history: &History,
        plan: &UndoPlan,
        options: &UndoOptions,
    ) -> Result<(), EngineError> {
        let selection = &options.selection;
        for step in plan.steps.iter().filter(|_| !selection.exclude.is_empty()) {
            let effect = self.store.effect(step.with)?;
            let driver = self.driver_of(&effect)?;
            let files = step.targets.iter().filter_map(|it| Some((it, it.file()?)));
            for (target, path) in files {
                let is_excluded = selection.leaves_out(path.as_path());
                if !is_excluded && target.reach() != Reach::Tree {
                    continue;
                }
                let name = BTreeSet::from([target.key().clone()]);
                let names = driver.with_moved(&effect, &name)?;
                let mut roots = names.iter().filter_map(Key::file);
                let holds =
                    |root: &TargetPath| selection.leaves_out_in(root.as_path(), path.as_path());
                let is_held = names.len() > 1 && (is_excluded || roots.any(holds));
                if let (true, Some(operation)) = (is_held, history.get(step.id)) {
                    return Err(EngineError::Inseparable {
                        id: step.id,
                        way: way_of(operation),
                        tree: Some(target.key().clone()),
                    });
                }
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
                let is_held = || {
                    homes.contains(target.key())
                        || target
                            .file()
                            .map(TargetPath::as_path)
                            .is_some_and(|path| options.selection.leaves_out_in(path, path))
                };
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

    /// Refuses to take a part out of a tree that a redo took away as one, if nobody else has it: before anything is touched.
    pub(super) fn refuse_lost_in_tree(
        &self,
        operation: &Operation,
        planned: &[PlannedTarget],
    ) -> Result<(), EngineError> {
        let is_lost = |it: &&PlannedTarget| matches!(it.state, TargetState::CannotComeBack { .. });
        for lost in planned.iter().filter(is_lost) {
            let mut standings = operation.in_effect();
            let standing = standings.find(|it| it.target == lost.target);
            let Some(redo) = standing.and_then(|it| it.held_by) else {
                continue;
            };
            let effect = self.store.effect(redo)?;
            let gone = self.driver_of(&effect)?.outline(&effect)?.gone;
            let mut above = lost.target.key().ancestors().into_iter();
            if let Some(tree) = above.find(|above| gone.contains(above)) {
                return Err(EngineError::Inseparable {
                    id: operation.id,
                    way: way_of(operation),
                    tree: Some(tree),
                });
            }
        }
        Ok(())
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
