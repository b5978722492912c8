//! Questions about what waits for a decision, and about calls that were answered.

use backout_model::{Asked, CallKey, Event, OperationId, Proposal, Record};

use super::rows::id_to_sql;
use crate::{StorageError, Store};

impl Store {
    /// Lists what waits for a decision, oldest first.
    pub fn proposals(&self) -> Result<Vec<Proposal>, StorageError> {
        // `retained` repeats the partial index.
        let waiting =
            "operation IN (SELECT id FROM operation WHERE retained = 1 AND status = 'proposed')
             AND kind = 'proposed' ORDER BY lsn";
        let found = self.records_where(waiting, [])?;
        Ok(found.into_iter().filter_map(proposal_in).collect())
    }

    /// Gives what was proposed under an id, whatever became of it.
    pub fn proposal(&self, id: OperationId) -> Result<Option<Proposal>, StorageError> {
        let found = self.records_where("operation = ?1 AND kind = 'proposed'", [id_to_sql(id)])?;
        Ok(found.into_iter().find_map(proposal_in))
    }

    /// Finds the operation that answered a call, with what was asked.
    pub fn answer_to(&self, key: &CallKey) -> Result<Option<(OperationId, Asked)>, StorageError> {
        let found = self.records_where(
            "operation = (SELECT id FROM operation WHERE call_key = ?1)
             AND kind IN ('intent', 'proposed', 'refused') ORDER BY lsn LIMIT 1",
            [key.as_str()],
        )?;
        let mut answers = found.iter().filter_map(|record| record.event.answers());
        Ok(answers.next().map(|(id, call)| (id, call.clone())))
    }
}

fn proposal_in(record: Record) -> Option<Proposal> {
    if let Event::Proposed(proposal) = record.event {
        Some(*proposal)
    } else {
        None
    }
}
