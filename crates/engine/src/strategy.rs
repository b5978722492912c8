//! Carrying out the decision matrix: the driver prepares the strategy that was chosen, or the next one, and both are on record.
//!
//! A strategy that cannot be prepared changed nothing: what was staged for it is dropped, and what it had stored is let go by `gc`.

use backout_model::ports::{Driver, Prepared, Request};
use backout_model::{Cost, Decision, OperationId, RIDING_BYTES_MAX, Strategy, Timestamp, Traits};
use backout_storage::StorageError;

use crate::{Engine, EngineError};

impl Engine {
    /// Prepares a write by the strategy that was chosen, or by the first of its fallbacks that can be prepared. A request that
    /// can be read only once is prepared once.
    pub(crate) fn prepare(
        &self,
        driver: &dyn Driver,
        id: OperationId,
        request: &dyn Request,
        mut decision: Decision,
    ) -> Result<(Prepared, Decision), EngineError> {
        let began = self.now();
        let mut first = None;
        loop {
            let prepared = driver.prepare(id, request, decision.strategy);
            let error = match prepared {
                Ok(prepared) => match self.has_room(&prepared, &decision) {
                    Ok(()) => {
                        decision.strategy = prepared.strategy;
                        decision.cost = Some(self.cost_of(&prepared, began));
                        return Ok((prepared, decision));
                    }
                    Err(error) => EngineError::from(error),
                },
                Err(error) => EngineError::from(error),
            };
            let why = if let EngineError::Driver(error) = &error {
                error.fault().not_prepared()
            } else if let EngineError::Storage(error @ StorageError::OverCap { .. }) = &error {
                Some(error.to_string())
            } else {
                None
            };
            let is_over = why.is_none() || !driver.is_lasting(request)?;
            match why.and_then(|why| decision.next(why)) {
                Some(next) if !is_over => {
                    first.get_or_insert(error);
                    decision = next;
                }
                // Why it could not be kept whole says more than why it could not be logged.
                Some(_) | None if decision.strategy == Strategy::Snapshot => return Err(error),
                Some(_) | None => return Err(first.unwrap_or(error)),
            }
        }
    }

    /// Finds out whether the store takes what a write keeps, where there is another way if it does not. Arming asks again.
    fn has_room(&self, prepared: &Prepared, decision: &Decision) -> Result<(), StorageError> {
        let adding = Self::added_by(prepared);
        if decision.fallbacks.is_empty() || adding <= RIDING_BYTES_MAX {
            return Ok(());
        }
        let retention = &self.settings.retention;
        self.store.make_room(retention, self.now(), adding)
    }

    /// Counts what a write that was prepared since `began` keeps for its way back.
    pub(crate) fn cost_of(&self, prepared: &Prepared, began: Timestamp) -> Cost {
        let riding = prepared.contents.iter();
        let riding: u64 = riding.map(|content| content.bytes.len() as u64).sum();
        Cost {
            stored_bytes: riding + prepared.copied_bytes,
            kept_bytes: prepared.staged.kept_bytes(),
            prepared_ms: u64::try_from(self.now().0 - began.0).unwrap_or(0),
        }
    }
}

/// Tells whether a request that can be read only once is better kept first: its strategy may turn out not to be possible.
pub(crate) fn is_doubtful(
    driver: &dyn Driver,
    request: &dyn Request,
    traits: &Traits,
    decision: &Decision,
) -> Result<bool, EngineError> {
    let has_other = !decision.fallbacks.is_empty();
    let may_fail = decision.strategy == Strategy::Transaction || traits.is_copied;
    Ok(has_other && may_fail && !driver.is_lasting(request)?)
}
