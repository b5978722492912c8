//! Keeping the store in order.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use backout_model::ports::{
    CheckSlots, CompactBudget, CompactReport, GcReport, GcRequest, Holding, Maintenance,
    PackSalvage, StorageError, StoreSummary, StoredBy, StoredBytes, Tell, VerifyReport,
    Workspace as _,
};
use backout_model::{
    AgentId, Digest, DriverName, Event, KEY_MS_MIN, Lsn, Operation, OperationId, Retention, Status,
    TaskId, Timestamp,
};

use super::change::Change;
use super::state::{Answer, State};
use super::workspace::failed;
use super::{MemoryStore, held};

impl Maintenance for MemoryStore {
    fn form(&self) -> String {
        "a store in memory".to_owned()
    }

    fn know_driver(&self, name: DriverName) {
        held(&self.drivers).insert(name);
    }

    fn check_end(&self) -> Answer<()> {
        Ok(())
    }

    fn make_room(&self, retention: &Retention, now: Timestamp, adding: u64) -> Answer<()> {
        let cap = retention.store_bytes_max;
        let most = cap.saturating_sub(adding);
        let fits = |stored: u64| adding <= cap && stored <= most;
        if fits(self.stored_bytes()?.total) {
            return Ok(());
        }
        let room = Retention {
            store_bytes_max: most,
            ..retention.clone()
        };
        self.let_go(&room, now, &mut GcReport::default())?;
        let stored = self.stored_bytes()?.total;
        if fits(stored) {
            return Ok(());
        }
        Err(StorageError::OverCap {
            stored,
            adding,
            cap,
        })
    }

    fn measure_new_slots(&self) -> Answer<()> {
        Ok(())
    }

    fn gc(&self, request: &GcRequest, progress: &mut Tell<'_>) -> Answer<GcReport> {
        self.collect(request, progress)
    }

    fn verify_with(
        &self,
        check_slots: &CheckSlots<'_>,
        progress: &mut Tell<'_>,
    ) -> Answer<VerifyReport> {
        self.check(check_slots, progress)
    }

    fn compact(&self, _budget: CompactBudget, _progress: &mut Tell<'_>) -> Answer<CompactReport> {
        Ok(CompactReport {
            is_complete: true,
            ..CompactReport::default()
        })
    }

    fn export(&self, from: Lsn, out: &mut dyn Write) -> Answer<u64> {
        self.write_records(from, Lsn(u64::MAX), out)
    }

    fn cut_audit(&self, retention: &Retention) -> Answer<Option<PathBuf>> {
        let now = self.shared.clock.now();
        let before = Timestamp(now.0.saturating_sub(retention.audit_ms));
        let keyed_before = Timestamp(now.0.saturating_sub(KEY_MS_MIN));
        let cuttable = self.ask(|state| Ok(state.cuttable(before, keyed_before)))?;
        let Some((first, last, anchor)) = cuttable else {
            return Ok(None);
        };
        let path = self.directory().join(format!("{first}-{last}.jsonl"));
        let io = |source| failed(path.clone(), "write", source);
        let mut out = BufWriter::new(File::create(&path).map_err(io)?);
        self.write_records(Lsn(first.0 - 1), last, &mut out)?;
        out.flush().map_err(io)?;
        let up_to = last;
        let cut = Change::Append {
            at: now,
            events: vec![Event::Cut { up_to, anchor }],
            contents: Vec::new(),
            changes: Vec::new(),
        };
        self.change(|_| Ok((Some(cut), ())))?;
        Ok(Some(path))
    }

    fn summary(&self) -> Answer<StoreSummary> {
        self.ask(|state| {
            let mut operations = BTreeMap::<Status, u64>::new();
            for row in state.operations.values() {
                *operations.entry(row.operation.status).or_default() += 1;
            }
            Ok(StoreSummary {
                last_lsn: state.head().0,
                operations,
                records: state.records.len() as u64,
                leases: state.leased().count() as u64,
            })
        })
    }

    fn stored_bytes(&self) -> Answer<StoredBytes> {
        self.ask(|state| {
            let changes = state.changes.values().map(|(_, _, pieces)| pieces);
            let inline = state.contents.values().chain(changes);
            let inline = inline.map(|bytes| bytes.len() as u64).sum();
            let slots = state.slots.keys();
            let slots = slots.map(|slot| size_of(slot.path().as_path())).sum();
            Ok(StoredBytes {
                inline,
                packs: 0,
                slots,
                total: inline + slots,
            })
        })
    }

