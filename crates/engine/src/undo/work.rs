//! A step of a plan, with the recipe that carries it out and the part of it that is meant.
//!
//! An operation's targets and those of the recipe that takes them back need not be the same: an undo takes a new directory
//! away as one, so the redo brings it back as one. What a recipe says of a tree holds for everything in it.

use std::collections::{BTreeSet, HashMap, HashSet};

use backout_files::FileChange;
use backout_model::ports::{Examined, Guarantee, How, OnConflict, Outline, Past, PastRole, State};
use backout_model::{
    Below, Chosen, Effect, Key, Operation, OperationId, OutcomeKind, Reach, Standing, Status,
    Target, TargetOutcome, TargetPath, UndoStep,
};
use backout_storage::Filter;

use super::preview::way_of;
use crate::{Engine, EngineError, TakeBack};

/// How many operations on one file are looked at to find what it was before the first of them.
const PAST_MAX: usize = 256;

/// A step that can be carried out.
pub(crate) struct Work<'h> {
    pub(crate) operation: &'h Operation,
    pub(crate) step: UndoStep,
    pub(crate) effect: Effect,
    /// What taking it back can promise.
    pub(crate) guarantee: Guarantee,
    /// Who may have seen what is taken back.
    pub(crate) seen_by_others: Option<String>,
    /// The targets of the recipe that are meant; none means all.
    only: Option<BTreeSet<Key>>,
    /// What took other parts of the operation back before.
    earlier: Vec<Effect>,
    /// What else happened in the file whose parts it is about.
    past: Vec<Past>,
    /// What the recipe made beside the operation's targets, so that they had a place.
    homes: BTreeSet<Key>,
}

impl Work<'_> {
    /// Tells whether only some of what the recipe holds are meant.
    pub(super) const fn is_part(&self) -> bool {
        self.only.is_some()
    }

    /// Says it to a driver.
    pub(crate) fn how(&self, on_conflict: OnConflict, is_partial: bool) -> How<'_> {
        How {
            on_conflict,
            is_partial,
            only: self.only.as_ref(),
            homes: Some(&self.homes),
            is_unfinished: self.operation.status.is_unfinished(),
            earlier: &self.earlier,
            past: &self.past,
        }
    }

    /// Says of each of the operation's targets what became of it. What is meant and the recipe does not speak of was found
    /// as it had to be. What is not meant may have been needed all the same, like the directory of a file that comes back;
    /// that says nothing of what else was in it.
    pub(crate) fn spread(&self, outcomes: &[TargetOutcome]) -> Vec<TargetOutcome> {
        let told = Told::new(
            outcomes
                .iter()
                .map(|outcome| (&outcome.target, &outcome.kind)),
        );
        let meant: HashSet<&Key> = self.step.targets.iter().map(Target::key).collect();
        let targets = self.operation.in_effect().map(|standing| &standing.target);
        let each = targets.filter_map(|target| {
            let kind = if meant.contains(target.key()) {
                told.of(target).unwrap_or(&OutcomeKind::AlreadyGone)
            } else {
                told.exactly(target)?
            };
            let tree = || outcomes.iter().find(|it| is_in(target, &it.target));
            let kind = match (kind, told.exactly(target)) {
                (OutcomeKind::Conflict { why }, None) => OutcomeKind::Conflict {
                    why: match tree() {
                        Some(tree) => self.said_of_part(&tree.target, why),
                        None => why.clone(),
                    },
                },
                (kind, _) => kind.clone(),
            };
            Some(TargetOutcome::new(target.clone(), kind))
        });
        each.collect()
    }

    /// Says of each target that is meant how it stands.
    pub(crate) fn examined<'e>(
        &self,
        examined: &'e [Examined],
    ) -> Vec<(Target, Option<&'e Examined>)> {
        let told = Told::new(examined.iter().map(|it| (&it.target, it)));
        let targets = self.step.targets.iter();
        let each = targets.map(|target| (target.clone(), told.of(target)));
        each.collect()
    }

    /// Says why something cannot come back that only comes with its tree.
    pub(crate) fn said_of_part(&self, tree: &Target, why: &str) -> String {
        match way_of(self.operation) {
            TakeBack::Redo => format!("it comes back with `{tree}`: {why}"),
            TakeBack::Undo => why.to_owned(),
        }
    }

    /// Tells whether nothing of the operation stays in effect if these targets are taken back.
    pub(crate) fn is_whole(&self, outcomes: &[TargetOutcome]) -> bool {
        let settled = outcomes
            .iter()
            .filter(|outcome| outcome.kind.is_taken_back());
        let settled: HashSet<&Key> = settled.map(|outcome| outcome.target.key()).collect();
        let mut all = self.operation.in_effect();
        all.all(|standing| settled.contains(standing.target.key()))
    }
}

