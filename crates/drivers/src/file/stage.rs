//! New bytes beside their target, before they are in it.
//!
//! The usual form is a file without a name in the target's own directory: it inherits group and ACL there,
//! and after a crash nothing is left of it. Where that cannot be, few bytes wait in memory and many in a
//! private directory.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use backout_model::{Digest, OperationId, TargetPath, ports};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use super::before_image::INLINE_BYTES_MAX;
use super::context::FileContext;
use super::error::{FileError, Naming as _};
use super::execute::Step;
use super::recipe::{Change, Identity, Image, ParentTimes};
use super::sys::{Dir, bytes, flags};

/// What `stat` counts blocks in, whatever the file system's own are.
const BLOCK_BYTES: u64 = 512;

/// How many files may be open at once only to be staged.
const OPEN_MAX: usize = 256;

/// Where the bytes of a new file are until it has its name.
#[derive(Debug)]
pub(crate) enum Material {
    /// Nowhere: the image says it all, or the inode is kept.
    Image,
    /// In a file without a name, on the target's file system, its metadata already set.
    Nameless(File),
    /// In memory.
    Bytes(Vec<u8>),
    /// In our staging directory.
    Spooled(Spooled),
    /// In another file, to be copied when it is time.
    CopyOf(TargetPath, Identity),
    /// In the content store.
    Stored,
}

impl Material {
    /// Gives the file that the bytes are in, if it is staged.
    pub(crate) const fn file(&self) -> Option<&File> {
        match self {
            Self::Nameless(file) | Self::Spooled(Spooled { file, .. }) => Some(file),
            Self::Image | Self::Bytes(_) | Self::CopyOf(..) | Self::Stored => None,
        }
    }

    /// Opens the bytes from their beginning.
    pub(crate) fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        match self {
            Self::Nameless(file) | Self::Spooled(Spooled { file, .. }) => {
                Ok(Box::new(FromStart { file, at: 0 }))
            }
            Self::Bytes(content) => Ok(Box::new(Cursor::new(content.as_slice()))),
            Self::CopyOf(path, _) => Ok(Box::new(File::open(path.as_path())?)),
            Self::Stored | Self::Image => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the content is not staged",
            )),
        }
    }
}

/// A file in our staging directory; it goes away with the value.
#[derive(Debug)]
pub(crate) struct Spooled {
    path: TargetPath,
    file: File,
}

impl Spooled {
    /// Gives the open file, at its beginning.
    pub(crate) fn rewound(&self) -> io::Result<&File> {
        (&self.file).rewind()?;
        Ok(&self.file)
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(self.path.as_path());
    }
}

/// Bytes on their way, before it is known where they wait.
pub(crate) enum Incoming<'a> {
    /// All of them.
    Bytes(Vec<u8>),
    /// An open file, from its beginning to its end, holes included.
    File(File),
    /// A first part, and whatever follows.
    Stream(Vec<u8>, &'a mut dyn Read),
    /// A file that grows by what follows.
    Grown(File, &'a mut dyn Read),
}

impl<'a> Incoming<'a> {
    /// Reads a stream just far enough to know whether it is small.
    pub(crate) fn of(stream: &'a mut dyn Read) -> io::Result<Self> {
        let mut head = Vec::new();
        Read::take(&mut *stream, INLINE_BYTES_MAX + 1).read_to_end(&mut head)?;
        let is_all = u64::try_from(head.len()).unwrap_or(u64::MAX) <= INLINE_BYTES_MAX;
        Ok(if is_all {
            Self::Bytes(head)
        } else {
            Self::Stream(head, stream)
        })
    }

    /// Puts all bytes into `to`, which is empty.
    fn pour(self, to: &mut File) -> io::Result<(Digest, u64)> {
        match self {
            Self::Bytes(content) => {
                to.write_all(&content)?;
                Ok((
                    Digest::of(&content),
                    u64::try_from(content.len()).unwrap_or(0),
                ))
            }
            Self::File(from) => {
                bytes::clone_file(&from, to)?;
                to.rewind()?;
                bytes::digest(to)
            }
            Self::Stream(head, rest) => bytes::copy_stream(&mut Cursor::new(head).chain(rest), to),
            Self::Grown(from, rest) => {
                bytes::clone_file(&from, to)?;
                to.seek(io::SeekFrom::End(0))?;
                bytes::copy_stream(rest, to)?;
                to.rewind()?;
                bytes::digest(to)
            }
        }
    }
}

/// What staging gave.
pub(crate) struct Waiting {
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    pub(crate) material: Material,
}

/// Puts bytes where they can wait. `near` is the nearest directory of the target that exists.
pub(crate) fn wait(
    context: &FileContext,
    id: OperationId,
    near: &Arc<Dir>,
    open: &mut usize,
    incoming: Incoming<'_>,
) -> Result<Waiting, FileError> {
    if *open < OPEN_MAX {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match openat(near, ".", flags, Mode::from_raw_mode(0o666)) {
            Ok(fd) => {
                *open += 1;
                let mut file = File::from(fd);
                let (digest, size) = incoming.pour(&mut file).naming(near.path(), "stage in")?;
                return Ok(Waiting {
                    digest,
                    size,
                    material: Material::Nameless(file),
                });
            }
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL | Errno::MFILE) => {}
            Err(errno) => {
                return Err(match flags::lock_of(near) {
                    Some(flag) => FileError::Locked {
                        path: near.path().to_string(),
                        flag,
                    },
                    None => FileError::of(errno, near.path(), "write in"),
                });
            }
        }
    }
    if let Incoming::Bytes(content) = incoming {
        let size = u64::try_from(content.len()).unwrap_or(0);
        let digest = Digest::of(&content);
        return Ok(Waiting {
            digest,
            size,
            material: Material::Bytes(content),
        });
    }
    let staging = context
        .depots
        .staging(id)
        .naming(near.path(), "stage for")?;
    let path = staging.join(format!("{id}-{}.new", *open).as_ref());
    *open += 1;
    let mut options = File::options();
    let created = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(path.as_path());
    let mut file = created.naming(&path, "stage in")?;
    let (digest, size) = incoming.pour(&mut file).naming(&path, "stage in")?;
    Ok(Waiting {
        digest,
        size,
        material: Material::Spooled(Spooled { path, file }),
    })
}

