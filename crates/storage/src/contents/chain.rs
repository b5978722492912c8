//! Chains of versions: how deep they are, and which link may be added.
//!
//! A link goes from an older version to the newer one it is stored against. Chains have no circle and are short
//! enough to be read quickly; both are checked in the transaction that adds the link.

use backout_model::Digest;
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::codec::Form;
use super::rows::to_digest;
use crate::{StorageError, Store};

/// A chain has no more deltas than this,
const DEPTH_MAX: u64 = 64;
/// and reading its end decodes no more bytes than these.
pub(crate) const DECODED_BYTES_MAX: u64 = 64 * 1024 * 1024;

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

/// Tells whether `older`, of `size` bytes, may be stored as a difference from something that will be stored whole.
pub(super) fn may_end(
    store: &Store,
    transaction: &Transaction<'_>,
    older: &Digest,
    size: u64,
) -> Result<bool, StorageError> {
    let limit = DEPTH_MAX.min(DECODED_BYTES_MAX / size.max(1));
    let below = height(store, transaction, older, limit)?;
    Ok(below.is_some_and(|below| below < limit))
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
            Some((Some(Form::Delta | Form::Reverse), Some(base))) => at = to_digest(&base)?,
            Some((Some(Form::Delta | Form::Reverse), None) | (Some(Form::Chunks) | None, _))
            | None => {
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
    // One step more than the limit is enough to know, and ends a circle.
    let height: i64 = transaction
        .prepare_cached(
            "WITH RECURSIVE below (digest, height) AS (
                 SELECT ?1, 0
                 UNION ALL
                 SELECT content.digest, height + 1 FROM below JOIN content ON content.base = below.digest
                 WHERE height <= ?2)
             SELECT max(height) FROM below",
        )
        .and_then(|mut height| {
            height.query_row(params![digest.as_bytes().as_slice(), limit.cast_signed()], |row| {
                row.get(0)
            })
        })
        .map_err(|error| store.named(error))?;
    Ok(u64::try_from(height).ok().filter(|height| *height <= limit))
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
