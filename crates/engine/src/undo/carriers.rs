//! Directories that have to come with something that is to be taken back, where only that something was asked for.
//!
//! - What was written in a directory that another operation moved is at another name since, so the move goes first. Whoever
//!   removed the directory does not: one file of it can come back without the rest. Who made another directory in the place that
//!   it left goes before the move, with what was written in there.
//! - Where parts of an operation were brought back by different redos, the one that holds a file may not speak of the file's
//!   directory. Then the directory comes by the recipe that does.

use std::collections::BTreeSet;

use backout_files::{FileChange, Was};
use backout_model::{
    DependencyReason, History, Key, Operation, OperationId, Target, TargetPath, UndoPlan, UndoStep,
};

use crate::{Engine, EngineError};

/// Operations of which a directory has to go or to come, each with the name of that.
#[derive(Debug, Default)]
pub(super) struct Carriers(BTreeSet<(OperationId, Key)>);

impl Carriers {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether a target is the directory of one of them.
    pub(super) fn have(&self, target: &Target) -> bool {
        self.0.iter().any(|(_, key)| key == target.key())
    }

    /// Tells whether it is the directory of this operation.
    pub(super) fn have_of(&self, id: OperationId, key: &Key) -> bool {
        self.0.contains(&(id, key.clone()))
    }

    /// Names the operations.
    pub(super) fn ids(&self) -> impl Iterator<Item = OperationId> + '_ {
        self.0.iter().map(|(id, _)| *id)
    }

    /// Takes the directories out of the steps of everybody else, as far as nobody wants them.
    pub(super) fn hold(&self, plan: &mut UndoPlan, is_wanted: impl Fn(&Target) -> bool) {
        if self.0.is_empty() {
            return;
        }
        for step in &mut plan.steps {
            let id = step.id;
            let is_carrier = |target: &Target| self.have_of(id, target.key());
            step.targets
                .retain(|target| is_wanted(target) || is_carrier(target));
        }
        plan.steps.retain(|step| !step.targets.is_empty());
    }
}

