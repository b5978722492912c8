//! Contents that are stored as a reverse change of a newer version, which is stored as well or is in the world.
//!
//! - The change is logged by whoever makes it, in the transaction that arms it (`model::reversal`). It is not made of what is stored, so
//!   it costs what changed and not what is there.
//! - A content that the store can give is never replaced by a change of something outside of it.
//! - Two contents may each be a change of the other, where a file went there and back: then one of them is in the world.

use std::io::{Cursor, Read as _};

use backout_model::Digest;
use backout_model::ports::{NewContent, Over};
use backout_model::reversal::Pieces;
use rusqlite::Transaction;

use super::chain::may_link;
use super::codec::{self, Effort, Encoded, Flaw, Form};
use super::rows::{Fault, Found, Row, read_in, replace, stored_length};
use crate::{StorageError, Store};

/// Pieces are no longer than this, encoded: far more than a driver tells.
const PIECES_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What is said of pieces that nobody could have written.
const BROKEN: Flaw = Flaw::Frame {
    reason: "its pieces are broken",
};

/// Stores a content as the change that it comes as, and returns by how many bytes the store grew.
pub(crate) fn put_over(
    store: &Store,
    transaction: &Transaction<'_>,
    content: &NewContent,
    over: Over,
) -> Result<u64, StorageError> {
    let encoded = encode(&content.bytes);
    let length = encoded.bytes.len() as u64;
    let (digest, Over { base, size }) = (&content.digest, over);
    let is_better = match read_in(store, transaction, digest, None) {
        Ok(Found::Chunked { .. } | Found::Over { .. }) => false,
        Ok(Found::Whole(_)) => {
            let stored = stored_length(store, transaction, digest)?;
            stored.is_some_and(|stored| length < stored)
                && may_link(store, transaction, digest, &base, size)?
        }
        Err(fault) => fault.of_content().map(|()| true)?,
    };
    if !is_better {
        return Ok(0);
    }
    replace(store, transaction, digest, size, &encoded, Some(&base))
}

fn encode(pieces: &[u8]) -> Encoded {
    let encoded = codec::encode(pieces, Effort::Normal);
    let mut bytes = vec![u8::from(encoded.form == Form::Zstd)];
    bytes.extend_from_slice(&encoded.bytes);
    Encoded {
        form: Form::Reverse,
        bytes,
    }
}

/// Reads the pieces of a row.
fn decode(row: &Row) -> Result<Pieces, Flaw> {
    let (form, stored) = row.bytes.split_first().ok_or(BROKEN)?;
    let plain = match form {
        0 => stored.to_vec(),
        1 => codec::decompress_up_to(stored, PIECES_BYTES_MAX)?,
        _ => return Err(BROKEN),
    };
    Pieces::decode(&plain, row.size).map_err(|_| BROKEN)
}

/// Makes a content from the newer version, of which all bytes are at hand.
pub(super) fn apply(row: &Row, newer: &[u8], digest: &Digest) -> Result<Vec<u8>, Flaw> {
    let mut bytes = Vec::new();
    let mut reader = decode(row)?.reader(Cursor::new(newer), *digest);
    match reader.read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(_) => Err(Flaw::Digest),
    }
}

/// Puts changes of changes together, the newest last; none if one of them is no reverse change.
pub(super) fn together(links: &[(Digest, Row)]) -> Result<Option<Pieces>, Fault> {
    let mut all: Option<Pieces> = None;
    for (digest, row) in links {
        if row.form != Form::Reverse {
            return Ok(None);
        }
        let pieces = decode(row).map_err(|flaw| Fault::flawed(digest, &flaw))?;
        let broken = |_| Fault::flawed(digest, &BROKEN);
        all = Some(match all {
            None => pieces,
            Some(known) => known.over(&pieces).map_err(broken)?,
        });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_nobody_could_have_written_are_damage() {
        let row = |bytes: &[u8]| Row {
            size: 3,
            form: Form::Reverse,
            base: Some(Digest::of(b"new")),
            bytes: bytes.to_vec(),
        };
        let old = Digest::of(b"old");
        for bytes in [&b""[..], b"\x02", b"\x00\x03\x00ol", b"\x00\x01\x00o"] {
            let flaw = apply(&row(bytes), b"new", &old).expect_err("it is broken");
            assert!(flaw.to_string().contains("its pieces are broken"), "{flaw}");
        }
        let right = row(b"\x00\x03\x00old");
        assert_eq!(apply(&right, b"new", &old), Ok(b"old".to_vec()));
        assert_eq!(
            apply(&right, b"new", &Digest::of(b"new")),
            Err(Flaw::Digest)
        );
    }
}
