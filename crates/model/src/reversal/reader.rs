//! Reads the older version out of the newer one and the pieces.

use std::collections::VecDeque;
use std::io::{self, Read};

use super::{Piece, PiecesError};
use crate::Digest;

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
    pub(super) fn new(pieces: Vec<Piece>, newer: R, digest: Digest) -> Self {
        Self {
            pieces: pieces.into(),
            newer,
            at: 0,
            hasher: blake3::Hasher::new(),
            digest,
        }
    }

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
