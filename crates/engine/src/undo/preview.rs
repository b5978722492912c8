//! Looking at every target that a plan would touch, before anything is touched.

use backout_drivers::file::{Examined, State};
use backout_model::ports::{Driver as _, OnConflict};
use backout_model::{Effect, History, Operation, Target, UndoPlan};

use crate::{
    Engine, EngineError, PlanView, PlannedStep, PlannedTarget, RefusedTarget, TargetState,
    UndoOptions,
};

impl Engine {
    /// Looks at every target that the plan would touch.
    pub(super) fn view(
        &self,
        history: &History,
        plan: &UndoPlan,
        options: UndoOptions,
    ) -> Result<PlanView, EngineError> {
        let mut newer: Vec<&Operation> = Vec::new();
        let mut steps = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            let Some(operation) = history.get(step.id) else {
                continue;
            };
            let effect = self.store.effect(step.with)?;
            let mut targets = Vec::new();
            // What a newer step changes first cannot be judged yet; the state of one target may hang on another.
            let is_later = newer.iter().any(|other| overlap(other, operation));
            for examined in self.files.examine(&effect)? {
                let state = if is_later {
                    TargetState::AfterNewerStep
                } else {
                    self.state(&effect, &examined, options)?
                };
                targets.push(PlannedTarget {
                    target: examined.target,
                    state,
                });
            }
            newer.push(operation);
            steps.push(PlannedStep {
                step: step.clone(),
                summary: operation.summary.clone(),
                targets,
            });
        }
        let conflicts = |step: &PlannedStep| {
            step.targets
                .iter()
                .any(|t| matches!(t.state, TargetState::Conflict { .. }))
        };
        let is_executable =
            plan.needs_committed.is_empty() && (options.partial || !steps.iter().any(conflicts));
        Ok(PlanView {
            steps,
            left_alone: plan.left_alone.clone(),
            needs_committed: plan.needs_committed.iter().map(|step| step.id).collect(),
            is_executable,
        })
    }

    fn state(
        &self,
        effect: &Effect,
        examined: &Examined,
        options: UndoOptions,
    ) -> Result<TargetState, EngineError> {
        let why = match &examined.state {
            State::After => return Ok(TargetState::ComesBack),
            State::Before => return Ok(TargetState::AlreadyBefore),
            State::Other { why } => why.clone(),
        };
        match options.on_conflict {
            OnConflict::Refuse => Ok(TargetState::Conflict { why }),
            OnConflict::Force => Ok(TargetState::Overwritten { why }),
            OnConflict::Merge => {
                let trial = self
                    .files
                    .prepare_undo(self.next_id(), effect, OnConflict::Merge)?;
                let merges = trial
                    .outcomes
                    .iter()
                    .filter(|outcome| outcome.target == examined.target)
                    .all(|outcome| outcome.kind.is_settled());
                Ok(if merges {
                    TargetState::Merges
                } else {
                    TargetState::Conflict { why }
                })
            }
        }
    }
}

fn overlap(one: &Operation, other: &Operation) -> bool {
    let touches = |target: &Target| other.targets.iter().any(|t| t.overlap(target).is_some());
    one.targets.iter().any(touches)
}

/// Lists what stands in the way of a plan.
pub(super) fn conflicts(view: &PlanView) -> Vec<RefusedTarget> {
    let mut refused = Vec::new();
    for step in &view.steps {
        for planned in &step.targets {
            if let TargetState::Conflict { why } = &planned.state {
                let (target, why) = (planned.target.clone(), why.clone());
                refused.push(RefusedTarget {
                    id: step.step.id,
                    target,
                    why,
                });
            }
        }
    }
    refused
}
