//! Leases: an operation takes its targets before it looks at them, and waits for others who have them.
//!
//! A [`HeldLease`] gives them back when it is dropped, unless the record that ends the operation does so.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use backout_model::{Operation, OperationId, Overlap, Target};
use backout_storage::Lease;

use crate::{Engine, EngineError};

/// How long to sleep between two looks at somebody else's lease.
pub(crate) const LEASE_POLL: Duration = Duration::from_millis(5);

/// How long to sleep between two questions to a command whose checks run.
const CHECKED_POLL: Duration = Duration::from_millis(20);

/// The leases of one operation. Dropping it gives them back, unless a record did so already.
#[derive(Debug)]
pub(crate) struct HeldLease<'e> {
    engine: &'e Engine,
    pub(crate) id: OperationId,
    is_recorded: bool,
}

impl HeldLease<'_> {
    /// Leaves the leases to the record that ends the operation.
    pub(crate) const fn is_ended_by_a_record(&mut self) {
        self.is_recorded = true;
    }
}

impl Drop for HeldLease<'_> {
    fn drop(&mut self) {
        if !self.is_recorded {
            // A lease that cannot be given back dies with this process.
            let _released = self.engine.store.release(self.id);
        }
    }
}

/// Leases under which a verdict is carried out.
#[derive(Debug)]
pub(crate) struct VerdictLease<'e> {
    lease: HeldLease<'e>,
}

impl Drop for VerdictLease<'_> {
    fn drop(&mut self) {
        let id = self.lease.id;
        self.lease.engine.verdicts().retain(|held| *held != id);
    }
}

impl Engine {
    /// Takes the targets, waiting for others and settling what the dead left on them. What those of `instead_of` hold is
    /// ours: who recovers operations works in their place.
    pub(crate) fn lease(
        &self,
        targets: &[Target],
        instead_of: &[OperationId],
    ) -> Result<HeldLease<'_>, EngineError> {
        let id = self.next_id();
        self.wait_for(id, targets, instead_of)?;
        Ok(HeldLease {
            engine: self,
            id,
            is_recorded: false,
        })
    }

    /// Takes the targets for an operation that has an id already.
    pub(crate) fn lease_as(
        &self,
        id: OperationId,
        targets: &[Target],
    ) -> Result<HeldLease<'_>, EngineError> {
        self.wait_for(id, targets, &[])?;
        Ok(HeldLease {
            engine: self,
            id,
            is_recorded: false,
        })
    }

    /// Takes the targets and tells every open call and running command of it, or says why not: where a command that is over wrote them and
    /// its checks still run, its verdict comes first.
    pub(crate) fn lease_told<'e>(
        &'e self,
        targets: &[Target],
        take: impl Fn() -> Result<HeldLease<'e>, EngineError>,
    ) -> Result<HeldLease<'e>, EngineError> {
        self.settle_written(targets)?;
        let deadline = Instant::now() + Duration::from_millis(self.settings.lease_wait_ms);
        let mut is_said = false;
        loop {
            let lease = take()?;
            let Some(run) = self.tell_running(targets)? else {
                return Ok(lease);
            };
            // What is to be taken back must not wait for us.
            drop(lease);
            if self.is_stopped() {
                return Err(backout_model::ports::Stopped.into());
            }
            if Instant::now() >= deadline {
                return Err(being_checked(targets, run));
            }
            if !is_said {
                self.say_checked(&run);
                is_said = true;
            }
            std::thread::sleep(CHECKED_POLL);
        }
    }

    /// Takes targets so that a verdict on them is carried out whole: nobody comes in between. If somebody has them all the
    /// while, what he writes is in the way, and that is told.
    pub(crate) fn lease_for_verdict(&self, targets: &[Target]) -> Option<VerdictLease<'_>> {
        let lease = self.lease(targets, &[]).ok()?;
        self.verdicts().push(lease.id);
        Some(VerdictLease { lease })
    }

    /// Takes a target without waiting; the error says who has it.
    pub(crate) fn lease_now(
        &self,
        id: OperationId,
        target: Target,
    ) -> Result<HeldLease<'_>, EngineError> {
        let (targets, owner) = ([target], self.store.this_process());
        loop {
            match self.store.lease(id, &targets, &owner, &[])? {
                Lease::Taken => {
                    return Ok(HeldLease {
                        engine: self,
                        id,
                        is_recorded: false,
                    });
                }
                Lease::Abandoned { by } => self.recover_abandoned(by)?,
                Lease::Held { target, by, owner } => {
                    let owner = Box::new(owner);
                    return Err(EngineError::Busy { target, by, owner });
                }
            }
        }
    }

    /// Takes what only the plan could find: where a link leads that an earlier change of the same batch makes. What the
    /// plan saw there is compared again before it is written.
    pub(crate) fn lease_rest(
        &self,
        id: OperationId,
        leased: &[Target],
        planned: &[Target],
    ) -> Result<(), EngineError> {
        // Of thousands nearly all are the very ones: those are not compared one by one.
        let known: BTreeSet<&Target> = leased.iter().collect();
        let is_leased = |target: &Target| {
            known.contains(target)
                || leased.iter().any(|held| match held.overlap(target) {
                    Some(Overlap::Same) => held.reach() >= target.reach(),
                    Some(Overlap::Holds | Overlap::Whole) => true,
                    Some(Overlap::Inside | Overlap::Part) | None => false,
                })
        };
        let rest: Vec<Target> = planned
            .iter()
            .filter(|it| !is_leased(it))
            .cloned()
            .collect();
        if rest.is_empty() {
            return Ok(());
        }
        self.wait_for(id, &rest, &[])?;
        match self.tell_running(&rest)? {
            Some(run) => Err(being_checked(&rest, run)),
            None => Ok(()),
        }
    }

    fn wait_for(
        &self,
        id: OperationId,
        targets: &[Target],
        instead_of: &[OperationId],
    ) -> Result<(), EngineError> {
        let targets = &whole_files(targets);
        let instead_of = &[instead_of, self.verdicts().as_slice()].concat();
        let owner = self.store.this_process();
        let deadline = Instant::now() + Duration::from_millis(self.settings.lease_wait_ms);
        loop {
            match self.store.lease(id, targets, &owner, instead_of)? {
                Lease::Taken => return Ok(()),
                Lease::Abandoned { by } => self.recover_abandoned(by)?,
                Lease::Held { target, by, owner } => {
                    if self.is_stopped() {
                        return Err(backout_model::ports::Stopped.into());
                    }
                    if Instant::now() >= deadline {
                        let owner = Box::new(owner);
                        return Err(EngineError::Busy { target, by, owner });
                    }
                    std::thread::sleep(LEASE_POLL);
                }
            }
        }
    }
}

fn being_checked(targets: &[Target], run: Operation) -> EngineError {
    EngineError::BeingChecked {
        targets: targets.to_vec(),
        by: run.id,
        summary: run.summary,
    }
}

/// Names the files in which parts lie instead of the parts: whoever writes a part of a file writes the file.
pub(crate) fn whole_files(targets: &[Target]) -> Vec<Target> {
    let whole = targets.iter().map(|target| match target.file() {
        Some(path) if !target.key().parts().is_empty() => Target::node(path.clone()),
        Some(_) | None => target.clone(),
    });
    let mut whole: Vec<Target> = whole.collect();
    whole.sort_unstable();
    whole.dedup();
    whole
}
