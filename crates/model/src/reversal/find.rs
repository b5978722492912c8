//! Finds what two versions have in common, by their ends and byte by byte between them.

use std::io;

use super::{Piece, ReadAt};

/// How many bytes are compared at once.
const BLOCK_BYTES: usize = 64 * 1024;

/// Fewer equal bytes than these between two changes are not worth a piece of their own.
const SAME_BYTES_MIN: usize = 32;

/// Pieces on the way to be told.
pub(super) struct Finding {
    pub(super) pieces: Vec<Piece>,
    /// How many bytes of its own the older version may still have.
    pub(super) left: u64,
}

impl Finding {
    pub(super) fn same(&mut self, at: u64, length: u64) {
        match self.pieces.last_mut() {
            _ if length == 0 => {}
            Some(Piece::Same {
                at: start,
                length: known,
            }) if *start + *known == at => *known += length,
            _ => self.pieces.push(Piece::Same { at, length }),
        }
    }

    pub(super) fn bytes(&mut self, own: &[u8]) {
        match self.pieces.last_mut() {
            _ if own.is_empty() => {}
            Some(Piece::Bytes(known)) => known.extend_from_slice(own),
            _ => self.pieces.push(Piece::Bytes(own.to_vec())),
        }
    }

    /// Adds bytes that only the older version has; tells whether they are few enough.
    pub(super) fn own(
        &mut self,
        older: &(impl ReadAt + ?Sized),
        at: u64,
        length: u64,
    ) -> io::Result<bool> {
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
    pub(super) fn compare(
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
pub(super) enum Ends {
    Heads,
    Tails,
}

/// Counts the bytes that both have at their beginning or at their end, up to `most`.
pub(super) fn common(
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
