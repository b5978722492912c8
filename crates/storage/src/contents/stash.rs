//! Storing a content that is too large to ride with a record: chunked, and only what is new is written.
//!
//! Memory: one chunk, a write buffer, and some hundred bytes for each chunk (64 KiB on average) of the content.
//! Speed: `BLAKE3` twice, `FastCDC` and zstd level 1 on one thread.

use std::collections::HashMap;
use std::io::{self, Cursor, Read};

use backout_crashpoint::crash_point;
use backout_model::ports::{ContentsError, Durability, NewContent, WriteContents};
use backout_model::{Digest, OperationId};
use fastcdc::v2020::{Error as ChunkError, StreamCDC};
use rusqlite::{Transaction, params};

use super::chain::{may_end, may_link};
use super::codec::{Compressor, Effort, encode_with};
use super::open::{place, read_chunk};
use super::pack::{
    self, CHUNK_BYTES_AVERAGE, CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, ChunkAt, NewPack, encode_list,
};
use super::rows::{Fault, Found, put, read_in, replace, stored_length};
use super::sizes::{Kept, add_stored};
use crate::journal::id_to_sql;
use crate::{StorageError, Store};

/// What is no longer than this goes into the database in one piece.
const INLINE_BYTES_MAX: u64 = 64 * 1024;

/// Says that what was to be stored could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the content to be stored could not be read")]
struct SourceError(#[source] io::Error);

impl WriteContents for Store {
    fn stash(&self, by: OperationId, from: &mut dyn Read) -> Result<(Digest, u64), ContentsError> {
        let mut begin = Vec::new();
        from.take(INLINE_BYTES_MAX + 1)
            .read_to_end(&mut begin)
            .map_err(unreadable)?;
        let stashed = if begin.len() as u64 <= INLINE_BYTES_MAX {
            self.stash_row(by, begin)?
        } else {
            self.stash_chunks(by, &mut Cursor::new(begin).chain(from))?
        };
        crash_point("pack.recorded");
        Ok(stashed)
    }

    fn may_be_over(
        &self,
        older: &Digest,
        newer: &Digest,
        size: u64,
    ) -> Result<bool, ContentsError> {
        let may = self.read(
            |transaction| match stored_length(self, transaction, newer)? {
                Some(_) => may_link(self, transaction, older, newer, size),
                None => may_end(self, transaction, older, size),
            },
        );
        may.map_err(|error| Fault::from(error).into())
    }
}

fn unreadable(error: io::Error) -> Fault {
    Fault::Source(Box::new(SourceError(error)))
}

impl Store {
    fn stash_row(&self, by: OperationId, bytes: Vec<u8>) -> Result<(Digest, u64), Fault> {
        let size = bytes.len() as u64;
        let content = NewContent::of(bytes);
        self.write(Durability::Power, |transaction| {
            put(self, transaction, &content)?;
            self.refer(transaction, by, &content.digest)
        })?;
        Ok((content.digest, size))
    }

    fn stash_chunks(&self, by: OperationId, from: &mut dyn Read) -> Result<(Digest, u64), Fault> {
        // No chunk that is found in the store goes away before the row that needs it is there.
        let _lock = pack::share(self)?;
        let mut stash = Stash::new(self);
        let mut whole = blake3::Hasher::new();
        let mut size = 0;
        let patient = Patient(from);
        let chunks = StreamCDC::new(
            patient,
            CHUNK_BYTES_MIN,
            CHUNK_BYTES_AVERAGE,
            CHUNK_BYTES_MAX,
        );
        for chunk in chunks {
            let bytes = chunk.map_err(from_chunker)?.data;
            whole.update(&bytes);
            size += bytes.len() as u64;
            stash.add(&bytes)?;
        }
        if let Some(pack) = &mut stash.pack {
            pack.seal()?;
        }
        let digest = Digest::from_bytes(*whole.finalize().as_bytes());
        stash.record(by, &digest, size)?;
        Ok((digest, size))
    }

    /// Notes that an operation needs a content.
    pub(super) fn refer(
        &self,
        transaction: &Transaction<'_>,
        by: OperationId,
        digest: &Digest,
    ) -> Result<(), StorageError> {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO reference (operation, digest) VALUES (?1, ?2)")
            .and_then(|mut refer| {
                refer.execute(params![id_to_sql(by), digest.as_bytes().as_slice()])
            })
            .map_err(|error| self.named(error))?;
        Ok(())
    }
}

/// A content on its way into the store.
struct Stash<'s> {
    store: &'s Store,
    /// Made when the first new chunk comes.
    pack: Option<NewPack>,
    /// Its chunks, in order.
    chunks: Vec<Digest>,
    /// Each chunk once: where it was written now, or none if the store had it and it was sound.
    known: HashMap<Digest, Option<ChunkAt>>,
    compressor: Compressor,
}

