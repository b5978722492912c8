//! The order of a plan where the places in the journal do not tell it.
//!
//! A command's place is its end. What others wrote meanwhile has an earlier place, also where they wrote in a directory that
//! the command had moved there before. If the command were taken back first, the directory would go from under their
//! writes. Whatever was written below that name since the command began came after the move: it goes first. What was written
//! there before was written in another directory, which the command may have moved away: it goes after. So does what the
//! command itself had done until somebody else came to the same names, and what is told as a part of it.
//!
//! Who removed a directory meanwhile in which the command had written, and which is not there again, came after those writes.

use std::collections::{BTreeSet, HashSet};

use backout_model::{
    Dependency, DependencyReason, History, Key, Lsn, Operation, OperationId, Target, TargetPath,
    UndoPlan, UndoStep, Verb,
};

use crate::{Engine, EngineError};

impl Engine {
    /// Puts the steps about what was written in a directory that a command brought before the step about the command.
    pub(super) fn put_in_order(
        &self,
        history: &History,
        plan: &mut UndoPlan,
    ) -> Result<(), EngineError> {
        let is_run = |id: OperationId| history.get(id).is_some_and(|op| op.verb == Verb::Run);
        let mut at = 0;
        while let Some([step, _, ..]) = plan.steps.get(at..) {
            if !is_run(step.id) {
                at += 1;
                continue;
            }
            let effect = self.store.effect(step.with)?;
            let brought = self.driver_of(&effect)?.outline(&effect)?.brought;
            let since = self.by_others_since(history, step)?;
            let lost = gone_from_above(step);
            let mut first = HashSet::new();
            for later in plan.steps.iter().skip(at + 1) {
                let is_first = since.contains(&later.id)
                    && (is_inside(later, &brought) || self.took(later, &lost)?);
                if is_first {
                    first.insert((later.id, later.with));
                }
            }
            let rest = plan.steps.split_off(at + 1);
            let (inside, outside): (Vec<_>, Vec<_>) = rest
                .into_iter()
                .partition(|step| first.contains(&(step.id, step.with)));
            let command = plan.steps.pop();
            at += inside.len() + 1;
            plan.steps.extend(inside.into_iter().chain(command));
            plan.steps.extend(outside);
        }
        Ok(())
    }

    /// Lists what others did since a command began.
    fn by_others_since(
        &self,
        history: &History,
        step: &UndoStep,
    ) -> Result<HashSet<OperationId>, EngineError> {
        let records = self.store.records_of(step.id)?;
        let begun = records.first().map_or(Lsn(0), |record| record.lsn);
        let command = history.get(step.id);
        let is_part = |it: &Operation| {
            let within =
                |on: &Dependency| on.on == step.id && on.reason == DependencyReason::Within;
            command.is_some_and(|command| command.owner == it.owner)
                && it.depends_on.iter().any(within)
        };
        let others = history.iter().filter(|it| it.place > begun && !is_part(it));
        Ok(others.map(|it| it.id).collect())
    }

    /// Tells whether a step is about the removal of one of some directories.
    fn took(&self, step: &UndoStep, lost: &BTreeSet<Key>) -> Result<bool, EngineError> {
        if lost.is_empty() {
            return Ok(false);
        }
        let effect = self.store.effect(step.with)?;
        let gone = self.driver_of(&effect)?.outline(&effect)?.gone;
        Ok(!gone.is_disjoint(lost))
    }
}

/// Lists the directories above what a step is about that are not there.
fn gone_from_above(step: &UndoStep) -> BTreeSet<Key> {
    let files = step.targets.iter().filter_map(Target::file);
    let above = files.flat_map(|file| std::iter::successors(file.parent(), TargetPath::parent));
    let above: BTreeSet<TargetPath> = above.collect();
    let is_gone = |path: &TargetPath| path.as_path().symlink_metadata().is_err();
    above.into_iter().filter(is_gone).map(Key::from).collect()
}

fn is_inside(step: &UndoStep, brought: &BTreeSet<Key>) -> bool {
    let mut keys = step.targets.iter().map(Target::key);
    keys.any(|key| key.ancestors().iter().any(|above| brought.contains(above)))
}
