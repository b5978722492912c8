//! Compaction: one whole copy of the newest version, and each older one as its difference from the next newer.
//!
//! - What a content is never changes, only how it is stored; every rewrite is decoded and compared with the digest
//!   before it takes the old one's place, and does so only if the row is still as it was looked at.
//! - The work goes along the journal and remembers how far it came (`compacted-lsn` in `meta`), so doing it often
//!   costs little. A version that is stored as a delta stays one.
//! - Others are not held up: looking and compressing happen outside of write transactions, which are short.
//!
//! Not here: which contents are versions of each other (`pairs`), how long chains may be (`chain`).

use std::collections::HashSet;

use backout_crashpoint::crash_point;
use backout_model::Digest;
use backout_model::ports::Durability;
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::chain;
use super::codec::{self, Effort, Encoded, Form};
use super::pairs::{Pair, Pairing, Told};
use super::rows::{self, Fault, Found, read_in, replace};
use crate::{CompactBudget, CompactReport, StorageError, Store};

/// A write transaction has no more rewrites than this,
const BATCH_ROWS_MAX: usize = 100;
/// and no more bytes in them.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// So many contents may wait to be polished. Until they are, the mark in the database does not move, and a run that is
/// killed is taken up before them.
const TOUCHED_MAX: usize = 10_000;

/// So many free pages may stay for the next writes to fill: four mebibytes.
const FREE_PAGES_MAX: i64 = 1024;

const MARK: &str = "compacted-lsn";

impl Store {
    /// Stores older versions as differences from newer ones. `progress` is told how many of how many
    /// operations are done. May be stopped at any time; what is done stays done.
    pub fn compact(
        &self,
        budget: CompactBudget,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<CompactReport, StorageError> {
        let (mark, total) = self.read(|transaction| self.left_to_compact(transaction))?;
        let mut run = Run::new(self, mark);
        while run.report.operations < budget.operations_max && run.bytes < budget.bytes_max {
            let Some((operation, lsn)) = self.next_operation(run.mark)? else {
                run.report.is_complete = true;
                break;
            };
            run.take(operation, lsn)?;
            progress(run.report.operations, total.max(run.report.operations));
        }
        if run.report.operations > 0 {
            run.flush(Durability::Power)?;
            self.vacuum(FREE_PAGES_MAX)?;
        }
        Ok(run.report)
    }

    fn left_to_compact(&self, transaction: &Transaction<'_>) -> Result<(i64, u64), StorageError> {
        let named = |error| self.named(error);
        let mark: Option<i64> = transaction
            .query_row("SELECT value FROM meta WHERE key = ?1", [MARK], |row| {
                row.get(0)
            })
            .optional()
            .map_err(named)?;
        let mark = mark.unwrap_or(0);
        let count = "SELECT count(*) FROM operation WHERE lsn > ?1";
        let total: i64 = transaction
            .query_row(count, [mark], |row| row.get(0))
            .map_err(named)?;
        Ok((mark, u64::try_from(total).unwrap_or(0)))
    }

    fn next_operation(&self, mark: i64) -> Result<Option<(i64, i64)>, StorageError> {
        self.read(|transaction| {
            transaction
                .prepare_cached("SELECT id, lsn FROM operation WHERE lsn > ?1 ORDER BY lsn LIMIT 1")
                .and_then(|mut next| {
                    next.query_row([mark], |row| Ok((row.get(0)?, row.get(1)?)))
                        .optional()
                })
                .map_err(|error| self.named(error))
        })
    }
}

/// A content that will be stored in another way, if it is still stored as it was seen.
struct Rewrite {
    digest: Digest,
    size: u64,
    seen: (Form, usize),
    encoded: Encoded,
    base: Option<(Digest, u64)>,
}

struct Run<'s> {
    store: &'s Store,
    pairing: Pairing,
    batch: Vec<Rewrite>,
    batch_bytes: usize,
    /// Contents of operations after the mark in the database that may stay whole.
    touched: HashSet<Digest>,
    /// The last operation that was taken.
    mark: i64,
    /// Bytes that were compressed.
    bytes: u64,
    report: CompactReport,
}

