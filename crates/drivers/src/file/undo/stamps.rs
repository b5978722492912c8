//! What somebody did in a tree after it was put away: a process whose current directory is in it, or that has a file of it
//! open, goes on writing there.
//!
//! The rename that puts a tree away gives its top a new change time. Whatever in it is newer was changed since. What
//! comes or goes in the top itself moves that time on, and gives the top a modification time that is just as new.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::file::recipe::Identity;
use crate::file::sys::nanoseconds;

/// Says where a kept tree was changed after it was put away, if it was. `kept` is its top as it was seen before that. Of a
/// tree with more entries than `entries_max` only the top is believed to tell.
pub(super) fn changed_below(top: &Path, kept: &Identity, entries_max: usize) -> Option<String> {
    changed_so(top, (kept, None), entries_max, is_newer)
}

/// The same of a tree that was moved and is in the world: where something was written in it. An undo in it gives back the times
/// of modification, so it says nothing of those. Who saw the top only after the move knows when that was at the latest by the directory
/// that it was moved into.
pub(super) fn written_below(
    top: &Path,
    moved: (&Identity, Option<i128>),
    entries_max: usize,
) -> Option<String> {
    let is_written =
        |found: &Metadata, moment| is_newer(found, moment) && modified_at(found) > moment;
    changed_so(top, moved, entries_max, is_written)
}

fn changed_so(
    top: &Path,
    (kept, moved_at): (&Identity, Option<i128>),
    entries_max: usize,
    is_such: impl Fn(&Metadata, i128) -> bool,
) -> Option<String> {
    let found = fs::symlink_metadata(top).ok()?;
    let put_away = changed_at(&found);
    // A file system that does not stamp what is renamed does not tell when that was.
    if put_away == kept.ctime {
        let moved_at = moved_at?.max(put_away);
        return newer_below(top, moved_at, entries_max, is_such);
    }
    let mtime = modified_at(&found);
    if mtime != kept.mtime && mtime == put_away {
        return Some(newest_in(top, put_away));
    }
    newer_below(top, put_away, entries_max, is_such)
}

/// Says that a kept tree is not what it was.
pub(super) fn said_of_changed(at: &str) -> String {
    format!("what was kept was changed since, {at}")
}

/// Names something below a directory that is newer than a moment.
fn newer_below(
    top: &Path,
    moment: i128,
    entries_max: usize,
    is_such: impl Fn(&Metadata, i128) -> bool,
) -> Option<String> {
    let mut count = 0_usize;
    let mut waiting = vec![top.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for (path, found) in entries(&directory) {
            count += 1;
            if count > entries_max {
                return None;
            }
            if is_such(&found, moment) {
                return Some(shown(top, &path));
            }
            if found.is_dir() {
                waiting.push(path);
            }
        }
    }
    None
}

/// Tells whether something was changed after a moment. A file may have any modification time, and gets a new change time when
/// another name of it goes: both are newer if it was written. What is written by another name is in the world, and no harm
/// to what was kept.
fn is_newer(found: &Metadata, moment: i128) -> bool {
    let is_changed = changed_at(found) > moment;
    if found.is_dir() {
        return is_changed;
    }
    is_changed && modified_at(found) > moment && found.nlink() == 1
}

/// Says what came into the top of a tree, or that something went.
fn newest_in(top: &Path, moment: i128) -> String {
    let mut all = entries(top);
    let come = all.find(|(_, found)| changed_at(found) >= moment);
    come.map_or_else(
        || "and something in it is gone".to_owned(),
        |(path, _)| shown(top, &path),
    )
}

/// Lists what is in a directory. What cannot be looked at is not among it.
fn entries(directory: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> {
    let all = fs::read_dir(directory).into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let found = entry.metadata().ok()?;
        Some((entry.path(), found))
    })
}

fn shown(top: &Path, path: &Path) -> String {
    format!("at `{}`", path.strip_prefix(top).unwrap_or(path).display())
}

fn changed_at(found: &Metadata) -> i128 {
    nanoseconds(found.ctime(), found.ctime_nsec())
}

fn modified_at(found: &Metadata) -> i128 {
    nanoseconds(found.mtime(), found.mtime_nsec())
}
