//! Removing contents that no operation refers to.
//!
//! A version that is gone may be what living ones are stored against: those are stored anew first, against the next
//! newer version that lives, or whole.

use backout_crashpoint::crash_point;
use backout_model::Digest;
use backout_model::ports::Durability;
use rusqlite::{OptionalExtension as _, Transaction, params};

use crate::contents::chain::dependents;
use crate::contents::codec::{self, Effort, Encoded, Form};
use crate::contents::rows::{Found, read_in, replace, stored_length, to_digest};
use crate::contents::{Fault, Kept, add_stored};
use crate::{GcReport, StorageError, Store};

/// So many contents are removed in one transaction.
const REMOVED_AT_ONCE_MAX: i64 = 100;

/// A row without a reference, in the order they were stored: `rowid` after `?1`, at most `?2` of them.
const DEAD: &str = "SELECT rowid, digest FROM content
     WHERE rowid > ?1
       AND NOT EXISTS (SELECT 1 FROM reference WHERE reference.digest = content.digest)
     ORDER BY rowid LIMIT ?2";

impl Store {
    /// Removes references of operations that never came to be, and then what nothing refers to.
    pub(super) fn sweep_contents(&self, report: &mut GcReport) -> Result<(), StorageError> {
        self.write(Durability::Process, |transaction| {
            self.drop_dead_references(transaction)
        })?;
        crash_point("gc.references-dropped");
        let mut needed = Vec::new();
        let mut after = 0;
        loop {
            let dead = self.write(Durability::Process, |transaction| {
                let dead = self.dead_contents(transaction, after)?;
                for (_, digest) in &dead {
                    if !self.remove_if_unneeded(transaction, digest, report)? {
                        needed.push(*digest);
                    }
                }
                Ok(dead)
            })?;
            crash_point("gc.contents-removed");
            match dead.last() {
                Some((rowid, _)) => after = *rowid,
                None => break,
            }
        }
        // A newer version may have been stored first; by now what is stored against it may be gone as well.
        while !needed.is_empty() {
            let before = needed.len();
            let mut left = Vec::new();
            for digest in needed {
                if !self.remove_needed(&digest, report)? {
                    left.push(digest);
                }
            }
            if left.len() == before {
                break;
            }
            needed = left;
        }
        Ok(())
    }

    /// Counts the contents that nothing refers to now.
    pub(super) fn count_dead_contents(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<u64, StorageError> {
        let sql = "SELECT count(*) FROM content
             WHERE NOT EXISTS (SELECT 1 FROM reference WHERE reference.digest = content.digest)";
        let count: i64 = transaction
            .query_row(sql, [], |row| row.get(0))
            .map_err(|error| self.named(error))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// A reference counts while its operation is known (letting its images go removes it), or, before that is armed,
    /// while its owner lives. What was refused never needed any. An open rollout is known as well, and so is who holds a workspace.
    fn drop_dead_references(&self, transaction: &Transaction<'_>) -> Result<(), StorageError> {
        let named = |error| self.named(error);
        let leases = self.live_leases(transaction)?;
        let sql = "SELECT DISTINCT operation FROM reference
                   WHERE NOT EXISTS (SELECT 1 FROM operation
                                     WHERE operation.id = reference.operation AND operation.status <> 'refused')
                     AND NOT EXISTS (SELECT 1 FROM meta WHERE key IN ('rollout-open/' || reference.operation, 'held/' || reference.operation))";
        let operations = self.operation_ids(transaction, sql)?;
        for operation in operations {
            if !leases.operations.contains(&operation) {
                transaction
                    .execute("DELETE FROM reference WHERE operation = ?1", [operation])
                    .map_err(named)?;
            }
        }
        Ok(())
    }

    fn dead_contents(
        &self,
        transaction: &Transaction<'_>,
        after: i64,
    ) -> Result<Vec<(i64, Digest)>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction.prepare_cached(DEAD).map_err(named)?;
        let rows = statement
            .query_map(params![after, REMOVED_AT_ONCE_MAX], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
            })
            .map_err(named)?;
        rows.map(|row| {
            let (rowid, digest) = row.map_err(named)?;
            Ok((rowid, to_digest(&digest)?))
        })
        .collect()
    }