impl<'s> Run<'s> {
    fn new(store: &'s Store, mark: i64) -> Self {
        Self {
            store,
            pairing: Pairing::default(),
            batch: Vec::new(),
            batch_bytes: 0,
            touched: HashSet::new(),
            mark,
            bytes: 0,
            report: CompactReport::default(),
        }
    }

    fn take(&mut self, operation: i64, lsn: i64) -> Result<(), StorageError> {
        let Told { pairs, versions } = self
            .store
            .read(|transaction| self.pairing.of(self.store, transaction, operation, lsn))?;
        for pair in pairs {
            if !pair.older.is_whole() || self.batch.iter().any(|r| r.digest == pair.older.digest) {
                continue;
            }
            let rewrite = self.delta(&pair);
            self.add(rewrite)?;
        }
        self.touched
            .extend(versions.iter().map(|version| version.digest));
        self.mark = lsn;
        self.report.operations += 1;
        if self.touched.len() >= TOUCHED_MAX {
            self.flush(Durability::Process)
        } else {
            Ok(())
        }
    }

    fn add(&mut self, rewrite: Result<Option<Rewrite>, Fault>) -> Result<(), StorageError> {
        match rewrite {
            Ok(Some(rewrite)) => {
                self.batch_bytes += rewrite.encoded.bytes.len();
                self.batch.push(rewrite);
                if self.batch.len() >= BATCH_ROWS_MAX || self.batch_bytes >= BATCH_BYTES_MAX {
                    self.write(None, Durability::Process)?;
                }
            }
            // What is made from a file in the world is not for us to make smaller.
            Ok(None) | Err(Fault::Outside(..)) => {}
            Err(Fault::Storage(error)) => return Err(error),
            Err(Fault::Missing(_) | Fault::Damaged(..) | Fault::Source(_)) => {
                self.report.damaged += 1;
            }
        }
        Ok(())
    }

    /// Makes the smallest delta of a pair, if it is worth having.
    fn delta(&mut self, pair: &Pair) -> Result<Option<Rewrite>, Fault> {
        let (digest, size) = (pair.older.digest, pair.older.size);
        let Some((row, older)) = self.whole(&digest)? else {
            return Ok(None);
        };
        // An eighth must be saved for an exact pair, so that chains are not made for nothing.
        let parts = if pair.is_guess { 4 } else { 7 };
        let mut wanted = row.bytes.len() / 8 * parts + row.bytes.len() % 8;
        let mut best = None;
        for newer in &pair.newer {
            let Some(bytes) = self.content(&newer.digest)? else {
                continue;
            };
            self.bytes += size;
            let Some(delta) = codec::encode_delta(&older, &bytes) else {
                continue;
            };
            let is_right = delta.len() < wanted
                && codec::decode_delta(&delta, &bytes, size, &digest).is_ok_and(|b| b == older);
            if is_right {
                wanted = delta.len();
                best = Some((delta, newer.digest, newer.size));
            }
        }
        Ok(best.map(|(bytes, base, base_size)| Rewrite {
            digest,
            size,
            seen: (row.form, row.bytes.len()),
            encoded: Encoded {
                form: Form::Delta,
                bytes,
            },
            base: Some((base, base_size)),
        }))
    }

    /// Compresses a content that stays whole once more, with patience.
    fn polish(&mut self, digest: &Digest) -> Result<Option<Rewrite>, Fault> {
        let Some((row, bytes)) = self.whole(digest)? else {
            return Ok(None);
        };
        if !codec::can_be_polished(row.size) {
            return Ok(None);
        }
        self.bytes += row.size;
        let encoded = codec::encode(&bytes, Effort::Best);
        let is_right = encoded.bytes.len() < row.bytes.len()
            && codec::decode(encoded.form, &encoded.bytes, row.size, digest).is_ok();
        let seen = (row.form, row.bytes.len());
        Ok(is_right.then_some(Rewrite {
            digest: *digest,
            size: row.size,
            seen,
            encoded,
            base: None,
        }))
    }

