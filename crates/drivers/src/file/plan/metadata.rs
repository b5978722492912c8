//! Planning changes of permissions and owners, which happen in place.

use std::collections::BTreeSet;

use backout_model::TargetPath;

use super::{Planner, View, number_of};
use crate::file::before_image::meta_of;
use crate::file::error::FileError;
use crate::file::execute::{Seen, Step};
use crate::file::mode::ModeChange;
use crate::file::recipe::{Change, Identity, Image, Kind, Meta};
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
        self.untangle(path)?;
        match self.view(path)? {
            View::Absent => {
                return Err(FileError::NotFound {
                    path: path.to_string(),
                });
            }
            View::Planned(index) => self.retouch_planned(path, index, change)?,
            View::Real(place, node) => self.retouch_real(path, &place, &node, change)?,
        }
        if recursive {
            for entry in self.entries(path)? {
                self.retouch(&entry, true, change)?;
            }
        }
        Ok(())
    }

    /// Lists what a directory will hold; nothing, if it is none.
    fn entries(&mut self, path: &TargetPath) -> Result<BTreeSet<TargetPath>, FileError> {
        let is_in = |other: &TargetPath| other.parent().as_ref() == Some(path);
        let made = self
            .sets
            .iter()
            .filter(|(_, index)| self.after(**index).is_some_and(|after| !after.is_absent()));
        let made = made.map(|(made, _)| made).chain(self.moved_to.keys());
        let mut entries: BTreeSet<_> = made.filter(|made| is_in(made)).cloned().collect();
        if let View::Real(place, node) = self.view(path)?
            && node.kind == Kind::Directory
        {
            let names = self.others_in(path, place.enter()?.names()?);
            for name in names {
                let entry = path.join(&name);
                let is_changed = self.sets.contains_key(&entry)
                    || self.moved_from.contains_key(&entry)
                    || self.moved_to.contains_key(&entry);
                if !is_changed {
                    entries.insert(entry);
                }
            }
        }
        Ok(entries)
    }

    /// Gives the metadata that an inode will have.
    pub(super) fn meta_of(&self, place: &Place, node: &Node) -> Result<Meta, FileError> {
        let index = self.retouched.get(&number_of(node));
        match index
            .and_then(|index| self.steps.get(*index))
            .map(|step| &step.change)
        {
            Some(Change::Retouch { before, after, .. }) => {
                let mut meta = after.clone();
                if !before.changes_times_to(after) {
                    meta.times = Some(node.times);
                }
                Ok(meta)
            }
            Some(Change::Set { .. } | Change::Move { .. } | Change::Rewrite { .. }) | None => {
                meta_of(place, node)
            }
        }
    }

    /// Tells whether a step of a batch changes an inode that has other names, where the change is seen as well.
    pub(super) fn is_shared(&self, step: &Step) -> bool {
        self.in_batch && matches!(step.seen, Seen::There(node) if node.is_shared)
    }

    /// Refuses to replace one name of a file that an earlier change of the batch changed by another.
    pub(super) fn refuse_shared(&self, path: &TargetPath, node: &Node) -> Result<(), FileError> {
        if self.in_batch && node.is_shared && self.retouched.contains_key(&number_of(node)) {
            return Err(FileError::Entangled {
                path: path.to_string(),
            });
        }
        Ok(())
    }

    fn retouch_real(
        &mut self,
        path: &TargetPath,
        place: &Place,
        node: &Node,
        change: &dyn Fn(&mut Meta, Kind),
    ) -> Result<(), FileError> {
        // By another name of the same inode it is changed already.
        if node.is_shared && !self.retouched_now.insert(number_of(node)) {
            return Ok(());
        }
        if let Some(index) = self.retouched.get(&number_of(node))
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
        // Times alone are no change, but where names become what they were.
        if (before != after || self.is_restoring)
            && let (Some(was), Some(wanted)) = (was, wanted)
            && was.mtime != wanted.mtime
        {
            (before.times, after.times) = (Some(was), Some(wanted));
        }
        if before == after {
            return Ok(());
        }
        let index = self.steps.len();
        self.retouches.insert(path.clone(), index);
        self.retouched.insert(number_of(node), index);
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
            Image::Linked { to, identity, .. } => {
                let (first, identity) = (to.clone(), *identity);
                return self.retouch_first(path, &first, identity, change);
            }
            Image::Kept { .. } | Image::Unkept { .. } | Image::Absent => {
                return Err(FileError::Entangled {
                    path: path.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Changes a file by its planned second name: the first stands for it as well, if it still does.
    fn retouch_first(
        &mut self,
        path: &TargetPath,
        first: &TargetPath,
        identity: Option<Identity>,
        change: &dyn Fn(&mut Meta, Kind),
    ) -> Result<(), FileError> {
        match (self.view(first)?, identity) {
            (View::Real(_, node), Some(identity)) if node.identity.ino == identity.ino => {
                self.retouch(first, false, change)
            }
            (View::Planned(index), None) => self.retouch_planned(first, index, change),
            (View::Real(..) | View::Planned(_) | View::Absent, _) => Err(FileError::Entangled {
                path: path.to_string(),
            }),
        }
    }
}
