//! Planning names: remove, move, make directories and links.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use backout_capture::overlay::parse;
use backout_model::TargetPath;

use super::{Planner, View, near};
use crate::file::any_bytes::AnyBytes;
use crate::file::before_image::{is_same_mount, meta_of_moved};
use crate::file::error::FileError;
use crate::file::execute::{Seen, Step};
use crate::file::recipe::{Change, Image, Kind, Meta};
use crate::file::stage::Material;
use crate::file::sys::{Node, Place, inherit};

impl Planner<'_> {
    pub(super) fn remove(&mut self, path: &TargetPath, recursive: bool) -> Result<(), FileError> {
        match self.view(path)? {
            View::Absent => Err(FileError::NotFound {
                path: path.to_string(),
            }),
            View::Planned(index) => {
                let is_directory = self.after(index).is_some_and(Image::is_directory);
                if is_directory && !recursive && self.sets.keys().any(|other| other.is_below(path))
                {
                    return Err(FileError::NotEmpty {
                        path: path.to_string(),
                    });
                }
                self.drop_below(path)?;
                self.set(path, Image::Absent, Material::Image)
            }
            View::Real(place, node) if node.kind == Kind::Directory => {
                self.remove_directory(path, &place, &node, recursive)
            }
            View::Real(..) => self.set(path, Image::Absent, Material::Image),
        }
    }

    fn remove_directory(
        &mut self,
        path: &TargetPath,
        place: &Place,
        node: &Node,
        recursive: bool,
    ) -> Result<(), FileError> {
        let names = place.enter()?.names()?;
        let is_gone = |name: &std::ffi::OsString| {
            let path = path.join(name);
            let index = self.sets.get(&path);
            let removed = index
                .and_then(|index| self.after(*index))
                .is_some_and(Image::is_absent);
            removed || (index.is_none() && self.moved_from.contains_key(&path))
        };
        let is_planned_empty = names.iter().all(is_gone) && !self.has_planned_below(path);
        if !is_planned_empty && !recursive {
            return Err(FileError::NotEmpty {
                path: path.to_string(),
            });
        }
        if recursive && is_stood_in(node) {
            return Err(FileError::StandingIn {
                path: path.to_string(),
            });
        }
        if !names.is_empty()
            && let Some(mount) = mounted_in(path)
        {
            return Err(FileError::HoldsMount {
                path: path.to_string(),
                mount: mount.display().to_string(),
            });
        }
        if !is_planned_empty {
            self.drop_below(path)?;
        }
        let kept = if names.is_empty() {
            self.keeper.park_if_odd(place, node)?
        } else if is_planned_empty {
            None
        } else {
            self.keeper.park(place, node)?
        };
        if let Some(kept) = kept {
            self.drop_retouch(path)?;
            let before = (kept, Seen::There(*node));
            self.push_set(path, before, Image::Absent, Material::Image);
            return Ok(());
        }
        if is_planned_empty || names.is_empty() {
            return self.set(path, Image::Absent, Material::Image);
        }
        self.remove_each(path, place)
    }

    /// Plans the removal of a tree entry by entry, where there is no depot for the whole.
    fn remove_each(&mut self, path: &TargetPath, place: &Place) -> Result<(), FileError> {
        let dir = place.enter()?;
        for name in self.others_in(path, dir.names()?) {
            let (place, path) = (dir.place(&name), path.join(&name));
            match place.node()? {
                Some(node) if node.kind == Kind::Directory => self.remove_each(&path, &place)?,
                Some(_) => self.set(&path, Image::Absent, Material::Image)?,
                None => {}
            }
        }
        self.set(path, Image::Absent, Material::Image)
    }

    /// Leaves our own state out of what is in a directory: no walk over a tree goes in.
    pub(super) fn others_in(&mut self, path: &TargetPath, names: Vec<OsString>) -> Vec<OsString> {
        let is_ours = |name: &OsString| self.context.depots.is_ours(&path.join(name));
        let (ours, others): (Vec<_>, Vec<_>) = names.into_iter().partition(is_ours);
        for name in ours {
            let path = path.join(&name);
            let note = format!("`{path}` was left out: Backout keeps there what it replaced");
            self.keeper.notes.push(note);
        }
        others
    }

    fn has_planned_below(&self, path: &TargetPath) -> bool {
        let mut below = self.sets.iter().filter(|(other, _)| other.is_below(path));
        below.any(|(_, index)| self.after(*index).is_some_and(|after| !after.is_absent()))
            || self.moved_to.keys().any(|to| to.is_below(path))
    }

    /// What was written below a name earlier in the same batch cannot move with it.
    fn refuse_entangled(&self, from: &TargetPath) -> Result<(), FileError> {
        let is_below = |other: &TargetPath| other.is_below(from);
        let touched = self.sets.keys().chain(self.retouches.keys());
        if touched.chain(self.moved_to.keys()).any(is_below) {
            return Err(FileError::Entangled {
                path: from.to_string(),
            });
        }
        Ok(())
    }

    /// Captures what a move will replace.
    fn replaced_by_move(&mut self, to: &TargetPath) -> Result<(Image, Seen), FileError> {
        Ok(match self.view(to)? {
            View::Real(place, node) => {
                self.refuse_shared(to, &node)?;
                let (image, node) = self.keeper.keep(&place)?;
                (image, Seen::There(node))
            }
            View::Absent if self.sets.contains_key(to) => {
                return Err(FileError::Entangled {
                    path: to.to_string(),
                });
            }
            View::Absent => (Image::Absent, Seen::Absent),
            View::Planned(_) => {
                return Err(FileError::Entangled {
                    path: to.to_string(),
                });
            }
        })
    }

    pub(super) fn rename(
        &mut self,
        from: &TargetPath,
        to: &TargetPath,
        replace: bool,
    ) -> Result<(), FileError> {
        if from == to {
            return Ok(());
        }
        if to.is_below(from) {
            return Err(FileError::IntoItself {
                from: from.to_string(),
                to: to.to_string(),
            });
        }
        let (place, node) = match self.view(from)? {
            View::Absent => {
                return Err(FileError::NotFound {
                    path: from.to_string(),
                });
            }
            View::Planned(index) => return self.rename_planned(index, from, to, replace),
            View::Real(place, node) => (place, node),
        };
        self.refuse_taken(to, replace, node.kind == Kind::Directory)?;
        self.need_parent(to, false)?;
        if let View::Real(_, other) = self.view(to)?
            && other.identity.ino == node.identity.ino
            && other.identity.dev == node.identity.dev
        {
            // Both are names of one file: moving one onto the other leaves the other.
            return self.remove(from, false);
        }
        if !is_same_mount(&place.dir, &*near(to)?)? {
            self.keeper
                .notes
                .push(format!("`{from}` was copied to another file system"));
            self.copy(from, to, true, replace)?;
            return self.remove(from, true);
        }
        if node.kind == Kind::Directory && self.context.depots.is_above_ours(from) {
            return Err(FileError::Ours {
                path: from.to_string(),
            });
        }
        self.refuse_entangled(from)?;
        if self.retouches.contains_key(from) {
            return self.rename_retouched(from, to, node.kind, replace);
        }
        let (replaced, seen_at_new) = self.replaced_by_move(to)?;
        self.drop_retouch(to)?;
        let change = Change::Move {
            from: from.clone(),
            to: to.clone(),
            node: node.kind,
            identity: node.identity,
            replaced,
            meta: meta_of_moved(&place, &node)?,
        };
        let step = Step::new(0, change, Material::Image);
        self.steps.push(Step {
            seen: Seen::There(node),
            seen_at_new,
            ..step
        });
        self.index_again();
        Ok(())
    }

    /// Moves what an earlier change of the batch gives another mode or owner: a copy has them from the beginning.
    fn rename_retouched(
        &mut self,
        from: &TargetPath,
        to: &TargetPath,
        kind: Kind,
        replace: bool,
    ) -> Result<(), FileError> {
        if kind == Kind::Directory {
            return Err(FileError::Entangled {
                path: from.to_string(),
            });
        }
        self.copy(from, to, false, replace)?;
        self.remove(from, false)
    }

    /// Moves what is only planned: it is planned elsewhere instead.
    fn rename_planned(
        &mut self,
        index: usize,
        from: &TargetPath,
        to: &TargetPath,
        replace: bool,
    ) -> Result<(), FileError> {
        let entangled = || FileError::Entangled {
            path: from.to_string(),
        };
        let after = self.after(index);
        if after.is_some_and(|image| image.is_directory() || matches!(image, Image::Linked { .. }))
        {
            return Err(entangled());
        }
        self.refuse_taken(to, replace, false)?;
        self.need_parent(to, false)?;
        self.refuse_named(from)?;
        let index = self.sets.get(from).copied().unwrap_or(index);
        let step = self.steps.get_mut(index).ok_or_else(entangled)?;
        let material = std::mem::replace(&mut step.material, Material::Image);
        let Change::Set { after, .. } = &mut step.change else {
            return Err(entangled());
        };
        let after = std::mem::replace(after, Image::Absent);
        self.set(to, after, material)
    }

    /// Refuses a new name that is taken, unless a file may replace a file.
    pub(super) fn refuse_taken(
        &self,
        to: &TargetPath,
        replace: bool,
        is_directory: bool,
    ) -> Result<(), FileError> {
        let is_taken = match self.view(to)? {
            View::Absent => false,
            View::Real(_, node) => node.kind == Kind::Directory || is_directory || !replace,
            View::Planned(index) => {
                self.after(index).is_some_and(Image::is_directory) || is_directory || !replace
            }
        };
        if is_taken {
            return Err(FileError::AlreadyExists {
                path: to.to_string(),
            });
        }
        Ok(())
    }

    pub(super) fn mkdir(
        &mut self,
        path: &TargetPath,
        parents: bool,
        mode: Option<u32>,
    ) -> Result<(), FileError> {
        let is_directory = match self.view(path)? {
            View::Absent => {
                self.need_parent(path, parents)?;
                let meta = inherit::foresee(&self.parent_meta(path)?, mode, true);
                return self.set(path, Image::Directory { meta }, Material::Image);
            }
            View::Real(_, node) => node.kind == Kind::Directory,
            View::Planned(index) => self.after(index).is_some_and(Image::is_directory),
        };
        if is_directory && parents {
            return Ok(());
        }
        Err(FileError::AlreadyExists {
            path: path.to_string(),
        })
    }

    /// Gives the metadata that new entries of a directory inherit from.
    pub(super) fn parent_meta(&self, path: &TargetPath) -> Result<Meta, FileError> {
        match self.planned_parent_meta(path) {
            Some(meta) => Ok(meta.clone()),
            None => inherit::of_dir(&*near(path)?),
        }
    }

    /// Gives the metadata that the directory of a name will have, if it is made or changed first.
    pub(super) fn planned_parent_meta(&self, path: &TargetPath) -> Option<&Meta> {
        let parent = path.parent()?;
        if let Some(index) = self.sets.get(&parent) {
            return match self.after(*index) {
                Some(Image::Directory { meta }) => Some(meta),
                Some(_) | None => None,
            };
        }
        let step = self.steps.get(*self.retouches.get(&parent)?)?;
        match &step.change {
            Change::Retouch { after, .. } => Some(after),
            Change::Set { .. } | Change::Move { .. } | Change::Rewrite { .. } => None,
        }
    }

    pub(super) fn symlink(
        &mut self,
        path: &TargetPath,
        to: &OsStr,
        replace: bool,
    ) -> Result<(), FileError> {
        self.refuse_taken(path, replace, false)?;
        self.need_parent(path, false)?;
        let mut meta = inherit::foresee(&self.parent_meta(path)?, Some(0o777), false);
        meta.xattrs.clear();
        let after = Image::Symlink {
            to: AnyBytes(to.as_bytes().to_vec()),
            meta,
        };
        if let View::Real(place, node) = self.view(path)?
            && node.kind == Kind::Symlink
            && crate::file::before_image::link_target(&place)?.0 == to.as_bytes()
        {
            return Ok(());
        }
        self.set(path, after, Material::Image)
    }

    pub(super) fn hard_link(
        &mut self,
        path: &TargetPath,
        to: &TargetPath,
    ) -> Result<(), FileError> {
        self.refuse_taken(path, false, false)?;
        self.need_parent(path, false)?;
        let identity = match self.view(to)? {
            View::Absent => {
                return Err(FileError::NotFound {
                    path: to.to_string(),
                });
            }
            View::Real(_, node) if node.kind == Kind::Directory => {
                return Err(FileError::IsADirectory {
                    path: to.to_string(),
                });
            }
            View::Real(_, node) => Some(node.identity),
            // After a crash the second name is known by the first, which therefore comes first.
            View::Planned(first) if self.sets.get(path).is_some_and(|own| *own < first) => {
                return Err(FileError::Entangled {
                    path: path.to_string(),
                });
            }
            View::Planned(_) => None,
        };
        self.set(
            path,
            Image::Linked {
                to: to.clone(),
                identity,
                copy: None,
            },
            Material::Image,
        )
    }

    /// Gives the metadata a copy shall have: that of the first, times included.
    pub(super) fn meta_for_copy(
        &mut self,
        to: &TargetPath,
        place: &Place,
        node: &Node,
    ) -> Result<Meta, FileError> {
        let meta = self.meta_of(place, node)?;
        Ok(self.permitted(to, meta))
    }
}

/// Finds a file system that is mounted somewhere below a directory. A rename would take it along into the depot.
fn mounted_in(path: &TargetPath) -> Option<PathBuf> {
    let mounts = parse(&std::fs::read("/proc/self/mountinfo").ok()?);
    let mut points = mounts.into_iter().map(|mount| mount.point);
    points.find(|point| point.starts_with(path.as_path()) && point != path.as_path())
}

/// Tells whether a directory is the current one of this process, or above it.
fn is_stood_in(node: &Node) -> bool {
    let Ok(here) = std::env::current_dir() else {
        return false;
    };
    let number = |path: &Path| {
        let found = path.symlink_metadata().ok()?;
        Some((found.dev(), found.ino()))
    };
    let it = Some((node.identity.dev, node.identity.ino));
    here.ancestors().any(|above| number(above) == it)
}
