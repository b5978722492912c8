//! How many audit records are past their retention.

use std::collections::HashSet;

use backout_model::{Event, KEY_MS_MIN, OperationId, Retention, Timestamp};
use rusqlite::{OptionalExtension as _, Transaction};

use crate::journal::id_from_sql;
use crate::{StorageError, Store};

impl Store {
    /// Counts the records at the beginning of the journal that nothing needs any more: each is older than the audit
    /// window, and so is the record that let the images of its operation go.
    pub(super) fn audit_records(
        &self,
        retention: &Retention,
        now: Timestamp,
    ) -> Result<u64, StorageError> {
        let before = now.0.saturating_sub(retention.audit_ms);
        let keyed_before = now.0.saturating_sub(KEY_MS_MIN);
        self.read(|transaction| self.audit_records_before(transaction, before, keyed_before))
    }

    fn audit_records_before(
        &self,
        transaction: &Transaction<'_>,
        before: i64,
        keyed_before: i64,
    ) -> Result<u64, StorageError> {
        let named = |error| self.named(error);
        let first_young: i64 = transaction
            .query_row(
                "SELECT min(record.lsn) FROM record
                 LEFT JOIN operation ON operation.id = record.operation
                 WHERE record.at > ?1 OR (operation.call_key IS NOT NULL AND record.at > ?2)",
                [before, keyed_before],
                |row| Ok(row.get::<_, Option<i64>>(0)?.unwrap_or(i64::MAX)),
            )
            .map_err(named)?;
        let expired = self.expired_before(transaction, first_young)?;
        let mut operations = transaction
            .prepare("SELECT id, lsn, retained, status = 'refused' FROM operation ORDER BY lsn")
            .map_err(named)?;
        let mut rows = operations.query([]).map_err(named)?;
        let mut first_needed = first_young;
        while let Some(row) = rows.next().map_err(named)? {
            let id = id_from_sql(row.get(0).map_err(named)?);
            let lsn: i64 = row.get(1).map_err(named)?;
            let is_retained: bool = row.get(2).map_err(named)?;
            let is_refused: bool = row.get(3).map_err(named)?;
            // What was refused never had images.
            if lsn >= first_needed || is_retained || !(is_refused || expired.contains(&id)) {
                first_needed = first_needed.min(lsn);
                break;
            }
        }
        // A command's place is where it ended; its records begin where it was armed. An open rollout needs its plan.
        let first_needed: i64 = transaction
            .query_row(
                "SELECT min(?1, coalesce((
                     SELECT min(intent.lsn) FROM record AS captured
                     JOIN record AS intent ON intent.operation = captured.operation
                     WHERE captured.kind = 'captured' AND captured.lsn >= ?1), ?1),
                     coalesce((SELECT min(value) FROM meta WHERE key LIKE 'rollout-open/%'), ?1))",
                [first_needed],
                |row| row.get(0),
            )
            .map_err(named)?;
        let count: Option<i64> = transaction
            .query_row(
                "SELECT count(*) FROM record WHERE lsn < ?1",
                [first_needed],
                |row| row.get(0),
            )
            .optional()
            .map_err(named)?;
        Ok(count
            .and_then(|count| u64::try_from(count).ok())
            .unwrap_or(0))
    }

    /// Lists the operations whose images were let go by a record before `lsn`.
    fn expired_before(
        &self,
        transaction: &Transaction<'_>,
        lsn: i64,
    ) -> Result<HashSet<OperationId>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare("SELECT body FROM record WHERE kind IN ('expired', 'lost') AND lsn < ?1")
            .map_err(named)?;
        let rows = statement
            .query_map([lsn], |row| row.get::<_, Vec<u8>>(0))
            .map_err(named)?;
        let mut expired = HashSet::new();
        for body in rows {
            // A body that cannot be read only keeps its operations' records longer; `verify` reports it.
            if let Ok(event) = serde_json::from_slice::<Event>(&body.map_err(named)?) {
                expired.extend(event.lets_go().into_iter().flatten());
            }
        }
        Ok(expired)
    }
}
