//! Names that come back to a file whose mode or owner the same undo puts back by another of its names.
//!
//! A name has no mode of its own. What was kept is the name; what its file will have is what the undo gives to it.

use std::collections::{HashMap, HashSet};

use backout_files::inode::put_back_changed;
use backout_model::TargetPath;

use super::carry::carried;
use super::obtain::{self, Obtained};
use super::prepare::Undo;
use crate::file::compare::{Current, differs_in_meta};
use crate::file::error::FileError;
use crate::file::judge::State;
use crate::file::kept::look_into;
use crate::file::listing::listing_as;
use crate::file::recipe::{Change, Image, Kind, Meta};

/// What mode, owner and attributes were and became, by the number of the file.
pub(super) type Dressed<'r> = HashMap<u64, (&'r Meta, &'r Meta)>;

/// Finds the files with several names whose mode or owner an undo puts back.
pub(super) fn dressed<'r>(
    changes: &'r [Change],
    states: &[State],
    chosen: &HashSet<usize>,
    is_forced: bool,
) -> Result<Dressed<'r>, FileError> {
    let mut all = Dressed::new();
    for (index, (change, state)) in std::iter::zip(changes, states).enumerate() {
        let is_meant = chosen.contains(&index) && (*state == State::After || is_forced);
        if let Change::Retouch {
            path,
            before,
            after,
            ..
        } = change
            && is_meant
            && let Some(node) = Current::at(path)?.node
            && node.kind == Kind::File
            && node.is_shared
        {
            all.insert(node.identity.ino, (before, after));
        }
    }
    Ok(all)
}

impl Undo<'_> {
    /// Checks that an image can be made, and what it will be when all of the undo is done.
    pub(super) fn obtain(
        &self,
        path: &TargetPath,
        image: &Image,
    ) -> Result<Result<Obtained, String>, FileError> {
        let anyway = self.is_forced();
        let found = self.by_another_name(path, image)?;
        let image = found.as_ref().unwrap_or(image);
        let obtained = obtain::obtain(self.context, path, image, anyway, &self.rewritten)?;
        match obtained {
            Ok(obtained) => carried(path, self.as_dressed(obtained, image)?),
            Err(why) => Ok(Err(why)),
        }
    }

    fn as_dressed(&self, mut obtained: Obtained, image: &Image) -> Result<Obtained, FileError> {
        self.list_as_dressed(&mut obtained.image)?;
        if let Image::Kept { identity, meta, .. } = &mut obtained.image
            && let Some((before, after)) = self.dressed.get(&identity.ino)
            && let Some(was) = image.meta()
        {
            *meta = put_back_changed(meta, before, after);
            if obtained.is_dressed_anew && differs_in_meta(meta, was, Kind::File).is_none() {
                meta.clone_from(was);
                obtained.note = None;
            }
        }
        Ok(obtained)
    }

    /// A tree that comes back may hold one of those names: its listing is that of the tree when all of the undo is done.
    fn list_as_dressed(&self, image: &mut Image) -> Result<(), FileError> {
        let Image::Kept {
            node: Kind::Directory,
            slot,
            entries: entries @ Some(_),
            ..
        } = image
        else {
            return Ok(());
        };
        let tree = look_into(self.context, slot)?;
        let Some(place) = tree
            .place
            .filter(|_| tree.node.is_some() && !self.dressed.is_empty())
        else {
            return Ok(());
        };
        *entries = listing_as(&place, &|node| match self.dressed.get(&node.identity.ino) {
            Some((before, after)) => {
                let is_other_mode = before.mode != after.mode;
                let is_other_owner = (before.uid, before.gid) != (after.uid, after.gid);
                let mode = if is_other_mode {
                    before.mode
                } else {
                    node.mode
                };
                let (uid, gid) = if is_other_owner {
                    (before.uid, before.gid)
                } else {
                    (node.uid, node.gid)
                };
                (mode, uid, gid)
            }
            None => (node.mode, node.uid, node.gid),
        })?;
        Ok(())
    }
}