impl Engine {
    /// Adds what moved a directory in which a step of a plan takes something back.
    pub(super) fn add_carriers(
        &self,
        history: &History,
        plan: &UndoPlan,
        carriers: &mut Carriers,
    ) -> Result<(), EngineError> {
        for step in &plan.steps {
            for (later, reason) in history.dependents(step.id) {
                let is_above = reason == DependencyReason::HoldsTarget;
                if !is_above || later.verb.is_reversal() || !later.status.is_in_effect() {
                    continue;
                }
                let holds = |target: &&Target| {
                    let mut inside = step.targets.iter();
                    inside.any(|it| it.key() != target.key() && it.overlap(target).is_some())
                };
                let theirs = later.in_effect().map(|standing| &standing.target);
                for target in theirs.filter(holds) {
                    let name = BTreeSet::from([target.key().clone()]);
                    let effect = self.store.effect(later.id)?;
                    let driver = self.driver_of(&effect)?;
                    if driver.with_moved(&effect, &name)?.len() > 1 {
                        carriers.0.insert((later.id, target.key().clone()));
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds who took the place that a moved directory comes back to, and whoever wrote in that.
    pub(super) fn add_successors(
        &self,
        history: &History,
        plan: &UndoPlan,
        carriers: &mut Carriers,
    ) -> Result<(), EngineError> {
        for step in &plan.steps {
            let is_carrier = |key: &&Key| carriers.have_of(step.id, key);
            let keys: BTreeSet<Key> = (step.targets.iter().map(Target::key).filter(is_carrier))
                .cloned()
                .collect();
            if keys.is_empty() {
                continue;
            }
            let taken = self.taken_places(step.with, keys)?;
            for (later, reason) in history.dependents(step.id) {
                let is_meant = reason.is_of_targets() && later.status.is_in_effect();
                if !is_meant || later.verb.is_reversal() {
                    continue;
                }
                let theirs = later.in_effect().map(|standing| standing.target.key());
                let in_it = theirs.filter(|key| taken.iter().any(|it| key.is_at_or_below(it)));
                let in_it = in_it.map(|key| (later.id, key.clone()));
                carriers.0.extend(in_it);
            }
        }
        Ok(())
    }

    /// Gives those of some names where a directory left, or where one was made: what came there since has to go.
    fn taken_places(
        &self,
        with: OperationId,
        mut keys: BTreeSet<Key>,
    ) -> Result<BTreeSet<Key>, EngineError> {
        let sides = self.sides_of(&self.store.effect(with)?)?;
        let goes = |key: &Key| {
            let made = |it: &FileChange| it.before.is_none() && it.from.is_none();
            let is_it = |it: &FileChange| Key::from(it.path.clone()) == *key;
            sides.iter().any(|side| made(side) && is_it(side))
        };
        let comes: BTreeSet<Key> = sides.iter().cloned().filter_map(comes_back_to).collect();
        keys.retain(|key| comes.contains(key) || goes(key));
        Ok(keys)
    }

    /// Adds the missing directories of what a step of a plan brings back, where another recipe than the step's has them: that of
    /// another redo of the same operation, or, for a redo, that of another undo of it.
    pub(super) fn add_homes(
        &self,
        history: &History,
        plan: &UndoPlan,
        carriers: &mut Carriers,
    ) -> Result<(), EngineError> {
        for step in &plan.steps {
            let mut missing = missing_homes(history, step);
            if missing.is_empty() {
                continue;
            }
            let sides = self.sides_of(&self.store.effect(step.with)?)?.into_iter();
            let comes: BTreeSet<Key> = sides.filter_map(comes_back_to).collect();
            let coming = step.targets.iter().map(Target::key);
            let coming = coming.filter(|key| comes.contains(*key));
            let needed: BTreeSet<Key> = coming.flat_map(Key::ancestors).collect();
            missing.retain(|home| needed.contains(&home.key));
            for home in missing {
                if self.was_directory(&home)? {
                    carriers.0.insert((home.of, home.key));
                }
            }
        }
        Ok(())
    }

    /// Tells whether whoever holds a place found a directory there.
    fn was_directory(&self, home: &Home) -> Result<bool, EngineError> {
        let path = home.key.file();
        let mut sides = self.sides_of(&self.store.effect(home.holder)?)?.into_iter();
        let is_it = |side: &FileChange| {
            Some(&side.path) == path && side.before.as_ref().is_some_and(Was::is_directory)
        };
        Ok(sides.any(|side| is_it(&side)))
    }
}

/// A directory that is not there.
struct Home {
    key: Key,
    /// The operation that has it among its targets.
    of: OperationId,
    /// The operation whose recipe brings it.
    holder: OperationId,
}

/// Lists what is above the targets of a step, is no directory now, and is held by another recipe of the same operation.
fn missing_homes(history: &History, step: &UndoStep) -> Vec<Home> {
    let Some(operation) = history.get(step.id) else {
        return Vec::new();
    };
    let is_like = |it: &&Operation| {
        let is_beside = it.undoes.is_some() && it.undoes == operation.undoes;
        it.id == operation.id || is_beside && it.verb == operation.verb
    };
    let alike = history.iter().filter(is_like);
    let alike = alike.filter(|it| it.status.is_in_effect() && it.retained);
    let each = alike.flat_map(|of| {
        let standings = of.in_effect();
        standings.map(|it| (it.target.key(), of.id, it.held_by.unwrap_or(of.id)))
    });
    let mut others = each
        .filter(|(_, _, holder)| *holder != step.with)
        .peekable();
    if others.peek().is_none() {
        return Vec::new();
    }
    let targets = step.targets.iter();
    let above: BTreeSet<Key> = targets.flat_map(|it| it.key().ancestors()).collect();
    let is_directory = |path: &TargetPath| {
        let found = path.as_path().symlink_metadata();
        found.is_ok_and(|found| found.is_dir())
    };
    let is_missing = |key: &Key| key.file().is_some_and(|path| !is_directory(path));
    let homes = others.filter(|(key, ..)| above.contains(*key) && is_missing(key));
    let homes = homes.map(|(key, of, holder)| Home {
        key: key.clone(),
        of,
        holder,
    });
    homes.collect()
}

/// Gives the name that something comes back to.
fn comes_back_to(side: FileChange) -> Option<Key> {
    let was_there = side.before.is_some();
    let name = side.from.or_else(|| was_there.then_some(side.path));
    name.map(Key::from)
}
