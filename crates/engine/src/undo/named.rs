//! What a plan is called by: whoever types that means the same, whatever was done since. And who of us is to be named where
//! something is not as it was left.

use std::collections::BTreeSet;

use backout_files::Was;
use backout_model::{Chosen, Operation, OperationId, Status, Target, UndoStep};

use super::preview::Planned;
use crate::{Engine, EngineError, PlannedTarget, TargetState};

/// Names what was asked for: as it was named, or else by the steps that it means.
pub(super) fn names_of(planned: &Planned) -> Vec<OperationId> {
    if !planned.named.is_empty() {
        return planned.named.clone();
    }
    let steps = &planned.plan.steps;
    let is_named = |step: &&UndoStep| step.chosen == Chosen::Named;
    let mut named: Vec<_> = steps.iter().filter(is_named).map(|step| step.id).collect();
    named.dedup();
    // A command that is told by its parts has no step of its own.
    let is_step = |id: OperationId| steps.iter().any(|step| step.id == id);
    for step in steps.iter().filter(|_| named.is_empty()) {
        if let Chosen::DependsOn { on, .. } = step.chosen
            && !is_step(on)
        {
            return vec![on];
        }
    }
    named
}

impl Engine {
    /// Says of what a redo does not find as it was that what it was built on is undone, if that is so and does not come first.
    pub(super) fn name_undone_base(
        &self,
        subject: &Operation,
        comes: &dyn Fn(OperationId) -> bool,
        planned: &mut [PlannedTarget],
    ) -> Result<(), EngineError> {
        let bases = subject.depends_on.iter();
        let bases = bases.filter(|edge| edge.reason.is_of_targets() && !comes(edge.on));
        let bases: BTreeSet<OperationId> = bases.map(|edge| edge.on).collect();
        for base in bases {
            let base = self.store.operation(base)?;
            let Some(base) = base.filter(|base| base.status == Status::Undone) else {
                continue;
            };
            let is_of_it = |target: &Target| {
                let mut theirs = base.targets.iter();
                theirs.any(|theirs| theirs.target.overlap(target).is_some())
            };
            let refused = planned.iter_mut().filter(|it| is_of_it(&it.target));
            for it in refused {
                if let TargetState::Conflict { why } = &mut it.state {
                    let base = base.id.short();
                    *why = format!("{why}; it was built on {base}, which is undone");
                }
            }
        }
        Ok(())
    }
}

impl Engine {
    /// Leaves out of what comes the directories that the operation did not make: they are not what it left, so nobody can be
    /// told to restore them from it.
    pub(super) fn keep_what_it_made(
        &self,
        subject: &Operation,
        planned: &mut [PlannedTarget],
    ) -> Result<(), EngineError> {
        let is_stuck = |it: &&mut PlannedTarget| it.comes && it.state.hindrance().is_some();
        let stuck: Vec<&mut PlannedTarget> = planned.iter_mut().filter(is_stuck).collect();
        if stuck.is_empty() {
            return Ok(());
        }
        let sides = self.sides_of(&self.store.effect(subject.id)?)?;
        for it in stuck {
            let mut sides = sides.iter();
            it.comes = sides.any(|side| {
                let is_made = side.after.as_ref().is_some_and(Was::is_directory);
                is_made && it.target.file() == Some(&side.path)
            });
        }
        Ok(())
    }
}

/// Says of a part that is not as it was left who of us wrote or removed the whole in which it lies, and stays.
pub(super) fn name_whole_writers(
    planned: &Planned,
    id: OperationId,
    targets: &mut [PlannedTarget],
) {
    let goes = |it: &Operation| planned.plan.steps.iter().any(|step| step.id == it.id);
    for it in targets {
        let TargetState::Conflict { why } = &mut it.state else {
            continue;
        };
        let has_it =
            |other: &Target| other.key() != it.target.key() && other.overlap(&it.target).is_some();
        let later = planned.history.dependents(id);
        let later = later.map(|(later, _)| later).filter(|later| {
            let mut theirs = later.in_effect().map(|standing| &standing.target);
            later.status.is_in_effect()
                && !later.verb.is_reversal()
                && !goes(later)
                && theirs.any(has_it)
        });
        let is_part = !it.target.key().parts().is_empty();
        if let (true, Some(later)) = (is_part, later.max_by_key(|later| later.place)) {
            let (short, summary) = (later.id.short(), &later.summary);
            *why = format!("{short} ({summary}) wrote or removed the whole of it since");
            it.whole_by = Some(later.id);
        }
    }
}
