//! The new journal: surviving records as they were, the tables they give, the contents that give their digest.

use std::collections::{BTreeSet, HashMap, HashSet};

use backout_model::{
    Assumed, Digest, Event, Gap, GapLink, Lsn, OperationId, Record, Repair, Status, Timestamp,
};
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::chain::{Chain, Survivor};
use super::found::{ContentRow, Hint, content};
use super::pages::Pages;
use crate::contents::codec::{self, Form};
use crate::contents::rows::{Fault, read_in};
use crate::journal::{Mode, id_to_sql, project};
use crate::{StorageError, Store};

/// Builds a journal within a transaction.
pub(super) struct Build<'s, 't> {
    pub(super) store: &'s Store,
    pub(super) transaction: &'s Transaction<'t>,
}

impl Build<'_, '_> {
    /// Stores a record under its own place and hash, with what follows from it.
    pub(super) fn record(&self, survivor: &Survivor) -> Result<(), StorageError> {
        let Survivor {
            lsn,
            at,
            event,
            body,
            hash,
            ..
        } = survivor;
        self.transaction
            .prepare_cached(
                "INSERT INTO record (lsn, at, kind, operation, body, hash)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )
            .and_then(|mut insert| {
                insert.execute(params![
                    lsn.0.cast_signed(),
                    at.0,
                    event.kind(),
                    event.operation().map(id_to_sql),
                    body,
                    hash.as_bytes().as_slice()
                ])
            })
            .map_err(|error| self.store.named(error))?;
        project(
            self.store,
            self.transaction,
            (*lsn, *at),
            event,
            Mode::Replay,
        )
    }

    /// Appends an event of the repair itself and gives its place and hash.
    pub(super) fn append(
        &self,
        end: (Lsn, Digest),
        now: Timestamp,
        event: Event,
    ) -> Result<(Lsn, Digest), StorageError> {
        let body = serde_json::to_vec(&event).map_err(|cause| StorageError::Inconsistent {
            at: "a record to be stored".to_owned(),
            detail: cause.to_string(),
        })?;
        let lsn = end.0.next();
        let hash = Record::chain(&end.1, lsn, now, &body);
        self.record(&Survivor {
            lsn,
            at: now,
            event,
            body,
            hash,
            is_linked: true,
        })?;
        Ok((lsn, hash))
    }

    /// Stores the contents that can be had and gives how many there are.
    pub(super) fn contents(&self, pages: &Pages) -> Result<u64, StorageError> {
        let mut others: HashMap<Digest, Vec<ContentRow>> = HashMap::new();
        let mut failure = None;
        pages.each_row(&mut |row| {
            let Some(row) = content(row) else { return };
            if is_whole(&row) {
                if let Err(error) = self.put(&row) {
                    failure.get_or_insert(error);
                }
            } else if matches!(
                Form::from_sql(row.form),
                Some(Form::Delta | Form::Chunks | Form::Reverse)
            ) {
                let known = others.entry(row.digest).or_default();
                if !known.contains(&row) {
                    known.push(row);
                }
            }
        });
        if let Some(error) = failure {
            return Err(error);
        }
        self.put_others(others)?;
        let count = "SELECT count(*) FROM content";
        self.transaction
            .query_row(count, [], |row| row.get::<_, u64>(0))
            .map_err(|error| self.store.named(error))
    }

    /// Stores differences and lists of chunks, of which one cannot tell alone whether they are right: of several the one
    /// that can be read.
    fn put_others(&self, others: HashMap<Digest, Vec<ContentRow>>) -> Result<(), StorageError> {
        let mut waiting: Vec<_> = others
            .into_iter()
            .filter_map(|(digest, rows)| match self.has(&digest) {
                Ok(true) => None,
                Ok(false) => Some(Ok((digest, rows))),
                Err(error) => Some(Err(error)),
            })
            .collect::<Result<_, _>>()?;
        // Each round adds the next versions of every chain; then what is made from a file in the world. The rest stays out.
        let mut may_be_outside = false;
        loop {
            let before = waiting.len();
            let mut left = Vec::new();
            for (digest, rows) in waiting {
                if !self.put_readable(&digest, &rows, may_be_outside)? {
                    left.push((digest, rows));
                }
            }
            if left.is_empty() || left.len() == before && may_be_outside {
                return Ok(());
            }
            may_be_outside |= left.len() == before;
            waiting = left;
        }
    }

    fn put_readable(
        &self,
        digest: &Digest,
        rows: &[ContentRow],
        may_be_outside: bool,
    ) -> Result<bool, StorageError> {
        for row in rows.iter().rev() {
            self.put(row)?;
            match read_in(self.store, self.transaction, digest, None) {
                Ok(_) => return Ok(true),
                Err(Fault::Outside(..)) if may_be_outside => return Ok(true),
                Err(_) => {}
            }
            self.transaction
                .execute(
                    "DELETE FROM content WHERE digest = ?1",
                    [digest.as_bytes().as_slice()],
                )
                .map_err(|error| self.store.named(error))?;
        }
        Ok(false)
    }

    fn has(&self, digest: &Digest) -> Result<bool, StorageError> {
        self.transaction
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM content WHERE digest = ?1)")
            .and_then(|mut has| has.query_row([digest.as_bytes().as_slice()], |row| row.get(0)))
            .map_err(|error| self.store.named(error))
    }