impl Engine {
    /// Finds the recipe of a step, and the part of it that is meant.
    pub(crate) fn work<'h>(
        &self,
        operation: &'h Operation,
        step: &UndoStep,
    ) -> Result<Work<'h>, EngineError> {
        let mut held_as_one = None;
        let mut changed = None;
        // Where a redo brought back as one what is to go in part, the operation itself knows the parts.
        for with in [step.with, step.id] {
            let effect = self.store.effect(with)?;
            let Outline {
                targets: held,
                gone,
                guarantee,
                seen_by_others,
                ..
            } = self.driver_of(&effect)?.outline(&effect)?;
            let moved_on = self.moved_on(operation, with, &step.targets)?;
            match part_of((&held, &gone), (operation, with), &step.targets, &moved_on) {
                Ok(only) => {
                    let step = UndoStep {
                        with,
                        ..step.clone()
                    };
                    let past = self.past_of(operation, &step)?;
                    let work = Work {
                        operation,
                        step,
                        effect,
                        guarantee,
                        seen_by_others,
                        only,
                        earlier: self.earlier(operation.id)?,
                        past,
                        homes: homes(operation, &held),
                    };
                    // Of a tree that came as one, and in which somebody was since, the operation itself knows the parts, too.
                    if with == operation.id || changed.is_some() || !self.is_drifted_tree(&work)? {
                        return Ok(work);
                    }
                    changed = Some(work);
                }
                Err(tree) => held_as_one = Some(tree),
            }
        }
        changed.ok_or_else(|| EngineError::Inseparable {
            id: step.id,
            way: way_of(operation),
            tree: held_as_one,
        })
    }

    /// Tells whether a redo brought back a tree as one, where nothing was, that does not hold any more what it held then.
    fn is_drifted_tree(&self, work: &Work<'_>) -> Result<bool, EngineError> {
        let driver = self.driver_of(&work.effect)?;
        let come = driver.outline(&work.effect)?.come;
        // Only the redo knows what it replaced.
        let is_replaced = |it: &FileChange| it.before.is_some() && is_come(&it.path, &come);
        if come.is_empty() || self.sides_of(&work.effect)?.iter().any(is_replaced) {
            return Ok(false);
        }
        let examined = driver.examine(&work.effect, false)?;
        let is_other = |it: &Examined| {
            matches!(it.state, State::Other { .. }) && come.contains(it.target.key())
        };
        Ok(examined.iter().any(is_other))
    }

    /// Gives the recipes of what took parts of an operation back, a moment ago too.
    fn earlier(&self, id: OperationId) -> Result<Vec<Effect>, EngineError> {
        let now = self.store.operation(id)?;
        let undos = now.map(|now| now.undos()).unwrap_or_default();
        let effects = undos.into_iter().map(|undo| self.store.effect(undo));
        Ok(effects.collect::<Result<_, _>>()?)
    }

    /// Gives what else happened in a file, if a step takes back parts of it only.
    fn past_of(&self, operation: &Operation, step: &UndoStep) -> Result<Vec<Past>, EngineError> {
        let mut parts = step.targets.iter().map(Target::key);
        let is_part = |key: &Key| !key.parts().is_empty();
        let file = step.targets.first().and_then(Target::file);
        let is_undo = operation.undoes.is_none();
        let (Some(file), true) = (file, is_undo && parts.all(is_part)) else {
            return Ok(Vec::new());
        };
        let mut found = self.store.operations(&Filter {
            at: Some(Key::from(file.clone())),
            limit: Some(PAST_MAX),
            ..Filter::default()
        })?;
        found.reverse();
        let mut past = Vec::new();
        for other in found {
            let is_done = other.status.is_in_effect() || other.status == Status::Undone;
            if !is_done {
                continue;
            }
            let in_effect = other.in_effect().count();
            let role = if other.id == operation.id {
                PastRole::Itself
            } else if other.undoes.is_some() {
                let (id, of) = (other.id, self.subject(other.clone())?);
                PastRole::Way(of.unwrap_or(id))
            } else if in_effect == 0 {
                PastRole::Undone
            } else if in_effect < other.targets.len() {
                PastRole::Partly
            } else {
                PastRole::Stands
            };
            // What is not kept any more says nothing.
            if let Ok(effect) = self.store.effect(other.id) {
                let id = other.id;
                past.push(Past { id, effect, role });
            }
        }
        Ok(past)
    }

    /// Joins two steps of an operation, if they have one recipe, or that of the first speaks of all that the second is about.
    pub(super) fn united(
        &self,
        first: &UndoStep,
        second: &UndoStep,
    ) -> Result<Option<UndoStep>, EngineError> {
        let effect = self.store.effect(first.with)?;
        let held = self.driver_of(&effect)?.outline(&effect)?.targets;
        let is_told = second.targets.iter().all(|target| held.contains(target));
        if first.with != second.with && !is_told {
            return Ok(None);
        }
        let mut targets = [first.targets.as_slice(), &second.targets].concat();
        targets.sort_by(|one, other| one.key().cmp(other.key()));
        Ok(Some(UndoStep {
            targets,
            ..first.clone()
        }))
    }

    /// Lists what a redo brought back of an operation and holds no more: it was taken back since, or brought by another. What
    /// holds somebody's text is held by the operation itself; it goes with the redo if that is meant with it.
    fn moved_on(
        &self,
        operation: &Operation,
        with: OperationId,
        meant: &[Target],
    ) -> Result<Vec<Target>, EngineError> {
        if with == operation.id {
            return Ok(Vec::new());
        }
        let redo = self.store.operation(with)?;
        let brought = redo.iter().flat_map(|redo| &redo.targets);
        let brought: HashSet<&Key> = brought.map(|standing| standing.target.key()).collect();
        let still = redo.iter().flat_map(Operation::in_effect);
        let still: HashSet<&Target> = still.map(|standing| &standing.target).collect();
        // So does what an older redo holds.
        let place =
            |id: OperationId| Ok::<_, EngineError>(self.store.operation(id)?.map(|it| it.lsn));
        let at = redo.as_ref().map(|redo| redo.lsn);
        let mut newer = HashSet::new();
        for holder in operation.targets.iter().filter_map(|it| it.held_by) {
            if holder != with && place(holder)? > at {
                newer.insert(holder);
            }
        }
        let is_along = |it: &Standing| {
            it.held_by.is_none_or(|holder| !newer.contains(&holder))
                && meant.contains(&it.target)
                && still.contains(&it.target)
        };
        let is_held =
            |it: &Standing| it.is_in_effect() && (it.held_by == Some(with) || is_along(it));
        let others = operation.targets.iter().filter(|it| !is_held(it));
        let others = others.map(|standing| &standing.target);
        let moved_on = others.filter(|target| brought.contains(target.key()));
        Ok(moved_on.cloned().collect())
    }

    /// The same for all of an operation that a dead process left.
    pub(crate) fn whole_work<'h>(&self, operation: &'h Operation) -> Result<Work<'h>, EngineError> {
        let targets = operation
            .in_effect()
            .map(|standing| standing.target.clone());
        let step = UndoStep {
            id: operation.id,
            with: operation.id,
            targets: targets.collect(),
            strategy: operation.decision.strategy,
            chosen: Chosen::Named,
        };
        Ok(Work {
            operation,
            effect: self.store.effect(operation.id)?,
            guarantee: Guarantee::default(),
            seen_by_others: None,
            step,
            only: None,
            earlier: Vec::new(),
            past: Vec::new(),
            homes: BTreeSet::new(),
        })
    }
}