/// What a driver keeps between staging and applying. Dropping it leaves no trace.
#[derive(Debug)]
pub struct Staged {
    pub(crate) steps: Vec<Step>,
    pub(crate) parents: Vec<ParentTimes>,
    /// Whether what is put in place must be read back and checked, as in an undo.
    pub(crate) is_undo: bool,
    /// Directories that what is taken back gave their mode: they may be opened to reach what is in them.
    pub(crate) own: BTreeSet<TargetPath>,
    /// Where bytes are that are stored already.
    pub(crate) contents: Arc<dyn ports::ReadContents>,
    /// Names that were used and led elsewhere, each with where.
    pub(crate) through: Vec<(TargetPath, TargetPath)>,
}

impl Staged {
    pub(crate) fn new(
        steps: Vec<Step>,
        parents: Vec<ParentTimes>,
        undo: Option<BTreeSet<TargetPath>>,
        contents: Arc<dyn ports::ReadContents>,
    ) -> Self {
        Self {
            steps,
            parents,
            is_undo: undo.is_some(),
            own: undo.unwrap_or_default(),
            contents,
            through: Vec::new(),
        }
    }
}

impl ports::Staged for Staged {
    fn changed(&self) -> Vec<ports::ChangedFile<'_>> {
        self.changed_names()
    }

    // The files that will be kept as the inodes they are.
    fn kept_bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        let kept = self.steps.iter().filter_map(|step| match &step.change {
            Change::Set { path, before, .. } => before.slot().map(|_| path),
            Change::Move { to, replaced, .. } => replaced.slot().map(|_| to),
            Change::Retouch { .. } | Change::Rewrite { .. } => None,
        });
        let found = kept.filter_map(|path| path.as_path().symlink_metadata().ok());
        found
            .filter(|found| !found.is_dir())
            .map(|found| found.blocks() * BLOCK_BYTES)
            .sum()
    }

    fn through(&self) -> Vec<(TargetPath, TargetPath)> {
        self.through.clone()
    }

    fn moved(&self) -> Vec<(TargetPath, TargetPath)> {
        let moved = self.steps.iter().filter_map(|step| match &step.change {
            Change::Move { from, to, .. } => Some((from.clone(), to.clone())),
            Change::Set { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => None,
        });
        moved.collect()
    }

    fn linked(&self) -> Vec<(TargetPath, TargetPath)> {
        let linked = self.steps.iter().filter_map(|step| match &step.change {
            Change::Set {
                path,
                after: Image::Linked { to, .. },
                ..
            } => Some((to.clone(), path.clone())),
            Change::Set { .. }
            | Change::Move { .. }
            | Change::Retouch { .. }
            | Change::Rewrite { .. } => None,
        });
        linked.collect()
    }
}

/// Reads a shared open file from its start, wherever others are reading.
struct FromStart<'f> {
    file: &'f File,
    at: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += u64::try_from(count).unwrap_or(0);
        Ok(count)
    }
}

impl Incoming<'_> {
    /// Reads everything.
    pub(crate) fn read_into(self, to: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Bytes(mut content) => to.append(&mut content),
            Self::File(mut file) => drop(file.read_to_end(to)?),
            Self::Stream(mut head, rest) => {
                to.append(&mut head);
                rest.read_to_end(to)?;
            }
            Self::Grown(mut file, rest) => {
                file.read_to_end(to)?;
                rest.read_to_end(to)?;
            }
        }
        Ok(())
    }
}

impl<'a> Incoming<'a> {
    /// Gives everything as one stream.
    pub(crate) fn reader(self) -> Box<dyn Read + 'a> {
        match self {
            Self::Bytes(content) => Box::new(Cursor::new(content)),
            Self::File(file) => Box::new(file),
            Self::Stream(head, rest) => Box::new(Cursor::new(head).chain(rest)),
            Self::Grown(file, rest) => Box::new(file.chain(rest)),
        }
    }
}
