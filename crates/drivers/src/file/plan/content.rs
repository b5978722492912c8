//! Planning new content: write, append, edit.

use std::fs::File;
use std::io::Read as _;

use backout_files::is_for_another;
use backout_model::TargetPath;
use backout_model::text::{Occurrence, replace};

use super::{Planner, View, near, number_of};
use crate::file::any_bytes::AnyBytes;
use crate::file::before_image::INLINE_BYTES_MAX;
use crate::file::error::{FileError, Naming as _};
use crate::file::recipe::{Holes, Identity, Image, Kind, Meta};
use crate::file::repeat;
use crate::file::request::{Expect, Source};
use crate::file::resolve::Last;
use crate::file::stage::{Incoming, Material, wait};
use crate::file::sys::{Dir, Node, Place, flags, inherit, meta};

/// The largest file that is edited or patched, which happens in memory.
const EDIT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What a new file shall be besides its bytes.
pub(super) enum Wanted {
    /// What the old file was.
    Like(Meta),
    /// What a new file gets, or this mode.
    New(Option<u32>),
}

impl Planner<'_> {
    pub(super) fn write(
        &mut self,
        path: &TargetPath,
        source: &Source,
        expect: Expect,
        parents: bool,
        mode: Option<u32>,
    ) -> Result<(), FileError> {
        let existing = self.file_meta(path)?;
        match (&existing, expect) {
            (Some(_), Expect::New) => {
                return Err(FileError::AlreadyExists {
                    path: path.to_string(),
                });
            }
            (None, Expect::Existing) => {
                return Err(FileError::NotFound {
                    path: path.to_string(),
                });
            }
            (Some(_), Expect::Anything | Expect::Existing) => {}
            (None, Expect::Anything | Expect::New) => self.need_parent(path, parents)?,
        }
        let wanted = match existing {
            Some(mut old) => {
                if let Some(mode) = mode {
                    old.mode = mode & 0o7777;
                    inherit::chmod_acl(&mut old);
                }
                Wanted::Like(old)
            }
            None => Wanted::New(mode),
        };
        self.with_source(path, source, |planner, incoming| {
            planner.put_file(path, incoming, wanted)
        })
    }

    pub(super) fn append(&mut self, path: &TargetPath, source: &Source) -> Result<(), FileError> {
        let Some(old) = self.file_meta(path)? else {
            return self.write(path, source, Expect::Anything, false, None);
        };
        let size = match self.view(path)? {
            View::Real(_, node) => node.identity.size,
            View::Absent | View::Planned(_) => 0,
        };
        if size <= INLINE_BYTES_MAX {
            let mut content = self.content(path)?;
            return self.with_source(path, source, |planner, incoming| {
                let mut rest = Vec::new();
                incoming.read_into(&mut rest).naming(path, "read")?;
                content.append(&mut rest);
                planner.put_file(path, Incoming::Bytes(content), Wanted::Like(old))
            });
        }
        let file = Dir::of(path)?.read()?;
        self.with_source(path, source, |planner, incoming| {
            let mut rest = incoming.reader();
            planner.put_file(path, Incoming::Grown(file, &mut rest), Wanted::Like(old))
        })
    }

    pub(super) fn edit(
        &mut self,
        path: &TargetPath,
        search: &[u8],
        replacement: &[u8],
        occurrence: Occurrence,
    ) -> Result<(), FileError> {
        let missing = || FileError::NotFound {
            path: path.to_string(),
        };
        let old = self.file_meta(path)?.ok_or_else(missing)?;
        let content = self.content(path)?;
        let edited = replace(&content, search, replacement, occurrence).map_err(|cause| {
            FileError::Edit {
                path: path.to_string(),
                cause,
            }
        })?;
        self.put_file(path, Incoming::Bytes(edited), Wanted::Like(old))
    }

    /// Gives the metadata of the file that a name stands for, if it is one; new content has new times.
    pub(super) fn file_meta(&self, path: &TargetPath) -> Result<Option<Meta>, FileError> {
        let mut found = self.file_meta_with_times(path)?;
        if let Some(meta) = &mut found {
            meta.times = None;
        }
        Ok(found)
    }

    fn file_meta_with_times(&self, path: &TargetPath) -> Result<Option<Meta>, FileError> {
        let shown = || path.to_string();
        match self.view(path)? {
            View::Absent => Ok(None),
            View::Planned(index) => match self.after(index) {
                Some(Image::File { meta, .. }) => Ok(Some(meta.clone())),
                Some(Image::Linked { to, identity, .. }) => match identity {
                    Some(identity) => {
                        let (place, node) = first_name(path, to, identity)?;
                        self.real_file_meta(path, &place, &node)
                    }
                    None => self.file_meta_with_times(to),
                },
                Some(image) if image.is_directory() => {
                    Err(FileError::IsADirectory { path: shown() })
                }
                Some(_) | None => Err(FileError::NotAFile { path: shown() }),
            },
            View::Real(place, node) => self.real_file_meta(path, &place, &node),
        }
    }

    fn real_file_meta(
        &self,
        path: &TargetPath,
        place: &Place,
        node: &Node,
    ) -> Result<Option<Meta>, FileError> {
        let shown = || path.to_string();
        match node.kind {
            Kind::File => self.meta_of(place, node).map(Some),
            Kind::Directory => Err(FileError::IsADirectory { path: shown() }),
            Kind::Symlink
            | Kind::Fifo
            | Kind::Socket
            | Kind::BlockDevice
            | Kind::CharacterDevice => Err(FileError::NotAFile { path: shown() }),
        }
    }

    /// Reads the bytes that a name stands for.
    pub(super) fn content(&self, path: &TargetPath) -> Result<Vec<u8>, FileError> {
        let mut content = Vec::new();
        match self.view(path)? {
            View::Absent => {
                return Err(FileError::NotFound {
                    path: path.to_string(),
                });
            }
            View::Real(place, node) => return read_whole(path, &place, &node),
            View::Planned(index) => {
                if let Some(Image::Linked { to, identity, .. }) = self.after(index) {
                    let Some(identity) = identity else {
                        return self.content(to);
                    };
                    let (place, node) = first_name(path, to, identity)?;
                    return read_whole(path, &place, &node);
                }
                let material = self.steps.get(index).map(|step| &step.material);
                let Some(material) = material else {
                    return Ok(content);
                };
                let mut reader = material.open().naming(path, "read")?;
                reader.read_to_end(&mut content).naming(path, "read")?;
            }
        }
        Ok(content)
    }

    /// Opens a source and hands it on.
    fn with_source(
        &mut self,
        path: &TargetPath,
        source: &Source,
        use_it: impl FnOnce(&mut Self, Incoming<'_>) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        match source {
            Source::Bytes(content) => use_it(self, Incoming::Bytes(content.clone())),
            Source::Path(from) if self.in_batch && !self.steps.is_empty() => {
                let from = self.resolve(from, Last::Followed)?;
                match self.view(&from)? {
                    View::Real(place, node)
                        if node.kind == Kind::File && node.identity.size > INLINE_BYTES_MAX =>
                    {
                        let file = place.read()?;
                        use_it(self, Incoming::File(file))
                    }
                    View::Real(..) | View::Planned(_) | View::Absent => {
                        let content = self.content(&from)?;
                        use_it(self, Incoming::Bytes(content))
                    }
                }
            }
            Source::Path(from) => {
                let failed = |source| FileError::Io {
                    path: from.display().to_string(),
                    action: "read",
                    source,
                };
                let mut file = File::open(from).map_err(failed)?;
                let found = file.metadata().map_err(failed)?;
                if found.is_file() && found.len() > INLINE_BYTES_MAX {
                    return use_it(self, Incoming::File(file));
                }
                let incoming = Incoming::of(&mut file).map_err(failed)?;
                use_it(self, incoming)
            }
            Source::Stored(digest) => {
                let mut stored = self.context.contents.open(digest)?;
                let incoming = Incoming::of(&mut stored).naming(path, "read the source for")?;
                use_it(self, incoming)
            }
            Source::Opened(file) => repeat::reading(file, |from| {
                let mut from = from;
                let incoming = Incoming::of(&mut from).naming(path, "read the source for")?;
                use_it(self, incoming)
            }),
        }
    }

    /// Stages bytes and plans them as the content of a name, unless it has exactly that already.
    pub(super) fn put_file(
        &mut self,
        path: &TargetPath,
        incoming: Incoming<'_>,
        wanted: Wanted,
    ) -> Result<(), FileError> {
        let (after, material) = self.stage_file(path, incoming, wanted)?;
        self.set_unless_already(path, after, material)
    }

    /// Plans what a name shall stand for, unless it looks exactly so already: a change that cannot be told
    /// from no change could not be judged later either.
    pub(super) fn set_unless_already(
        &mut self,
        path: &TargetPath,
        after: Image,
        material: Material,
    ) -> Result<(), FileError> {
        if self.is_already(path, &after)? {
            return Ok(());
        }
        self.set(path, after, material)
    }

    pub(super) fn is_already(
        &mut self,
        path: &TargetPath,
        after: &Image,
    ) -> Result<bool, FileError> {
        let View::Real(_, node) = self.view(path)? else {
            return Ok(false);
        };
        let current = crate::file::compare::Current::at(path)?;
        if current.differs(after, None)?.is_some() {
            return Ok(false);
        }
        if self.retouched.contains_key(&number_of(&node)) {
            self.drop_retouch(path)?;
            return Ok(!self.retouched.contains_key(&number_of(&node)));
        }
        Ok(true)
    }

    /// Puts bytes where they can wait, and foresees the file they will be.
    pub(super) fn stage_file(
        &mut self,
        path: &TargetPath,
        incoming: Incoming<'_>,
        wanted: Wanted,
    ) -> Result<(Image, Material), FileError> {
        let small = match &incoming {
            Incoming::Bytes(content) => Some(content.clone()),
            Incoming::File(_) | Incoming::Stream(..) | Incoming::Grown(..) => None,
        };
        let near = near(path)?;
        let waiting = wait(self.context, self.id, &near, &mut self.open, incoming)?;
        let stored = small.is_some_and(|content| self.keeper.inline_new(waiting.digest, &content));
        let meta = self.dress(path, &near, &waiting.material, wanted)?;
        self.context.reach("file.staged")?;
        let image = Image::File {
            digest: waiting.digest,
            size: waiting.size,
            stored,
            meta,
            without: None,
            holes: Holes::new(),
        };
        Ok((image, waiting.material))
    }

    /// Gives a staged file its metadata, or foresees what it will be.
    fn dress(
        &mut self,
        path: &TargetPath,
        near: &Dir,
        material: &Material,
        wanted: Wanted,
    ) -> Result<Meta, FileError> {
        let times = match &wanted {
            Wanted::Like(old) => old.times,
            Wanted::New(_) => None,
        };
        // What is staged in another directory than it will be in does not inherit from that one.
        let wanted = match (wanted, self.planned_parent_meta(path)) {
            (Wanted::New(mode), Some(parent)) => {
                Wanted::Like(inherit::foresee(parent, mode, false))
            }
            (wanted, _) => wanted,
        };
        let Material::Nameless(file) = material else {
            return Ok(match wanted {
                Wanted::Like(old) => self.permitted(path, old),
                Wanted::New(mode) => inherit::foresee(&inherit::of_dir(near)?, mode, false),
            });
        };
        match wanted {
            Wanted::Like(old) => {
                let old = self.permitted(path, old);
                let gaps = meta::write(file, Kind::File, &old, path)?;
                let had = match self.view(path) {
                    Ok(View::Real(place, _)) => place.read().ok(),
                    Ok(View::Absent | View::Planned(_)) | Err(_) => None,
                };
                let lost = had.map_or_else(Vec::new, |had| flags::carry(flags::read(had), file));
                let lost = lost.iter().map(|name| format!("flag {name}"));
                for gap in gaps.into_iter().chain(lost) {
                    self.keeper.notes.push(format!("`{path}` loses its {gap}"));
                }
            }
            Wanted::New(Some(mode)) => {
                let mode = rustix::fs::Mode::from_raw_mode(mode & 0o7777);
                rustix::fs::fchmod(file, mode).naming(path, "change the mode of")?;
            }
            // The system gave it the usual rights, of this process.
            Wanted::New(None) if is_for_another() => {
                let foreseen = inherit::foresee(&inherit::of_dir(near)?, None, false);
                let mode = rustix::fs::Mode::from_raw_mode(foreseen.mode);
                rustix::fs::fchmod(file, mode).naming(path, "change the mode of")?;
            }
            Wanted::New(None) => {}
        }
        let node = Node::of(&rustix::fs::fstat(file).naming(path, "look at")?);
        let mut meta = meta::read(&node, file, path)?;
        meta.times = times;
        Ok(meta)
    }

    /// Leaves out what this process may not give to a new file.
    pub(super) fn permitted(&mut self, path: &TargetPath, mut meta: Meta) -> Meta {
        let euid = rustix::process::geteuid().as_raw();
        if euid != 0 && meta.uid != euid {
            self.keeper.notes.push(format!(
                "`{path}` now belongs to {euid}, not to {}: only root can keep that",
                meta.uid
            ));
            meta.uid = euid;
            meta.mode &= !0o6000;
        }
        if euid != 0 && !meta::is_our_group(meta.gid) {
            let gid = self.parent_meta(path).map_or_else(
                |_| rustix::process::getegid().as_raw(),
                |parent| inherit::foresee(&parent, None, false).gid,
            );
            if gid != meta.gid {
                self.keeper.notes.push(format!(
                    "`{path}` now has the group {gid}, not {}: only root can keep that",
                    meta.gid
                ));
                meta.gid = gid;
                meta.mode &= !0o2000;
            }
        }
        let is_lost = |name: &AnyBytes| euid != 0 && meta::is_for_root(&name.0);
        for (name, _) in meta.xattrs.iter().filter(|(name, _)| is_lost(name)) {
            let name = String::from_utf8_lossy(&name.0);
            let note = format!("`{path}` loses its attribute {name}: only root can keep that");
            self.keeper.notes.push(note);
        }
        meta.xattrs.retain(|(name, _)| !is_lost(name));
        meta
    }
}

/// Reads a file that is edited in memory.
fn read_whole(path: &TargetPath, place: &Place, node: &Node) -> Result<Vec<u8>, FileError> {
    if node.identity.size > EDIT_BYTES_MAX {
        let source = std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            format!("larger than {EDIT_BYTES_MAX} bytes"),
        );
        return Err(FileError::Io {
            path: path.to_string(),
            action: "edit",
            source,
        });
    }
    let mut content = Vec::new();
    let mut file = place.read()?;
    file.read_to_end(&mut content).naming(path, "read")?;
    Ok(content)
}

/// Finds the file that a planned second name is of, which is there still.
fn first_name(
    path: &TargetPath,
    first: &TargetPath,
    identity: &Identity,
) -> Result<(Place, Node), FileError> {
    let place = Dir::of(first)?;
    match place.node()? {
        Some(node) if node.identity.ino == identity.ino => Ok((place, node)),
        Some(_) | None => Err(FileError::Changed {
            path: path.to_string(),
        }),
    }
}
