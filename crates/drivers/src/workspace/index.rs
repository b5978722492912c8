//! The stat index: what the last walk saw of each name, in the order in which the next one comes by.
//!
//! ```text
//! "BACKOUTW" version                               one record for each directory, itself before those in it:
//!   count, then for each name, sorted:
//!     length, name, kind and trust, inode, size, mtime, ctime
//! digests of the trees, 32 bytes each, in the same order
//! where those begin, how many there are, BLAKE3 of all before
//! ```
//!
//! It is read and written as a stream. One that is not whole counts as none: then everything is read.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use backout_files::NextIndex;
use backout_model::Digest;

use crate::file::recipe::Kind;
use crate::file::sys::Node;

const MAGIC: &[u8; 12] = b"BACKOUTW\x01\0\0\0";
/// What comes after the digests.
const FOOTER_BYTES: u64 = 8 + 8 + 32;
const BUFFER_BYTES: usize = 256 * 1024;
const TRUSTED: u8 = 0x10;
const ENTERED: u8 = 0x20;

/// What the last walk saw of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) name: OsString,
    pub(super) kind: Kind,
    pub(super) ino: u64,
    pub(super) size: u64,
    pub(super) mtime: i64,
    pub(super) ctime: i64,
    /// Whether a later change would have given it another change time.
    pub(super) is_trusted: bool,
    /// Whether it is a directory that has a record of its own.
    pub(super) is_entered: bool,
}

impl Known {
    /// Notes what is seen; none if its times are beyond what is written down.
    pub(super) fn of(name: OsString, node: &Node, is_trusted: bool, is_entered: bool) -> Self {
        let (mtime, ctime) = stamps(node).unwrap_or_default();
        Self {
            name,
            kind: node.kind,
            ino: node.identity.ino,
            size: node.identity.size,
            mtime,
            ctime,
            is_trusted: is_trusted && stamps(node).is_some(),
            is_entered,
        }
    }

    /// Tells whether this is what was seen, unchanged since.
    pub(super) fn is_still(&self, node: &Node) -> bool {
        self.is_trusted
            && self.kind == node.kind
            && self.ino == node.identity.ino
            && (self.kind == Kind::Directory || self.size == node.identity.size)
            && stamps(node) == Some((self.mtime, self.ctime))
    }
}

fn stamps(node: &Node) -> Option<(i64, i64)> {
    let mtime = i64::try_from(node.identity.mtime).ok()?;
    Some((mtime, i64::try_from(node.identity.ctime).ok()?))
}

/// Tells which tree an index speaks of; none if it is not whole.
pub(super) fn index_tree(path: &Path) -> Option<Digest> {
    Last::open(path)?.digests.first().copied()
}

/// The index of the last walk.
#[derive(Debug)]
pub(super) struct Last {
    records: BufReader<File>,
    digests: Vec<Digest>,
    /// How many records were read.
    next: usize,
}

impl Last {
    /// Opens it; none if there is none that is whole.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        let length = file.metadata().ok()?.len();
        let body = length.checked_sub(FOOTER_BYTES)?;
        let mut hasher = blake3::Hasher::new();
        let mut from = BufReader::with_capacity(BUFFER_BYTES, &file);
        // The numbers of the footer are part of what is checked.
        io::copy(&mut (&mut from).take(body + 16), &mut hasher).ok()?;
        let mut digest = [0; 32];
        from.read_exact(&mut digest).ok()?;
        if hasher.finalize().as_bytes() != &digest {
            return None;
        }
        file.seek(SeekFrom::Start(body)).ok()?;
        let (begin, count) = (number(&mut file).ok()?, number(&mut file).ok()?);
        file.seek(SeekFrom::Start(begin)).ok()?;
        let mut digests = Vec::new();
        let mut from = BufReader::with_capacity(BUFFER_BYTES, &file);
        for _ in 0..count {
            from.read_exact(&mut digest).ok()?;
            digests.push(Digest::from_bytes(digest));
        }
        file.seek(SeekFrom::Start(0)).ok()?;
        let mut records = BufReader::with_capacity(BUFFER_BYTES, file);
        let mut magic = [0; MAGIC.len()];
        records.read_exact(&mut magic).ok()?;
        let is_ours = magic == *MAGIC && !digests.is_empty();
        is_ours.then_some(Self {
            records,
            digests,
            next: 0,
        })
    }

    /// Reads the record of the next directory, with its tree.
    pub(super) fn record(&mut self) -> io::Result<(Digest, Vec<Known>)> {
        let digest = self.digests.get(self.next).copied();
        let digest = digest.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.next += 1;
        let count = number(&mut self.records)?;
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.known()?);
        }
        Ok((digest, all))
    }

    /// Leaves out the record of a directory that is gone, with all below.
    pub(super) fn skip(&mut self) -> io::Result<()> {
        let mut left = 1;
        while left > 0 {
            let (_, names) = self.record()?;
            left += names.iter().filter(|name| name.is_entered).count();
            left -= 1;
        }
        Ok(())
    }

    fn known(&mut self) -> io::Result<Known> {
        let mut fixed = [0; 3];
        self.records.read_exact(&mut fixed)?;
        let [low, high, flags] = fixed;
        let mut name = vec![0; usize::from(u16::from_le_bytes([low, high]))];
        self.records.read_exact(&mut name)?;
        let from = &mut self.records;
        Ok(Known {
            name: OsString::from_vec(name),
            kind: kind_of(flags & 0x0f).ok_or(io::ErrorKind::InvalidData)?,
            ino: number(from)?,
            size: number(from)?,
            mtime: number(from)?.cast_signed(),
            ctime: number(from)?.cast_signed(),
            is_trusted: flags & TRUSTED != 0,
            is_entered: flags & ENTERED != 0,
        })
    }
}

