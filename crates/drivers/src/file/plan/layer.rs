//! Planning that a layer becomes real: every name comes with what it was, and with its whole new state.
//!
//! The layer's files belong to the one who made it and stay where they are; what becomes real is a copy. The notes that
//! overlays keep in attributes stay behind.

use std::path::Path;

use backout_files::inode::is_overlay_note;
use backout_files::{LayerEntry, LayerState};
use backout_model::{Digest, TargetPath};

use super::content::Wanted;
use super::{Planner, View};
use crate::file::before_image::{INLINE_BYTES_MAX, digest_of, link_target, meta_of};
use crate::file::error::{FileError, Naming as _};
use crate::file::recipe::{Holes, Image, Kind, Meta};
use crate::file::stage::{Incoming, Material};
use crate::file::sys::{Node, Place, bytes};

/// How many files are staged beside their targets, and ride with the recipe. More would only take room there.
const STAGED_MAX: usize = 200;

/// How many bytes of others wait in memory, so that they need not be read again. Files that are larger, or too many for that,
/// are copied when it is time.
const HELD_BYTES_MAX: u64 = 16 * 1024 * 1024;

impl Planner<'_> {
    pub(super) fn layer(&mut self, entries: &[LayerEntry]) -> Result<(), FileError> {
        self.refuse_changed(entries)?;
        // First what goes, so that names are free; a directory that moves takes its entries along.
        for entry in entries {
            if let LayerState::Moved { from, .. } = &entry.becomes {
                let from = self.unlinked(from)?;
                let to = self.unlinked(&entry.path)?;
                self.rename(&from, &to, false)?;
                self.straight.clear();
            }
        }
        for entry in entries {
            let path = self.unlinked(&entry.path)?;
            match &entry.becomes {
                LayerState::Moved { .. } => {}
                LayerState::Nothing => self.remove(&path, true)?,
                LayerState::Like(source) => self.like(&path, source)?,
                LayerState::Linked(first) => {
                    let first = self.unlinked(first)?;
                    self.linked(&path, &first)?;
                    self.straight.clear();
                }
            }
        }
        Ok(())
    }

    /// Plans that a name comes to look like what is at `source`.
    fn like(&mut self, path: &TargetPath, source: &Path) -> Result<(), FileError> {
        let unusable = |_| FileError::Unusable {
            path: source.display().to_string(),
        };
        let source = TargetPath::new(source).map_err(unusable)?;
        let place = self.layer.of(&source)?;
        let missing = || FileError::NotFound {
            path: source.to_string(),
        };
        let node = place.node()?.ok_or_else(missing)?;
        let meta = self.permitted(path, meta_in_layer(&place, &node)?);
        self.make_way(path, node.kind)?;
        match node.kind {
            Kind::Directory => self.directory_like(path, meta),
            Kind::File => self.file_like(path, &place, &node, meta),
            Kind::Symlink => {
                let to = link_target(&place)?;
                self.straight.clear();
                self.set_unless_already(path, Image::Symlink { to, meta }, Material::Image)
            }
            Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharacterDevice => {
                let after = Image::Special {
                    node: node.kind,
                    device: node.device,
                    meta,
                };
                self.set_unless_already(path, after, Material::Image)
            }
        }
    }

    /// A directory in the place of something else goes first, with all that is in it.
    pub(super) fn make_way(&mut self, path: &TargetPath, kind: Kind) -> Result<(), FileError> {
        if kind != Kind::Directory
            && let View::Real(_, node) = self.view(path)?
            && node.kind == Kind::Directory
        {
            return self.remove(path, true);
        }
        Ok(())
    }

    pub(super) fn directory_like(
        &mut self,
        path: &TargetPath,
        meta: Meta,
    ) -> Result<(), FileError> {
        match self.view(path)? {
            View::Real(_, node) if node.kind == Kind::Directory => self.retouch_to(path, &meta),
            View::Real(..) | View::Absent | View::Planned(_) => {
                self.set(path, Image::Directory { meta }, Material::Image)
            }
        }
    }

    pub(super) fn file_like(
        &mut self,
        path: &TargetPath,
        source: &Place,
        node: &Node,
        meta: Meta,
    ) -> Result<(), FileError> {
        let content = Content::of(source, node)?;
        let (digest, size) = (content.digest, content.size);
        if let View::Real(place, real) = self.view(path)?
            && real.kind == Kind::File
            && real.identity.size == size
            && digest_of(&place)?.0 == digest
        {
            return self.retouch_whole(path, &meta);
        }
        // A copy keeps the holes, which a list of bytes does not.
        let material = match content.bytes.filter(|_| !content.has_holes) {
            Some(bytes) if self.open < STAGED_MAX => {
                let (after, material) =
                    self.stage_file(path, Incoming::Bytes(bytes), Wanted::Like(meta))?;
                return self.set(path, after, material);
            }
            Some(bytes) if self.held + size <= HELD_BYTES_MAX => {
                self.held += size;
                Material::Bytes(bytes)
            }
            Some(_) | None => Material::CopyOf(source.path(), node.identity),
        };
        let after = Image::File {
            digest,
            size,
            stored: false,
            meta,
            without: None,
            holes: Holes::new(),
        };
        self.set(path, after, material)
    }

    /// Plans that mode, owner, attributes and times change in place.
    pub(super) fn retouch_whole(
        &mut self,
        path: &TargetPath,
        wanted: &Meta,
    ) -> Result<(), FileError> {
        self.retouch(path, false, &|meta: &mut Meta, _| *meta = wanted.clone())
    }

    /// Plans that mode, owner and attributes change in place.
    pub(super) fn retouch_to(&mut self, path: &TargetPath, wanted: &Meta) -> Result<(), FileError> {
        self.retouch(path, false, &|meta: &mut Meta, _| {
            *meta = Meta {
                times: None,
                ..wanted.clone()
            };
        })
    }

    pub(super) fn linked(
        &mut self,
        path: &TargetPath,
        first: &TargetPath,
    ) -> Result<(), FileError> {
        let identity = match self.view(first)? {
            View::Absent => {
                return Err(FileError::NotFound {
                    path: first.to_string(),
                });
            }
            View::Real(_, node) => Some(node.identity),
            View::Planned(_) => None,
        };
        self.make_way(path, Kind::File)?;
        let after = Image::Linked {
            to: first.clone(),
            identity,
            copy: None,
        };
        self.set(path, after, Material::Image)
    }
}

/// What is in a file, read once.
struct Content {
    digest: Digest,
    size: u64,
    has_holes: bool,
    /// All of it, if it is little.
    bytes: Option<Vec<u8>>,
}

impl Content {
    fn of(source: &Place, node: &Node) -> Result<Self, FileError> {
        let (path, seen) = (source.path(), node.identity.size);
        let mut file = source.read()?;
        let bytes = if seen <= INLINE_BYTES_MAX {
            bytes::read_at_once(&file, seen).naming(&path, "read")?
        } else {
            None
        };
        let (digest, size) = match &bytes {
            Some(bytes) => (Digest::of(bytes), seen),
            None => bytes::digest_of_file(&mut file).naming(&path, "read")?,
        };
        Ok(Self {
            digest,
            size,
            has_holes: size > 0 && bytes::has_holes_anywhere(&file, size),
            bytes,
        })
    }
}

/// Reads everything but the content of what is in a layer, without an overlay's own notes.
fn meta_in_layer(place: &Place, node: &Node) -> Result<Meta, FileError> {
    let mut meta = meta_of(place, node)?;
    meta.xattrs.retain(|(name, _)| !is_overlay_note(&name.0));
    Ok(meta)
}
