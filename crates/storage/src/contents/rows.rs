//! Contents as rows of the database: putting one in, and reading one through its chain of deltas.

use std::error::Error;

use backout_model::Digest;
use backout_model::ports::{ContentsError, NewContent};
use backout_model::reversal::Pieces;
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::codec::{self, Effort, Encoded, Flaw, Form};
use super::reversed::{self, put_over};
use super::sizes::{Kept, add_stored};
use crate::{StorageError, Store};

/// A chain may have this many deltas before a reader calls it damaged: twice what compaction makes, and few
/// enough to end a circle.
const DEPTH_READ_MAX: usize = 128;

/// Why a content cannot be had.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Nothing of that name is stored.
    Missing(Digest),
    /// What is stored is something else.
    Damaged(Digest, String),
    /// The first is told as a change of the second, which is not in the store.
    Outside(Digest, Digest),
    /// The store itself failed.
    Storage(StorageError),
    /// What was to be stored could not be read.
    Source(Box<dyn Error + Send + Sync>),
}

impl Fault {
    /// Says that what is stored for `digest` has a flaw.
    pub(crate) fn flawed(digest: &Digest, flaw: &Flaw) -> Self {
        Self::Damaged(*digest, flaw.to_string())
    }

    /// Passes what is wrong with one content, which others need not share. Fails if the store itself failed.
    pub(crate) fn of_content(self) -> Result<(), StorageError> {
        match self {
            Self::Storage(error) => Err(error),
            Self::Missing(_) | Self::Damaged(..) | Self::Outside(..) | Self::Source(_) => Ok(()),
        }
    }
}

impl From<StorageError> for Fault {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<Fault> for ContentsError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Missing(digest) => Self::Missing { digest },
            Fault::Damaged(digest, detail) => Self::Damaged { digest, detail },
            Fault::Outside(digest, base) => Self::Outside { digest, base },
            Fault::Storage(error) => Self::Store(Box::new(error)),
            Fault::Source(error) => Self::Store(error),
        }
    }
}

/// One row of `content`.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) size: u64,
    pub(crate) form: Form,
    pub(crate) base: Option<Digest>,
    pub(crate) bytes: Vec<u8>,
}

/// A content as a row gives it.
#[derive(Debug)]
pub(crate) enum Found {
    /// All of it, checked.
    Whole(Vec<u8>),
    /// A list of chunks, still to be read.
    Chunked {
        /// How long the content is.
        size: u64,
        /// The chunks, in order.
        chunks: Vec<Digest>,
    },
    /// Pieces of another content.
    Over {
        /// The pieces, in order.
        pieces: Pieces,
        /// The content that they are of: chunks in this store, or what the caller has at hand.
        base: Digest,
    },
}

/// Stores a content that is not there yet and returns by how many bytes the store grew.
///
/// A row that is there is believed only if it gives the digest; a damaged one is replaced, which heals
/// every version that is stored as a difference from it.
pub(crate) fn put(
    store: &Store,
    transaction: &Transaction<'_>,
    content: &NewContent,
) -> Result<u64, StorageError> {
    if let Some(over) = content.over {
        return put_over(store, transaction, content, over);
    }
    if Digest::of(&content.bytes) != content.digest {
        return Err(StorageError::Inconsistent {
            at: format!("the new content {}", content.digest.short()),
            detail: "its bytes have another digest".to_owned(),
        });
    }
    match read_in(store, transaction, &content.digest, None) {
        Ok(Found::Whole(_)) => return Ok(0),
        // The bytes are at hand, so nothing depends on whether its chunks are sound.
        Ok(Found::Chunked { .. } | Found::Over { .. }) => {}
        Err(fault) => fault.of_content()?,
    }
    let encoded = codec::encode(&content.bytes, Effort::Normal);
    let size = content.bytes.len() as u64;
    replace(store, transaction, &content.digest, size, &encoded, None)
}

