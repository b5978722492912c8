//! What of an owner or of attributes this process cannot give back: foreseen, so that a plan says it and no undo stops at
//! it half-way.
//!
//! An ordinary user gives files to nobody else, and only to his own groups. Something made anew has the group of its
//! directory, if that passes its group on. Root can do it all.

use backout_model::TargetPath;

use crate::file::compare::Current;
use crate::file::error::FileError;
use crate::file::recipe::{Change, Image, Meta};
use crate::file::sys::{Dir, Node, meta};
use crate::file::written::locate;

/// Says what an undo of a change could not give back, in the words of the undo.
pub(crate) fn lacking(changes: &[Change], change: &Change) -> Result<Option<String>, FileError> {
    if is_root() {
        return Ok(None);
    }
    let new = |gap: Option<String>| gap.map(|gap| only_root_but_force(&gap));
    match change {
        Change::Set { path, before, .. } => Ok(new(gap_of_new(path, before))),
        Change::Move { to, replaced, .. } => Ok(new(gap_of_new(to, replaced))),
        Change::Retouch {
            path,
            before,
            after,
            ..
        } if owner(before) != owner(after) => {
            let node = Current::at(path)?.node;
            let gap = node.and_then(|node| gap_of(&node, before));
            Ok(gap.map(|gap| only_root(&gap)))
        }
        Change::Retouch { .. } => Ok(None),
        Change::Rewrite {
            path, ino, before, ..
        } => {
            let node = Current::at(&locate(changes, path, *ino)?)?.node;
            Ok(new(node.and_then(|node| gap_of(&node, &before.meta))))
        }
    }
}

/// Says what of an owner this process cannot give to what is there.
pub(super) fn gap_of(node: &Node, wanted: &Meta) -> Option<String> {
    gap((node.uid, node.gid), wanted)
}

/// Says what this process cannot give to something that it makes anew. What is kept as the inode it is has it all.
pub(super) fn gap_of_new(path: &TargetPath, image: &Image) -> Option<String> {
    let wanted = made_anew(image).filter(|_| !is_root())?;
    let names = wanted.xattrs.iter().map(|(name, _)| &name.0);
    let mut for_root = names.filter(|name| meta::is_for_root(name));
    let attribute = for_root
        .next()
        .map(|name| format!("attribute {}", String::from_utf8_lossy(name)));
    gap(owner_of_new(path), wanted).or(attribute)
}

/// Gives the image as this process can make it.
pub(super) fn without_gap(path: &TargetPath, mut image: Image) -> Image {
    if made_anew(&image).is_some()
        && let Some(meta) = image.meta_mut()
    {
        (meta.uid, meta.gid) = owner_of_new(path);
        meta.xattrs.retain(|(name, _)| !meta::is_for_root(&name.0));
        // A setuid bit must not pass to another owner.
        meta.mode &= !0o6000;
    }
    image
}

/// Says that only root can restore something.
pub(super) fn only_root(gap: &str) -> String {
    format!("{gap} can only be restored by root")
}

/// The same where the rest can be had.
pub(super) fn only_root_but_force(gap: &str) -> String {
    format!("{}; `--force` restores the rest", only_root(gap))
}

fn gap(now: (u32, u32), wanted: &Meta) -> Option<String> {
    let has_group = now.1 == wanted.gid || meta::is_our_group(wanted.gid);
    let is_ours = is_root() || now.0 == wanted.uid && has_group;
    (!is_ours).then(|| format!("owner {}:{}", wanted.uid, wanted.gid))
}

fn owner_of_new(path: &TargetPath) -> (u32, u32) {
    let above = path.parent().and_then(|parent| Dir::open(&parent).ok());
    let above = above.and_then(|dir| dir.node().ok());
    let passed_on = above.filter(|node| node.mode & 0o2000 != 0);
    let group = || rustix::process::getegid().as_raw();
    let group = passed_on.map_or_else(group, |node| node.gid);
    (rustix::process::geteuid().as_raw(), group)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

const fn owner(meta: &Meta) -> (u32, u32) {
    (meta.uid, meta.gid)
}

/// Gives the metadata of an image that is made and not taken out of a slot.
const fn made_anew(image: &Image) -> Option<&Meta> {
    match image {
        Image::File { meta, .. }
        | Image::Symlink { meta, .. }
        | Image::Directory { meta }
        | Image::Special { meta, .. } => Some(meta),
        Image::Absent | Image::Linked { .. } | Image::Kept { .. } | Image::Unkept { .. } => None,
    }
}