    fn remove_if_unneeded(
        &self,
        transaction: &Transaction<'_>,
        digest: &Digest,
        report: &mut GcReport,
    ) -> Result<bool, StorageError> {
        if !dependents(self, transaction, digest)?.is_empty() {
            return Ok(false);
        }
        let length = stored_length(self, transaction, digest)?.unwrap_or(0);
        let removed = transaction
            .prepare_cached("DELETE FROM content WHERE digest = ?1")
            .and_then(|mut remove| remove.execute([digest.as_bytes().as_slice()]))
            .map_err(|error| self.named(error))?;
        add_stored(self, transaction, Kept::Inline, -length.cast_signed())?;
        report.contents += removed as u64;
        Ok(true)
    }

    /// Stores what depends on a dead content anew and removes it. Left alone if something cannot be read: then the row is
    /// still the best that those who come later have.
    fn remove_needed(&self, digest: &Digest, report: &mut GcReport) -> Result<bool, StorageError> {
        self.write(Durability::Process, |transaction| {
            if self.is_referenced(transaction, digest)? {
                return Ok(true);
            }
            for dependent in dependents(self, transaction, digest)? {
                match self.detach(transaction, &dependent) {
                    Ok(()) => report.rewritten += 1,
                    Err(fault) => return fault.of_content().map(|()| false),
                }
            }
            self.remove_if_unneeded(transaction, digest, report)
        })
    }

    /// Stores a content without the help of dead ones: against the nearest newer version that lives, or whole.
    fn detach(&self, transaction: &Transaction<'_>, digest: &Digest) -> Result<(), Fault> {
        let Found::Whole(bytes) = read_in(self, transaction, digest, None)? else {
            return Ok(());
        };
        let size = bytes.len() as u64;
        let mut encoded = codec::encode(&bytes, Effort::Normal);
        let mut base = self.living_base(transaction, digest)?;
        if let Some(newer) = base
            && let Found::Whole(newer) = read_in(self, transaction, &newer, None)?
            && let Some(delta) = codec::encode_delta(&bytes, &newer)
            && delta.len() < encoded.bytes.len()
            && codec::decode_delta(&delta, &newer, size, digest).is_ok()
        {
            encoded = Encoded {
                form: Form::Delta,
                bytes: delta,
            };
        } else {
            base = None;
            codec::decode(encoded.form, &encoded.bytes, size, digest)
                .map_err(|flaw| Fault::flawed(digest, &flaw))?;
        }
        replace(self, transaction, digest, size, &encoded, base.as_ref())?;
        Ok(())
    }

    /// Follows the chain of a content up to the first version that is referred to. The chain only gets shorter by
    /// using that one, and cannot become a circle.
    fn living_base(
        &self,
        transaction: &Transaction<'_>,
        digest: &Digest,
    ) -> Result<Option<Digest>, StorageError> {
        let named = |error| self.named(error);
        let mut base = transaction
            .prepare_cached("SELECT base FROM content WHERE digest = ?1")
            .map_err(named)?;
        let mut at = *digest;
        loop {
            let next = base
                .query_row([at.as_bytes().as_slice()], |row| {
                    row.get::<_, Option<Vec<u8>>>(0)
                })
                .optional()
                .map_err(named)?
                .flatten();
            let Some(next) = next else { return Ok(None) };
            at = to_digest(&next)?;
            if self.is_referenced(transaction, &at)? {
                return Ok(Some(at));
            }
        }
    }

    fn is_referenced(
        &self,
        transaction: &Transaction<'_>,
        digest: &Digest,
    ) -> Result<bool, StorageError> {
        transaction
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM reference WHERE digest = ?1)")
            .and_then(|mut is| is.query_row([digest.as_bytes().as_slice()], |row| row.get(0)))
            .map_err(|error| self.named(error))
    }
}
