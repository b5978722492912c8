//! Preparing an undo: every target is judged and its way back staged before anything is touched.

use std::collections::{HashMap, HashSet};

use backout_model::ports::{OnConflict, PreparedUndo};
use backout_model::{Effect, OperationId, OutcomeKind, TargetOutcome, TargetPath};

use super::outcomes_of;
use crate::file::compare::Current;
use crate::file::error::FileError;
use crate::file::execute::Step;
use crate::file::judge::{State, judge_all};
use crate::file::keep::Keeper;
use crate::file::locks::Locks;
use crate::file::plan::{parents_of, prepared};
use crate::file::recipe::{Change, FileCompletion, FileRecipe, Image, Kind, Numbers, ParentTimes};
use crate::file::stage::Staged;
use crate::file::sys::Dir;
use crate::file::tools::Tools;

/// Prepares the operation that takes `effect` back.
pub(crate) fn prepare_undo(
    tools: &Tools,
    id: OperationId,
    effect: &Effect,
    on_conflict: OnConflict,
) -> Result<PreparedUndo<Staged>, FileError> {
    let recipe = FileRecipe::decode(&effect.recipe)?;
    let completion = FileCompletion::of(effect)?;
    let states = judge_all(&recipe, &completion)?;
    let mut undo = Undo {
        tools,
        id,
        on_conflict,
        keeper: Keeper::new(tools, id),
        steps: Vec::new(),
        open: 0,
        whole: whole_trees(&recipe),
        returning: returning(&recipe),
        listed: recipe
            .changes
            .iter()
            .map(|change| change.path().clone())
            .collect(),
        rewritten: recipe.rewritten(),
        changes: &recipe.changes,
    };
    undo.forget_trees_without_depot()?;
    let mut outcomes = Vec::new();
    // Each is judged, made and put in place.
    tools.progress.total(recipe.changes.len() as u64 * 3);
    for (change, state) in std::iter::zip(&recipe.changes, states).rev() {
        tools.progress.advance(1);
        let kind = undo.take_back(change, state)?;
        outcomes.extend(outcomes_of(change, &kind).into_iter().rev());
        tools.reach("file.judged")?;
    }
    outcomes.reverse();
    undo.finish(&recipe, &completion, outcomes)
}

/// An undo in the making.
pub(super) struct Undo<'t> {
    pub(super) tools: &'t Tools,
    pub(super) id: OperationId,
    pub(super) on_conflict: OnConflict,
    pub(super) keeper: Keeper<'t>,
    pub(super) steps: Vec<Step>,
    pub(super) open: usize,
    /// New directories of the effect that can be taken away whole.
    pub(super) whole: HashMap<TargetPath, bool>,
    /// Files that were kept and come back, by their number.
    pub(super) returning: HashMap<u64, TargetPath>,
    /// Every name that the effect changed.
    pub(super) listed: HashSet<TargetPath>,
    /// The inodes that the effect changed in place.
    pub(super) rewritten: Numbers,
    /// All that the effect did.
    pub(super) changes: &'t [Change],
}

