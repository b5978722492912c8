//! Looking at what was kept, without touching it: would an undo take it?

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use backout_model::{Effect, Slot};

use super::obtain::obtain;
use crate::file::error::FileError;
use crate::file::recipe::{Change, FileRecipe, Image, Kind};
use crate::file::tools::Tools;

/// Says what is wrong with a kept inode, if something is. Of a tree that was kept whole every entry is looked at: none
/// may have changed after it was put away.
pub(crate) fn check_kept(
    tools: &Tools,
    effect: &Effect,
    slot: &Slot,
) -> Result<Option<String>, FileError> {
    let recipe = FileRecipe::decode(&effect.recipe)?;
    let is_it = |image: &&Image| matches!(image, Image::Kept { slot: kept, .. } if kept == slot);
    let Some((path, image)) = recipe.changes.iter().find_map(|change: &Change| {
        Some((change.path(), change.images().into_iter().find(is_it)?))
    }) else {
        let writings = recipe.changes.iter().flat_map(Change::writings);
        let found = writings
            .into_iter()
            .find(|it| it.slot.as_ref() == Some(slot));
        let why = found.map(|written| written.lacks(tools)).transpose()?;
        return Ok(why.flatten().map(|why| format!("cannot be used: {why}")));
    };
    Ok(
        match obtain(tools, path, image, false, &recipe.rewritten())? {
            Err(why) => Some(format!("cannot be used: {why}")),
            Ok(obtained) => match obtained.image {
                Image::Kept {
                    node: Kind::Directory,
                    ..
                } => changed_below(slot.path().as_path()),
                _ => None,
            },
        },
    )
}

fn changed_below(top: &Path) -> Option<String> {
    // A file with another name elsewhere gets a new change time when that name goes: its bytes have a time of their own.
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
            if (s, n) > (seconds, nanoseconds) {
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
