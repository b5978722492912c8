//! Planning that a layer becomes real: every name comes with what it was, and with its whole new state.
//!
//! The layer's files belong to the one who made it and stay where they are; what becomes real is a copy. The notes that
//! overlays keep in attributes stay behind.

use std::io::Read as _;
use std::path::Path;

use backout_files::inode::is_overlay_note;
use backout_files::{BaseChanged, Baseline, LayerEntry, LayerState};
use backout_model::TargetPath;

use super::content::Wanted;
use super::{Planner, View};
use crate::file::before_image::{INLINE_BYTES_MAX, digest_of, link_target, meta_of};
use crate::file::error::{FileError, Naming as _};
use crate::file::recipe::{Holes, Image, Kind, Meta};
use crate::file::resolve::Last;
use crate::file::stage::{Incoming, Material};
use crate::file::sys::{Dir, Node, Place, bytes};

/// More files than this are copied when it is time; until then they would only take room in memory.
const STAGED_MAX: usize = 200;

impl Planner<'_> {
    pub(super) fn layer(&mut self, entries: &[LayerEntry]) -> Result<(), FileError> {
        refuse_changed(entries)?;
        // First what goes, so that names are free; a directory that moves takes its entries along.
        for entry in entries {
            if let LayerState::Moved { from, .. } = &entry.becomes {
                let from = self.unlinked(from)?;
                let to = self.unlinked(&entry.path)?;
                self.rename(&from, &to, false)?;
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
                }
            }
        }
        Ok(())
    }

    /// Gives a name of the layer. No link was on its way when the layer was made: one that is there now leads elsewhere.
    fn unlinked(&mut self, path: &Path) -> Result<TargetPath, FileError> {
        let found = self.resolve(path, Last::Itself)?;
        if found.as_path() == path {
            Ok(found)
        } else {
            let path = path.display().to_string();
            Err(FileError::ThroughSymlink { path })
        }
    }

    /// Plans that a name comes to look like what is at `source`.
    fn like(&mut self, path: &TargetPath, source: &Path) -> Result<(), FileError> {
        let unusable = |_| FileError::Unusable {
            path: source.display().to_string(),
        };
        let source = TargetPath::new(source).map_err(unusable)?;
        let place = Dir::of(&source)?;
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
        let (digest, size) = digest_of(source)?;
        if let View::Real(place, real) = self.view(path)?
            && real.kind == Kind::File
            && real.identity.size == size
            && digest_of(&place)?.0 == digest
        {
            return self.retouch_whole(path, &meta);
        }
        // A copy keeps the holes, which a list of bytes does not.
        let has_holes = bytes::has_holes(&source.read()?, size);
        if size <= INLINE_BYTES_MAX && !has_holes && self.open < STAGED_MAX {
            let mut content = Vec::new();
            source
                .read()?
                .read_to_end(&mut content)
                .naming(&source.path(), "read")?;
            let (after, material) =
                self.stage_file(path, Incoming::Bytes(content), Wanted::Like(meta))?;
            return self.set(path, after, material);
        }
        let after = Image::File {
            digest,
            size,
            stored: false,
            meta,
            without: None,
            holes: Holes::new(),
        };
        self.set(path, after, Material::CopyOf(source.path(), node.identity))
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

/// Refuses the whole if a name is not what it was, and says which are not.
fn refuse_changed(entries: &[LayerEntry]) -> Result<(), FileError> {
    let mut paths = Vec::new();
    for entry in entries {
        let mut check = |path: &Path, baseline: &Baseline| {
            let holds = baseline.still_holds(path).map_err(|source| FileError::Io {
                path: path.display().to_string(),
                action: "look at",
                source,
            })?;
            if !holds {
                paths.push(path.display().to_string());
            }
            Ok::<_, FileError>(())
        };
        check(&entry.path, &entry.baseline)?;
        if let LayerState::Moved { from, baseline } = &entry.becomes {
            check(from, baseline)?;
        }
    }
    if paths.is_empty() {
        return Ok(());
    }
    Err(BaseChanged { paths }.into())
}

/// Reads everything but the content of what is in a layer, without an overlay's own notes.
fn meta_in_layer(place: &Place, node: &Node) -> Result<Meta, FileError> {
    let mut meta = meta_of(place, node)?;
    meta.xattrs.retain(|(name, _)| !is_overlay_note(&name.0));
    Ok(meta)
}
