//! Operations that moved a directory in which something else is to be taken back, where only that something was asked for.
//!
//! What was written in the directory is at another name since, so the move goes first. Whoever removed the directory does
//! not: one file of it can come back without the rest.

use std::collections::BTreeSet;

use backout_model::{DependencyReason, History, Key, OperationId, Target, UndoPlan};

use crate::{Engine, EngineError};

/// Moves that have to go, each with the name of its directory.
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

    /// Takes the directories out of the steps of everybody else, as far as nobody wants them.
    pub(super) fn hold(&self, plan: &mut UndoPlan, is_wanted: impl Fn(&Target) -> bool) {
        if self.0.is_empty() {
            return;
        }
        for step in &mut plan.steps {
            let id = step.id;
            let is_carrier = |target: &Target| self.0.contains(&(id, target.key().clone()));
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
}
