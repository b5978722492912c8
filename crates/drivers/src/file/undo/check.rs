//! Looking at what was kept, without touching it: would an undo take it?

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use backout_model::{Effect, Slot, TargetPath};

use super::obtain::obtain;
use crate::file::driver::LookedAt;
use crate::file::error::FileError;
use crate::file::recipe::{Change, FileRecipe, Image, Kind, Numbers, Written};
use crate::file::tools::Tools;

/// What is wrong with an inode, if something is.
type Finding = Result<Option<String>, FileError>;

/// Looks at each of the inodes that an effect keeps for names that are needed: what they stood for before it. Of a tree that
/// was kept whole every entry is looked at: none may have changed after it was put away.
pub(crate) fn check_kept(
    tools: &Tools,
    effect: &Effect,
    is_needed: &dyn Fn(&TargetPath) -> bool,
) -> Result<Vec<LookedAt>, FileError> {
    let recipe = FileRecipe::decode(&effect.recipe)?;
    let rewritten = recipe.rewritten();
    let mut keepers: BTreeMap<&Slot, Keeper<'_>> = BTreeMap::new();
    let needed = |change: &&Change| is_needed(change.path());
    for change in recipe.changes.iter().filter(needed) {
        let kept = match change {
            Change::Set { path, before, .. } => {
                before.slot().zip(Some(Keeper::Image(path, before)))
            }
            Change::Move { to, replaced, .. } => {
                replaced.slot().zip(Some(Keeper::Image(to, replaced)))
            }
            Change::Rewrite { before, .. } => {
                before.slot.as_ref().zip(Some(Keeper::Written(before)))
            }
            Change::Retouch { .. } => None,
        };
        if let Some((slot, keeper)) = kept {
            keepers.entry(slot).or_insert(keeper);
        }
    }
    let look = |slot: &Slot, keeper| match keeper {
        Keeper::Image(path, image) => check_image(tools, path, image, slot, &rewritten),
        Keeper::Written(written) => Ok(written.lacks(tools)?.map(cannot_be_used)),
    };
    let each = keepers.into_iter();
    let each = each.map(|(slot, keeper)| (slot.clone(), look(slot, keeper)));
    Ok(each.collect())
}

/// The part of a recipe that speaks of a kept inode.
enum Keeper<'a> {
    Image(&'a TargetPath, &'a Image),
    Written(&'a Written),
}

fn check_image(
    tools: &Tools,
    path: &TargetPath,
    image: &Image,
    slot: &Slot,
    rewritten: &Numbers,
) -> Finding {
    let obtained = match obtain(tools, path, image, false, rewritten)? {
        Err(why) => return Ok(Some(cannot_be_used(why))),
        Ok(obtained) => obtained,
    };
    Ok(match obtained.image {
        Image::Kept {
            node: Kind::Directory,
            ..
        } => changed_below(slot.path().as_path()),
        _ => None,
    })
}

fn cannot_be_used(why: impl Display) -> String {
    format!("cannot be used: {why}")
}

/// Names something in a tree that is newer than the tree itself.
pub(super) fn changed_below(top: &Path) -> Option<String> {
    // A file with another name elsewhere gets a new change time when that name goes: its bytes have a time of their own. What
    // is written by that other name is in the world, and no harm to what was kept.
    let stamp = |path: &Path| {
        let found = fs::symlink_metadata(path).ok()?;
        Some(if found.is_dir() {
            (found.ctime(), found.ctime_nsec(), true)
        } else {
            (found.mtime(), found.mtime_nsec(), false)
        })
    };
    let (seconds, nanoseconds, _) = stamp(top)?;
    let mut waiting = vec![top.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).ok()?.flatten() {
            let path = entry.path();
            let (s, n, is_directory) = stamp(&path)?;
            let is_later = (s, n) > (seconds, nanoseconds);
            let has_other_names =
                || fs::symlink_metadata(&path).is_ok_and(|found| found.nlink() > 1);
            if is_later && (is_directory || !has_other_names()) {
                let name = path.strip_prefix(top).unwrap_or(&path).as_os_str();
                return Some(format!(
                    "was changed after it was kept, at `{}`",
                    OsStr::from_bytes(name.as_bytes()).display()
                ));
            }
            if is_directory {
                waiting.push(path);
            }
        }
    }
    None
}
