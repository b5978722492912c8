//! What a plan is called by: whoever types that means the same, whatever was done since.

use backout_model::{Chosen, OperationId, UndoStep};

use super::preview::Planned;

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
