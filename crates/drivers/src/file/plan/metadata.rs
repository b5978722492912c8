//! Planning changes of permissions and owners, which happen in place.

use backout_model::TargetPath;

use super::{Planner, View};
use crate::file::error::FileError;
use crate::file::execute::{Seen, Step};
use crate::file::keep::meta_of;
use crate::file::mode::ModeChange;
use crate::file::recipe::{Change, Image, Kind, Meta};
use crate::file::stage::Material;
use crate::file::sys::{Node, Place, inherit, meta};

const CAPABILITY: &[u8] = b"security.capability";

impl Planner<'_> {
    pub(super) fn chmod(
        &mut self,
        path: &TargetPath,
        mode: &ModeChange,
        recursive: bool,
    ) -> Result<(), FileError> {
        let change = |meta: &mut Meta, kind: Kind| {
            if kind != Kind::Symlink {
                meta.mode = mode.apply(meta.mode, kind == Kind::Directory);
                inherit::chmod_acl(meta);
            }
        };
        self.retouch(path, recursive, &change)
    }

    pub(super) fn chown(
        &mut self,
        path: &TargetPath,
        uid: Option<u32>,
        gid: Option<u32>,
        recursive: bool,
    ) -> Result<(), FileError> {
        let change = |meta: &mut Meta, kind: Kind| {
            let owner = (uid.unwrap_or(meta.uid), gid.unwrap_or(meta.gid));
            if owner == (meta.uid, meta.gid) {
                return;
            }
            (meta.uid, meta.gid) = owner;
            // As the system does it: what ran as the old owner must not run as the new one.
            if kind == Kind::File {
                let setgid = if meta.mode & 0o010 != 0 { 0o2000 } else { 0 };
                meta.mode &= !(0o4000 | setgid);
                meta.xattrs.retain(|(name, _)| name.0 != CAPABILITY);
            }
        };
        self.retouch(path, recursive, &change)
    }

    pub(super) fn retouch(
        &mut self,
        path: &TargetPath,
        recursive: bool,
        change: &dyn Fn(&mut Meta, Kind),
    ) -> Result<(), FileError> {
        match self.view(path)? {
            View::Absent => Err(FileError::NotFound {
                path: path.to_string(),
            }),
            View::Planned(index) => self.retouch_planned(path, index, change),
            View::Real(place, node) => {
                self.retouch_real(path, &place, &node, change)?;
                if recursive && node.kind == Kind::Directory {
                    for name in place.enter()?.names()? {
                        self.retouch(&path.join(&name), true, change)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn retouch_real(
        &mut self,
        path: &TargetPath,
        place: &Place,
        node: &Node,
        change: &dyn Fn(&mut Meta, Kind),
    ) -> Result<(), FileError> {
        if let Some(index) = self.retouches.get(path)
            && let Some(step) = self.steps.get_mut(*index)
            && let Change::Retouch { after, .. } = &mut step.change
        {
            change(after, node.kind);
            return Ok(());
        }
        let mut before = meta_of(place, node)?;
        let was = before.times.take();
        let mut after = before.clone();
        change(&mut after, node.kind);
        let wanted = after.times.take();
        // Times alone are no change.
        if before != after
            && let (Some(was), Some(wanted)) = (was, wanted)
            && was.mtime != wanted.mtime
        {
            (before.times, after.times) = (Some(was), Some(wanted));
        }
        // By another name of the same inode it is changed already.
        if before == after || (node.is_shared && !self.retouched.insert(node.identity.ino)) {
            return Ok(());
        }
        self.retouches.insert(path.clone(), self.steps.len());
        let change = Change::Retouch {
            path: path.clone(),
            before,
            after,
            node: Some(node.kind),
        };
        let step = Step::new(0, change, Material::Image);
        self.steps.push(Step {
            seen: Seen::There(*node),
            ..step
        });
        Ok(())
    }

    fn retouch_planned(
        &mut self,
        path: &TargetPath,
        index: usize,
        change: &dyn Fn(&mut Meta, Kind),
    ) -> Result<(), FileError> {
        let Some(step) = self.steps.get_mut(index) else {
            return Ok(());
        };
        let Change::Set { after, .. } = &mut step.change else {
            return Ok(());
        };
        match after {
            Image::File { meta, .. } => {
                change(meta, Kind::File);
                if let Material::Nameless(file) = &step.material {
                    meta::write(file, Kind::File, meta, path)?;
                }
            }
            Image::Directory { meta } => change(meta, Kind::Directory),
            Image::Special { meta, node, .. } => change(meta, *node),
            Image::Symlink { meta, .. } => change(meta, Kind::Symlink),
            Image::Linked { .. } | Image::Kept { .. } | Image::Unkept { .. } | Image::Absent => {
                return Err(FileError::Entangled {
                    path: path.to_string(),
                });
            }
        }
        Ok(())
    }
}
