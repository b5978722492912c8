//! Appending: one transaction, in order, chained, with everything that follows from the records.

use backout_crashpoint::crash_point;
use backout_model::ports::{Append, Durability, Entry};
use backout_model::{Digest, GENESIS, Lsn, Record, Timestamp};
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::project::{Mode, project};
use super::rows::{contradiction, digest, id_to_sql, lsn_from_sql, lsn_to_sql};
use crate::{StorageError, Store, contents};

impl Append for Store {
    fn append(&self, entry: &Entry, durability: Durability) -> Result<Lsn, StorageError> {
        let now = self.clock.now();
        if durability == Durability::Power {
            return self.append_together(entry, now);
        }
        self.write(durability, |transaction| {
            self.append_in(transaction, entry, now)
        })
    }

    fn is_free(&self) -> bool {
        self.is_unlocked()
    }
}

impl Store {
    /// Appends within a transaction that the caller commits.
    pub(crate) fn append_in(
        &self,
        transaction: &Transaction<'_>,
        entry: &Entry,
        now: Timestamp,
    ) -> Result<Lsn, StorageError> {
        let named = |error| self.named(error);
        // A change may be one of what comes with it.
        let (whole, changes): (Vec<_>, Vec<_>) = entry
            .contents
            .iter()
            .partition(|content| content.over.is_none());
        for content in whole.into_iter().chain(changes) {
            contents::put(self, transaction, content)?;
        }
        crash_point("journal.contents-put");
        let (mut lsn, mut hash) = head(transaction).map_err(named)??;
        let mut insert = transaction
            .prepare_cached(
                "INSERT INTO record (lsn, at, kind, operation, body, hash)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )
            .map_err(named)?;
        for event in &entry.events {
            lsn = lsn.next();
            let body = serde_json::to_vec(event)
                .map_err(|cause| contradiction("a record to be stored", &cause))?;
            hash = Record::chain(&hash, lsn, now, &body);
            let operation = event.operation().map(id_to_sql);
            insert
                .execute(params![
                    lsn_to_sql(lsn),
                    now.0,
                    event.kind(),
                    operation,
                    body,
                    hash.as_bytes().as_slice()
                ])
                .map_err(named)?;
            project(self, transaction, (lsn, now), event, Mode::Append)?;
        }
        self.note_appended(lsn, hash);
        Ok(lsn)
    }

    /// Finds the last record's place and hash.
    pub(crate) fn last_record(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<(Lsn, Digest), StorageError> {
        head(transaction).map_err(|error| self.named(error))?
    }
}

/// Finds the last record's place and hash: the anchor, if all was cut, or the beginning.
pub(super) fn head(
    transaction: &Transaction<'_>,
) -> rusqlite::Result<Result<(Lsn, Digest), StorageError>> {
    let last = transaction
        .prepare_cached("SELECT lsn, hash FROM record ORDER BY lsn DESC LIMIT 1")?
        .query_row([], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
        })
        .optional()?;
    Ok(match last {
        Some((lsn, hash)) => digest("the last record", &hash).map(|hash| (lsn_from_sql(lsn), hash)),
        None => anchor(transaction)?,
    })
}

/// Finds where the chain begins: at the last cut, or at the very beginning.
pub(super) fn anchor(
    transaction: &Transaction<'_>,
) -> rusqlite::Result<Result<(Lsn, Digest), StorageError>> {
    let mut meta = transaction.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    let lsn = meta
        .query_row(["cut-lsn"], |row| row.get::<_, i64>(0))
        .optional()?;
    let hash = meta
        .query_row(["cut-hash"], |row| row.get::<_, Vec<u8>>(0))
        .optional()?;
    Ok(match (lsn, hash) {
        (Some(lsn), Some(hash)) => {
            digest("the anchor of the journal", &hash).map(|hash| (lsn_from_sql(lsn), hash))
        }
        _ => Ok((Lsn(0), GENESIS)),
    })
}
