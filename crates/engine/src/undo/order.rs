//! The order of a plan where the places in the journal do not tell it.
//!
//! A command's place is its end. What others wrote meanwhile has an earlier place, also where they wrote in a directory that
//! the command had moved there before. If the command were taken back first, the directory would go from under their
//! writes. Whatever was written below that name since the command began came after the move: it goes first. What was written
//! there before was written in another directory, which the command may have moved away: it goes after.

use std::collections::BTreeSet;

use backout_model::{History, Key, Lsn, OperationId, Target, UndoPlan, UndoStep, Verb};

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
            let records = self.store.records_of(step.id)?;
            let begun = records.first().map_or(Lsn(0), |record| record.lsn);
            let is_since = |id: OperationId| history.get(id).is_some_and(|op| op.place > begun);
            let rest = plan.steps.split_off(at + 1);
            let (inside, outside): (Vec<_>, Vec<_>) = rest
                .into_iter()
                .partition(|step| is_since(step.id) && is_inside(step, &brought));
            let command = plan.steps.pop();
            at += inside.len() + 1;
            plan.steps.extend(inside.into_iter().chain(command));
            plan.steps.extend(outside);
        }
        Ok(())
    }
}

fn is_inside(step: &UndoStep, brought: &BTreeSet<Key>) -> bool {
    let mut keys = step.targets.iter().map(Target::key);
    keys.any(|key| key.ancestors().iter().any(|above| brought.contains(above)))
}
