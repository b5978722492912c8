//! Pack files: chunks of large contents, one after the other, each with its own name and length.
//!
//! ```text
//! header   16 bytes   "BACKOUTP", version (u32 LE) = 1, zero (u32)
//! frame    48 bytes   "CHNK", form (u8, 0 raw, 1 zstd), zero (3), stored (u32 LE), size (u32 LE), digest (32)
//!          stored bytes
//! ...
//! ```
//!
//! - The database says where a chunk lies, but a pack can be read without it, frame by frame.
//! - A pack is written once, synced with its directory, and only then known to the database. One that no row
//!   knows is a leftover of a process that died, and `gc` removes it.
//! - Who reads or writes packs holds the shared lock on the directory; see [`share`].

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use backout_crashpoint::{crash_point, sync_is_skipped};
use backout_model::Digest;
use rustix::fs::FlockOperation;

use super::codec::{self, Effort, Encoded, Flaw, Form};
use crate::state_dir::{CONTENTS, sync_directory};
use crate::{StorageError, Store};

/// The largest chunk that the chunker makes.
pub(crate) const CHUNK_BYTES_MAX: usize = 256 * 1024;
/// The size it aims at.
pub(super) const CHUNK_BYTES_AVERAGE: usize = 64 * 1024;
/// The smallest chunk but for the last of a content.
pub(super) const CHUNK_BYTES_MIN: usize = 16 * 1024;

/// What comes before the first frame.
pub(crate) const HEADER_BYTES: u64 = 16;
/// What comes before each chunk.
pub(crate) const FRAME_BYTES: u64 = FRAME as u64;
const FRAME: usize = 48;

const MAGIC: &[u8; 8] = b"BACKOUTP";
const VERSION: u32 = 1;
const MARKER: &[u8; 4] = b"CHNK";
const DIGEST_BYTES: usize = 32;

/// So many names are tried before a new pack gives up; each one taken is a leftover or somebody's new pack.
const NAMES_TRIED_MAX: i64 = 100_000;

/// How long `gc` waits for those who read or write packs.
const LOCK_WAIT: Duration = Duration::from_millis(if cfg!(test) { 500 } else { 5000 });
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Where a chunk lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkAt {
    pub(crate) digest: Digest,
    pub(crate) pack: i64,
    /// Where its frame begins.
    pub(crate) offset: u64,
    /// How long its stored bytes are, without the frame.
    pub(crate) stored: u32,
    pub(crate) size: u32,
}

/// A pack that is being written. Dropped before it is kept, it is gone.
#[derive(Debug)]
pub(crate) struct NewPack {
    pub(crate) id: i64,
    path: PathBuf,
    out: BufWriter<File>,
    pub(crate) length: u64,
    is_kept: bool,
}

