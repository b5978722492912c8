//! Checkpoints in the journal, by name and in their order.

use backout_model::{Checkpoint, CheckpointName};
use rusqlite::OptionalExtension as _;

use super::rows::from_json;
use crate::{StorageError, Store};

impl Store {
    /// Finds a checkpoint.
    pub fn checkpoint(&self, name: &CheckpointName) -> Result<Option<Checkpoint>, StorageError> {
        self.read(|transaction| {
            let named = |error| self.named(error);
            let mut statement = transaction
                .prepare_cached("SELECT body FROM checkpoint WHERE name = ?1")
                .map_err(named)?;
            let body = statement
                .query_row([name.as_str()], |row| row.get::<_, String>(0))
                .optional()
                .map_err(named)?;
            body.map(|body| from_json("a checkpoint", &body))
                .transpose()
        })
    }

    /// Lists checkpoints, newest first.
    pub fn checkpoints(&self) -> Result<Vec<Checkpoint>, StorageError> {
        self.read(|transaction| {
            let named = |error| self.named(error);
            let mut statement = transaction
                .prepare_cached("SELECT body FROM checkpoint ORDER BY lsn DESC")
                .map_err(named)?;
            let rows = statement
                .query_map([], |row| row.get::<_, String>(0))
                .map_err(named)?;
            rows.map(|row| from_json("a checkpoint", &row.map_err(named)?))
                .collect()
        })
    }
}
