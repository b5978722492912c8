//! What is in doubt and nobody can look at is decided first: to do it once more could do it twice.

use backout_model::ports::Guarantee;
use backout_model::{OperationId, Status};

use super::Work;
use crate::{Engine, EngineError};

impl Engine {
    /// Refuses a step that was begun before, if nobody but a person can tell whether it happened then.
    pub(super) fn refuse_undecided(&self, work: &Work<'_>) -> Result<(), EngineError> {
        if work.guarantee != Guarantee::Compensating {
            return Ok(());
        }
        for begun in self.store.stuck()? {
            let is_it = begun.undoes == Some(work.operation.id) && begun.status == Status::InDoubt;
            if is_it && self.is_unseen(begun.id)? {
                return Err(EngineError::Undecided {
                    id: work.operation.undoes.unwrap_or(work.operation.id),
                    by: begun.id,
                    verb: begun.verb,
                });
            }
        }
        Ok(())
    }

    fn is_unseen(&self, id: OperationId) -> Result<bool, EngineError> {
        let effect = self.store.effect(id)?;
        let examined = self.driver_of(&effect)?.examine(&effect, false)?;
        Ok(examined.iter().any(|found| found.is_unseen))
    }
}
