//! Comparing what is there with an inode that was kept whole.
//!
//! A kept inode is known by its number. An undo may have had to make it anew: then it is known by its bytes if those are
//! known, else by its size and its time, but only if the kept one is not in its slot, for what is there is not here.

use backout_model::{Digest, Slot, TargetPath};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::compare::{Current, changed_bytes, differs_in_kind, differs_in_meta};
use super::context::FileContext;
use super::error::FileError;
use super::listing::listing;
use super::recipe::{Identity, Image, Kind, Meta};
use super::sys::{Node, Place};

/// Says of a kept inode that its stamps are not those that it was kept with.
pub(super) const WRITTEN_SINCE: &str =
    "what was kept was changed since by a process that had it open";

/// Says why a slot is empty.
pub(super) fn why_empty(context: &FileContext, slot: &Slot) -> String {
    let why = context.depots.out_of_reach(slot);
    why.unwrap_or_else(|| "what was kept is not in its depot any more".to_owned())
}

/// Looks into a slot. What is out of reach counts as not there, whether or not it can be seen.
pub(super) fn look_into(context: &FileContext, slot: &Slot) -> Result<Current, FileError> {
    match context.depots.out_of_reach(slot) {
        None => Current::at(&slot.path()),
        Some(_) => Ok(Current::nothing(slot.path())),
    }
}

/// Tells whether what is in a slot can be renamed to a path. A bind mount has the same file system, and is another mount.
pub(super) fn can_be_renamed(slot: &Slot, path: &TargetPath) -> bool {
    let mount = |directory: &TargetPath| {
        let flags = StatxFlags::MNT_ID | StatxFlags::BASIC_STATS;
        let found = statx(CWD, directory.as_path(), AtFlags::empty(), flags).ok()?;
        Some((found.stx_mnt_id, found.stx_dev_major, found.stx_dev_minor))
    };
    // Directories that are not there come back in the nearest that is.
    let near = path.ancestors().find_map(|above| mount(&above));
    near == mount(&slot.depot)
}

/// Says that a tree cannot leave its slot for a path.
pub(super) fn why_not_renamed(path: &TargetPath) -> String {
    format!(
        "it is kept on another mount than `{path}`, and a directory cannot move from one to another; `backout restore` \
         copies it"
    )
}

impl Current {
    /// Says how what is there differs from a kept image; nothing if it does not.
    pub(super) fn differs_from_kept(
        &self,
        place: &Place,
        node: &Node,
        image: &Image,
    ) -> Result<Option<String>, FileError> {
        let Image::Kept {
            slot,
            node: kind,
            identity,
            meta,
            copy,
            entries,
            digest,
        } = image
        else {
            return Ok(None);
        };
        if let Some(why) = differs_in_kind(node, *kind) {
            return Ok(Some(why));
        }
        if *kind == Kind::Directory {
            let kept = (slot, identity, meta);
            return self.differs_from_tree(place, node, kept, entries.as_ref());
        }
        if !node.is_kept(*kind, identity) {
            let why = match copy.as_ref().or(digest.as_ref()) {
                Some(digest) => self.differs_in_bytes(place, node, digest, identity.size)?,
                None if node.identity.ino == identity.ino => {
                    Some(changed_bytes(identity.size, node.identity.size))
                }
                // Made anew, by the undo of something that came between: of the same size and the same nanosecond.
                None if node.looks_like(*kind, identity) && !is_kept_in(slot)? => None,
                None => Some(format!("it is another {} now", kind.word())),
            };
            if why.is_some() {
                return Ok(why);
            }
        }
        Ok(differs_in_meta(self.meta(place, node)?, meta, *kind))
    }

    /// What the owner of a tree made of its mode since is not ours to judge, what is in it is.
    fn differs_from_tree(
        &self,
        place: &Place,
        node: &Node,
        (slot, identity, meta): (&Slot, &Identity, &Meta),
        entries: Option<&Digest>,
    ) -> Result<Option<String>, FileError> {
        if node.identity.ino == identity.ino {
            let is_same = match (entries, entries.map(|_| listing(place)).transpose()?) {
                (Some(entries), Some(Some(now))) => now == *entries,
                // A tree too large to be listed is believed.
                (_, _) => true,
            };
            return Ok((!is_same).then(|| "what is in it changed since".to_owned()));
        }
        let looks = differs_in_meta(self.meta(place, node)?, meta, Kind::Directory);
        let is_made_anew = entries.is_some()
            && looks.is_none()
            && !is_kept_in(slot)?
            && listing(place)?.as_ref() == entries;
        Ok((!is_made_anew).then(|| "it is another directory now".to_owned()))
    }
}

/// Tells whether something is in a slot.
fn is_kept_in(slot: &Slot) -> Result<bool, FileError> {
    Ok(Current::at(&slot.path())?.node.is_some())
}