    fn stored_by(&self) -> Answer<StoredBy> {
        let rest = self.stored_bytes()?.total;
        self.ask(|state| {
            let mut owner = BTreeMap::<Digest, &Operation>::new();
            for (id, digest) in &state.references {
                let Some(row) = state.operations.get(id) else {
                    continue;
                };
                let first = owner.entry(*digest).or_insert(&row.operation);
                if row.operation.lsn < first.lsn {
                    *first = &row.operation;
                }
            }
            let mut held = BTreeMap::<OperationId, u64>::new();
            for (digest, operation) in owner {
                let whole = state.contents.get(&digest).map_or(0, |it| it.len());
                let change = state.changes.get(&digest).map_or(0, |it| it.2.len());
                *held.entry(operation.id).or_default() += (whole + change) as u64;
            }
            for (slot, id) in &state.slots {
                if state.operations.contains_key(id) {
                    *held.entry(*id).or_default() += size_of(slot.path().as_path());
                }
            }
            let mut by = StoredBy {
                rest,
                ..StoredBy::default()
            };
            for (id, bytes) in held {
                let Some(row) = state.operations.get(&id).filter(|_| bytes > 0) else {
                    continue;
                };
                let (agent, task) = (&row.operation.agent, &row.operation.task);
                let summary = row.operation.summary.clone();
                by.add(
                    agent.as_ref().map(AgentId::as_str),
                    task.as_ref().map(TaskId::as_str),
                    Holding { id, summary, bytes },
                );
            }
            by.keep_largest(10);
            Ok(by)
        })
    }

    fn journal_bytes(&self) -> u64 {
        let size = self.ask(|state| {
            let sizes = state.records.iter().map(|record| record.body.len() as u64);
            Ok(sizes.sum())
        });
        size.unwrap_or(0)
    }

    fn adopt_packs(&self) -> Answer<PackSalvage> {
        Ok(PackSalvage::default())
    }
}

impl MemoryStore {
    fn write_records(&self, from: Lsn, up_to: Lsn, out: &mut dyn Write) -> Answer<u64> {
        let records = self.ask(|state| state.records_where(|lsn| lsn > from && lsn <= up_to))?;
        let wrong = |source| failed(PathBuf::from("the export"), "write", source);
        for record in &records {
            serde_json::to_writer(&mut *out, record).map_err(|error| wrong(error.into()))?;
            out.write_all(b"\n").map_err(wrong)?;
        }
        Ok(records.len() as u64)
    }
}

impl State {
    /// Finds the longest beginning of the journal that nothing needs any more, and its last hash.
    pub(super) fn cuttable(
        &self,
        before: Timestamp,
        keyed_before: Timestamp,
    ) -> Option<(Lsn, Lsn, Digest)> {
        let mut last = None;
        for stored in &self.records {
            // A record that cannot be read is kept.
            let event: Event = serde_json::from_slice(&stored.body).ok()?;
            let row = event.operation().and_then(|id| self.operations.get(&id));
            let rollout = event.operation().and_then(|id| self.rollouts.get(&id));
            let is_needed = matches!(rollout, Some(Some(_)));
            let is_needed = is_needed
                || row.is_some_and(|row| {
                    let status = row.operation.status;
                    let is_open = status.is_in_effect() && status.is_uncommitted();
                    let is_answer = self.calls.values().any(|id| *id == row.operation.id);
                    row.operation.retained
                        || is_open
                        || row.finished > before
                        || (is_answer && stored.at > keyed_before)
                });
            if stored.at > before || is_needed {
                break;
            }
            last = Some((stored.lsn, stored.hash));
        }
        let first = self.records.first()?.lsn;
        last.map(|(last, hash)| (first, last, hash))
    }
}

/// Measures the space that a file or a tree takes.
pub(super) fn size_of(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(found) = path.symlink_metadata() else {
        return 0;
    };
    let below = std::fs::read_dir(path).into_iter().flatten().flatten();
    let below = below.filter(|_| found.is_dir());
    found.blocks() * 512 + below.map(|entry| size_of(&entry.path())).sum::<u64>()
}
