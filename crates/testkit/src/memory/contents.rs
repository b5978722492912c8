//! Contents: a map from digests to bytes, checked at every read.

use std::io::{Cursor, Read};

use backout_model::ports::{ContentsError, ReadContents, WriteContents};
use backout_model::{Digest, OperationId};

use super::MemoryStore;
use super::change::Change;
use super::state::State;

impl ReadContents for MemoryStore {
    fn read(&self, digest: &Digest) -> Result<Vec<u8>, ContentsError> {
        let checked = self.ask(|state| Ok(state.content(digest)));
        checked.map_err(|error| ContentsError::Store(Box::new(error)))?
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentsError> {
        Ok(Box::new(Cursor::new(ReadContents::read(self, digest)?)))
    }

    fn has(&self, digest: &Digest) -> Result<bool, ContentsError> {
        let found = self.ask(|state| Ok(state.contents.contains_key(digest)));
        found.map_err(|error| ContentsError::Store(Box::new(error)))
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
}

impl State {
    /// Gives a content if it is what its name says.
    pub(super) fn content(&self, digest: &Digest) -> Result<Vec<u8>, ContentsError> {
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
