//! What is undone already: whether it could come back, or has, by another redo.

use std::collections::HashSet;

use backout_model::{OperationId, PlanError, Target, Verb};

use crate::{Engine, EngineError};

impl Engine {
    /// Says of what is undone already whether it could be redone.
    pub(super) fn undone_for_good(&self, error: PlanError) -> Result<PlanError, EngineError> {
        let PlanError::AlreadyUndone { id, by: Some(by) } = error else {
            return Ok(error);
        };
        if let Some(by) = self.brought_again(id)? {
            return Ok(PlanError::BroughtAgain { id, by });
        }
        let undo = self.store.operation(by)?;
        Ok(if undo.is_some_and(|undo| undo.retained) {
            error
        } else {
            PlanError::UndoneForGood { id, by }
        })
    }

    /// Finds the redo by which is there again what another redo brought back, and an undo took.
    fn brought_again(&self, id: OperationId) -> Result<Option<OperationId>, EngineError> {
        let redo = self.store.operation(id)?;
        let Some(redo) = redo.filter(|it| it.verb == Verb::Redo) else {
            return Ok(None);
        };
        let subject = self.subject_of(&redo)?;
        let brought: HashSet<&Target> = redo.targets.iter().map(|it| &it.target).collect();
        let mut again = subject
            .in_effect()
            .filter(|it| brought.contains(&it.target));
        Ok(again.find_map(|it| it.held_by).filter(|by| *by != id))
    }
}