/// The index of this walk.
#[derive(Debug)]
pub(super) struct Next {
    path: PathBuf,
    to: BufWriter<Hashed>,
    digests: Vec<Digest>,
    length: u64,
}

/// A file that is hashed while it is written.
#[derive(Debug)]
struct Hashed(File, Box<blake3::Hasher>);

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        self.1.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Next {
    /// Begins one beside the last.
    pub(super) fn begin(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(path.with_extension("new"))?;
        let hashed = Hashed(file, Box::default());
        let mut next = Self {
            path: path.to_path_buf(),
            to: BufWriter::with_capacity(BUFFER_BYTES, hashed),
            digests: Vec::new(),
            length: 0,
        };
        next.put(MAGIC)?;
        Ok(next)
    }

    /// Adds the record of a directory. Its tree is told later, by the number that this gives.
    pub(super) fn record(&mut self, names: &[Known]) -> io::Result<usize> {
        self.put(&(names.len() as u64).to_le_bytes())?;
        for known in names {
            let name = known.name.as_bytes();
            let length = u16::try_from(name.len()).map_err(|_| io::ErrorKind::InvalidFilename)?;
            let trusted = if known.is_trusted { TRUSTED } else { 0 };
            let entered = if known.is_entered { ENTERED } else { 0 };
            self.put(&length.to_le_bytes())?;
            self.put(&[number_of(known.kind) | trusted | entered])?;
            self.put(name)?;
            for number in [known.ino, known.size] {
                self.put(&number.to_le_bytes())?;
            }
            for stamp in [known.mtime, known.ctime] {
                self.put(&stamp.to_le_bytes())?;
            }
        }
        self.digests.push(Digest::from_bytes([0; 32]));
        Ok(self.digests.len() - 1)
    }

    /// Tells the tree of a directory.
    pub(super) fn tree(&mut self, number: usize, digest: Digest) {
        if let Some(place) = self.digests.get_mut(number) {
            *place = digest;
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        self.to.write_all(bytes)
    }
}

impl NextIndex for Next {
    // It is a cache: nothing is synced.
    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let begin = self.length;
        for digest in std::mem::take(&mut self.digests) {
            self.put(digest.as_bytes())?;
        }
        let count = (self.length - begin) / 32;
        self.put(&begin.to_le_bytes())?;
        self.put(&count.to_le_bytes())?;
        self.to.flush()?;
        let written = self.to.into_inner();
        let Hashed(mut file, hasher) = written.map_err(io::IntoInnerError::into_error)?;
        file.write_all(hasher.finalize().as_bytes())?;
        fs::rename(self.path.with_extension("new"), &self.path)
    }
}

fn number(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

const fn number_of(kind: Kind) -> u8 {
    match kind {
        Kind::File => 0,
        Kind::Directory => 1,
        Kind::Symlink => 2,
        Kind::Fifo => 3,
        Kind::Socket => 4,
        Kind::BlockDevice => 5,
        Kind::CharacterDevice => 6,
    }
}

const fn kind_of(number: u8) -> Option<Kind> {
    Some(match number {
        0 => Kind::File,
        1 => Kind::Directory,
        2 => Kind::Symlink,
        3 => Kind::Fifo,
        4 => Kind::Socket,
        5 => Kind::BlockDevice,
        6 => Kind::CharacterDevice,
        _ => return None,
    })
}
