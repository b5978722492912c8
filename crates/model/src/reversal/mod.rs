//! The reverse change: what a file was, told as a change of what it became.
//!
//! - Made of pieces: bytes that are the same in the newer version, by where they are there, and bytes that only the older one
//!   has. The pieces stand in the order of both versions, so one pass over the newer one gives the older.
//! - Found by what is common at both ends, and between two middles of the same length byte by byte. That is cheap for files of
//!   any size, and finds little in a file that was edited at many places and moved by that: then nothing is gained and the file is kept whole.
//! - Pure: bytes in, bytes out. What is read through it is compared with its digest, so wrong bytes never look like the end.

mod find;
mod reader;

use std::io::{self, Read};

use crate::Digest;
use find::{Ends, Finding, common};
pub use reader::OlderReader;

/// Bytes of a known number that can be read at any place.
pub trait ReadAt {
    /// Tells how many they are.
    fn size(&self) -> u64;

    /// Fills `buffer` from `offset` on.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ReadAt for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = start
            .checked_add(buffer.len())
            .and_then(|end| self.get(start..end));
        let found = found.ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }
}

/// A part of the older version.
#[derive(Clone, PartialEq, Eq)]
pub enum Piece {
    /// Bytes of the newer version.
    Same {
        /// Where they begin there.
        at: u64,
        /// How many they are.
        length: u64,
    },
    /// Bytes that only the older version has.
    Bytes(Vec<u8>),
}

impl std::fmt::Debug for Piece {
    // Contents may be secrets: only sizes are ever shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Same { at, length } => write!(f, "Same({length} at {at})"),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
        }
    }
}