/// Finds the targets of a recipe that hold those that are meant, and no others. None if that is all of them; the error is
/// a tree that holds others, too, or of which something has moved on.
fn part_of(
    (held, gone): (&[Target], &BTreeSet<Key>),
    (operation, with): (&Operation, OperationId),
    meant: &[Target],
    moved_on: &[Target],
) -> Result<Option<BTreeSet<Key>>, Key> {
    let holders = Told::new(held.iter().map(|target| (target, target)));
    let is_meant: HashSet<&Key> = meant.iter().map(Target::key).collect();
    let mut only = BTreeSet::new();
    let mut trees = HashSet::new();
    for target in meant {
        // What it was is in the tree that went, and not in the change of its own.
        let is_left = |above: &Key| {
            let mut others = operation.in_effect().map(|standing| standing.target.key());
            gone.contains(above) && !is_meant.contains(above) && others.any(|it| it == above)
        };
        if let Some(tree) = target.key().ancestors().into_iter().find(is_left) {
            return Err(tree);
        }
        if let Some(holder) = holders.of(target) {
            only.insert(holder.key().clone());
            if holder.key() != target.key() && with != operation.id {
                trees.insert(holder.key());
            }
        }
    }
    let is_other = |standing: &&Standing| !is_meant.contains(standing.target.key());
    for standing in operation.in_effect().filter(is_other) {
        let other = &standing.target;
        let Some(holder) = holders.of(other).map(Target::key) else {
            continue;
        };
        // Whoever takes one thing out of a tree that came as one takes the tree, which another recipe may have to answer for.
        // A move has two names, and goes by either of them.
        let is_held = standing.held_by.unwrap_or(operation.id) == with;
        let is_tree = holder == other.key();
        let is_along = is_held && only.contains(holder) && !is_tree;
        if is_along || is_tree && trees.contains(holder) {
            return Err(holder.clone());
        }
    }
    for other in moved_on {
        let holder = holders.of(other).map(Target::key);
        if let Some(holder) =
            holder.filter(|holder| only.contains(*holder) && *holder != other.key())
        {
            return Err(holder.clone());
        }
    }
    let is_all = held.iter().all(|target| only.contains(target.key()));
    Ok((!is_all).then_some(only))
}

