//! A little room on the disk of the state, kept back for a collection: where the disk is full, nothing could be let go, since
//! that has to be recorded first.
//!
//! It is a file of zeros. A collection on a full disk gives it up, and makes it again when there is room. Nothing depends on
//! it: where it is missing, room must be made by other means.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate, statvfs};

const NAME: &str = "reserve";

/// More than the records of a collection take.
const RESERVE_BYTES: u64 = 1024 * 1024;

/// On a disk with less room than this, nothing is kept back.
const ROOM_BYTES_MIN: u64 = 64 * RESERVE_BYTES;

/// Keeps room back, if there is plenty and none is kept yet.
pub(crate) fn keep(directory: &Path) {
    let path = directory.join(NAME);
    if path.exists() || room(directory).is_none_or(|room| room < ROOM_BYTES_MIN) {
        return;
    }
    let mut options = File::options();
    let made = options.write(true).create_new(true).mode(0o600).open(&path);
    let is_kept = made.is_ok_and(|file| {
        let kept = fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES);
        kept.is_ok()
    });
    if !is_kept {
        let _gone = fs::remove_file(&path);
    }
}

/// Gives the room up, if it is needed.
pub(crate) fn give_up(directory: &Path) {
    if room(directory).is_some_and(|room| room < RESERVE_BYTES) {
        let _gone = fs::remove_file(directory.join(NAME));
    }
}

fn room(directory: &Path) -> Option<u64> {
    let found = statvfs(directory).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}