impl Piece {
    const fn length(&self) -> u64 {
        match self {
            Self::Same { length, .. } => *length,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// Says that stored bytes are no reverse change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is no change that this program could have written")]
pub struct PiecesError;

/// The older version as pieces, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pieces(Vec<Piece>);

impl Pieces {
    /// Finds the pieces of `older` in `newer`; none if more than `own_bytes_max` bytes are only in the older one.
    pub fn between(
        older: &(impl ReadAt + ?Sized),
        newer: &(impl ReadAt + ?Sized),
        own_bytes_max: u64,
    ) -> io::Result<Option<Self>> {
        let (size, newer_size) = (older.size(), newer.size());
        let least = size.min(newer_size);
        let head = common(older, newer, least, Ends::Heads)?;
        let tail = common(older, newer, least - head, Ends::Tails)?;
        let (middle, newer_middle) = (size - head - tail, newer_size - head - tail);
        let mut found = Finding {
            pieces: Vec::new(),
            left: own_bytes_max,
        };
        found.same(0, head);
        let is_told = if middle == newer_middle {
            found.compare(older, newer, head, middle)?
        } else {
            found.own(older, head, middle)?
        };
        found.same(newer_size - tail, tail);
        Ok(is_told.then_some(Self(found.pieces)))
    }

    /// Counts the bytes of the older version.
    pub fn size(&self) -> u64 {
        self.0.iter().map(Piece::length).sum()
    }

    /// Counts the bytes that only the older version has.
    pub fn own_bytes(&self) -> u64 {
        let own = self.0.iter().map(|piece| match piece {
            Piece::Same { .. } => 0,
            Piece::Bytes(bytes) => bytes.len() as u64,
        });
        own.sum()
    }

    /// Gives the pieces of the same version in an even newer one, of which `newer` tells the pieces of this one's.
    pub fn over(&self, newer: &Self) -> Result<Self, PiecesError> {
        let mut all = Finding {
            pieces: Vec::new(),
            left: u64::MAX,
        };
        for piece in &self.0 {
            match piece {
                Piece::Bytes(bytes) => all.bytes(bytes),
                Piece::Same { at, length } => newer.part(*at, *length, &mut all)?,
            }
        }
        Ok(Self(all.pieces))
    }

    /// Adds a range of the version that these are the pieces of.
    fn part(&self, at: u64, length: u64, all: &mut Finding) -> Result<(), PiecesError> {
        let end = at.checked_add(length).ok_or(PiecesError)?;
        let mut start = 0;
        for piece in &self.0 {
            let stop = start + piece.length();
            let (from, to) = (at.max(start), end.min(stop));
            if from < to {
                match piece {
                    Piece::Same { at: base, .. } => all.same(base + (from - start), to - from),
                    Piece::Bytes(bytes) => {
                        let range = index(from - start)?..index(to - start)?;
                        all.bytes(bytes.get(range).ok_or(PiecesError)?);
                    }
                }
            }
            start = stop;
        }
        if end > start {
            Err(PiecesError)
        } else {
            Ok(())
        }
    }

    /// Gives them as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut last = 0;
        for piece in &self.0 {
            put_number(&mut out, piece.length());
            match piece {
                Piece::Same { at, length } => {
                    // One more than what is left out, so that nothing says "bytes follow".
                    put_number(&mut out, at - last + 1);
                    last = at + length;
                }
                Piece::Bytes(bytes) => {
                    put_number(&mut out, 0);
                    out.extend_from_slice(bytes);
                }
            }
        }
        out
    }

    /// Reads what [`Self::encode`] gave; `size` is the number of bytes of the older version.
    pub fn decode(mut bytes: &[u8], size: u64) -> Result<Self, PiecesError> {
        let mut pieces = Vec::new();
        let (mut last, mut total) = (0_u64, 0_u64);
        while !bytes.is_empty() {
            let length = take_number(&mut bytes)?;
            total = total.checked_add(length).ok_or(PiecesError)?;
            if let Some(skipped) = take_number(&mut bytes)?.checked_sub(1) {
                let at = last.checked_add(skipped).ok_or(PiecesError)?;
                last = at.checked_add(length).ok_or(PiecesError)?;
                pieces.push(Piece::Same { at, length });
            } else {
                let own = bytes.split_at_checked(index(length)?);
                let (own, rest) = own.ok_or(PiecesError)?;
                pieces.push(Piece::Bytes(own.to_vec()));
                bytes = rest;
            }
        }
        if total == size {
            Ok(Self(pieces))
        } else {
            Err(PiecesError)
        }
    }

    /// Reads the older version out of the newer one. The end is an error if the digest does not fit.
    pub fn reader<R: Read>(self, newer: R, digest: Digest) -> OlderReader<R> {
        OlderReader::new(self.0, newer, digest)
    }
}

fn index(number: u64) -> Result<usize, PiecesError> {
    usize::try_from(number).map_err(|_| PiecesError)
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

fn take_number(bytes: &mut &[u8]) -> Result<u64, PiecesError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().ok_or(PiecesError)?;
        *bytes = rest;
        let low = u64::from(first & 0x7f);
        if low << shift >> shift != low {
            return Err(PiecesError);
        }
        number |= low << shift;
        if first & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(PiecesError)
}

/// How a store keeps a content.
#[derive(Debug)]
pub enum Form {
    /// As it is, or in another way of the store's own.
    Whole,
    /// As pieces of another one.
    Over(Digest, Pieces),
    /// Not at all.
    Absent,
}

/// What a content is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// It is in the store as it is.
    Whole,
    /// Of pieces of another one.
    Of {
        /// From where in the other one, and how long.
        pieces: Pieces,
        /// What they are pieces of.
        base: Digest,
        /// Whether that is outside of the store.
        is_outside: bool,
    },
    /// Of something outside of the store, any of these.
    Outside(Vec<Digest>),
    /// Nothing of that name is stored.
    Missing,
}

/// Finds out what a content is made of, over all reverse changes on the way; `outside` is at hand although no store has it.
///
/// Two versions may each be told as a change of the other: one of them is in the world then.
pub fn follow<E>(
    digest: &Digest,
    outside: Option<&Digest>,
    mut form: impl FnMut(&Digest) -> Result<Form, E>,
) -> Result<Result<Made, PiecesError>, E> {
    let mut pieces: Option<Pieces> = None;
    let mut seen = Vec::new();
    let mut at = *digest;
    loop {
        let is_outside = outside == Some(&at);
        let found = if is_outside { Form::Whole } else { form(&at)? };
        match (found, pieces.take()) {
            (Form::Whole, None) if !is_outside => return Ok(Ok(Made::Whole)),
            (Form::Whole, None) => return Ok(Ok(Made::Outside(vec![at]))),
            (Form::Whole, Some(pieces)) => {
                let base = at;
                return Ok(Ok(Made::Of {
                    pieces,
                    base,
                    is_outside,
                }));
            }
            (Form::Absent, None) => return Ok(Ok(Made::Missing)),
            (Form::Absent, Some(_)) => return Ok(Ok(Made::Outside(seen))),
            (Form::Over(base, of_base), known) => {
                let all = match known {
                    Some(known) => known.over(&of_base),
                    None => Ok(of_base),
                };
                match all {
                    Ok(all) => pieces = Some(all),
                    Err(error) => return Ok(Err(error)),
                }
                if seen.contains(&base) || base == *digest {
                    return Ok(Ok(Made::Outside(seen)));
                }
                seen.push(base);
                at = base;
            }
        }
    }
}

#[cfg(test)]
mod tests;