fn is_come(path: &TargetPath, come: &BTreeSet<Key>) -> bool {
    come.contains(&Key::from(path.clone()))
}

/// Lists the targets of a redo's recipe that are not what it brought back.
fn homes(operation: &Operation, held: &[Target]) -> BTreeSet<Key> {
    let own = operation.targets.iter();
    let own: HashSet<&Key> = own.map(|standing| standing.target.key()).collect();
    let held = held.iter().map(Target::key);
    held.filter(|key| !own.contains(key)).cloned().collect()
}

/// Tells whether a target lies in the tree of another.
fn is_in(target: &Target, tree: &Target) -> bool {
    tree.reach() == Reach::Tree && target.key().ancestors().contains(tree.key())
}

/// What is said of targets, found by a target that is the same or lies below.
pub(crate) struct Told<'t, T> {
    exact: HashMap<&'t Key, &'t T>,
    trees: HashMap<&'t Key, &'t T>,
}

impl<'t, T> Told<'t, T> {
    pub(crate) fn new(said: impl Iterator<Item = (&'t Target, &'t T)>) -> Self {
        let (mut exact, mut trees) = (HashMap::new(), HashMap::new());
        for (target, it) in said {
            exact.insert(target.key(), it);
            if target.reach() == Reach::Tree {
                trees.insert(target.key(), it);
            }
        }
        Self { exact, trees }
    }

    pub(crate) fn exactly(&self, target: &Target) -> Option<&'t T> {
        self.exact.get(target.key()).copied()
    }

    pub(crate) fn of(&self, target: &Target) -> Option<&'t T> {
        let key = target.key();
        let holder = |above: &Key| match key.below(above) {
            Some(Below::Part) => self.exact.get(above),
            _ => self.trees.get(above),
        };
        let above = || key.ancestors().iter().find_map(holder);
        self.exactly(target).or_else(|| above().copied())
    }
}