/// Writes a row, in place of the one that may be there, and returns by how many bytes the store grew.
pub(crate) fn replace(
    store: &Store,
    transaction: &Transaction<'_>,
    digest: &Digest,
    size: u64,
    encoded: &Encoded,
    base: Option<&Digest>,
) -> Result<u64, StorageError> {
    let named = |error| store.named(error);
    let before = stored_length(store, transaction, digest)?.unwrap_or(0);
    transaction
        .prepare_cached(
            "INSERT INTO content (digest, size, form, base, bytes) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (digest) DO UPDATE
             SET size = excluded.size, form = excluded.form, base = excluded.base, bytes = excluded.bytes",
        )
        .map_err(named)?
        .execute(params![
            digest.as_bytes().as_slice(),
            size.cast_signed(),
            encoded.form.to_sql(),
            base.map(|base| base.as_bytes().as_slice()),
            encoded.bytes,
        ])
        .map_err(named)?;
    let grown = (encoded.bytes.len() as u64).cast_signed() - before.cast_signed();
    add_stored(store, transaction, Kept::Inline, grown)?;
    Ok(u64::try_from(grown).unwrap_or(0))
}

/// Tells how many bytes a content takes in its row, if it has one.
pub(crate) fn stored_length(
    store: &Store,
    transaction: &Transaction<'_>,
    digest: &Digest,
) -> Result<Option<u64>, StorageError> {
    transaction
        .prepare_cached("SELECT length(bytes) FROM content WHERE digest = ?1")
        .and_then(|mut statement| {
            statement
                .query_row([digest.as_bytes().as_slice()], |row| row.get::<_, i64>(0))
                .optional()
        })
        .map(|found| found.map(|length| u64::try_from(length).unwrap_or(0)))
        .map_err(|error| store.named(error))
}

/// Reads a content through its chain of deltas, in the moment that the transaction sees.
///
/// Every version on the way is checked, so that a report names the row that is damaged. `outside` is at hand although it is
/// not in the store.
pub(crate) fn read_in(
    store: &Store,
    transaction: &Transaction<'_>,
    digest: &Digest,
    outside: Option<&Digest>,
) -> Result<Found, Fault> {
    let mut deltas: Vec<(Digest, Row)> = Vec::new();
    let mut at = *digest;
    let mut bytes = loop {
        if deltas.len() > DEPTH_READ_MAX {
            return Err(damaged(digest, "its chain of versions has no end"));
        }
        let is_over = deltas
            .last()
            .is_some_and(|(_, row)| row.form == Form::Reverse);
        let is_circle = is_over && deltas.iter().any(|(known, _)| *known == at);
        let found = if is_circle {
            None
        } else {
            row(store, transaction, &at)?
        };
        let row = match found {
            _ if is_over && outside == Some(&at) => return over(&deltas, at),
            Some(row) => row,
            None if deltas.is_empty() => return Err(Fault::Missing(*digest)),
            None if is_over => return Err(Fault::Outside(*digest, at)),
            None => return Err(damaged(digest, &format!("its base {at} is missing"))),
        };
        match (row.form, row.base) {
            (Form::Delta | Form::Reverse, Some(base)) => {
                deltas.push((at, row));
                at = base;
            }
            (Form::Delta | Form::Reverse, None) => {
                return Err(damaged(&at, "it is a delta without a base"));
            }
            (Form::Chunks, _) if is_over => return over(&deltas, at),
            (Form::Chunks, _) if deltas.is_empty() => {
                let chunks = super::pack::decode_list(&row.bytes, row.size)
                    .map_err(|flaw| Fault::flawed(digest, &flaw))?;
                return Ok(Found::Chunked {
                    size: row.size,
                    chunks,
                });
            }
            (form, _) => {
                break codec::decode(form, &row.bytes, row.size, &at)
                    .map_err(|flaw| below(digest, &at, &flaw))?;
            }
        }
    };
    while let Some((name, row)) = deltas.pop() {
        let decoded = match row.form {
            Form::Reverse => reversed::apply(&row, &bytes, &name),
            Form::Raw | Form::Zstd | Form::Delta | Form::Chunks => {
                codec::decode_delta(&row.bytes, &bytes, row.size, &name)
            }
        };
        bytes = decoded.map_err(|flaw| below(digest, &name, &flaw))?;
    }
    Ok(Found::Whole(bytes))
}

