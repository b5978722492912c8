//! Which contents are versions of one another, as far as the tables tell.
//!
//! Compaction may pair any two contents: a bad pair only saves nothing. So it goes by what is cheap to know.
//!
//! - An operation with one target refers to that file before and after, and the operation before it on the same
//!   path to the versions before. Ordered by when they were first stored, each is older than the next: exact.
//! - An operation with many targets does not say which content is which file's. Drivers hand over the contents
//!   file by file, so the next ones in the order of storing are tried, and the nearest by size: an edit
//!   changes a file's size little. The smallest delta wins, and only if it is less than half of the whole.

use std::collections::HashMap;

use backout_model::Digest;
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::chain::DECODED_BYTES_MAX;
use super::codec::Form;
use super::rows::to_digest;
use crate::{StorageError, Store};

/// So many guesses are tried for each content of an operation with many targets, by order and by size.
const GUESSES_BY_ORDER: usize = 2;
const GUESSES_BY_SIZE: usize = 2;

/// Smaller contents are not worth a row of their own in a chain.
const PAIRED_BYTES_MIN: u64 = 64;

/// A content, as far as pairing is concerned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Version {
    pub(super) digest: Digest,
    pub(super) size: u64,
    pub(super) form: Form,
    /// Grows with the moment it was first stored.
    age: i64,
}

impl Version {
    /// Tells whether it may be part of a chain at all.
    fn can_be_paired(&self) -> bool {
        (PAIRED_BYTES_MIN..=DECODED_BYTES_MAX).contains(&self.size)
            && !matches!(self.form, Form::Chunks | Form::Reverse)
    }

    /// Tells whether it is stored whole, so that a delta could take its place.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.form, Form::Raw | Form::Zstd)
    }
}

/// An older version and the newer ones it could be stored against.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) older: Version,
    pub(super) newer: Vec<Version>,
    /// Whether the pair is a guess, which must pay off more.
    pub(super) is_guess: bool,
}

/// What one operation tells about versions.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) pairs: Vec<Pair>,
    /// Every content of the operation that can be paired.
    pub(super) versions: Vec<Version>,
}

/// Finds pairs, operation by operation in the order of the journal.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    /// The last operation on each path that was asked about.
    last: HashMap<Vec<u8>, i64>,
}

impl Pairing {
    /// Finds the pairs that an operation brings.
    pub(super) fn of(
        &mut self,
        store: &Store,
        transaction: &Transaction<'_>,
        operation: i64,
        lsn: i64,
    ) -> Result<Told, StorageError> {
        let own = versions(store, transaction, operation)?;
        let pairs = match only_path(store, transaction, operation)? {
            Some(path) if own.len() <= 2 => {
                let previous = self.previous(store, transaction, path, operation, lsn)?;
                let mut chain = match previous {
                    Some(previous) if only_path(store, transaction, previous)?.is_some() => {
                        versions(store, transaction, previous)?
                    }
                    _ => Vec::new(),
                };
                if chain.len() > 2 {
                    chain.clear();
                }
                chain.extend(own.iter().copied());
                exact(chain)
            }
            _ => guesses(&own),
        };
        Ok(Told {
            pairs,
            versions: own,
        })
    }

    fn previous(
        &mut self,
        store: &Store,
        transaction: &Transaction<'_>,
        path: Vec<u8>,
        operation: i64,
        lsn: i64,
    ) -> Result<Option<i64>, StorageError> {
        let known = self.last.get(&path).copied();
        let previous = match known {
            Some(previous) => Some(previous),
            None => transaction
                .prepare_cached(
                    "SELECT operation.id FROM target JOIN operation ON operation.id = target.operation
                     WHERE target.path = ?1 AND operation.lsn < ?2
                     ORDER BY operation.lsn DESC LIMIT 1",
                )
                .and_then(|mut last| last.query_row(params![path, lsn], |row| row.get(0)).optional())
                .map_err(|error| store.named(error))?,
        };
        self.last.insert(path, operation);
        Ok(previous)
    }
}

fn exact(mut chain: Vec<Version>) -> Vec<Pair> {
    chain.sort_by_key(|version| version.age);
    chain.dedup_by_key(|version| version.age);
    let links = chain.array_windows::<2>();
    links
        .map(|[older, newer]| Pair {
            older: *older,
            newer: vec![*newer],
            is_guess: false,
        })
        .collect()
}

/// Pairs by nearness; `own` is ordered by age.
fn guesses(own: &[Version]) -> Vec<Pair> {
    let mut by_size: Vec<Version> = own.to_vec();
    by_size.sort_by_key(|version| (version.size, version.age));
    let place: HashMap<Digest, usize> = by_size
        .iter()
        .enumerate()
        .map(|(place, version)| (version.digest, place))
        .collect();
    let mut pairs = Vec::new();
    for (index, older) in own.iter().enumerate() {
        let mut newer: Vec<Version> = own
            .iter()
            .skip(index + 1)
            .take(GUESSES_BY_ORDER)
            .copied()
            .collect();
        let at = place.get(&older.digest).copied().unwrap_or(0);
        let around = by_size
            .iter()
            .skip(at.saturating_sub(GUESSES_BY_SIZE))
            .take(2 * GUESSES_BY_SIZE + 1);
        let mut near: Vec<Version> = around
            .filter(|other| other.age > older.age)
            .copied()
            .collect();
        near.sort_by_key(|other| other.size.abs_diff(older.size));
        for other in near.into_iter().take(GUESSES_BY_SIZE) {
            if newer.iter().all(|known| known.digest != other.digest) {
                newer.push(other);
            }
        }
        // Contents of very different length are no versions of one another.
        newer.retain(|other| other.size / 4 <= older.size && older.size / 4 <= other.size);
        if older.is_whole() && !newer.is_empty() {
            pairs.push(Pair {
                older: *older,
                newer,
                is_guess: true,
            });
        }
    }
    pairs
}

/// Lists the contents of an operation that can be paired, oldest first.
fn versions(
    store: &Store,
    transaction: &Transaction<'_>,
    operation: i64,
) -> Result<Vec<Version>, StorageError> {
    let named = |error| store.named(error);
    let mut statement = transaction
        .prepare_cached(
            "SELECT content.rowid, content.digest, content.size, content.form
             FROM reference JOIN content ON content.digest = reference.digest
             WHERE reference.operation = ?1 ORDER BY content.rowid",
        )
        .map_err(named)?;
    let rows = statement
        .query_map([operation], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, Vec<u8>>(1)?,
                [row.get::<_, i64>(2)?, row.get(3)?],
            ))
        })
        .map_err(named)?;
    let mut versions = Vec::new();
    for row in rows {
        let (age, digest, [size, form]) = row.map_err(named)?;
        let (Ok(size), Some(form)) = (u64::try_from(size), Form::from_sql(form)) else {
            continue;
        };
        let version = Version {
            digest: to_digest(&digest)?,
            size,
            form,
            age,
        };
        if version.can_be_paired() {
            versions.push(version);
        }
    }
    Ok(versions)
}

/// Gives the path of an operation that has only one target.
fn only_path(
    store: &Store,
    transaction: &Transaction<'_>,
    operation: i64,
) -> Result<Option<Vec<u8>>, StorageError> {
    let named = |error| store.named(error);
    let mut statement = transaction
        .prepare_cached("SELECT path FROM target WHERE operation = ?1 LIMIT 2")
        .map_err(named)?;
    let paths = statement
        .query_map([operation], |row| row.get::<_, Vec<u8>>(0))
        .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
        .map_err(named)?;
    Ok(<[_; 1]>::try_from(paths).ok().map(|[path]| path))
}
