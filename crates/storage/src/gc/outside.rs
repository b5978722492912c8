//! What older operations need that newer ones keep.
//!
//! A large file that was logged by its reverse change is told as a change of what the operation left: of the file in the world, or
//! of what a newer operation keeps of it. So while the older one is retained, the newer ones on the same target are, too.

use std::collections::HashSet;

use backout_model::Target;
use rusqlite::{Transaction, params};

use super::expire::Group;
use crate::contents::codec::Form;
use crate::contents::rows::{outside, to_digest};
use crate::{StorageError, Store};

/// An operation that has something told as a change of what is not in the store.
struct Needing {
    operation: i64,
    lsn: i64,
    targets: Vec<Target>,
}

impl Store {
    /// Lets those groups stay of which an older operation that stays may need what they keep.
    pub(super) fn keep_what_older_need(
        &self,
        transaction: &Transaction<'_>,
        groups: &mut [Group],
    ) -> Result<(), StorageError> {
        let needing = self.needing(transaction)?;
        if needing.is_empty() {
            return Ok(());
        }
        let chosen = groups.iter().filter(|group| group.goes());
        let chosen: HashSet<i64> = chosen.flat_map(Group::ids).collect();
        let stay = |it: &&Needing| !chosen.contains(&it.operation);
        let mut staying: Vec<&Needing> = needing.iter().filter(stay).collect();
        // What stays for the sake of another may need something itself.
        loop {
            let known = staying.len();
            let mut is_changed = false;
            for group in groups.iter_mut().filter(|group| group.goes()) {
                if self.is_needed(transaction, group, &staying)? {
                    group.stays();
                    is_changed = true;
                    let members: Vec<i64> = group.ids().collect();
                    let own = needing.iter().filter(|it| members.contains(&it.operation));
                    staying.extend(own);
                }
            }
            if !is_changed || staying.len() == known {
                return Ok(());
            }
        }
    }

    /// Tells whether an older operation on the same target needs what a group may keep.
    fn is_needed(
        &self,
        transaction: &Transaction<'_>,
        group: &Group,
        staying: &[&Needing],
    ) -> Result<bool, StorageError> {
        for (id, lsn) in group.places() {
            let older: Vec<_> = staying.iter().filter(|it| it.lsn < lsn).collect();
            if older.is_empty() {
                continue;
            }
            let targets = self.gc_targets(transaction, id)?;
            let meets = |one: &Target| targets.iter().any(|it| it.overlap(one).is_some());
            if older.iter().any(|it| it.targets.iter().any(meets)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Finds the operations that need what is not in the store.
    fn needing(&self, transaction: &Transaction<'_>) -> Result<Vec<Needing>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare(
                "SELECT operation.id, operation.lsn, content.digest FROM content
                 JOIN reference ON reference.digest = content.digest
                 JOIN operation ON operation.id = reference.operation
                 WHERE content.form = ?1 AND operation.retained = 1",
            )
            .map_err(named)?;
        let rows = statement
            .query_map(params![Form::Reverse.to_sql()], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?))
            })
            .map_err(named)?;
        let mut needing: Vec<Needing> = Vec::new();
        for row in rows {
            let (operation, lsn, digest): (i64, i64, Vec<u8>) = row.map_err(named)?;
            let is_outside = match outside(self, transaction, &to_digest(&digest)?) {
                Ok(outside) => !outside.is_empty(),
                // Whoever looks says what is wrong with it; here it needs nothing.
                Err(fault) => fault.of_content().map(|()| false)?,
            };
            if is_outside && !needing.iter().any(|it| it.operation == operation) {
                needing.push(Needing {
                    operation,
                    lsn,
                    targets: self.gc_targets(transaction, operation)?,
                });
            }
        }
        Ok(needing)
    }
}
