//! Checking the whole store: the database's structure, the chain link by link, the tables that follow from it, every
//! content against its digest, every kept inode.
//!
//! What cannot be read is a finding and never the end of the check. What can still be undone is told from the records
//! that can be trusted, not from the tables that may be hurt.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use backout_model::ports::{CheckSlots, ContentsError, Depots as _, MadeOutside};
use backout_model::{Digest, Event, Flaw, OperationId, Record, Slot, TargetPath, Timestamp};
use rusqlite::{Row, Transaction};

use super::append::anchor;
use super::gaps::Gaps;
use super::read::read_record;
use super::replay::{Replay, cause, temporary};
use super::rows::{contradiction, digest, id_from_sql, id_to_sql, lsn_from_sql};
use crate::{
    ChangedSince, NotUndoable, OutOfReach, RepairSeen, StorageError, Store, VerifyFinding,
    VerifyReport, hurt_images,
};

/// So many complaints of the database about its own structure are passed on.
const COMPLAINTS_MAX: u32 = 20;

impl Store {
    /// Checks everything. `progress` is told how many of how many items are done.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport, StorageError> {
        let look = |_, slots: &[Slot]| {
            let each = slots.iter().map(|slot| (slot.clone(), slot_is_gone(slot)));
            each.collect()
        };
        self.verify_with(&look, progress)
    }

    /// The same with a better eye for kept inodes.
    pub fn verify_with(
        &self,
        check_slots: &CheckSlots<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<VerifyReport, StorageError> {
        let mut report = VerifyReport::default();
        if let Err(error @ StorageError::LostRecords { .. }) = self.check_end() {
            let detail = error.to_string();
            report.findings.push(VerifyFinding::Database { detail });
        }
        let connection = temporary(self)?;
        let replay = Replay::begin(self, &connection)?;
        let looked = self.read(|transaction| {
            let records = self.record_count(transaction).unwrap_or(0);
            self.verify_structure(transaction, &mut report);
            self.verify_chain(transaction, &replay, &mut report, &mut |done| {
                progress(done, records);
            })?;
            replay.compare(transaction, &mut report.findings);
            Ok(())
        });
        if let Err(error) = looked {
            report.findings.push(VerifyFinding::Database {
                detail: cause(&error),
            });
        }
        let mut looked_at: BTreeSet<Slot> = BTreeSet::new();
        for (id, slots) in self.needed_slots(&replay.transaction)? {
            for (slot, flaw) in check_slots(id, &slots) {
                let away = self.out_of_reach(&slot);
                let (path, needed_by) = (slot.path(), id);
                report.slots += u64::from(looked_at.insert(slot));
                match (flaw, away) {
                    (None, _) => {}
                    (Some(_), Some(why)) => report.out_of_reach.push(OutOfReach {
                        path,
                        needed_by,
                        why,
                    }),
                    (Some(Flaw::Changed(why)), None) => report.changed.push(ChangedSince {
                        path,
                        needed_by,
                        why,
                    }),
                    (Some(Flaw::Lost(detail)), None) => {
                        report.findings.push(VerifyFinding::Slot {
                            path,
                            needed_by,
                            detail,
                        });
                    }
                }
            }
        }
        self.verify_contents(&replay.transaction, &mut report, progress)?;
        self.tell_undoable(&replay.transaction, &mut report)?;
        Ok(report)
    }

    /// Has the database check its own pages, trees and indices.
    fn verify_structure(&self, transaction: &Transaction<'_>, report: &mut VerifyReport) {
        let complaints = || {
            let sql = format!("PRAGMA integrity_check({COMPLAINTS_MAX})");
            let mut statement = transaction.prepare(&sql)?;
            let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
            rows.collect::<rusqlite::Result<Vec<String>>>()
        };
        let complaints = match complaints() {
            Ok(complaints) => complaints,
            Err(error) => vec![cause(&self.named(error))],
        };
        let complaints = complaints.into_iter().filter(|complaint| complaint != "ok");
        report
            .findings
            .extend(complaints.map(|detail| VerifyFinding::Database { detail }));
    }

    pub(super) fn verify_chain(
        &self,
        transaction: &Transaction<'_>,
        replay: &Replay<'_>,
        report: &mut VerifyReport,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), StorageError> {
        let named = |error| self.named(error);
        let gaps = Gaps::declared(self, transaction)?;
        let (mut last, mut previous) = anchor(transaction).map_err(named)??;
        let mut statement = transaction
            .prepare("SELECT lsn, at, body, hash, kind, operation FROM record ORDER BY lsn")
            .map_err(named)?;
        let mut rows = statement.query([]).map_err(named)?;
        while let Some(row) = rows.next().map_err(named)? {
            let stored = Stored::read(row).map_err(named)?;
            let place = lsn_from_sql(stored.lsn);
            let mut wrong = |detail| {
                report
                    .findings
                    .push(VerifyFinding::Record { lsn: place, detail });
            };
            let is_behind_gap = place != last.next();
            if is_behind_gap && gaps.before(last.next(), place).is_none() {
                wrong(format!("record {} is missing before it", last.next()));
            }
            let record = if is_behind_gap && gaps.before(last.next(), place).is_some() {
                digest("a record", &stored.hash).and_then(|hash| {
                    gaps.read_after(place, Timestamp(stored.at), &stored.body, &hash)
                })
            } else {
                read_record(stored.lsn, stored.at, &stored.body, &stored.hash, &previous)
            };
            match record {
                Ok(record) => {
                    if let Some(detail) = stored.contradicts(&record) {
                        wrong(detail);
                    }
                    replay.take(&record)?;
                    report.repairs.extend(seen(&record));
                    report.others.extend(self.of_other_driver(&record.event));
                }
                Err(error) => wrong(cause(&error)),
            }
            // Go on from the stored hash, so that one bad record is one finding and not all after it.
            previous = digest("a record", &stored.hash).unwrap_or(previous);
            last = place;
            report.records += 1;
            progress(report.records);
        }
        Ok(())
    }

    /// Lists what the operations that are applied and still stand keep as inodes, by their records.
    fn needed_slots(
        &self,
        replay: &Transaction<'_>,
    ) -> Result<BTreeMap<OperationId, Vec<Slot>>, StorageError> {
        let named = |error| self.named(error);
        // What was taken back is gathered once, not looked for again for every inode.
        let mut statement = replay
            .prepare(
                "SELECT operation.id, slot.depot, slot.name FROM operation
                 LEFT JOIN slot ON slot.operation = operation.id
                 WHERE operation.status IN ('applied', 'committed', 'interrupted')
                   -- what a redo keeps may have been put away for another
                   AND (slot.name IS NOT NULL OR operation.undoes IS NOT NULL)
                   AND operation.retained = 1
                   -- an undo, a redo or a recovery that died and was put back is done again, and never brought back
                   AND NOT (operation.verb = 'recover' AND operation.undoes IN (
                         SELECT id FROM operation WHERE verb IN ('undo', 'redo', 'recover')))
                   AND operation.id IN (SELECT coalesce(held_by, operation) FROM target
                                        WHERE undone_by IS NULL)
                   -- what is being taken back, or may be half, has its inodes in between
                   AND operation.id NOT IN (SELECT undoes FROM operation WHERE undoes IS NOT NULL
                         AND status IN ('committed', 'armed', 'in-doubt', 'failed'))
                   -- and so has the redo that brought it back
                   AND operation.id NOT IN (SELECT held_by FROM target WHERE held_by IS NOT NULL
                         AND operation IN (SELECT undoes FROM operation WHERE undoes IS NOT NULL
                           AND status IN ('armed', 'in-doubt', 'failed')))",
            )
            .map_err(named)?;
        let rows = statement
            .query_map([], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, Option<Vec<u8>>>(1)?,
                    row.get::<_, Option<String>>(2)?,
                ))
            })
            .map_err(named)?;
        let mut needed: BTreeMap<OperationId, Vec<Slot>> = BTreeMap::new();
        for row in rows {
            let (id, depot, name) = row.map_err(named)?;
            let slots = needed.entry(id_from_sql(id)).or_default();
            if let (Some(depot), Some(name)) = (depot, name) {
                let depot = TargetPath::from_bytes(&depot)
                    .map_err(|cause| contradiction("a slot", &cause))?;
                slots.push(Slot { depot, name });
            }
        }
        Ok(needed)
    }

    fn verify_contents(
        &self,
        replay: &Transaction<'_>,
        report: &mut VerifyReport,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), StorageError> {
        let needed = self.needed_contents(replay)?;
        let total = needed.len() as u64;
        for (digest, needed_by) in needed {
            report.contents += 1;
            progress(report.contents, total);
            let detail = match self.check_content(&digest) {
                Ok(()) => continue,
                Err(ContentsError::Outside { .. }) => {
                    report.outside.push(MadeOutside { digest, needed_by });
                    continue;
                }
                Err(error @ (ContentsError::Missing { .. } | ContentsError::Damaged { .. })) => {
                    error.to_string()
                }
                Err(ContentsError::Store(error)) => {
                    let source = error.source().map(ToString::to_string);
                    format!(
                        "the content {digest} cannot be read: {}",
                        source.unwrap_or_else(|| error.to_string())
                    )
                }
            };
            report.findings.push(VerifyFinding::Content {
                digest,
                detail,
                needed_by,
            });
        }
        Ok(())
    }

    /// Lists the contents that somebody still needs, by the records.
    pub(crate) fn needed_contents(
        &self,
        replay: &Transaction<'_>,
    ) -> Result<BTreeMap<Digest, Vec<OperationId>>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = replay
            .prepare(
                "SELECT digest, operation FROM reference
                 JOIN operation ON operation.id = reference.operation
                 WHERE operation.retained = 1 ORDER BY digest, operation.lsn",
            )
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

    /// Tells which operations in effect can still be undone, from what the records give and what was found.
    fn tell_undoable(
        &self,
        replay: &Transaction<'_>,
        report: &mut VerifyReport,
    ) -> Result<(), StorageError> {
        let named = |error| self.named(error);
        let mut hurt = hurt_images(&report.findings);
        let away: HashSet<OperationId> =
            report.out_of_reach.iter().map(|it| it.needed_by).collect();
        let mut statement = replay
            .prepare(
                "SELECT id, redone_by, retained AND coalesce((SELECT redo.retained FROM operation AS redo
                     WHERE redo.id = operation.redone_by), 1), notes FROM operation
                 WHERE status IN ('applied', 'committed', 'interrupted', 'failed', 'in-doubt')
                   AND undoes IS NULL
                 ORDER BY lsn DESC",
            )
            .map_err(named)?;
        let rows = statement
            .query_map([], |row| {
                Ok((
                    [Some(row.get::<_, i64>(0)?), row.get(1)?],
                    row.get::<_, bool>(2)?,
                    row.get::<_, String>(3)?,
                ))
            })
            .map_err(named)?;
        for row in rows {
            let ([id, redo], is_retained, notes) = row.map_err(named)?;
            let ids = [id, redo].map(|id| id.map(id_from_sql));
            let Some(id) = ids[0] else { continue };
            let found = ids.iter().flatten().find_map(|id| hurt.remove(id));
            match found {
                Some(why) => report.not_undoable.push(NotUndoable { id, why }),
                // Another program can tell.
                None if report
                    .others
                    .iter()
                    .any(|other| ids.contains(&Some(other.id))) => {}
                // Not now, but not for ever either.
                None if ids.iter().flatten().any(|id| away.contains(id)) => {}
                None if is_retained => report.undoable.push(id),
                None => {
                    let notes: Vec<String> = serde_json::from_str(&notes).unwrap_or_default();
                    let why = notes.into_iter().next_back();
                    let why = why.unwrap_or_else(|| "its images were let go".to_owned());
                    report.not_undoable.push(NotUndoable { id, why });
                }
            }
        }
        // What is listed and has no record that can be trusted is not in the replay at all.
        let mut is_known = replay
            .prepare("SELECT EXISTS (SELECT 1 FROM operation WHERE id = ?1)")
            .map_err(named)?;
        for finding in &report.findings {
            let VerifyFinding::Operation { id, detail } = finding else {
                continue;
            };
            let is_told = report.not_undoable.iter().any(|told| told.id == *id);
            if !is_told
                && !is_known
                    .query_row([id_to_sql(*id)], |row| row.get::<_, bool>(0))
                    .map_err(named)?
            {
                let (id, why) = (*id, detail.clone());
                report.not_undoable.push(NotUndoable { id, why });
            }
        }
        Ok(())
    }
}