    fn put(&self, row: &ContentRow) -> Result<(), StorageError> {
        self.transaction
            .prepare_cached(
                "INSERT OR IGNORE INTO content (digest, size, form, base, bytes)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )
            .and_then(|mut put| {
                put.execute(params![
                    row.digest.as_bytes().as_slice(),
                    row.size,
                    row.form,
                    row.base.as_ref().map(|base| base.as_bytes().as_slice()),
                    row.bytes
                ])
            })
            .map_err(|error| self.store.named(error))?;
        Ok(())
    }

    /// Says what the repair has to say, once the records are in: gaps, assumptions, losses.
    pub(super) fn statement(
        &self,
        chain: &Chain,
        hints: &HashMap<OperationId, Hint>,
        evidence: String,
    ) -> Result<Repair, StorageError> {
        let mut assumed = Vec::new();
        let mut spoken_of: HashMap<OperationId, Lsn> = HashMap::new();
        for record in &chain.records {
            let ids = mentioned(&record.event).into_iter();
            spoken_of.extend(ids.map(|id| (id, record.lsn)));
        }
        for (id, hint) in hints {
            let Some(spoken) = spoken_of.get(id) else {
                continue;
            };
            let is_silent_since = chain.gaps.iter().any(|gap| gap.first > *spoken);
            let status = self.status(*id)?;
            if is_silent_since && status.is_some_and(|status| rank(hint.status) > rank(status)) {
                assumed.push(Assumed {
                    id: *id,
                    status: hint.status,
                    undone_by: hint.undone_by,
                    redone_by: hint.redone_by,
                    completion: hint.completion.clone(),
                });
            }
        }
        assumed.sort_by_key(|assumed| assumed.id);
        let mut lost = BTreeSet::new();
        for id in spoken_of.keys() {
            if self.status(*id)?.is_none() {
                lost.insert(*id);
            }
        }
        let in_gap = |lsn: Lsn| {
            chain
                .gaps
                .iter()
                .any(|gap| (gap.first..=gap.last).contains(&lsn))
        };
        let armed_in_gap = hints.iter().filter(|(_, hint)| in_gap(hint.lsn));
        lost.extend(armed_in_gap.map(|(id, _)| *id));
        let had_cut = chain.records.first().map_or(Lsn(0), |first| first.lsn);
        lost.retain(|id| {
            hints
                .get(id)
                .is_none_or(|hint| hint.lsn >= had_cut || in_gap(hint.lsn))
        });
        Ok(Repair {
            evidence,
            gaps: chain.gaps.clone(),
            assumed,
            lost: lost.into_iter().collect(),
        })
    }

    fn status(&self, id: OperationId) -> Result<Option<Status>, StorageError> {
        let status: Option<String> = self
            .transaction
            .prepare_cached("SELECT status FROM operation WHERE id = ?1")
            .and_then(|mut status| {
                status
                    .query_row([id_to_sql(id)], |row| row.get(0))
                    .optional()
            })
            .map_err(|error| self.store.named(error))?;
        Ok(status.and_then(|word| Status::ALL.into_iter().find(|known| known.as_str() == word)))
    }
}

/// Lists the operations armed by a record that nothing vouches for.
pub(super) fn unlinked(chain: &Chain) -> Vec<OperationId> {
    let pinned: HashSet<Lsn> = chain
        .gaps
        .iter()
        .filter(|gap: &&Gap| matches!(gap.link, GapLink::Pin(_)))
        .map(|gap| gap.last.next())
        .collect();
    chain
        .records
        .iter()
        .filter(|record| !record.is_linked && pinned.contains(&record.lsn))
        .filter_map(|record| Some(record.event.armed()?.0))
        .collect()
}

/// Lists the operations that a record speaks of as something that happened.
fn mentioned(event: &Event) -> Vec<OperationId> {
    // A rollout is no operation.
    if event.is_of_rollout() {
        return Vec::new();
    }
    let mut ids: Vec<OperationId> = event.operation().into_iter().collect();
    if let Event::Undone { by, .. } | Event::Redone { by, .. } = event {
        ids.push(*by);
    }
    ids
}

/// Orders the statuses of a life: later ones follow from records that come later.
const fn rank(status: Status) -> u8 {
    match status {
        Status::Proposed => 0,
        Status::Armed => 1,
        Status::Applied => 2,
        Status::Committed => 3,
        Status::Interrupted
        | Status::Aborted
        | Status::Undone
        | Status::InDoubt
        | Status::Failed
        | Status::Refused => 4,
    }
}

fn is_whole(row: &ContentRow) -> bool {
    let form = Form::from_sql(row.form).filter(|form| matches!(form, Form::Raw | Form::Zstd));
    let size = u64::try_from(row.size).ok();
    form.zip(size)
        .is_some_and(|(form, size)| codec::decode(form, &row.bytes, size, &row.digest).is_ok())
}