impl<'s> Stash<'s> {
    fn new(store: &'s Store) -> Self {
        Self {
            store,
            pack: None,
            chunks: Vec::new(),
            known: HashMap::new(),
            compressor: Compressor::default(),
        }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        let digest = Digest::of(bytes);
        self.chunks.push(digest);
        if self.known.contains_key(&digest) {
            return Ok(());
        }
        let stored = self
            .store
            .read(|transaction| place(self.store, transaction, &digest))?;
        // A chunk that is there is believed only after it was read; a damaged one is stored anew.
        let is_sound = stored.is_some_and(|stored| read_chunk(self.store, &stored).is_ok());
        let written = if is_sound {
            None
        } else {
            Some(self.append(&digest, bytes)?)
        };
        self.known.insert(digest, written);
        Ok(())
    }

    fn append(&mut self, digest: &Digest, bytes: &[u8]) -> Result<ChunkAt, StorageError> {
        let encoded = encode_with(&mut self.compressor, bytes, Effort::Quick);
        let pack = match &mut self.pack {
            Some(pack) => pack,
            none => none.insert(NewPack::create(self.store)?),
        };
        pack.append(digest, bytes.len(), &encoded)
    }

    /// Makes the content known, with its chunks and its pack, in one step.
    fn record(mut self, by: OperationId, digest: &Digest, size: u64) -> Result<(), Fault> {
        let pack = self.pack.take();
        let recorded = self.store.write(Durability::Power, |transaction| {
            let is_needed = self.put(transaction, digest, size, pack.as_ref())?;
            self.store.refer(transaction, by, digest)?;
            crash_point("pack.before-commit");
            Ok(is_needed)
        });
        match (recorded, pack) {
            // The content was there already, so what was written for it is not needed.
            (Ok(false), _) => {}
            (recorded, Some(pack)) => drop(pack.keep_or_drop(recorded)?),
            (recorded, None) => drop(recorded?),
        }
        Ok(())
    }

    /// Writes the rows and tells whether the new pack is needed.
    fn put(
        &self,
        transaction: &Transaction<'_>,
        digest: &Digest,
        size: u64,
        pack: Option<&NewPack>,
    ) -> Result<bool, StorageError> {
        match read_in(self.store, transaction, digest, None) {
            Ok(Found::Whole(_)) => return Ok(false),
            Ok(Found::Chunked { .. } | Found::Over { .. }) => {}
            Err(fault) => fault.of_content()?,
        }
        if let Some(pack) = pack {
            self.put_pack(transaction, pack)?;
        }
        for chunk in self
            .chunks
            .iter()
            .filter(|chunk| matches!(self.known.get(chunk), Some(None)))
        {
            if place(self.store, transaction, chunk)?.is_none() {
                return Err(StorageError::Inconsistent {
                    at: format!("the chunk {}", chunk.short()),
                    detail: "it went away while it was needed".to_owned(),
                });
            }
        }
        replace(
            self.store,
            transaction,
            digest,
            size,
            &encode_list(&self.chunks),
            None,
        )?;
        Ok(true)
    }

    fn put_pack(&self, transaction: &Transaction<'_>, pack: &NewPack) -> Result<(), StorageError> {
        let named = |error| self.store.named(error);
        let bytes = pack.length.cast_signed();
        transaction
            .execute(
                "INSERT INTO pack (id, bytes) VALUES (?1, ?2)",
                params![pack.id, bytes],
            )
            .map_err(named)?;
        add_stored(self.store, transaction, Kept::Packs, bytes)?;
        let mut insert = transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO chunk (digest, pack, offset, stored, size)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )
            .map_err(named)?;
        for place in self.known.values().flatten() {
            insert
                .execute(params![
                    place.digest.as_bytes().as_slice(),
                    place.pack,
                    place.offset.cast_signed(),
                    place.stored,
                    place.size
                ])
                .map_err(named)?;
        }
        Ok(())
    }
}

fn from_chunker(error: ChunkError) -> Fault {
    match error {
        ChunkError::IoError(error) => unreadable(error),
        ChunkError::Empty => unreadable(io::ErrorKind::UnexpectedEof.into()),
        ChunkError::Other(reason) => unreadable(io::Error::other(reason)),
    }
}

/// A reader that a signal does not end; the chunker would take it for a failure.
struct Patient<'r>(&'r mut dyn Read);

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

#[cfg(test)]
#[path = "stash_tests.rs"]
mod tests;