impl Undo<'_> {
    fn take_back(&mut self, change: &Change, state: State) -> Result<OutcomeKind, FileError> {
        if let Some(kind) = self.part_of_whole(change, &state) {
            return Ok(kind);
        }
        match change {
            Change::Set {
                path,
                before,
                after,
            } => self.take_back_set(path, before, after, state),
            Change::Move {
                from,
                to,
                node,
                replaced,
                ..
            } => self.take_back_move((from, to), *node, replaced, state),
            Change::Retouch {
                path,
                before,
                after,
                ..
            } => self.take_back_retouch(path, before, after, state),
            Change::Rewrite {
                path, ino, before, ..
            } => self.take_back_rewrite((path, *ino), before, state),
        }
    }

    /// Where there is no depot, new directories are taken away entry by entry.
    fn forget_trees_without_depot(&mut self) -> Result<(), FileError> {
        for path in self.whole.keys().cloned().collect::<Vec<_>>() {
            let can_park = match Dir::of(&path) {
                Ok(place) => self.keeper.can_park(&place.dir)?,
                Err(FileError::NotFound { .. }) => false,
                Err(error) => return Err(error),
            };
            if !can_park {
                self.whole.remove(&path);
            }
        }
        Ok(())
    }

    /// Tells whether a name's directory is there, or is brought back by a step of this very undo.
    pub(super) fn has_directory(&self, current: &Current) -> bool {
        let parent = current.path.parent();
        let is_parent = |step: &Step| match &step.change {
            Change::Set { path, after, .. } => {
                Some(path) == parent.as_ref() && after.is_directory()
            }
            Change::Move { to, .. } => Some(to) == parent.as_ref(),
            Change::Retouch { .. } | Change::Rewrite { .. } => false,
        };
        current.place.is_some() || self.steps.iter().any(is_parent)
    }

    /// Judges an entry of a new directory that will be taken away whole.
    fn part_of_whole(&mut self, change: &Change, state: &State) -> Option<OutcomeKind> {
        let root = change
            .path()
            .ancestors()
            .find(|above| self.whole.contains_key(above))?;
        Some(match (state, self.on_conflict) {
            (State::Before, _) => OutcomeKind::AlreadyGone,
            (State::After, _) | (State::Other { .. }, OnConflict::Force) => OutcomeKind::Restored,
            (State::Other { why }, OnConflict::Refuse | OnConflict::Merge) => {
                self.whole.insert(root, false);
                OutcomeKind::Conflict { why: why.clone() }
            }
        })
    }

    /// Turns what a flag forbids into a conflict, before anything is touched.
    fn refuse_locked(&self, outcomes: &mut [TargetOutcome]) {
        let mut locks = Locks::default();
        for step in &self.steps {
            let Some(why) = locks.why(&step.change) else {
                continue;
            };
            let is_of_step = |outcome: &&mut TargetOutcome| {
                let path = outcome.target.path();
                let from = match &step.change {
                    Change::Move { from, .. } => Some(from),
                    Change::Set { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => None,
                };
                path == step.change.path() || Some(path) == from
            };
            for outcome in outcomes.iter_mut().filter(is_of_step) {
                outcome.kind = OutcomeKind::Conflict { why: why.clone() };
            }
        }
    }

    fn finish(
        mut self,
        recipe: &FileRecipe,
        completion: &FileCompletion,
        mut outcomes: Vec<TargetOutcome>,
    ) -> Result<PreparedUndo<Staged>, FileError> {
        self.refuse_locked(&mut outcomes);
        let has_conflict = outcomes
            .iter()
            .any(|outcome| matches!(outcome.kind, OutcomeKind::Conflict { .. }));
        let is_left = |outcome: &TargetOutcome| {
            matches!(
                outcome.kind,
                OutcomeKind::Conflict { .. } | OutcomeKind::Failed { .. }
            )
        };
        let has_hole = outcomes.iter().any(is_left);
        let is_locked = self
            .steps
            .iter()
            .any(|step| Locks::default().refuse(&step.change).is_err());
        if has_conflict && (is_locked || self.on_conflict != OnConflict::Force) {
            self.steps.clear();
            let why = "another target of the operation is in conflict".to_owned();
            let is_planned =
                |kind: &OutcomeKind| matches!(kind, OutcomeKind::Restored | OutcomeKind::Merged);
            for outcome in outcomes
                .iter_mut()
                .filter(|outcome| is_planned(&outcome.kind))
            {
                outcome.kind = OutcomeKind::Skipped { why: why.clone() };
            }
        }
        for (number, step) in self.steps.iter_mut().enumerate() {
            step.number = number;
        }
        let mut parents = parents_of(self.steps.iter().map(|step| &step.change))?;
        if !has_hole {
            put_back_times(&mut parents, recipe, completion);
        }
        self.tools.reach("file.undo-prepared")?;
        let prepared = prepared(self.tools, self.id, self.keeper, self.steps, parents, true)?;
        Ok(PreparedUndo { prepared, outcomes })
    }
}

/// Plans to give directories the times they had, where nobody else has written to them since. A command may have
/// changed the times of a directory and nothing in it.
fn put_back_times(
    parents: &mut Vec<ParentTimes>,
    recipe: &FileRecipe,
    completion: &FileCompletion,
) {
    for (other, left) in std::iter::zip(&recipe.parents, &completion.parents) {
        if let Some(parent) = parents.iter_mut().find(|parent| parent.path == other.path) {
            if *left == Some(parent.before.mtime) {
                parent.after = Some(other.before);
            }
            continue;
        }
        let now = Dir::open(&other.path).and_then(|dir| dir.node());
        if let Ok(now) = now
            && *left == Some(now.times.mtime)
            && now.times.mtime != other.before.mtime
        {
            parents.push(ParentTimes {
                path: other.path.clone(),
                before: now.times,
                after: Some(other.before),
            });
        }
    }
}

/// Finds the files that an undo takes out of their slots, moves back or writes into.
fn returning(recipe: &FileRecipe) -> HashMap<u64, TargetPath> {
    let kept = recipe.changes.iter().filter_map(|change| match change {
        Change::Set {
            path,
            before: Image::Kept { identity, node, .. },
            ..
        } if *node == Kind::File => Some((identity.ino, path.clone())),
        Change::Rewrite { path, ino, .. } => Some((*ino, path.clone())),
        Change::Move {
            from,
            identity,
            node,
            ..
        } if *node != Kind::Directory => Some((identity.ino, from.clone())),
        Change::Set { .. } | Change::Move { .. } | Change::Retouch { .. } => None,
    });
    kept.collect()
}

/// Finds the new directories whose entries came with them and with nothing else.
fn whole_trees(recipe: &FileRecipe) -> HashMap<TargetPath, bool> {
    let mut roots: HashMap<TargetPath, bool> = HashMap::new();
    let mut filled = HashSet::new();
    for change in &recipe.changes {
        let path = change.path();
        let root = path
            .ancestors()
            .filter(|above| roots.contains_key(above))
            .last();
        match (root, change) {
            // A kept tree must not go on sharing a file with what stays.
            (
                Some(root),
                Change::Set {
                    after: Image::Linked { to, .. },
                    ..
                },
            ) if !to.is_below(&root) => drop(roots.remove(&root)),
            (Some(root), Change::Set { .. }) => drop(filled.insert(root)),
            (Some(root), Change::Move { .. } | Change::Retouch { .. } | Change::Rewrite { .. }) => {
                roots.remove(&root);
            }
            (None, change) if change.is_new_directory() => drop(roots.insert(path.clone(), true)),
            (None, _) => {}
        }
        if let Change::Move { from, .. } = change {
            roots.retain(|root, _| !from.is_below(root));
        }
    }
    roots.retain(|root, _| filled.contains(root));
    roots
}
