//! Contents: a map from digests to bytes, checked at every read.

use std::io::{Cursor, Read};

use backout_model::ports::{ContentsError, ReadContents, WriteContents};
use backout_model::reversal::{Form, Made, Pieces};
use backout_model::{Digest, OperationId};

use super::MemoryStore;
use super::change::Change;
use super::state::State;
use crate::made;

impl ReadContents for MemoryStore {
    fn read(&self, digest: &Digest) -> Result<Vec<u8>, ContentsError> {
        let checked = self.ask(|state| Ok(state.content(digest)));
        checked.map_err(|error| ContentsError::Store(Box::new(error)))?
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentsError> {
        Ok(Box::new(Cursor::new(ReadContents::read(self, digest)?)))
    }

    fn has(&self, digest: &Digest) -> Result<bool, ContentsError> {
        let found = self.ask(|state| Ok(state.has(digest)));
        found.map_err(|error| ContentsError::Store(Box::new(error)))
    }

    fn outside(&self, digest: &Digest) -> Result<Vec<Digest>, ContentsError> {
        let made = self.ask(|state| Ok(state.made(digest, None)));
        let made = made.map_err(|error| ContentsError::Store(Box::new(error)))??;
        made::outside(digest, made)
    }

    fn open_over(
        &self,
        digest: &Digest,
        base: &Digest,
        from: Box<dyn Read + Send>,
    ) -> Result<Box<dyn Read + Send>, ContentsError> {
        let made = self.ask(|state| Ok(state.made(digest, Some(base))));
        let made = made.map_err(|error| ContentsError::Store(Box::new(error)))??;
        made::open_over(self, digest, made, from)
    }
}

impl WriteContents for MemoryStore {
    fn stash(&self, by: OperationId, from: &mut dyn Read) -> Result<(Digest, u64), ContentsError> {
        let mut bytes = Vec::new();
        let failed = |error: std::io::Error| ContentsError::Store(Box::new(error));
        from.read_to_end(&mut bytes).map_err(failed)?;
        let told = (Digest::of(&bytes), bytes.len() as u64);
        let kept = self.change(|_| Ok((Some(Change::Keep { by, bytes }), told)));
        kept.map_err(|error| ContentsError::Store(Box::new(error)))
    }

    fn may_be_over(
        &self,
        older: &Digest,
        newer: &Digest,
        _size: u64,
    ) -> Result<bool, ContentsError> {
        let made = self.ask(|state| Ok(state.is_made_of(newer, older)));
        let is_circle = made.map_err(|error| ContentsError::Store(Box::new(error)))?;
        Ok(!is_circle)
    }
}

impl State {
    /// Tells whether a content is there, as it is or as a change.
    pub(super) fn has(&self, digest: &Digest) -> bool {
        self.contents.contains_key(digest) || self.changes.contains_key(digest)
    }

    /// Tells whether one content is told as a change of another, or is it.
    fn is_made_of(&self, digest: &Digest, other: &Digest) -> bool {
        let mut at = Some(digest);
        // There may be circles.
        for _ in 0..=self.changes.len() {
            match at {
                Some(digest) if digest == other => return true,
                Some(digest) => at = self.changes.get(digest).map(|(base, _, _)| base),
                None => return false,
            }
        }
        false
    }

    /// Finds out what a content is made of.
    pub(super) fn made(
        &self,
        digest: &Digest,
        outside: Option<&Digest>,
    ) -> Result<Made, ContentsError> {
        let form = |at: &Digest| match self.changes.get(at) {
            Some((base, size, pieces)) => {
                Pieces::decode(pieces, *size).map(|pieces| Form::Over(*base, pieces))
            }
            None if self.contents.contains_key(at) => Ok(Form::Whole),
            None => Ok(Form::Absent),
        };
        made::made(digest, outside, form)
    }

    /// Gives a content if it is what its name says.
    pub(super) fn content(&self, digest: &Digest) -> Result<Vec<u8>, ContentsError> {
        if let Some((base, ..)) = self.changes.get(digest) {
            let Made::Of { pieces, base, .. } = self.made(digest, None)? else {
                let (digest, base) = (*digest, *base);
                return Err(ContentsError::Outside { digest, base });
            };
            return made::older(digest, pieces, &self.content(&base)?);
        }
        let digest = *digest;
        let found = self.contents.get(&digest);
        let bytes = found.ok_or(ContentsError::Missing { digest })?;
        if Digest::of(bytes) == digest {
            return Ok(bytes.to_vec());
        }
        let detail = "it gives another digest".to_owned();
        Err(ContentsError::Damaged { digest, detail })
    }
}
