//! Gaps that a repair declared: the only places where the chain may have a hole.
//!
//! A gap is believed only if the record that declares it is itself linked or pinned, which `verify` checks on its
//! walk; here they are collected so that the walk, and everybody who reads a record behind a gap, knows how to go on.

use std::collections::BTreeMap;

use backout_model::{Digest, Event, Gap, GapLink, Lsn, Record, RecordError, Timestamp};
use rusqlite::Transaction;

use crate::{StorageError, Store};

/// The declared gaps, by the place of the record behind each.
#[derive(Debug, Default)]
pub(crate) struct Gaps(BTreeMap<Lsn, Gap>);

impl Store {
    /// Tells whether records after `lsn` were lost, so that what became of an operation may be among them.
    pub fn has_gap_after(&self, lsn: Lsn) -> Result<bool, StorageError> {
        let gaps = self.read(|transaction| Gaps::declared(self, transaction))?;
        Ok(gaps.0.values().any(|gap| gap.last > lsn))
    }
}

impl Gaps {
    /// Collects what the repairs of this journal declared.
    pub(super) fn declared(
        store: &Store,
        transaction: &Transaction<'_>,
    ) -> Result<Self, StorageError> {
        let named = |error| store.named(error);
        let mut statement = transaction
            .prepare_cached("SELECT body FROM record WHERE kind = 'repaired' ORDER BY lsn")
            .map_err(named)?;
        let rows = statement
            .query_map([], |row| row.get::<_, Vec<u8>>(0))
            .map_err(named)?;
        let mut gaps = BTreeMap::new();
        for body in rows {
            // One that cannot be read explains nothing.
            if let Ok(Event::Repaired(repair)) = serde_json::from_slice(&body.map_err(named)?) {
                gaps.extend(repair.gaps.iter().map(|gap| (gap.last.next(), *gap)));
            }
        }
        Ok(Self(gaps))
    }

    /// Gives the gap that explains why the records from `first` up to the one before `place` are missing.
    pub(super) fn before(&self, first: Lsn, place: Lsn) -> Option<&Gap> {
        self.0.get(&place).filter(|gap| gap.first <= first)
    }

    /// Reads the first record behind a gap.
    pub(super) fn read_after(
        &self,
        place: Lsn,
        at: Timestamp,
        body: &[u8],
        hash: &Digest,
    ) -> Result<Record, StorageError> {
        let broken = RecordError::BrokenLink { lsn: place };
        match self.0.get(&place).map(|gap| gap.link) {
            Some(GapLink::Hash(previous)) => Ok(Record::read(&previous, place, at, body, *hash)?),
            Some(GapLink::Pin(pin)) if Gap::pin(place, at, body, hash) == pin => {
                let event = serde_json::from_slice(body)
                    .map_err(|cause| RecordError::Unreadable { lsn: place, cause })?;
                Ok(Record {
                    lsn: place,
                    at,
                    event,
                    hash: *hash,
                })
            }
            Some(GapLink::Pin(_)) | None => Err(broken.into()),
        }
    }
}
