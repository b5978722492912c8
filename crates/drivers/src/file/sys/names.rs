//! Making, exchanging and taking away names so that nobody's file is overwritten unseen.

use backout_model::TargetPath;
use rustix::fs::{AtFlags, Mode, RenameFlags, linkat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::{Dir, Place};
use crate::file::error::{FileError, Naming as _};
use crate::file::recipe::Kind;

/// Gives `from` the name `to`, which must be free; a taken name is [`FileError::Changed`].
pub(crate) fn rename_to_free(from: &Place, to: &Place) -> Result<(), FileError> {
    let plain = renameat_with(
        &from.dir,
        &from.name,
        &to.dir,
        &to.name,
        RenameFlags::NOREPLACE,
    );
    match plain {
        Ok(()) => Ok(()),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Err(changed(&to.path())),
        Err(Errno::INVAL | Errno::NOSYS) => rename_to_free_old(from, to),
        Err(errno) => Err(FileError::of(errno, &to.path(), "name")),
    }
}

/// Gives `from` its name in a depot, which must be free. Whatever is done in a tree after that has a later change time than
/// its top, also within the same tick of the kernel's clock.
pub(crate) fn put_into_slot(from: &Place, to: &Place, is_tree: bool) -> Result<(), FileError> {
    rename_to_free(from, to)?;
    if is_tree {
        end_of_moment(&to.dir);
    }
    Ok(())
}

/// Moves the kernel's clock for change times on. All that happens within a tick gets the same time. What somebody has looked
/// at since that time gets an exact one instead, and nothing gets an earlier one afterwards. So the depot is changed, looked
/// at and changed again. (Before Linux 6.13 there are only ticks, and this does nothing.)
fn end_of_moment(depot: &Dir) {
    for _ in 0..2 {
        if let Ok(seen) = rustix::fs::fstat(depot) {
            let _same_mode = rustix::fs::fchmod(depot, Mode::from_raw_mode(seen.st_mode));
        }
    }
}

/// Renames to a free name on file systems that know no `RENAME_NOREPLACE`.
fn rename_to_free_old(from: &Place, to: &Place) -> Result<(), FileError> {
    let is_directory = from
        .node()?
        .is_some_and(|node| node.kind == Kind::Directory);
    if is_directory {
        if to.node()?.is_some() {
            return Err(changed(&to.path()));
        }
        return renameat(&from.dir, &from.name, &to.dir, &to.name).naming(&to.path(), "name");
    }
    link(from, to)?;
    unlink(from)
}

/// Swaps two names in one step. Gives false where the file system cannot; nothing happened then.
pub(crate) fn exchange(one: &Place, other: &Place) -> Result<bool, FileError> {
    let swapped = renameat_with(
        &one.dir,
        &one.name,
        &other.dir,
        &other.name,
        RenameFlags::EXCHANGE,
    );
    match swapped {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS) => Ok(false),
        Err(errno) => Err(FileError::of(errno, &other.path(), "replace")),
    }
}

/// Adds a name to a file; a taken name is [`FileError::Changed`].
pub(crate) fn link(from: &Place, to: &Place) -> Result<(), FileError> {
    match linkat(&from.dir, &from.name, &to.dir, &to.name, AtFlags::empty()) {
        Err(Errno::EXIST) => Err(changed(&to.path())),
        other => other.naming(&to.path(), "link"),
    }
}

/// Takes a name away from anything but a directory.
pub(crate) fn unlink(place: &Place) -> Result<(), FileError> {
    unlinkat(&place.dir, &place.name, AtFlags::empty()).naming(&place.path(), "remove")
}

/// Removes an empty directory.
pub(crate) fn rmdir(place: &Place) -> Result<(), FileError> {
    match unlinkat(&place.dir, &place.name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(FileError::NotEmpty {
            path: place.path().to_string(),
        }),
        other => other.naming(&place.path(), "remove"),
    }
}

fn changed(path: &TargetPath) -> FileError {
    FileError::Changed {
        path: path.to_string(),
    }
}
