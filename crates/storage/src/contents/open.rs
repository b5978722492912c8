//! Reading contents: whole, or piece by piece, always checked.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;

use backout_model::Digest;
use backout_model::ports::{ContentsError, ReadContents};
use backout_model::reversal::OlderReader;
use rusqlite::{OptionalExtension as _, Transaction};

use super::codec::ROW_BYTES_MAX;
use super::pack::{self, ChunkAt};
use super::rows::{Fault, Found, outside, read_in};
use crate::state_dir::CONTENTS;
use crate::{StorageError, Store};

/// How many packs a reader keeps open: a content is mostly in one, and what it shares in a few others.
const OPEN_PACKS_MAX: usize = 8;

impl ReadContents for Store {
    fn read(&self, digest: &Digest) -> Result<Vec<u8>, ContentsError> {
        let mut reader = match self.open_content(digest)? {
            Opened::Whole(bytes) => return Ok(bytes),
            Opened::Chunked(reader) => reader,
            Opened::Over(mut reader) => {
                let mut bytes = Vec::new();
                let read = reader.read_to_end(&mut bytes);
                read.map_err(|error| Fault::Damaged(*digest, error.to_string()))?;
                return Ok(bytes);
            }
        };
        let length = usize::try_from(reader.left).map_err(|_| reader.damaged("it is too large"))?;
        let mut bytes = Vec::new();
        if reader.left > ROW_BYTES_MAX || bytes.try_reserve_exact(length).is_err() {
            return Err(reader.damaged("it is too large to be read whole").into());
        }
        while let Some(chunk) = reader.next_chunk()? {
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentsError> {
        Ok(match self.open_content(digest)? {
            Opened::Whole(bytes) => Box::new(Cursor::new(bytes)),
            Opened::Chunked(reader) => reader,
            Opened::Over(reader) => reader,
        })
    }

    fn outside(&self, digest: &Digest) -> Result<Vec<Digest>, ContentsError> {
        Ok(self.look(|transaction| outside(self, transaction, digest))?)
    }

    fn open_over(
        &self,
        digest: &Digest,
        base: &Digest,
        from: Box<dyn Read + Send>,
    ) -> Result<Box<dyn Read + Send>, ContentsError> {
        match self.look(|transaction| read_in(self, transaction, digest, Some(base)))? {
            Found::Over {
                pieces,
                base: found,
            } if found == *base => Ok(Box::new(pieces.reader(from, *digest))),
            Found::Whole(_) | Found::Chunked { .. } | Found::Over { .. } => self.open(digest),
        }
    }

    fn has(&self, digest: &Digest) -> Result<bool, ContentsError> {
        let found = Self::read(self, |transaction| {
            transaction
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM content WHERE digest = ?1)")
                .and_then(|mut has| has.query_row([digest.as_bytes().as_slice()], |row| row.get(0)))
                .map_err(|error| self.named(error))
        });
        found.map_err(|error| Fault::from(error).into())
    }
}

impl Store {
    /// Reads a content to its end and says what is wrong with it, if anything is.
    pub fn check_content(&self, digest: &Digest) -> Result<(), ContentsError> {
        match self.open_content(digest)? {
            Opened::Whole(_) => {}
            Opened::Chunked(mut reader) => while reader.next_chunk()?.is_some() {},
            Opened::Over(mut reader) => {
                let read = io::copy(&mut reader, &mut io::sink());
                read.map_err(|error| Fault::Damaged(*digest, error.to_string()))?;
            }
        }
        Ok(())
    }

