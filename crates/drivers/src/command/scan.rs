//! Scanning: everything below some directories is kept before a command, and compared after it.
//!
//! For where no call can be watched, and for writes that pass the watch by: a daemon that writes for the command, another
//! mount of the same directory. An index remembers which file had which content, so that only files whose inode, size or
//! times changed since the last scan are read.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use backout_model::{Digest, OperationId, TargetPath};
use serde::{Deserialize, Serialize};

use super::log::Note;
use crate::file::before_image::{link_target, meta_of};
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::recipe::{Holes, Identity, Image, Kind};
use crate::file::sys::{Dir, Node, Place};

/// What the last scan knew of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    path: TargetPath,
    identity: Identity,
    digest: Digest,
}

/// One scan in the making.
pub(crate) struct Scan<'t> {
    context: &'t FileContext,
    id: OperationId,
    known: HashMap<TargetPath, Entry>,
    entries: Vec<Entry>,
    linked: Vec<TargetPath>,
    read: u64,
}

/// What a scan found: a note for each name.
pub(crate) struct Scanned {
    pub(crate) notes: Vec<Note>,
    /// The files that have several names: only their bytes are kept.
    pub(crate) linked: Vec<TargetPath>,
    /// How many files had to be read.
    pub(crate) read: u64,
}

/// Keeps everything below `roots`. `index` is where the last scan left what it knew.
pub(crate) fn scan(
    context: &FileContext,
    id: OperationId,
    roots: &[TargetPath],
    index: &Path,
) -> Result<Scanned, FileError> {
    let mut scan = Scan {
        context,
        id,
        known: read_index(index),
        entries: Vec::new(),
        linked: Vec::new(),
        read: 0,
    };
    let mut notes = Vec::new();
    for root in roots {
        notes.push(Note::Root(root.clone()));
        scan.walk(&Dir::of(root)?, &mut notes)?;
    }
    // Without an index the next scan reads everything, and that is all.
    let _slower = write_index(index, &scan.entries);
    Ok(Scanned {
        notes,
        linked: scan.linked,
        read: scan.read,
    })
}

impl Scan<'_> {
    fn walk(&mut self, place: &Place, notes: &mut Vec<Note>) -> Result<(), FileError> {
        let path = place.path();
        if self.context.depots.is_ours(&path) {
            return Ok(());
        }
        let Some(node) = place.node()? else {
            return Ok(());
        };
        let image = self.image(place, &node, &path)?;
        if node.is_shared && node.kind != Kind::Directory {
            self.linked.push(path.clone());
        }
        notes.push(Note::Scanned {
            path,
            image,
            identity: node.identity,
        });
        if node.kind == Kind::Directory {
            let dir = place.enter()?;
            for name in dir.names()? {
                self.walk(&dir.place(&name), notes)?;
            }
        }
        Ok(())
    }

    fn image(&mut self, place: &Place, node: &Node, path: &TargetPath) -> Result<Image, FileError> {
        let meta = meta_of(place, node)?;
        Ok(match node.kind {
            Kind::File => Image::File {
                digest: self.content(place, node, path)?,
                size: node.identity.size,
                stored: true,
                meta,
                without: None,
                holes: Holes::new(),
            },
            Kind::Symlink => Image::Symlink {
                to: link_target(place)?,
                meta,
            },
            Kind::Directory => Image::Directory { meta },
            Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharacterDevice => {
                Image::Special {
                    node: node.kind,
                    device: node.device,
                    meta,
                }
            }
        })
    }

    /// Gives the digest of a file whose content the store has: by the index, or by storing it.
    fn content(
        &mut self,
        place: &Place,
        node: &Node,
        path: &TargetPath,
    ) -> Result<Digest, FileError> {
        let known = self
            .known
            .get(path)
            .filter(|entry| entry.identity == node.identity);
        if let Some(entry) = known.cloned()
            && self.context.contents.has(&entry.digest)?
        {
            let digest = entry.digest;
            self.entries.push(entry);
            return Ok(digest);
        }
        self.read += 1;
        let (digest, _) = self.context.stash.stash(self.id, &mut place.read()?)?;
        self.entries.push(Entry {
            path: path.clone(),
            identity: node.identity,
            digest,
        });
        Ok(digest)
    }
}

fn read_index(path: &Path) -> HashMap<TargetPath, Entry> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let entries = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Entry>(line).ok());
    entries.map(|entry| (entry.path.clone(), entry)).collect()
}

fn write_index(path: &Path, entries: &[Entry]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = io::BufWriter::new(fs::File::create(&temporary)?);
    for entry in entries {
        serde_json::to_writer(&mut file, entry)?;
        file.write_all(b"\n")?;
    }
    file.into_inner()?.sync_all()?;
    fs::rename(temporary, path)
}
