//! What may not be touched now, whatever its age: the work of living processes, and what is not finished.

use std::collections::{HashMap, HashSet};

use backout_model::ports::Durability;
use backout_model::{Owner, Target};
use rusqlite::Transaction;

use crate::{StorageError, Store, owner};

/// The leases of living processes.
#[derive(Debug, Default)]
pub(super) struct Leases {
    /// The operations that hold one.
    pub(super) operations: HashSet<i64>,
    /// What they hold.
    targets: Vec<Target>,
}

impl Leases {
    /// Tells whether nobody holds anything.
    pub(super) fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Tells whether a living process is about to write one of these targets, and so may need their history.
    pub(super) fn touch(&self, targets: &[Target]) -> bool {
        let held = |target: &Target| {
            self.targets
                .iter()
                .any(|held| held.overlap(target).is_some())
        };
        targets.iter().any(held)
    }
}

impl Store {
    /// Reads the leases of living processes. One that cannot be read counts as alive: waiting is safe.
    pub(super) fn live_leases(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<Leases, StorageError> {
        let mut leases = Leases::default();
        for row in self.lease_rows(transaction)? {
            if row.is_alive {
                leases.operations.insert(row.operation);
                leases
                    .targets
                    .extend(serde_json::from_str::<Target>(&row.target));
            }
        }
        Ok(leases)
    }

    /// Forgets the leases of dead processes, but for operations that somebody must recover first.
    pub(super) fn drop_dead_leases(&self) -> Result<(), StorageError> {
        self.write(Durability::Process, |transaction| {
            let unfinished = self.unfinished(transaction)?;
            for row in self.lease_rows(transaction)? {
                if !row.is_alive && !unfinished.contains(&row.operation) {
                    transaction
                        .execute("DELETE FROM lease WHERE operation = ?1", [row.operation])
                        .map_err(|error| self.named(error))?;
                }
            }
            Ok(())
        })
    }

    /// Lists the operations that are neither kept nor taken back.
    pub(super) fn unfinished(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<HashSet<i64>, StorageError> {
        let sql = "SELECT id FROM operation
                   WHERE status IN ('armed', 'applied', 'interrupted', 'in-doubt', 'failed')";
        Ok(self.operation_ids(transaction, sql)?.into_iter().collect())
    }

    /// Lists the operations that a query gives.
    pub(super) fn operation_ids(
        &self,
        transaction: &Transaction<'_>,
        sql: &str,
    ) -> Result<Vec<i64>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction.prepare(sql).map_err(named)?;
        let rows = statement.query_map([], |row| row.get(0)).map_err(named)?;
        rows.map(|id| id.map_err(named)).collect()
    }

    fn lease_rows(&self, transaction: &Transaction<'_>) -> Result<Vec<LeaseRow>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare("SELECT operation, target, owner FROM lease")
            .map_err(named)?;
        let rows = statement
            .query_map([], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, String>(2)?,
                ))
            })
            .map_err(named)?;
        let mut asked = HashMap::new();
        rows.map(|row| {
            let (operation, target, owner) = row.map_err(named)?;
            let is_alive = *asked.entry(owner).or_insert_with_key(|owner| {
                serde_json::from_str::<Owner>(owner).map_or(true, |owner| owner::is_alive(&owner))
            });
            Ok(LeaseRow {
                operation,
                target,
                is_alive,
            })
        })
        .collect()
    }
}

struct LeaseRow {
    operation: i64,
    target: String,
    is_alive: bool,
}
