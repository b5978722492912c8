//! Later writes that can stay where an undone change merges out of what they left.

use std::collections::BTreeSet;

use backout_model::ports::{How, OnConflict};
use backout_model::{DependencyReason, History, OperationId, OutcomeKind, Target, TargetOutcome};

use crate::{Engine, EngineError};

impl Engine {
    /// Finds the later writes of the same targets that can stay because the undone change merges out.
    pub(super) fn excused(
        &self,
        history: &History,
        roots: &[OperationId],
    ) -> Result<BTreeSet<(OperationId, OperationId)>, EngineError> {
        let mut excused = BTreeSet::new();
        for &root in roots {
            let Some(operation) = history.get(root) else {
                continue;
            };
            let holders = operation.holders();
            let ([holder], false) = (holders.as_slice(), operation.is_partly_undone()) else {
                continue;
            };
            let effect = self.store.effect(*holder)?;
            let how = How::from(OnConflict::Merge);
            let driver = self.driver_of(&effect)?;
            let trial = driver.prepare_undo(self.next_id(), &effect, how)?;
            let is_taken_back = |outcome: &TargetOutcome| outcome.kind.is_taken_back();
            if !trial.outcomes.iter().all(is_taken_back) {
                continue;
            }
            // Only what is really merged leaves the later write in place. A target that looks untouched was changed
            // to and fro by later work, which then has to go first.
            let is_merged = |target: &Target| {
                let mut over = trial.outcomes.iter();
                over.all(|outcome| {
                    outcome.kind == OutcomeKind::Merged || outcome.target.overlap(target).is_none()
                })
            };
            for (dependent, reason) in history.dependents(root) {
                let mut theirs = dependent.in_effect().map(|standing| &standing.target);
                if reason == DependencyReason::SameTarget && theirs.all(is_merged) {
                    excused.insert((dependent.id, root));
                }
            }
        }
        Ok(excused)
    }
}
