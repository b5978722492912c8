//! The reverse change of a file: logged when it is written, and read again when it is taken back.
//!
//! - Logged is what only the old file has, by where it is in the new one (`model::reversal`). The recipe knows both by their digests,
//!   so an undo checks what it is made from and what comes out.
//! - Where the new bytes ride with the record as well, the store can always make the old ones. Where they are too many, the file
//!   itself is what the old one is made from: if somebody else writes into it, the old one is lost, and that is said.
//!
//! Not here: when a file is logged and not kept whole (`model::strategy`), how changes are stored (`storage::contents`).

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;

use backout_model::ports::{NewContent, Over};
use backout_model::reversal::{Pieces, ReadAt};
use backout_model::{Digest, RIDING_BYTES_MAX, TargetPath};

use super::before_image::{Keeper, digest_of, meta_of, unmakable};
use super::compare::Current;
use super::context::FileContext;
use super::error::{FileError, Naming as _};
use super::recipe::{Image, Kind};
use super::stage::Material;
use super::sys::{Node, Place, bytes};

/// Says that a later part of the same operation makes something else of a file.
pub(super) const NOT_A_FILE: &str = "it does not stay a file";

/// What only the old file has may be this many bytes: more is not "changed little".
const OWN_BYTES_MAX: u64 = 1024 * 1024;

/// And no more than this part of it, for else keeping it whole costs hardly more.
const OWN_PART_MAX: u64 = 2;

/// An open file of a known size.
struct Opened<'f> {
    file: &'f File,
    size: u64,
}

impl<'f> Opened<'f> {
    fn of(file: &'f File, path: &TargetPath) -> Result<Self, FileError> {
        let size = file.metadata().naming(path, "look at")?.len();
        Ok(Self { file, size })
    }
}

impl ReadAt for Opened<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }
}

impl Keeper<'_> {
    /// Gives the image of a file whose reverse change will be logged, and the file as it was seen. The inner error says why
    /// that cannot be: then its inode has something that bytes do not tell.
    pub(super) fn log(place: &Place) -> Result<Result<(Image, Node), String>, FileError> {
        let path = place.path();
        let missing = || FileError::NotFound {
            path: path.to_string(),
        };
        let node = place.node()?.ok_or_else(missing)?;
        if node.is_shared {
            return Ok(Err("it has other names".to_owned()));
        }
        if let Some(what) = unmakable(place, &node)?.filter(|what| !what.is_holes()) {
            return Ok(Err(format!("its bytes do not tell its {what}")));
        }
        let image = Image::File {
            digest: digest_of(place)?.0,
            size: node.identity.size,
            stored: true,
            meta: meta_of(place, &node)?,
            without: None,
            holes: bytes::holes(&place.read()?, node.identity.size),
        };
        Ok(Ok((image, node)))
    }

    /// Logs the reverse change from `after`, which is staged, to `before`, which is in place. The inner error says why it cannot be.
    pub(super) fn reverse(
        &mut self,
        place: &Place,
        seen: &Node,
        (before, after): (&Image, &Image),
        material: &Material,
    ) -> Result<Result<(), String>, FileError> {
        let (
            Image::File { digest, size, .. },
            Image::File {
                digest: base,
                stored: is_base_stored,
                ..
            },
        ) = (before, after)
        else {
            return Ok(Err(NOT_A_FILE.to_owned()));
        };
        if digest == base {
            return Ok(Err("its bytes do not change".to_owned()));
        }
        let path = place.path();
        let own_max = OWN_BYTES_MAX.min(size / OWN_PART_MAX);
        let older = place.read()?;
        let older = Opened::of(&older, &path)?;
        let pieces = if let Material::Bytes(new) = material {
            Pieces::between(&older, new.as_slice(), own_max)
        } else if let Some(file) = material.file() {
            Pieces::between(&older, &Opened::of(file, &path)?, own_max)
        } else {
            return Ok(Err("its new bytes are not at hand yet".to_owned()));
        };
        let Some(pieces) = pieces.naming(&path, "read")? else {
            return Ok(Err(format!("more than {own_max} bytes of it change")));
        };
        if *is_base_stored
            && (*size > RIDING_BYTES_MAX || !self.context.stash.may_be_over(digest, base, *size)?)
        {
            return Ok(Err(
                "what it becomes is told as a change of it, or of too many others".to_owned(),
            ));
        }
        let encoded = pieces.encode();
        // Whoever believes in it must have seen that it works.
        let staged = material.open().naming(&path, "read")?;
        let mut back = pieces.reader(staged, *digest);
        let is_right = io::copy(&mut back, &mut io::sink()).is_ok();
        if !is_right || !place.node()?.is_some_and(|now| now.is_still(seen, true)) {
            return Err(FileError::Changed {
                path: path.to_string(),
            });
        }
        if !is_base_stored {
            self.notes.push(format!(
                "undoing needs `{path}` as this leaves it: only what changes is kept"
            ));
        }
        self.contents.push(NewContent {
            digest: *digest,
            bytes: encoded,
            over: Some(Over {
                base: *base,
                size: *size,
            }),
        });
        Ok(Ok(()))
    }
}

/// What stored bytes are made from.
enum Base {
    /// All of it is in the store.
    Stored,
    /// The file at the path, which has these bytes.
    File(Place, Digest),
    /// Something that is not there, and why.
    Nowhere(String),
}

fn base_of(context: &FileContext, path: &TargetPath, digest: &Digest) -> Result<Base, FileError> {
    let any = context.contents.outside(digest)?;
    if any.is_empty() {
        return Ok(Base::Stored);
    }
    let current = Current::at(path)?;
    let (Some(place), Some(node)) = (current.place, current.node) else {
        let why = format!("only what changed was kept, and `{path}` is gone");
        return Ok(Base::Nowhere(why));
    };
    if node.kind == Kind::File {
        let (found, _) = digest_of(&place)?;
        if any.contains(&found) {
            return Ok(Base::File(place, found));
        }
    }
    let why = format!("only what changed was kept, and `{path}` is not what was written then");
    Ok(Base::Nowhere(why))
}

/// Says why stored bytes cannot be made again, if they are told as a change of something that is not at `path` any more.
pub(super) fn lacks(
    context: &FileContext,
    path: &TargetPath,
    digest: &Digest,
) -> Result<Option<String>, FileError> {
    Ok(match base_of(context, path, digest)? {
        Base::Stored | Base::File(..) => None,
        Base::Nowhere(why) => Some(why),
    })
}

/// Opens stored bytes; what is told as a change is made from the file at `path`.
pub(super) fn open(
    context: &FileContext,
    path: &TargetPath,
    digest: &Digest,
) -> Result<Box<dyn Read + Send>, FileError> {
    match base_of(context, path, digest)? {
        Base::Stored => Ok(context.contents.open(digest)?),
        Base::File(place, base) if base == *digest => Ok(Box::new(place.read()?)),
        Base::File(place, base) => {
            let from = Box::new(place.read()?);
            Ok(context.contents.open_over(digest, &base, from)?)
        }
        Base::Nowhere(why) => Err(FileError::Lost {
            path: path.to_string(),
            why,
        }),
    }
}

/// Reads stored bytes whole; none if they cannot be had.
pub(super) fn read(
    context: &FileContext,
    path: &TargetPath,
    digest: &Digest,
) -> Result<Vec<u8>, FileError> {
    let mut all = Vec::new();
    let mut reader = open(context, path, digest)?;
    reader
        .read_to_end(&mut all)
        .naming(path, "read the kept content of")?;
    Ok(all)
}