impl NewPack {
    /// Makes a pack under a name that nobody has.
    pub(crate) fn create(store: &Store) -> Result<Self, StorageError> {
        let last: i64 = store.read(|transaction| {
            transaction
                .query_row("SELECT coalesce(max(id), 0) FROM pack", [], |row| {
                    row.get(0)
                })
                .map_err(|error| store.named(error))
        })?;
        let mut id = last + 1;
        let (path, file) = loop {
            let path = path_of(store, id);
            match File::options()
                .write(true)
                .read(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
            {
                Ok(file) => break (path, file),
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists
                        && id < last + NAMES_TRIED_MAX =>
                {
                    id += 1;
                }
                Err(source) => return Err(failed(&path, "create", source)),
            }
        };
        crash_point("pack.created");
        let out = BufWriter::with_capacity(1 << 20, file);
        let mut pack = Self {
            id,
            path,
            out,
            length: 0,
            is_kept: false,
        };
        pack.write(MAGIC)?;
        pack.write(&VERSION.to_le_bytes())?;
        pack.write(&[0; 4])?;
        Ok(pack)
    }

    /// Adds a chunk.
    pub(crate) fn append(
        &mut self,
        digest: &Digest,
        size: usize,
        encoded: &Encoded,
    ) -> Result<ChunkAt, StorageError> {
        let offset = self.length;
        let number = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let (stored, size) = (number(encoded.bytes.len()), number(size));
        self.write(MARKER)?;
        self.write(&[u8::from(encoded.form == Form::Zstd), 0, 0, 0])?;
        self.write(&stored.to_le_bytes())?;
        self.write(&size.to_le_bytes())?;
        self.write(digest.as_bytes())?;
        self.write(&encoded.bytes)?;
        Ok(ChunkAt {
            digest: *digest,
            pack: self.id,
            offset,
            stored,
            size,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.out
            .write_all(bytes)
            .map_err(|source| failed(&self.path, "write", source))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Makes the pack and its name durable.
    pub(crate) fn seal(&mut self) -> Result<(), StorageError> {
        crash_point("pack.half-written");
        self.out
            .flush()
            .map_err(|source| failed(&self.path, "write", source))?;
        crash_point("pack.written");
        if !sync_is_skipped("pack.file") {
            self.out
                .get_ref()
                .sync_all()
                .map_err(|source| failed(&self.path, "sync", source))?;
        }
        crash_point("pack.file-synced");
        if let Some(directory) = self.path.parent().filter(|_| !sync_is_skipped("pack.dir")) {
            sync_directory(directory).map_err(|source| failed(directory, "sync", source))?;
        }
        crash_point("pack.dir-synced");
        Ok(())
    }

    /// Decides about the file after the transaction that records it. It stays unless it certainly has no row: whether
    /// a commit that failed took place only the next reader can tell, so then `gc` decides.
    pub(crate) fn keep_or_drop<T>(
        mut self,
        recorded: Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        self.is_kept = matches!(
            recorded,
            Ok(_) | Err(StorageError::Database(_) | StorageError::Damaged { .. })
        );
        recorded
    }
}

impl Drop for NewPack {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nothing refers to it; if it cannot be removed now, `gc` does it later.
            let _removed = fs::remove_file(&self.path);
        }
    }
}

/// Reads the chunk at its place and checks it.
pub(crate) fn read_frame(pack: &File, place: &ChunkAt) -> Result<(Encoded, Vec<u8>), Flaw> {
    const BROKEN: Flaw = Flaw::Frame {
        reason: "its frame in the pack is broken",
    };
    if place.stored as usize > CHUNK_BYTES_MAX || place.size as usize > CHUNK_BYTES_MAX {
        return Err(Flaw::Size {
            size: u64::from(place.size.max(place.stored)),
        });
    }
    let mut head = [0; FRAME];
    let mut bytes = vec![0; place.stored as usize];
    pack.read_exact_at(&mut head, place.offset)
        .and_then(|()| pack.read_exact_at(&mut bytes, place.offset + FRAME_BYTES))
        .map_err(|_| Flaw::Frame {
            reason: "the pack is too short or cannot be read",
        })?;
    let frame = Frame::parse(&head).ok_or(BROKEN)?;
    if (frame.digest, frame.stored, frame.size) != (place.digest, place.stored, place.size) {
        return Err(BROKEN);
    }
    let whole = codec::decode(frame.form, &bytes, u64::from(place.size), &place.digest)?;
    Ok((
        Encoded {
            form: frame.form,
            bytes,
        },
        whole,
    ))
}

/// Lists the sound chunks that a pack holds, without the database. Behind a broken frame it goes on at the next place
/// where a sound one begins.
pub(crate) fn salvage(path: &Path, pack: i64) -> io::Result<Vec<ChunkAt>> {
    let file = File::open(path)?;
    let mut places = Vec::new();
    // The header is not needed to find the frames, so it may be broken.
    let mut offset = next_marker(&file, 0)?;
    let mut head = [0; FRAME];
    while let Some(at) = offset {
        let sound = file
            .read_exact_at(&mut head, at)
            .ok()
            .and_then(|()| Frame::parse(&head))
            .map(|frame| ChunkAt {
                digest: frame.digest,
                pack,
                offset: at,
                stored: frame.stored,
                size: frame.size,
            })
            .filter(|place| read_frame(&file, place).is_ok());
        let next = match &sound {
            Some(place) => at + FRAME_BYTES + u64::from(place.stored),
            None => at + 1,
        };
        places.extend(sound);
        offset = next_marker(&file, next)?;
    }
    Ok(places)
}

/// Finds the next place at which a frame may begin.
fn next_marker(file: &File, from: u64) -> io::Result<Option<u64>> {
    let mut window = vec![0; 64 * 1024];
    let mut at = from;
    loop {
        let length = file.read_at(&mut window, at)?;
        let read = window.get(..length).unwrap_or_default();
        if let Some(found) = read.windows(MARKER.len()).position(|bytes| bytes == MARKER) {
            return Ok(Some(at + found as u64));
        }
        if length < MARKER.len() {
            return Ok(None);
        }
        // A marker may lie across two windows.
        at += (length - MARKER.len() + 1) as u64;
    }
}

struct Frame {
    form: Form,
    stored: u32,
    size: u32,
    digest: Digest,
}

impl Frame {
    fn parse(head: &[u8; FRAME]) -> Option<Self> {
        let (marker, rest) = head.split_first_chunk::<4>()?;
        let ([form, ..], rest) = rest.split_first_chunk::<4>()?;
        let (stored, rest) = rest.split_first_chunk::<4>()?;
        let (size, digest) = rest.split_first_chunk::<4>()?;
        let form = Form::from_sql(i64::from(*form))
            .filter(|form| matches!(form, Form::Raw | Form::Zstd))?;
        (marker == MARKER).then_some(Self {
            form,
            stored: u32::from_le_bytes(*stored),
            size: u32::from_le_bytes(*size),
            digest: Digest::from_slice(digest).ok()?,
        })
    }
}

/// Writes down the chunks of a content. A file full of holes repeats one chunk, so it is compressed if that helps.
pub(crate) fn encode_list(chunks: &[Digest]) -> Encoded {
    let plain: Vec<u8> = chunks
        .iter()
        .flat_map(|digest| *digest.as_bytes())
        .collect();
    let encoded = codec::encode(&plain, Effort::Normal);
    let mut bytes = Vec::with_capacity(encoded.bytes.len() + 1);
    bytes.push(u8::from(encoded.form == Form::Zstd));
    bytes.extend_from_slice(&encoded.bytes);
    Encoded {
        form: Form::Chunks,
        bytes,
    }
}

/// Reads what [`encode_list`] wrote for a content of `size` bytes.
pub(crate) fn decode_list(stored: &[u8], size: u64) -> Result<Vec<Digest>, Flaw> {
    const BROKEN: Flaw = Flaw::Frame {
        reason: "its list of chunks is broken",
    };
    let (form, stored) = stored.split_first().ok_or(BROKEN)?;
    let chunks_max = size / CHUNK_BYTES_MIN as u64 + 1;
    let plain = match form {
        0 => stored.to_vec(),
        1 => codec::decompress_up_to(stored, chunks_max.saturating_mul(DIGEST_BYTES as u64))?,
        _ => return Err(BROKEN),
    };
    let (digests, []) = plain.as_chunks::<DIGEST_BYTES>() else {
        return Err(BROKEN);
    };
    Ok(digests
        .iter()
        .map(|digest| Digest::from_bytes(*digest))
        .collect())
}

/// Gives the path of a pack.
pub(crate) fn path_of(store: &Store, id: i64) -> PathBuf {
    store
        .directory
        .path()
        .join(CONTENTS)
        .join(format!("{id}.pack"))
}

/// Takes the lock under which packs are read and written: none that was there goes away while it is held.
/// Never taken inside a database transaction, since `gc` holds it alone while it waits for one.
pub(crate) fn share(store: &Store) -> Result<File, StorageError> {
    let path = store.directory.path().join(CONTENTS);
    let file = File::open(&path).map_err(|source| failed(&path, "open", source))?;
    flock(&file, FlockOperation::LockShared).map_err(|source| failed(&path, "lock", source))?;
    Ok(file)
}

/// Takes the lock alone, or gives up after a while.
pub(crate) fn lock_alone(store: &Store) -> Result<Option<File>, StorageError> {
    lock_within(&store.directory.path().join(CONTENTS), LOCK_WAIT)
}

/// Takes the lock on a directory alone, if that is possible before `wait` has passed.
pub(crate) fn lock_within(path: &Path, wait: Duration) -> Result<Option<File>, StorageError> {
    let file = File::open(path).map_err(|source| failed(path, "open", source))?;
    let mut waited = Duration::ZERO;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(failed(path, "lock", error));
            }
            Err(_) if waited >= wait => return Ok(None),
            Err(_) => std::thread::sleep(LOCK_PAUSE),
        }
        waited += LOCK_PAUSE;
    }
}

fn flock(file: &File, operation: FlockOperation) -> io::Result<()> {
    rustix::io::retry_on_intr(|| rustix::fs::flock(file, operation)).map_err(io::Error::from)
}

/// Names what went wrong with a file of the store; a full disk by its own name.
pub(crate) fn failed(path: &Path, action: &'static str, source: io::Error) -> StorageError {
    let path = path.to_path_buf();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            StorageError::DiskFull { path }
        }
        io::ErrorKind::ReadOnlyFilesystem => StorageError::ReadOnly { path },
        _ => StorageError::StateDir {
            path,
            action,
            source,
        },
    }
}
