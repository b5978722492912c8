//! A tar of what layers change, as OCI wants a layer: what is new or other, and `.wh.NAME` for what is gone.
//!
//! POSIX headers; what does not fit (long or odd names, attributes, times with their fractions) is in a pax header before.
//! Holes are written as zeros. Sockets have no place in a tar and are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use backout_capture::overlay::{Becomes, Change, attributes};
use sha2::{Digest as _, Sha256};

const BLOCK: usize = 512;

/// An archive that is whole: what it hashes to, and how large it is.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// `sha256:...`.
    pub(super) digest: String,
}

/// Writes a tar and hashes it on the way.
pub(super) struct Writer<W> {
    to: W,
    hasher: Sha256,
    bytes: u64,
    entries: u64,
    /// They need no entry a second time.
    directories: BTreeSet<PathBuf>,
    /// Names that a further name can refer to.
    files: BTreeSet<PathBuf>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(to: W) -> Self {
        Self {
            to,
            hasher: Sha256::new(),
            bytes: 0,
            entries: 0,
            directories: BTreeSet::new(),
            files: BTreeSet::new(),
        }
    }

    /// Adds a change of a layer.
    pub(super) fn change(&mut self, change: &Change) -> io::Result<()> {
        self.parents(&change.path)?;
        match &change.becomes {
            Becomes::Nothing => self.whiteout(&change.path),
            Becomes::Linked { first, .. } if self.files.contains(first) => {
                let found = fs::symlink_metadata(source_of(change).unwrap_or(first))?;
                let mut header = Header::of(&change.path, &found, b'1');
                header.link = relative(first);
                self.put(&header)
            }
            Becomes::Like(source) | Becomes::Linked { source, .. } => {
                self.like(&change.path, source)
            }
            Becomes::Moved(from) => self.tree(&change.path, from),
        }
    }

    /// Ends it.
    pub(super) fn finish(mut self) -> io::Result<(W, Written)> {
        self.write(&[0; 2 * BLOCK])?;
        let written = Written {
            entries: self.entries,
            bytes: self.bytes,
            digest: format!("sha256:{}", hex(&self.hasher.finalize())),
        };
        Ok((self.to, written))
    }

    /// Adds a file of bytes.
    pub(super) fn blob(
        &mut self,
        name: &str,
        size: u64,
        from: &mut dyn io::Read,
    ) -> io::Result<()> {
        let mut header = Header::plain(name.as_bytes().to_vec(), b'0');
        (header.size, header.mode) = (size, 0o644);
        self.put(&header)?;
        self.pour(from, size)
    }

    /// Adds the directories above a name, as they are on this machine.
    fn parents(&mut self, path: &Path) -> io::Result<()> {
        let above: Vec<&Path> = path.ancestors().skip(1).collect();
        for directory in above.into_iter().rev().filter(|it| it.parent().is_some()) {
            if self.directories.contains(directory) {
                continue;
            }
            if let Ok(found) = fs::symlink_metadata(directory)
                && found.is_dir()
            {
                self.directories.insert(directory.to_path_buf());
                self.put(&Header::of(directory, &found, b'5'))?;
            }
        }
        Ok(())
    }

    fn whiteout(&mut self, path: &Path) -> io::Result<()> {
        let mut name = b".wh.".to_vec();
        name.extend(path.file_name().unwrap_or_default().as_bytes());
        let path = path.with_file_name(std::ffi::OsStr::from_bytes(&name));
        let mut header = Header::plain(relative(&path), b'0');
        header.mode = 0o600;
        self.put(&header)
    }

    fn like(&mut self, path: &Path, source: &Path) -> io::Result<()> {
        let found = fs::symlink_metadata(source)?;
        let kind = found.file_type();
        let mut header = Header::of(path, &found, b'0');
        header.attributes = attributes(source)?;
        if kind.is_dir() {
            header.kind = b'5';
            self.directories.insert(path.to_path_buf());
            return self.put(&header);
        }
        if kind.is_symlink() {
            header.kind = b'2';
            header.link = fs::read_link(source)?.as_os_str().as_bytes().to_vec();
            return self.put(&header);
        }
        if kind.is_socket() {
            return Ok(());
        }
        if !kind.is_file() {
            header.kind = if kind.is_fifo() {
                b'6'
            } else if kind.is_block_device() {
                b'4'
            } else {
                b'3'
            };
            header.device = found.rdev();
            return self.put(&header);
        }
        let size = found.len();
        header.size = size;
        self.files.insert(path.to_path_buf());
        self.put(&header)?;
        self.pour(&mut File::open(source)?, size)
    }

    fn tree(&mut self, path: &Path, from: &Path) -> io::Result<()> {
        self.like(path, from)?;
        if fs::symlink_metadata(from)?.is_dir() {
            let mut names: Vec<_> = fs::read_dir(from)?
                .map(|it| it.map(|it| it.file_name()))
                .collect::<io::Result<_>>()?;
            names.sort();
            for name in names {
                self.tree(&path.join(&name), &from.join(&name))?;
            }
        }
        Ok(())
    }

    /// Writes exactly so many bytes: a file that grows meanwhile is cut off, one that shrinks is an error.
    fn pour(&mut self, from: &mut dyn io::Read, size: u64) -> io::Result<()> {
        let mut block = vec![0; 1 << 16];
        let mut left = size;
        while left > 0 {
            let most = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let part = block.get_mut(..most).unwrap_or_default();
            let read = from.take(left).read(part)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let part = block.get(..read).unwrap_or_default().to_vec();
            self.write(&part)?;
            left -= read as u64;
        }
        self.pad(size)
    }

