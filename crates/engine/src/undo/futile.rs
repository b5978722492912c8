//! Steps that only make room for a redo that does not happen.
//!
//! Where only a part can be done, what was written since is not taken back for the sake of something that stays undone
//! all the same.

use std::collections::BTreeSet;

use backout_model::{Chosen, OperationId, UndoPlan};

use super::preview::Planned;
use crate::{PlanView, PlannedStep, TakeBack};

/// Finds the steps that nobody named and that nothing needs which can be done. A view has the steps of its plan, in their order.
pub(super) fn futile_steps(planned: &Planned, view: &PlanView) -> BTreeSet<usize> {
    let steps = planned.plan.steps.iter().zip(&view.steps);
    let is_stuck = |step: &PlannedStep| {
        let has_way = step.targets.iter().any(|it| it.state.is_work());
        step.way == TakeBack::Redo && !has_way
    };
    let named = steps
        .clone()
        .filter(|(step, _)| step.chosen == Chosen::Named);
    let (stuck, free): (Vec<_>, Vec<_>) = named.partition(|(_, view)| is_stuck(view));
    if stuck.is_empty() {
        return BTreeSet::new();
    }
    let mut needed: BTreeSet<OperationId> = free.iter().map(|(step, _)| step.id).collect();
    let mut queue: Vec<OperationId> = needed.iter().copied().collect();
    while let Some(id) = queue.pop() {
        for (dependent, _) in planned.history.dependents(id) {
            if needed.insert(dependent.id) {
                queue.push(dependent.id);
            }
        }
    }
    let is_futile = |step: &backout_model::UndoStep| {
        let serves = matches!(step.chosen, Chosen::DependsOn { .. });
        serves && !needed.contains(&step.id)
    };
    let futile = steps.enumerate().filter(|(_, (step, _))| is_futile(step));
    futile.map(|(at, _)| at).collect()
}

/// Tells whether a plan would do anything without some of its steps.
pub(super) fn has_work_without(view: &PlanView, left: &BTreeSet<usize>) -> bool {
    let steps = view.steps.iter().enumerate();
    let mut rest = steps.filter(|(at, _)| !left.contains(at));
    rest.any(|(_, step)| step.targets.iter().any(|it| it.state.is_work()))
}

/// Takes steps out of a plan.
pub(super) fn leave_out(left: &BTreeSet<usize>, plan: &mut UndoPlan) {
    let mut at = 0;
    plan.steps.retain(|_| {
        at += 1;
        !left.contains(&(at - 1))
    });
}
