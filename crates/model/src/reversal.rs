//! The reverse change: what a file was, told as a change of what it became.
//!
//! - Made of pieces: bytes that are the same in the newer version, by where they are there, and bytes that only the older one
//!   has. The pieces stand in the order of both versions, so one pass over the newer one gives the older.
//! - Found by what is common at both ends, and between two middles of the same length byte by byte. That is cheap for files of
//!   any size, and finds little in a file that was edited at many places and moved by that: then nothing is gained and the file is kept whole.
//! - Pure: bytes in, bytes out. What is read through it is compared with its digest, so wrong bytes never look like the end.

use std::collections::VecDeque;
use std::io::{self, Read};

use crate::Digest;

/// How many bytes are compared at once.
const BLOCK_BYTES: usize = 64 * 1024;

/// Fewer equal bytes than these between two changes are not worth a piece of their own.
const SAME_BYTES_MIN: usize = 32;

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
        OlderReader {
            pieces: self.0.into(),
            newer,
            at: 0,
            hasher: blake3::Hasher::new(),
            digest,
        }
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

/// Pieces on the way to be told.
struct Finding {
    pieces: Vec<Piece>,
    /// How many bytes of its own the older version may still have.
    left: u64,
}

impl Finding {
    fn same(&mut self, at: u64, length: u64) {
        match self.pieces.last_mut() {
            _ if length == 0 => {}
            Some(Piece::Same {
                at: start,
                length: known,
            }) if *start + *known == at => *known += length,
            _ => self.pieces.push(Piece::Same { at, length }),
        }
    }

    fn bytes(&mut self, own: &[u8]) {
        match self.pieces.last_mut() {
            _ if own.is_empty() => {}
            Some(Piece::Bytes(known)) => known.extend_from_slice(own),
            _ => self.pieces.push(Piece::Bytes(own.to_vec())),
        }
    }

    /// Adds bytes that only the older version has; tells whether they are few enough.
    fn own(&mut self, older: &(impl ReadAt + ?Sized), at: u64, length: u64) -> io::Result<bool> {
        let Some(left) = self.left.checked_sub(length) else {
            return Ok(false);
        };
        self.left = left;
        let mut own = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        older.read_exact_at(&mut own, at)?;
        self.bytes(&own);
        Ok(true)
    }

    /// Compares two middles of the same length.
    fn compare(
        &mut self,
        older: &(impl ReadAt + ?Sized),
        newer: &(impl ReadAt + ?Sized),
        at: u64,
        length: u64,
    ) -> io::Result<bool> {
        let mut block = [vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]];
        let mut done = 0;
        while done < length {
            let count =
                usize::try_from(length - done).map_or(BLOCK_BYTES, |it| it.min(BLOCK_BYTES));
            let [one, other] = &mut block;
            one.resize(count, 0);
            other.resize(count, 0);
            older.read_exact_at(one, at + done)?;
            newer.read_exact_at(other, at + done)?;
            for (start, end, is_same) in runs(one, other) {
                if is_same {
                    self.same(at + done + start as u64, (end - start) as u64);
                } else {
                    let Some(left) = self.left.checked_sub((end - start) as u64) else {
                        return Ok(false);
                    };
                    self.left = left;
                    self.bytes(one.get(start..end).unwrap_or_default());
                }
            }
            done += count as u64;
        }
        Ok(true)
    }
}

/// Splits two blocks into runs that are the same and runs that are not.
fn runs(one: &[u8], other: &[u8]) -> Vec<(usize, usize, bool)> {
    if one == other {
        return vec![(0, one.len(), true)];
    }
    let mut runs: Vec<(usize, usize, bool)> = Vec::new();
    let mut add = |start: usize, end: usize, is_same: bool| match runs.last_mut() {
        _ if start == end => {}
        Some((_, last, was_same)) if *was_same == is_same => *last = end,
        _ => runs.push((start, end, is_same)),
    };
    let pairs = |at: usize| one.iter().zip(other).skip(at);
    let mut at = 0;
    while at < one.len() {
        let equal = pairs(at).take_while(|(a, b)| a == b).count();
        let reaches_end = at + equal == one.len();
        add(at, at + equal, equal >= SAME_BYTES_MIN || reaches_end);
        at += equal;
        let unlike = pairs(at).take_while(|(a, b)| a != b).count();
        add(at, at + unlike, false);
        at += unlike;
    }
    runs
}

/// From where two versions are compared.
#[derive(Clone, Copy)]
enum Ends {
    Heads,
    Tails,
}

/// Counts the bytes that both have at their beginning or at their end, up to `most`.
fn common(
    one: &(impl ReadAt + ?Sized),
    other: &(impl ReadAt + ?Sized),
    most: u64,
    ends: Ends,
) -> io::Result<u64> {
    let mut block = [vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]];
    let mut done = 0;
    while done < most {
        let count = usize::try_from(most - done).map_or(BLOCK_BYTES, |it| it.min(BLOCK_BYTES));
        let at = |size: u64| match ends {
            Ends::Heads => done,
            Ends::Tails => size - done - count as u64,
        };
        let [a, b] = &mut block;
        a.resize(count, 0);
        b.resize(count, 0);
        one.read_exact_at(a, at(one.size()))?;
        other.read_exact_at(b, at(other.size()))?;
        let pairs = a.iter().zip(b.iter());
        let equal = match ends {
            Ends::Heads => pairs.take_while(|(a, b)| a == b).count(),
            Ends::Tails => pairs.rev().take_while(|(a, b)| a == b).count(),
        };
        done += equal as u64;
        if equal < count {
            break;
        }
    }
    Ok(done)
}

/// The older version, read out of the newer one.
#[derive(Debug)]
pub struct OlderReader<R> {
    pieces: VecDeque<Piece>,
    newer: R,
    /// How far the newer version was read.
    at: u64,
    hasher: blake3::Hasher,
    digest: Digest,
}

impl<R: Read> OlderReader<R> {
    fn skip_to(&mut self, at: u64) -> io::Result<()> {
        let skipped = at
            .checked_sub(self.at)
            .ok_or_else(|| io::Error::other(PiecesError))?;
        let found = io::copy(&mut (&mut self.newer).take(skipped), &mut io::sink())?;
        if found < skipped {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at = at;
        Ok(())
    }

    fn give(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.pieces.front_mut() {
            None => return self.end(),
            Some(Piece::Bytes(own)) => {
                let count = own.as_slice().read(buffer)?;
                own.drain(..count);
                count
            }
            Some(Piece::Same { at, length }) => {
                let (at, length) = (*at, *length);
                self.skip_to(at)?;
                let count = (&mut self.newer).take(length).read(buffer)?;
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.at += count as u64;
                if let Some(Piece::Same { at, length }) = self.pieces.front_mut() {
                    *at += count as u64;
                    *length -= count as u64;
                }
                count
            }
        };
        if self.pieces.front().is_some_and(|piece| piece.length() == 0) {
            self.pieces.pop_front();
        }
        self.hasher.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn end(&self) -> io::Result<usize> {
        if Digest::from_bytes(*self.hasher.finalize().as_bytes()) == self.digest {
            return Ok(0);
        }
        let said = "what it is made from is something else than it was";
        Err(io::Error::new(io::ErrorKind::InvalidData, said))
    }
}

impl<R: Read> Read for OlderReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            Ok(0)
        } else {
            self.give(buffer)
        }
    }
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
        /// The pieces.
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
#[path = "reversal_tests.rs"]
mod tests;