/// A row of the record table.
struct Stored {
    lsn: i64,
    at: i64,
    body: Vec<u8>,
    hash: Vec<u8>,
    kind: String,
    operation: Option<i64>,
}

impl Stored {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            lsn: row.get(0)?,
            at: row.get(1)?,
            body: row.get(2)?,
            hash: row.get(3)?,
            kind: row.get(4)?,
            operation: row.get(5)?,
        })
    }

    /// The hash does not cover the two columns that repeat what the body says.
    fn contradicts(&self, record: &Record) -> Option<String> {
        let operation = record.event.operation().map(id_to_sql);
        (self.kind != record.event.kind() || self.operation != operation)
            .then(|| "it is filed as something else than it says".to_owned())
    }
}

/// Says so if a kept inode is not there.
pub fn slot_is_gone(slot: &Slot) -> Option<Flaw> {
    let found = std::fs::symlink_metadata(slot.path().as_path());
    found.is_err().then(|| Flaw::Lost("is gone".to_owned()))
}

fn seen(record: &Record) -> Option<RepairSeen> {
    let Event::Repaired(repair) = &record.event else {
        return None;
    };
    Some(RepairSeen {
        lsn: record.lsn,
        at: record.at,
        gaps: repair.gaps.clone(),
        lost: repair.lost.clone(),
        evidence: repair.evidence.clone(),
    })
}
