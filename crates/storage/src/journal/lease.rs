//! Leases: two processes never interleave on one target.
//!
//! A lease is a row, taken before anything is looked at and gone in the transaction that records the end of the
//! operation. It dies with its owner: a dead owner's lease on something never armed is simply taken over; one on
//! something armed is handed to the caller, who must recover that operation first.

use std::collections::BTreeSet;

use backout_model::ports::Durability;
use backout_model::{Operation, OperationId, Overlap, Owner, Reach, Target};
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::rows::{from_json, id_from_sql, id_to_sql, to_json};
use crate::{Lease, StorageError, Store, owner};

impl Store {
    /// Tries to take all `targets` for `operation`; takes none if one of them is held. What those of `instead_of` hold is
    /// not in the way: who recovers operations works in their place.
    pub fn lease(
        &self,
        operation: OperationId,
        targets: &[Target],
        owner: &Owner,
        instead_of: &[OperationId],
    ) -> Result<Lease, StorageError> {
        self.write(Durability::Process, |transaction| {
            for held in self.leases_in(transaction)? {
                // One operation may hold thousands, and is asked for more.
                if held.by == operation || instead_of.contains(&held.by) {
                    continue;
                }
                let Some(target) = targets.iter().find(|t| t.overlap(&held.target).is_some())
                else {
                    continue;
                };
                if owner::is_alive(&held.owner) {
                    let target = target.clone();
                    return Ok(Lease::Held {
                        target,
                        by: held.by,
                        owner: held.owner,
                    });
                }
                if self.is_armed(transaction, held.by)? {
                    return Ok(Lease::Abandoned { by: held.by });
                }
                self.release_in(transaction, held.by)?;
            }
            let owner = to_json(owner)?;
            // Who holds a tree holds all that is in it. Targets come sorted, a directory before what it holds.
            let mut tree: Option<&Target> = None;
            for target in targets {
                if tree.is_some_and(|tree| tree.overlap(target) == Some(Overlap::Holds)) {
                    continue;
                }
                if target.reach() == Reach::Tree {
                    tree = Some(target);
                }
                self.run(
                    transaction,
                    "INSERT OR REPLACE INTO lease (operation, target, owner) VALUES (?1, ?2, ?3)",
                    params![id_to_sql(operation), to_json(target)?, owner],
                )?;
            }
            Ok(Lease::Taken)
        })
    }

    /// Gives the targets of an operation back that ended without a record.
    pub fn release(&self, operation: OperationId) -> Result<(), StorageError> {
        self.write(Durability::Process, |transaction| {
            self.release_in(transaction, operation)
        })
    }

    /// Gives back what dead processes leased and never armed, and returns how many operations those were.
    pub fn release_dead(&self) -> Result<usize, StorageError> {
        self.write(Durability::Process, |transaction| {
            let mut dead = BTreeSet::new();
            for held in self.leases_in(transaction)? {
                if !owner::is_alive(&held.owner) && !self.is_armed(transaction, held.by)? {
                    dead.insert(held.by);
                }
            }
            for &operation in &dead {
                self.release_in(transaction, operation)?;
            }
            Ok(dead.len())
        })
    }

    /// Takes over an armed operation whose owner died, or a proposal to decide about. Says no if somebody else was faster.
    pub fn claim(&self, operation: &Operation, owner: &Owner) -> Result<bool, StorageError> {
        let (was, is) = (to_json(&operation.owner)?, to_json(owner)?);
        self.write(Durability::Process, |transaction| {
            let claimed = transaction
                .prepare_cached(
                    "UPDATE operation SET owner = ?3 WHERE id = ?1 AND owner = ?2
                     AND status = ?4 AND status IN ('armed', 'in-doubt', 'interrupted', 'proposed')",
                )
                .and_then(|mut s| {
                    // Somebody may have settled it since it was looked at, and be gone.
                    let status = operation.status.as_str();
                    s.execute(params![id_to_sql(operation.id), was, is, status])
                })
                .map_err(|error| self.named(error))?;
            let sql = "UPDATE lease SET owner = ?2 WHERE operation = ?1";
            if claimed == 1 {
                self.run(transaction, sql, params![id_to_sql(operation.id), is])?;
            }
            Ok(claimed == 1)
        })
    }

    pub(super) fn release_in(
        &self,
        transaction: &Transaction<'_>,
        operation: OperationId,
    ) -> Result<(), StorageError> {
        let sql = "DELETE FROM lease WHERE operation = ?1";
        self.run(transaction, sql, [id_to_sql(operation)])
    }

    fn leases_in(&self, transaction: &Transaction<'_>) -> Result<Vec<Held>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare_cached("SELECT operation, target, owner FROM lease")
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
        rows.map(|row| {
            let (by, target, owner) = row.map_err(named)?;
            let by = id_from_sql(by);
            let at = format!("the lease of operation {by}");
            Ok(Held {
                by,
                target: from_json(&at, &target)?,
                owner: from_json(&at, &owner)?,
            })
        })
        .collect()
    }

    fn is_armed(
        &self,
        transaction: &Transaction<'_>,
        id: OperationId,
    ) -> Result<bool, StorageError> {
        let status = transaction
            .prepare_cached("SELECT status FROM operation WHERE id = ?1")
            .and_then(|mut statement| {
                statement
                    .query_row([id_to_sql(id)], |row| row.get::<_, String>(0))
                    .optional()
            })
            .map_err(|error| self.named(error))?;
        Ok(status.as_deref() == Some("armed"))
    }

    pub(super) fn run(
        &self,
        transaction: &Transaction<'_>,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> Result<(), StorageError> {
        let named = |error| self.named(error);
        transaction
            .prepare_cached(sql)
            .map_err(named)?
            .execute(values)
            .map_err(named)?;
        Ok(())
    }
}

struct Held {
    by: OperationId,
    target: Target,
    owner: Owner,
}