    fn open_content(&self, digest: &Digest) -> Result<Opened, Fault> {
        match self.look(|transaction| read_in(self, transaction, digest, None))? {
            Found::Whole(bytes) => return Ok(Opened::Whole(bytes)),
            Found::Over { pieces, base } => {
                let newer: Box<dyn Read + Send> = match self.open_content(&base)? {
                    Opened::Whole(bytes) => Box::new(Cursor::new(bytes)),
                    Opened::Chunked(reader) => reader,
                    Opened::Over(reader) => reader,
                };
                return Ok(Opened::Over(Box::new(pieces.reader(newer, *digest))));
            }
            Found::Chunked { .. } => {}
        }
        // From here on no pack goes away, and only then is it asked where the chunks lie.
        let lock = pack::share(self)?;
        self.look(
            |transaction| match read_in(self, transaction, digest, None)? {
                Found::Whole(bytes) => Ok(Opened::Whole(bytes)),
                Found::Over { base, .. } => Err(Fault::Outside(*digest, base)),
                Found::Chunked { size, chunks } => {
                    let places = places(self, transaction, digest, &chunks)?;
                    let reader = ChunkReader::new(self, lock, *digest, size, places);
                    Ok(Opened::Chunked(Box::new(reader)))
                }
            },
        )
    }
}

enum Opened {
    Whole(Vec<u8>),
    Chunked(Box<ChunkReader>),
    Over(Box<OlderReader<Box<dyn Read + Send>>>),
}

fn places(
    store: &Store,
    transaction: &Transaction<'_>,
    digest: &Digest,
    chunks: &[Digest],
) -> Result<VecDeque<ChunkAt>, Fault> {
    chunks
        .iter()
        .map(|chunk| {
            place(store, transaction, chunk)?
                .ok_or_else(|| Fault::Damaged(*digest, format!("its chunk {chunk} is missing")))
        })
        .collect()
}

/// Tells where a chunk lies. A place that cannot be is no place.
pub(super) fn place(
    store: &Store,
    transaction: &Transaction<'_>,
    chunk: &Digest,
) -> Result<Option<ChunkAt>, StorageError> {
    let found = transaction
        .prepare_cached("SELECT pack, offset, stored, size FROM chunk WHERE digest = ?1")
        .and_then(|mut statement| {
            statement
                .query_row([chunk.as_bytes().as_slice()], |row| {
                    Ok([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
                })
                .optional()
        })
        .map_err(|error| store.named(error))?;
    Ok(found.and_then(|[pack, offset, stored, size]| {
        Some(ChunkAt {
            digest: *chunk,
            pack,
            offset: u64::try_from(offset).ok()?,
            stored: u32::try_from(stored).ok()?,
            size: u32::try_from(size).ok()?,
        })
    }))
}

/// Reads one chunk and checks it. The caller holds the lock on the packs.
pub(super) fn read_chunk(store: &Store, place: &ChunkAt) -> Result<Vec<u8>, String> {
    let file = File::open(pack::path_of(store, place.pack)).map_err(|_| missing(place))?;
    let (_, bytes) = pack::read_frame(&file, place).map_err(|flaw| flaw.to_string())?;
    Ok(bytes)
}

fn missing(place: &ChunkAt) -> String {
    format!("the pack {} is missing or cannot be opened", place.pack)
}

/// A content that is read chunk by chunk. Holds the lock on the packs as long as it lives.
struct ChunkReader {
    digest: Digest,
    hasher: blake3::Hasher,
    left: u64,
    places: VecDeque<ChunkAt>,
    directory: PathBuf,
    packs: VecDeque<(i64, File)>,
    current: Cursor<Vec<u8>>,
    is_over: bool,
    _lock: File,
}

impl ChunkReader {
    fn new(
        store: &Store,
        lock: File,
        digest: Digest,
        size: u64,
        places: VecDeque<ChunkAt>,
    ) -> Self {
        Self {
            digest,
            hasher: blake3::Hasher::new(),
            left: size,
            places,
            directory: store.directory.path().join(CONTENTS),
            packs: VecDeque::new(),
            current: Cursor::default(),
            is_over: false,
            _lock: lock,
        }
    }

    /// Gives the next chunk, or none when the whole was right.
    fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let Some(place) = self.places.pop_front() else {
            self.is_over = true;
            let whole = Digest::from_bytes(*self.hasher.finalize().as_bytes());
            return if self.left == 0 && whole == self.digest {
                Ok(None)
            } else {
                Err(self.damaged("its chunks are sound, but together they are something else"))
            };
        };
        let in_chunk = |detail: String| {
            Fault::Damaged(self.digest, format!("its chunk {}: {detail}", place.digest))
        };
        if !self.packs.iter().any(|(id, _)| *id == place.pack) {
            let path = self.directory.join(format!("{}.pack", place.pack));
            let file = File::open(path).map_err(|_| in_chunk(missing(&place)))?;
            self.packs.truncate(OPEN_PACKS_MAX - 1);
            self.packs.push_front((place.pack, file));
        }
        let file = self.packs.iter().find(|(id, _)| *id == place.pack);
        let Some((_, file)) = file else {
            return Err(in_chunk(missing(&place)));
        };
        let (_, bytes) =
            pack::read_frame(file, &place).map_err(|flaw| in_chunk(flaw.to_string()))?;
        self.hasher.update(&bytes);
        self.left = self
            .left
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| self.damaged("its chunks are longer than it is"))?;
        Ok(Some(bytes))
    }

    fn damaged(&self, detail: &str) -> Fault {
        Fault::Damaged(self.digest, detail.to_owned())
    }
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.current.read(buffer)?;
            if count > 0 || buffer.is_empty() || self.is_over {
                return Ok(count);
            }
            match self.next_chunk() {
                Ok(Some(chunk)) => self.current = Cursor::new(chunk),
                Ok(None) => return Ok(0),
                // Once it has failed it stays failed: the end must never look like a good one.
                Err(fault) => {
                    self.is_over = false;
                    self.places.clear();
                    self.left = u64::MAX;
                    return Err(io::Error::other(ContentsError::from(fault)));
                }
            }
        }
    }
}
