//! Chains of versions: how deep they are, and which link may be added.
//!
//! A link goes from an older version to the newer one it is stored against. Chains have no circle and are short
//! enough to be read quickly; both are checked in the transaction that adds the link.

use std::collections::HashSet;

use backout_model::Digest;
use rusqlite::{OptionalExtension as _, Transaction};

use super::codec::Form;
use super::rows::to_digest;
use crate::{StorageError, Store};

/// A chain has no more deltas than this,
const DEPTH_MAX: u64 = 64;
/// and reading its end decodes no more bytes than these.
pub(crate) const DECODED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// More versions than this behind one are never looked at: such a chain is as if too deep.
const DEPENDENTS_MAX: usize = 4096;

/// Tells whether `older`, of `size` bytes, may be stored as a difference from `newer`.
pub(super) fn may_link(
    store: &Store,
    transaction: &Transaction<'_>,
    older: &Digest,
    newer: &Digest,
    size: u64,
) -> Result<bool, StorageError> {
    let limit = DEPTH_MAX.min(DECODED_BYTES_MAX / size.max(1));
    let Some(above) = depth(store, transaction, newer, older, limit)? else {
        return Ok(false);
    };
    let below = height(store, transaction, older, limit)?;
    Ok(below.is_some_and(|below| above + 1 + below <= limit))
}

/// Counts the deltas from `digest` up to a whole version; none if that is more than `limit`, if it ends in
/// nothing or in chunks, or if it comes through `avoided`.
fn depth(
    store: &Store,
    transaction: &Transaction<'_>,
    digest: &Digest,
    avoided: &Digest,
    limit: u64,
) -> Result<Option<u64>, StorageError> {
    let named = |error| store.named(error);
    let mut statement = transaction
        .prepare_cached("SELECT form, base FROM content WHERE digest = ?1")
        .map_err(named)?;
    let mut at = *digest;
    for depth in 0..=limit {
        if at == *avoided {
            return Ok(None);
        }
        let row = statement
            .query_row([at.as_bytes().as_slice()], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Option<Vec<u8>>>(1)?))
            })
            .optional()
            .map_err(named)?;
        match row.map(|(form, base)| (Form::from_sql(form), base)) {
            Some((Some(Form::Raw | Form::Zstd), _)) => return Ok(Some(depth)),
            Some((Some(Form::Delta), Some(base))) => at = to_digest(&base)?,
            Some((Some(Form::Delta), None) | (Some(Form::Chunks) | None, _)) | None => {
                return Ok(None);
            }
        }
    }
    Ok(None)
}

/// Counts the longest chain of deltas that ends in `digest`; none if that is more than `limit`.
fn height(
    store: &Store,
    transaction: &Transaction<'_>,
    digest: &Digest,
    limit: u64,
) -> Result<Option<u64>, StorageError> {
    let mut seen = HashSet::from([*digest]);
    let mut level = vec![*digest];
    for height in 0..=limit {
        let mut next = Vec::new();
        for digest in &level {
            let dependents = dependents(store, transaction, digest)?;
            next.extend(
                dependents
                    .into_iter()
                    .filter(|dependent| seen.insert(*dependent)),
            );
        }
        if next.is_empty() {
            return Ok(Some(height));
        }
        if seen.len() > DEPENDENTS_MAX {
            return Ok(None);
        }
        level = next;
    }
    Ok(None)
}

/// Lists the versions that are stored against `digest`.
pub(crate) fn dependents(
    store: &Store,
    transaction: &Transaction<'_>,
    digest: &Digest,
) -> Result<Vec<Digest>, StorageError> {
    let named = |error| store.named(error);
    let mut statement = transaction
        .prepare_cached("SELECT digest FROM content WHERE base = ?1")
        .map_err(named)?;
    let rows = statement
        .query_map([digest.as_bytes().as_slice()], |row| {
            row.get::<_, Vec<u8>>(0)
        })
        .map_err(named)?;
    rows.map(|bytes| to_digest(&bytes.map_err(named)?))
        .collect()
}
