//! Who holds how much of what is stored: counted when somebody asks, since it visits every content.
//!
//! A content that several operations need is counted for the first of them, so that the parts add up to the whole. What belongs to no operation
//! is the rest: bases of other versions, checkpoints of directories, packs with holes, and what `gc` has not let go yet.

use std::collections::{HashMap, HashSet};

use backout_model::OperationId;
use rusqlite::{OptionalExtension as _, Transaction};

use super::codec::Form;
use super::pack::decode_list;
use super::sizes::stored_in;
use crate::journal::id_from_sql;
use crate::{Holding, StorageError, Store, StoredBy};

/// So many of those that hold most are named.
const LARGEST_MAX: usize = 10;

/// Every content with the first operation that needs it, in the order of the journal; the list of chunks, if it is one.
const CONTENTS: &str = "
SELECT first.operation, length(content.bytes), content.size,
       CASE content.form WHEN ?1 THEN content.bytes END
FROM (SELECT reference.digest AS digest, reference.operation AS operation, min(operation.lsn) AS lsn
      FROM reference JOIN operation ON operation.id = reference.operation GROUP BY reference.digest) AS first
JOIN content ON content.digest = first.digest ORDER BY first.lsn";

const SLOTS: &str = "
SELECT slot.operation, sum(slot.bytes) FROM slot JOIN operation ON operation.id = slot.operation
WHERE slot.bytes IS NOT NULL GROUP BY slot.operation";

impl Store {
    /// Counts who holds how much.
    pub fn stored_by(&self) -> Result<StoredBy, StorageError> {
        self.read(|transaction| {
            let named = |error| self.named(error);
            let total = stored_in(self, transaction)?.total;
            let mut held = self.contents_held(transaction)?;
            let mut statement = transaction.prepare_cached(SLOTS).map_err(named)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
            for row in rows.map_err(named)? {
                let (operation, bytes): (i64, u64) = row.map_err(named)?;
                *held.entry(operation).or_default() += bytes;
            }
            let mut statement = transaction
                .prepare_cached("SELECT agent, task, summary FROM operation WHERE id = ?1")
                .map_err(named)?;
            let mut by = StoredBy {
                rest: total,
                ..StoredBy::default()
            };
            for (operation, bytes) in held {
                let row = statement.query_row([operation], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                });
                let (agent, task, summary): (Option<String>, Option<String>, String) =
                    row.map_err(named)?;
                let id: OperationId = id_from_sql(operation);
                by.add(
                    agent.as_deref(),
                    task.as_deref(),
                    Holding { id, summary, bytes },
                );
            }
            by.keep_largest(LARGEST_MAX);
            Ok(by)
        })
    }

    /// Counts contents and their chunks, each for the first operation that needs it.
    fn contents_held(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<HashMap<i64, u64>, StorageError> {
        let named = |error| self.named(error);
        let mut chunk = transaction
            .prepare_cached("SELECT stored FROM chunk WHERE digest = ?1")
            .map_err(named)?;
        let (mut held, mut seen) = (HashMap::<i64, u64>::new(), HashSet::new());
        let mut statement = transaction.prepare_cached(CONTENTS).map_err(named)?;
        let mut rows = statement.query([Form::Chunks.to_sql()]).map_err(named)?;
        while let Some(row) = rows.next().map_err(named)? {
            let operation: i64 = row.get(0).map_err(named)?;
            let mut bytes: u64 = row.get(1).map_err(named)?;
            let size: u64 = row.get(2).map_err(named)?;
            let list: Option<Vec<u8>> = row.get(3).map_err(named)?;
            // A list that is damaged is a matter of `verify`.
            let chunks = list.and_then(|list| decode_list(&list, size).ok());
            for digest in chunks.into_iter().flatten() {
                if !seen.insert(digest) {
                    continue;
                }
                let stored = chunk.query_row([digest.as_bytes()], |row| row.get::<_, u64>(0));
                bytes += stored.optional().map_err(named)?.unwrap_or_default();
            }
            if bytes > 0 {
                *held.entry(operation).or_default() += bytes;
            }
        }
        Ok(held)
    }
}
