//! Checking the whole store: the chain link by link, every content against its digest, every kept inode.

use std::collections::BTreeMap;

use backout_model::ports::ContentsError;
use backout_model::{Digest, Lsn, OperationId, Record, Slot, TargetPath};
use rusqlite::Transaction;
use serde::Serialize;

use super::append::anchor;
use super::read::read_record;
use super::rows::{contradiction, digest, id_from_sql, lsn_from_sql};
use crate::{StorageError, Store};

/// One thing that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum VerifyFinding {
    /// A record does not match its hash, cannot be read, or its predecessor is missing.
    Record {
        /// Its place.
        lsn: Lsn,
        /// What does not fit.
        detail: String,
    },
    /// An operation's status is not the one its records give.
    Operation {
        /// The operation.
        id: OperationId,
        /// What does not fit.
        detail: String,
    },
    /// A content is missing or damaged; these operations cannot be undone exactly.
    Content {
        /// The content.
        digest: Digest,
        /// What does not fit.
        detail: String,
        /// Who needs it.
        needed_by: Vec<OperationId>,
    },
    /// A kept inode is gone; this operation cannot be undone exactly.
    Slot {
        /// Where it should be.
        path: TargetPath,
        /// Who needs it.
        needed_by: OperationId,
    },
}

/// What a check of the whole store found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct VerifyReport {
    /// Records checked.
    pub records: u64,
    /// Contents checked.
    pub contents: u64,
    /// Kept inodes checked.
    pub slots: u64,
    /// What is not as it must be.
    pub findings: Vec<VerifyFinding>,
}

