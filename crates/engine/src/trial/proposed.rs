//! Trials that wait for a decision of a gate: the trial and its proposal end together.

use std::collections::HashSet;

use backout_model::{OperationId, Proposal, Status, TargetPath};

use super::manifest::{Manifest, Proposed};
use super::select;
use crate::{Engine, EngineError, LeftPending};

/// Why the proposal of a trial is refused that somebody let go.
const DISCARDED: &str = "its trial was discarded";

impl Engine {
    /// Finds the proposal that a trial became, while it waits.
    pub(super) fn proposal_of(&self, manifest: &Manifest) -> Result<Option<Proposal>, EngineError> {
        let Some(proposed) = &manifest.proposed else {
            return Ok(None);
        };
        let operation = self.store.operation(proposed.id)?;
        let waits = operation.is_some_and(|operation| operation.status == Status::Proposed);
        let proposal = self.store.proposal(proposed.id)?.filter(|_| waits);
        Ok(proposal.filter(|proposal| !proposal.is_expired(self.now())))
    }

    /// Refuses the proposal of a trial that is let go.
    pub(super) fn withdraw_trial(&self, manifest: &Manifest) -> Result<(), EngineError> {
        match &manifest.proposed {
            Some(proposed) => self.withdraw(|it| it.id == proposed.id, DISCARDED),
            None => Ok(()),
        }
    }

    /// Ends the trial whose proposal was approved; what was left out of it still waits.
    pub(crate) fn settle_trial(
        &self,
        proposal: OperationId,
    ) -> Result<Option<LeftPending>, EngineError> {
        match self.trial_of(proposal)? {
            Some((mut manifest, proposed)) => self.note_applied(&mut manifest, &proposed.names),
            None => Ok(None),
        }
    }

    /// Notes that the proposal of a trial has another name.
    pub(crate) fn rename_proposal(
        &self,
        proposal: OperationId,
        again: OperationId,
    ) -> Result<(), EngineError> {
        let Some((mut manifest, proposed)) = self.trial_of(proposal)? else {
            return Ok(());
        };
        manifest.proposed = Some(Proposed {
            id: again,
            ..proposed
        });
        self.keep_manifest(&manifest)
    }

    fn trial_of(&self, proposal: OperationId) -> Result<Option<(Manifest, Proposed)>, EngineError> {
        for id in self.store.trials()? {
            // One that cannot be read became no proposal.
            if let Ok(manifest) = self.read_manifest(id)
                && let Some(proposed) = manifest.proposed.clone()
                && proposed.id == proposal
            {
                return Ok(Some((manifest, proposed)));
            }
        }
        Ok(None)
    }

    /// Notes that some changes of a trial were applied. Says what is left.
    pub(super) fn note_applied(
        &self,
        manifest: &mut Manifest,
        applied: &HashSet<TargetPath>,
    ) -> Result<Option<LeftPending>, EngineError> {
        let (done, mut waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut manifest.changes)
            .into_iter()
            .partition(|change| applied.contains(&change.path));
        select::link_to_applied(&done, &mut waiting);
        manifest.changes = waiting;
        manifest.homes.extend(done);
        manifest.proposed = None;
        select::keep_homes(manifest);
        if manifest.changes.is_empty() {
            self.remove_trial(manifest.id)?;
            return Ok(None);
        }
        // What was left out still waits for a decision.
        manifest.is_rest = true;
        self.keep_manifest(manifest)?;
        Ok(Some(LeftPending {
            trial: manifest.id,
            changes: manifest.changes.len(),
        }))
    }
}
