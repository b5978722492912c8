//! Planning unified patches: changed, new, deleted, renamed and copied files, modes and links.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use backout_files::umask;
use backout_model::TargetPath;
use backout_model::text::{FileMode, FilePatch, Moved, PatchPath, apply, parse};

use super::content::Wanted;
use super::{Planner, View};
use crate::file::any_bytes::AnyBytes;
use crate::file::before_image::link_target;
use crate::file::error::FileError;
use crate::file::recipe::{Image, Kind};
use crate::file::resolve::Last;
use crate::file::stage::{Incoming, Material};
use crate::file::sys::inherit;

impl Planner<'_> {
    pub(super) fn patch(&mut self, base: &Path, patch: &[u8]) -> Result<(), FileError> {
        let base = base_of(base, |path| self.name_of(path, Last::Itself))?;
        let patch = parse(patch).map_err(FileError::Patch)?;
        patch
            .files
            .iter()
            .try_for_each(|file| self.patch_file(&base, file))
    }

    fn patch_file(&mut self, base: &TargetPath, file: &FilePatch) -> Result<(), FileError> {
        let mut at = |name| inside(base, name, |path| self.resolve(path, Last::Itself));
        let old = file.old.as_ref().map(&mut at).transpose()?;
        let new = file.new.as_ref().map(&mut at).transpose()?;
        let (old, new) = match (file.moved, old, new) {
            (None, Some(old), Some(new)) if old != new => {
                let meant = self.meant(old, new)?;
                (Some(meant.clone()), Some(meant))
            }
            (_, old, new) => (old, new),
        };
        let is_link = |mode: Option<FileMode>| mode.is_some_and(FileMode::is_symlink);
        let was_link = is_link(file.old_mode) || (file.old.is_some() && is_link(file.new_mode));
        let content = match &old {
            Some(old) if was_link => self.link_content(old)?,
            Some(old) => self.content(old)?,
            None => Vec::new(),
        };
        let patched = apply(file, &content).map_err(FileError::Patch)?;
        let Some(new) = new else {
            return old.map_or(Ok(()), |old| self.remove(&old, false));
        };
        if old.is_none() && !matches!(self.view(&new)?, View::Absent) {
            return Err(FileError::AlreadyExists {
                path: new.to_string(),
            });
        }
        let wanted = match &old {
            Some(old) if !was_link => self.file_meta(old)?,
            Some(_) | None => None,
        };
        let is_elsewhere = old.as_ref().is_some_and(|old| *old != new);
        if is_elsewhere && !matches!(self.view(&new)?, View::Absent) {
            return Err(FileError::AlreadyExists {
                path: new.to_string(),
            });
        }
        self.need_parent(&new, true)?;
        if is_link(file.new_mode) || (was_link && file.new_mode.is_none()) {
            let mut meta = inherit::foresee(&self.parent_meta(&new)?, Some(0o777), false);
            meta.xattrs.clear();
            let after = Image::Symlink {
                to: AnyBytes(patched),
                meta,
            };
            self.set(&new, after, Material::Image)?;
        } else {
            let wanted = wanted_of(wanted, file.new_mode);
            self.put_file(&new, Incoming::Bytes(patched), wanted)?;
        }
        match (file.moved, old) {
            (Some(Moved::Renamed), Some(old)) if is_elsewhere => self.remove(&old, false),
            (Some(Moved::Renamed | Moved::Copied) | None, _) => Ok(()),
        }
    }

    /// Chooses between two names that are not said to be a move or a copy, as `diff -u f.orig f` writes them: the one that is
    /// there; of two that are, the one with the fewest directories, then with the shortest last name, as patch(1) does.
    fn meant(&self, old: TargetPath, new: TargetPath) -> Result<TargetPath, FileError> {
        let is_there =
            |path: &TargetPath| Ok::<_, FileError>(!matches!(self.view(path)?, View::Absent));
        let length = |path: &TargetPath| {
            let path = path.as_path();
            let name = path.file_name().map_or(0, OsStr::len);
            (path.components().count(), name, path.as_os_str().len())
        };
        Ok(match (is_there(&old)?, is_there(&new)?) {
            (false, true) => new,
            (true, true) | (false, false) if length(&new) < length(&old) => new,
            (true, _) | (false, false) => old,
        })
    }

    fn link_content(&self, path: &TargetPath) -> Result<Vec<u8>, FileError> {
        match self.view(path)? {
            View::Real(place, node) if node.kind == Kind::Symlink => Ok(link_target(&place)?.0),
            View::Planned(index) => match self.after(index) {
                Some(Image::Symlink { to, .. }) => Ok(to.0.clone()),
                Some(_) | None => Err(FileError::NotAFile {
                    path: path.to_string(),
                }),
            },
            View::Real(..) => Err(FileError::NotAFile {
                path: path.to_string(),
            }),
            View::Absent => Err(FileError::NotFound {
                path: path.to_string(),
            }),
        }
    }
}

/// Gives the metadata of a patched file: git knows of modes only whether a file may be executed.
fn wanted_of(old: Option<crate::file::recipe::Meta>, mode: Option<FileMode>) -> Wanted {
    let executable = mode.map(FileMode::is_executable);
    match (old, executable) {
        (Some(mut old), Some(executable)) => {
            let readable = old.mode & 0o444;
            old.mode = if executable {
                old.mode | readable >> 2
            } else {
                old.mode & !0o111
            };
            inherit::chmod_acl(&mut old);
            Wanted::Like(old)
        }
        (Some(old), None) => Wanted::Like(old),
        (None, Some(true)) => Wanted::New(Some(0o777 & !umask())),
        (None, Some(false) | None) => Wanted::New(None),
    }
}

/// Finds the directory that a patch starts at.
pub(super) fn base_of(
    base: &Path,
    resolve: impl FnOnce(&Path) -> Result<TargetPath, FileError>,
) -> Result<TargetPath, FileError> {
    // Any name in it resolves all of it.
    let probe = resolve(&base.join("x"))?;
    probe.parent().ok_or_else(|| FileError::Unusable {
        path: base.display().to_string(),
    })
}

/// Finds the file that a patch names; it must not lead out of the directory, by `..` or by a link.
pub(super) fn inside(
    base: &TargetPath,
    name: &PatchPath,
    resolve: impl FnOnce(&Path) -> Result<TargetPath, FileError>,
) -> Result<TargetPath, FileError> {
    let joined = base.as_path().join(OsStr::from_bytes(name.as_bytes()));
    let escapes = |to: String| FileError::Escapes {
        path: name.to_string(),
        to,
    };
    if !name.is_inside() {
        return Err(escapes(joined.display().to_string()));
    }
    let path = resolve(&joined)?;
    if path.is_below(base) {
        Ok(path)
    } else {
        Err(escapes(path.to_string()))
    }
}