impl Store {
    /// Checks everything. `progress` is told how many of how many items are done.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport, StorageError> {
        let mut report = VerifyReport::default();
        let needed = self.read(|transaction| {
            let records = self.record_count(transaction)?;
            self.verify_chain(transaction, &mut report, &mut |done| {
                progress(done, records);
            })?;
            self.verify_slots(transaction, &mut report)?;
            self.needed_contents(transaction)
        })?;
        let total = needed.len() as u64;
        for (digest, needed_by) in needed {
            report.contents += 1;
            progress(report.contents, total);
            let detail = match self.check_content(&digest) {
                Ok(()) => continue,
                Err(error @ (ContentsError::Missing { .. } | ContentsError::Damaged { .. })) => {
                    error.to_string()
                }
                Err(error @ ContentsError::Store(_)) => format!("{error:?}"),
            };
            report.findings.push(VerifyFinding::Content {
                digest,
                detail,
                needed_by,
            });
        }
        Ok(report)
    }

    fn verify_chain(
        &self,
        transaction: &Transaction<'_>,
        report: &mut VerifyReport,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), StorageError> {
        let named = |error| self.named(error);
        let (mut expected, mut previous) = anchor(transaction).map_err(named)??;
        let mut statement = transaction
            .prepare("SELECT lsn, at, body, hash FROM record ORDER BY lsn")
            .map_err(named)?;
        let mut rows = statement.query([]).map_err(named)?;
        let mut replay = Replay::default();
        while let Some(row) = rows.next().map_err(named)? {
            let lsn: i64 = row.get(0).map_err(named)?;
            let at: i64 = row.get(1).map_err(named)?;
            let body: Vec<u8> = row.get(2).map_err(named)?;
            let hash: Vec<u8> = row.get(3).map_err(named)?;
            let place = lsn_from_sql(lsn);
            expected = expected.next();
            if place != expected {
                let detail = format!("record {expected} is missing before it");
                report
                    .findings
                    .push(VerifyFinding::Record { lsn: place, detail });
                expected = place;
            }
            match read_record(lsn, at, &body, &hash, Some(previous.as_bytes()), &previous) {
                Ok(record) => replay.take(&record),
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    let detail = cause.unwrap_or_else(|| error.to_string());
                    report
                        .findings
                        .push(VerifyFinding::Record { lsn: place, detail });
                }
            }
            // Go on from the stored hash, so that one bad record is one finding and not all after it.
            previous = digest("a record", &hash).unwrap_or(previous);
            report.records += 1;
            progress(report.records);
        }
        self.compare_with_replay(transaction, &replay, report)
    }

    /// Compares each operation's status with the one its records give.
    fn compare_with_replay(
        &self,
        transaction: &Transaction<'_>,
        replay: &Replay,
        report: &mut VerifyReport,
    ) -> Result<(), StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare("SELECT id, status FROM operation")
            .map_err(named)?;
        let rows = statement
            .query_map([], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            })
            .map_err(named)?;
        let mut stored = BTreeMap::new();
        for row in rows {
            let (id, status) = row.map_err(named)?;
            stored.insert(id_from_sql(id), status);
        }
        for (id, kind) in &replay.last {
            let fits = match stored.get(id).map(String::as_str) {
                None => false,
                Some(status) => fits(kind, status),
            };
            if !fits {
                let found = stored.get(id).map_or("missing", String::as_str);
                let detail = format!("it is listed as {found}, but its last record is `{kind}`");
                report
                    .findings
                    .push(VerifyFinding::Operation { id: *id, detail });
            }
        }
        Ok(())
    }

    fn verify_slots(
        &self,
        transaction: &Transaction<'_>,
        report: &mut VerifyReport,
    ) -> Result<(), StorageError> {
        let named = |error| self.named(error);
        // Only what is applied and still stands needs its kept inodes. What was taken back is gathered once, not
        // looked for again for every inode.
        let mut statement = transaction
            .prepare(
                "SELECT slot.operation, slot.depot, slot.name FROM slot
                 JOIN operation ON operation.id = slot.operation
                 WHERE operation.status IN ('applied', 'committed') AND operation.retained = 1
                   AND operation.redone_by IS NULL
                   AND operation.id NOT IN (SELECT undoes FROM operation
                                            WHERE undoes IS NOT NULL AND status = 'committed')",
            )
            .map_err(named)?;
        let rows = statement
            .query_map([], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, Vec<u8>>(1)?,
                    row.get::<_, String>(2)?,
                ))
            })
            .map_err(named)?;
        for row in rows {
            let (id, depot, name) = row.map_err(named)?;
            let depot =
                TargetPath::from_bytes(&depot).map_err(|cause| contradiction("a slot", &cause))?;
            let path = Slot { depot, name }.path();
            report.slots += 1;
            if std::fs::symlink_metadata(path.as_path()).is_err() {
                report.findings.push(VerifyFinding::Slot {
                    path,
                    needed_by: id_from_sql(id),
                });
            }
        }
        Ok(())
    }

    fn needed_contents(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<BTreeMap<Digest, Vec<OperationId>>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare("SELECT digest, operation FROM reference ORDER BY digest")
            .map_err(named)?;
        let rows = statement
            .query_map([], |row| {
                Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?))
            })
            .map_err(named)?;
        let mut needed: BTreeMap<Digest, Vec<OperationId>> = BTreeMap::new();
        for row in rows {
            let (bytes, id) = row.map_err(named)?;
            needed
                .entry(digest("a reference", &bytes)?)
                .or_default()
                .push(id_from_sql(id));
        }
        Ok(needed)
    }
}

/// The last thing the records say of each operation.
#[derive(Debug, Default)]
struct Replay {
    last: BTreeMap<OperationId, &'static str>,
}

impl Replay {
    fn take(&mut self, record: &Record) {
        if let Some(id) = record.event.operation() {
            self.last.insert(id, record.event.kind());
        }
    }
}

fn fits(kind: &str, status: &str) -> bool {
    match kind {
        "intent" => status == "armed",
        "refused" | "applied" => status == kind,
        "commit" => status == "committed",
        "abort" => matches!(status, "aborted" | "in-doubt"),
        "undone" => matches!(status, "undone" | "failed"),
        "redone" => matches!(status, "applied" | "committed"),
        "undo-failed" => status == "failed",
        _ => false,
    }
}