/// Gives a content as pieces of `base`.
fn over(links: &[(Digest, Row)], base: Digest) -> Result<Found, Fault> {
    let pieces = reversed::together(links)?;
    let missing = || damaged(&base, &format!("its base {base} is missing"));
    pieces
        .map(|pieces| Found::Over { pieces, base })
        .ok_or_else(missing)
}

/// Lists what would do to make a content that is told as a change of something outside; nothing if the store has it all.
pub(crate) fn outside(
    store: &Store,
    transaction: &Transaction<'_>,
    digest: &Digest,
) -> Result<Vec<Digest>, Fault> {
    let mut seen = vec![*digest];
    while let Some(at) = seen.last() {
        match row(store, transaction, at)? {
            Some(Row {
                form: Form::Reverse | Form::Delta,
                base: Some(base),
                ..
            }) if !seen.contains(&base) && seen.len() <= DEPTH_READ_MAX => seen.push(base),
            Some(Row {
                form: Form::Reverse,
                ..
            }) => break,
            Some(_) => return Ok(Vec::new()),
            None if seen.len() == 1 => return Err(Fault::Missing(*digest)),
            None => break,
        }
    }
    Ok(seen)
}

/// Reads one row.
pub(crate) fn row(
    store: &Store,
    transaction: &Transaction<'_>,
    digest: &Digest,
) -> Result<Option<Row>, Fault> {
    let found = transaction
        .prepare_cached("SELECT size, form, base, bytes FROM content WHERE digest = ?1")
        .and_then(|mut statement| {
            statement
                .query_row([digest.as_bytes().as_slice()], |row| {
                    Ok((
                        row.get::<_, i64>(0)?,
                        row.get::<_, i64>(1)?,
                        row.get::<_, Option<Vec<u8>>>(2)?,
                        row.get::<_, Vec<u8>>(3)?,
                    ))
                })
                .optional()
        })
        .map_err(|error| store.named(error))?;
    let Some((size, form, base, bytes)) = found else {
        return Ok(None);
    };
    let wrong = |what: &str| damaged(digest, &format!("its row has an impossible {what}"));
    Ok(Some(Row {
        size: u64::try_from(size).map_err(|_| wrong("size"))?,
        form: Form::from_sql(form).ok_or_else(|| wrong("form"))?,
        base: base
            .map(|base| Digest::from_slice(&base))
            .transpose()
            .map_err(|_| wrong("base"))?,
        bytes,
    }))
}

/// Says what is wrong with `digest` when the flaw is in `at`, itself or a version it is stored against.
fn below(digest: &Digest, at: &Digest, flaw: &Flaw) -> Fault {
    if digest == at {
        Fault::flawed(digest, flaw)
    } else {
        damaged(digest, &format!("its base {at} is damaged: {flaw}"))
    }
}

fn damaged(digest: &Digest, detail: &str) -> Fault {
    Fault::Damaged(*digest, detail.to_owned())
}

impl Store {
    /// Runs `work` in a read transaction whose failures may be those of a content.
    pub(crate) fn look<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.read(|transaction| Ok(work(transaction)))?
    }
}

/// Reads a digest from a column.
pub(crate) fn to_digest(bytes: &[u8]) -> Result<Digest, StorageError> {
    Digest::from_slice(bytes).map_err(|cause| StorageError::Inconsistent {
        at: "a digest in the table of contents".to_owned(),
        detail: cause.to_string(),
    })
}