    /// Reads a content that is stored whole in its row.
    fn whole(&self, digest: &Digest) -> Result<Option<(rows::Row, Vec<u8>)>, Fault> {
        let row = self
            .store
            .look(|transaction| rows::row(self.store, transaction, digest))?;
        let Some(row) = row.filter(|row| matches!(row.form, Form::Raw | Form::Zstd)) else {
            return Ok(None);
        };
        let bytes = codec::decode(row.form, &row.bytes, row.size, digest)
            .map_err(|flaw| Fault::flawed(digest, &flaw))?;
        Ok(Some((row, bytes)))
    }

    fn content(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Fault> {
        match self
            .store
            .look(|transaction| read_in(self.store, transaction, digest, None))?
        {
            Found::Whole(bytes) => Ok(Some(bytes)),
            Found::Chunked { .. } | Found::Over { .. } => Ok(None),
        }
    }

    /// Polishes what stays whole, writes what is waiting, and notes how far the work came.
    fn flush(&mut self, durability: Durability) -> Result<(), StorageError> {
        self.write(None, Durability::Process)?;
        for digest in std::mem::take(&mut self.touched) {
            let rewrite = self.polish(&digest);
            self.add(rewrite)?;
        }
        self.write(Some(self.mark), durability)
    }

    /// Writes the batch.
    ///
    /// One that is not synced becomes durable with the next one that is, since the log keeps their order;
    /// until then losing power only brings the larger encodings back.
    fn write(&mut self, mark: Option<i64>, durability: Durability) -> Result<(), StorageError> {
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        crash_point("compact.before-write");
        let store = self.store;
        let applied = store.write(durability, |transaction| {
            if let Some(mark) = mark {
                let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
                transaction
                    .execute(sql, params![MARK, mark])
                    .map_err(|error| store.named(error))?;
            }
            batch
                .iter()
                .map(|rewrite| apply(store, transaction, rewrite))
                .collect::<Result<Vec<_>, _>>()
        })?;
        for (rewrite, is_applied) in batch.iter().zip(applied) {
            if is_applied {
                self.report.rewritten += 1;
                self.report.bytes_before += rewrite.seen.1 as u64;
                self.report.bytes_after += rewrite.encoded.bytes.len() as u64;
                self.touched.remove(&rewrite.digest);
            } else if rewrite.base.is_some() {
                self.touched.insert(rewrite.digest);
            }
        }
        crash_point("compact.written");
        Ok(())
    }
}

/// Stores a content in the new way, if nothing speaks against it by now.
fn apply(
    store: &Store,
    transaction: &Transaction<'_>,
    rewrite: &Rewrite,
) -> Result<bool, StorageError> {
    let named = |error| store.named(error);
    let digest = &rewrite.digest;
    let now = transaction
        .prepare_cached("SELECT form, length(bytes) FROM content WHERE digest = ?1")
        .and_then(|mut row| {
            row.query_row([digest.as_bytes().as_slice()], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
            })
            .optional()
        })
        .map_err(named)?;
    let (form, length) = rewrite.seen;
    if now != Some((form.to_sql(), (length as u64).cast_signed())) {
        return Ok(false);
    }
    if let Some((base, base_size)) = &rewrite.base {
        let size = rewrite.size.max(*base_size);
        if !chain::may_link(store, transaction, digest, base, size)? {
            return Ok(false);
        }
    }
    let base = rewrite.base.as_ref().map(|(base, _)| base);
    replace(
        store,
        transaction,
        digest,
        rewrite.size,
        &rewrite.encoded,
        base,
    )?;
    Ok(true)
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
