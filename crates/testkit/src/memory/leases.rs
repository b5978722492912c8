//! Leases.

use backout_model::ports::{Lease, Leases, OpenAct};
use backout_model::{Operation, OperationId, Owner, Status, Target};

use super::MemoryStore;
use super::change::Change;
use super::state::{Answer, State};

impl Leases for MemoryStore {
    fn lease(
        &self,
        operation: OperationId,
        targets: &[Target],
        owner: &Owner,
        instead_of: &[OperationId],
    ) -> Answer<Lease> {
        let mut dead = Vec::new();
        let taken = self.change(|state| {
            for (by, held, holder) in state.leased() {
                let Some(target) = targets.iter().find(|it| it.overlap(held).is_some()) else {
                    continue;
                };
                if by == operation || instead_of.contains(&by) {
                    continue;
                }
                if self.lives(state, holder) {
                    let (target, owner) = (target.clone(), holder.clone());
                    return Ok((None, Lease::Held { target, by, owner }));
                }
                if state.is_armed(by) {
                    return Ok((None, Lease::Abandoned { by }));
                }
                dead.push(by);
            }
            let lease = Change::Lease {
                operation,
                targets: targets.to_vec(),
                owner: owner.clone(),
            };
            Ok((Some(lease), Lease::Taken))
        })?;
        if taken == Lease::Taken && !dead.is_empty() {
            self.give_back(dead)?;
        }
        Ok(taken)
    }

    fn release(&self, operation: OperationId) -> Answer<()> {
        self.give_back(vec![operation])
    }

    fn release_dead(&self) -> Answer<usize> {
        self.change(|state| {
            let mut operations = self.dead(state, |id| !state.is_armed(id));
            operations.dedup();
            let count = operations.len();
            Ok((Some(Change::Release { operations }), count))
        })
    }

    fn claim(&self, operation: &Operation, owner: &Owner) -> Answer<bool> {
        self.change(|state| {
            let found = state.operations.get(&operation.id);
            let is_as_seen = found.is_some_and(|row| {
                let now = &row.operation;
                let is_open = matches!(
                    now.status,
                    Status::Proposed | Status::Armed | Status::InDoubt | Status::Interrupted
                );
                is_open && now.owner == operation.owner && now.status == operation.status
            });
            let claim = is_as_seen.then(|| Change::Claim {
                operation: operation.id,
                owner: owner.clone(),
            });
            Ok((claim, is_as_seen))
        })
    }

    fn open_acts(&self) -> Answer<Vec<OpenAct>> {
        self.ask(|state| {
            let acts = state.acts.iter().map(|(id, (owner, is_told))| OpenAct {
                id: *id,
                owner: owner.clone(),
                is_told: *is_told,
            });
            Ok(acts.collect())
        })
    }

    fn tell_act(&self, act: OperationId) -> Answer<bool> {
        self.change(|state| {
            let is_news = state.acts.get(&act).is_some_and(|(_, is_told)| !is_told);
            Ok((is_news.then_some(Change::Told { act }), is_news))
        })
    }

    fn end_act(&self, act: OperationId) -> Answer<()> {
        self.change(|_| Ok((Some(Change::Ended { act }), ())))
    }
}

impl MemoryStore {
    pub(super) fn give_back(&self, operations: Vec<OperationId>) -> Answer<()> {
        self.change(|_| Ok((Some(Change::Release { operations }), ())))
    }

    /// Lists operations that dead processes hold leases for.
    pub(super) fn dead(
        &self,
        state: &State,
        is_meant: impl Fn(OperationId) -> bool,
    ) -> Vec<OperationId> {
        let leased = state.leased();
        let dead = leased.filter(|(id, _, owner)| !self.lives(state, owner) && is_meant(*id));
        dead.map(|(id, _, _)| id).collect()
    }
}

impl State {
    pub(super) fn leased(&self) -> impl Iterator<Item = (OperationId, &Target, &Owner)> {
        let leases = self.leases.iter();
        leases.flat_map(|(id, held)| held.iter().map(|(target, owner)| (*id, target, owner)))
    }

    fn is_armed(&self, id: OperationId) -> bool {
        let row = self.operations.get(&id);
        row.is_some_and(|row| row.operation.status == Status::Armed)
    }
}
