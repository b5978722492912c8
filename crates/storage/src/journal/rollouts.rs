//! Rollouts: which there are. What they are to do and have come to is in their records.
//!
//! A rollout is a row of `meta`, `rollout-open/ID` or `rollout-ended/ID`, with the place of its plan. While it is open its
//! requests are kept: the rows of `reference` go with its end.

use backout_model::{Lsn, OperationId, RolloutPlan};
use rusqlite::params;

use super::project::Projection;
use super::rows::{id_from_sql, id_to_sql, lsn_to_sql};
use crate::{StorageError, Store};

impl Projection<'_, '_> {
    /// Notes a rollout, with what its requests need.
    pub(super) fn rollout_begun(&self, lsn: Lsn, plan: &RolloutPlan) -> Result<(), StorageError> {
        let id = id_to_sql(plan.id);
        self.execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES ('rollout-open/' || ?1, ?2)",
            params![id, lsn_to_sql(lsn)],
        )?;
        for digest in plan.contents() {
            self.refer(id, digest)?;
        }
        Ok(())
    }

    /// Notes the end of a rollout: what its requests needed may go.
    pub(super) fn rollout_ended(&self, id: OperationId) -> Result<(), StorageError> {
        let id = id_to_sql(id);
        self.execute(
            "UPDATE meta SET key = 'rollout-ended/' || ?1 WHERE key = 'rollout-open/' || ?1",
            [id],
        )?;
        self.execute("DELETE FROM reference WHERE operation = ?1", [id])
    }

    /// Forgets the rollouts whose plans were cut off.
    pub(super) fn forget_rollouts(&self, up_to: Lsn) -> Result<(), StorageError> {
        self.execute(
            "DELETE FROM meta WHERE key LIKE 'rollout-%' AND value <= ?1",
            [lsn_to_sql(up_to)],
        )
    }
}

impl Store {
    /// Lists rollouts, newest first, with those that ended.
    pub fn rollouts(&self) -> Result<Vec<OperationId>, StorageError> {
        self.read(|transaction| {
            let named = |error| self.named(error);
            let mut statement = transaction
                .prepare_cached(
                    "SELECT CAST(substr(key, instr(key, '/') + 1) AS INTEGER) FROM meta
                     WHERE key LIKE 'rollout-%' ORDER BY value DESC",
                )
                .map_err(named)?;
            let rows = statement.query_map([], |row| row.get(0)).map_err(named)?;
            rows.map(|id| id.map(id_from_sql).map_err(named)).collect()
        })
    }
}
