//! Drift that a read or a plan comes upon.
//!
//! What was answered is not changed by this, and what cannot be noted at once is not noted: the next look finds it again.

use std::collections::BTreeSet;

use backout_model::Key;
use backout_model::drift::Seen;

use super::Extent;
use crate::{Engine, EngineError, PlanView, Reply, TargetState};

/// More than these are left to a look at everything.
const NOTICED_MAX: usize = 512;

impl Engine {
    /// Notes drift that an answer tells of.
    pub(crate) fn notice_drift_in(&self, answer: &Result<Reply, EngineError>) {
        let mut keys = BTreeSet::new();
        match answer {
            Ok(Reply::Shown(shown)) => {
                let odd = shown.targets.iter().filter(|it| is_odd(&it.state));
                keys.extend(odd.map(|it| it.target.key().clone()));
                self.add_known(shown.targets.iter().map(|it| it.target.key()), &mut keys);
            }
            Ok(Reply::Plan(plan)) => self.add_plan(plan, &mut keys),
            Ok(Reply::Diff(diff)) => {
                if let Ok(Some(operation)) = self.store.operation(diff.id) {
                    let held = operation.in_effect().map(|it| it.target.key().clone());
                    keys.extend(held.take(NOTICED_MAX));
                }
            }
            Err(EngineError::Conflicts { targets, .. }) => {
                keys.extend(targets.iter().map(|it| it.target.key().clone()));
            }
            Ok(_) | Err(_) => {}
        }
        if keys.is_empty() || keys.len() > NOTICED_MAX || !self.store.is_free() {
            return;
        }
        let below: Vec<Key> = keys.into_iter().collect();
        let extent = Extent {
            below: &below,
            ..Extent::default()
        };
        // It is found again by the next look, and whoever asked wanted something else.
        let _noticed = self.look_for_drift(&extent, Seen::Passive);
    }

    fn add_plan(&self, plan: &PlanView, keys: &mut BTreeSet<Key>) {
        let targets = || plan.steps.iter().flat_map(|step| &step.targets);
        let odd = targets().filter(|it| is_odd(&it.state));
        keys.extend(odd.map(|it| it.target.key().clone()));
        self.add_known(targets().map(|it| it.target.key()), keys);
    }

    /// Adds what has drifted as far as the journal knows: it may be over.
    fn add_known<'k>(&self, looked: impl Iterator<Item = &'k Key>, keys: &mut BTreeSet<Key>) {
        let Ok(standing) = self.drift_standing() else {
            return;
        };
        let open = standing.open.values();
        let open: BTreeSet<&Key> = open.map(|it| it.drift.target.key()).collect();
        if !open.is_empty() {
            keys.extend(looked.filter(|key| open.contains(key)).cloned());
        }
    }
}

/// Tells whether a look found a target other than the operation left it.
const fn is_odd(state: &TargetState) -> bool {
    match state {
        TargetState::ComesBack | TargetState::AfterNewerStep => false,
        TargetState::AlreadyBefore
        | TargetState::Left { .. }
        | TargetState::Merges
        | TargetState::Overwritten { .. }
        | TargetState::Incomplete { .. }
        | TargetState::CannotComeBack { .. }
        | TargetState::Conflict { .. } => true,
    }
}