    fn put(&mut self, header: &Header) -> io::Result<()> {
        let records = header.records();
        if !records.is_empty() {
            let mut extra = Header::plain(b"pax".to_vec(), b'x');
            extra.size = records.len() as u64;
            self.write(&extra.block())?;
            self.write(&records)?;
            self.pad(records.len() as u64)?;
        }
        self.entries += 1;
        self.write(&header.block())
    }

    fn pad(&mut self, size: u64) -> io::Result<()> {
        let over = usize::try_from(size % BLOCK as u64).unwrap_or(0);
        if over > 0 {
            let zeros = [0; BLOCK];
            self.write(zeros.get(over..).unwrap_or_default())?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.to.write_all(bytes)
    }
}

fn source_of(change: &Change) -> Option<&Path> {
    match &change.becomes {
        Becomes::Like(source) | Becomes::Linked { source, .. } => Some(source),
        Becomes::Nothing | Becomes::Moved(_) => None,
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}

fn relative(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes();
    bytes.strip_prefix(b"/").unwrap_or(bytes).to_vec()
}

/// One entry, before its bytes.
struct Header {
    path: Vec<u8>,
    kind: u8,
    mode: u32,
    uid: u32,
    gid: u32,
    size: u64,
    mtime: (i64, i64),
    link: Vec<u8>,
    device: u64,
    attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Header {
    const fn plain(path: Vec<u8>, kind: u8) -> Self {
        Self {
            path,
            kind,
            mode: 0,
            uid: 0,
            gid: 0,
            size: 0,
            mtime: (0, 0),
            link: Vec::new(),
            device: 0,
            attributes: BTreeMap::new(),
        }
    }

    fn of(path: &Path, found: &Metadata, kind: u8) -> Self {
        let mut name = relative(path);
        if found.is_dir() {
            name.push(b'/');
        }
        Self {
            mode: found.mode() & 0o7777,
            uid: found.uid(),
            gid: found.gid(),
            mtime: (found.mtime(), found.mtime_nsec()),
            ..Self::plain(name, kind)
        }
    }

    /// What does not fit into the block.
    fn records(&self) -> Vec<u8> {
        let mut all = Vec::new();
        let is_odd = |bytes: &[u8]| bytes.len() > 100 || !bytes.is_ascii();
        let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let is_text =
            std::str::from_utf8(&self.path).is_ok() && std::str::from_utf8(&self.link).is_ok();
        if !is_text {
            pairs.push((b"hdrcharset".to_vec(), b"BINARY".to_vec()));
        }
        if is_odd(&self.path) {
            pairs.push((b"path".to_vec(), self.path.clone()));
        }
        if is_odd(&self.link) {
            pairs.push((b"linkpath".to_vec(), self.link.clone()));
        }
        if self.size >= 1 << 33 {
            pairs.push((b"size".to_vec(), self.size.to_string().into_bytes()));
        }
        for (name, id) in [("uid", self.uid), ("gid", self.gid)] {
            if id >= 1 << 21 {
                pairs.push((name.into(), id.to_string().into_bytes()));
            }
        }
        let (seconds, nanoseconds) = self.mtime;
        if nanoseconds != 0 || seconds < 0 {
            let (seconds, nanoseconds) = if seconds < 0 && nanoseconds > 0 {
                (seconds + 1, 1_000_000_000 - nanoseconds)
            } else {
                (seconds, nanoseconds)
            };
            let sign = if self.mtime.0 < 0 && seconds == 0 {
                "-"
            } else {
                ""
            };
            let time = format!("{sign}{seconds}.{nanoseconds:09}");
            pairs.push((b"mtime".to_vec(), time.into_bytes()));
        }
        for (name, value) in &self.attributes {
            let mut key = b"SCHILY.xattr.".to_vec();
            key.extend(name);
            pairs.push((key, value.clone()));
        }
        for (key, value) in pairs {
            all.extend(record(&key, &value));
        }
        all
    }

    fn block(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let mut put = |at: usize, bytes: &[u8]| {
            for (place, byte) in block.iter_mut().skip(at).zip(bytes) {
                *place = *byte;
            }
        };
        let cut = |bytes: &[u8]| bytes.iter().take(100).copied().collect::<Vec<u8>>();
        let octal = |number: u64, digits: usize| {
            let most = (1_u64 << (3 * digits)) - 1;
            format!("{:0digits$o}\0", if number > most { 0 } else { number })
        };
        put(0, &cut(&self.path));
        put(100, octal(u64::from(self.mode), 7).as_bytes());
        put(108, octal(u64::from(self.uid), 7).as_bytes());
        put(116, octal(u64::from(self.gid), 7).as_bytes());
        put(124, octal(self.size, 11).as_bytes());
        put(
            136,
            octal(u64::try_from(self.mtime.0).unwrap_or(0), 11).as_bytes(),
        );
        put(148, b"        ");
        put(156, &[self.kind]);
        put(157, &cut(&self.link));
        put(257, b"ustar\x0000");
        if matches!(self.kind, b'3' | b'4') {
            let (major, minor) = (
                rustix::fs::major(self.device),
                rustix::fs::minor(self.device),
            );
            put(329, octal(u64::from(major), 7).as_bytes());
            put(337, octal(u64::from(minor), 7).as_bytes());
        }
        let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
        let sum = format!("{sum:06o}\0 ");
        for (place, byte) in block.iter_mut().skip(148).zip(sum.as_bytes()) {
            *place = *byte;
        }
        block
    }
}

/// Writes a record of a pax header; its length counts itself.
fn record(key: &[u8], value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    let mut all = format!("{length} ").into_bytes();
    all.extend(key);
    all.push(b'=');
    all.extend(value);
    all.push(b'\n');
    all
}
