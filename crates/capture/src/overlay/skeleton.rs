//! The directories above mounts, made anew: a user namespace may not layer a directory with other mounts below it.
//!
//! The skeleton holds an empty directory for each directory beside a mount, an empty file for each other thing, and
//! symbolic links as they are. What an ordinary user may not write in the real directory, is closed here as well.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::OverlayError;
use super::plan::{LayerKind, Plan};

/// More entries than this in one directory above a mount are not shown.
const ENTRIES_MAX: usize = 1000;

/// Lists a directory: its directories, then everything else but symbolic links. One that may not be read has none, and
/// one with too many entries not all, but always the one that leads to `wanted`.
pub(super) fn entries(directory: &Path, wanted: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut directories, mut others) = (Vec::new(), Vec::new());
    let leads = |path: &&Path| path.parent() == Some(directory);
    directories.extend(wanted.ancestors().find(leads).map(Path::to_path_buf));
    let Ok(listing) = fs::read_dir(directory) else {
        return (directories, others);
    };
    for entry in listing.take(ENTRIES_MAX).flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => directories.push(entry.path()),
            Ok(kind) if !kind.is_symlink() => others.push(entry.path()),
            Ok(_) | Err(_) => {}
        }
    }
    directories.sort();
    directories.dedup();
    others.sort();
    (directories, others)
}

/// Makes the skeleton of a plan, and notes in it what the skeleton begins with.
pub(super) fn make(plan: &mut Plan) -> Result<(), OverlayError> {
    let top = plan.scratch.join("skeleton");
    let mut known = BTreeSet::new();
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| OverlayError::Unmakable { path, source }
    };
    make_directory(&top).map_err(failed(&top))?;
    for directory in &plan.spine {
        let here = below(&top, directory);
        make_directory(&here).map_err(failed(&here))?;
        links(directory, &here, &mut known).map_err(failed(&here))?;
    }
    for step in &plan.steps {
        let point = step.point();
        if !point
            .parent()
            .is_some_and(|above| plan.spine.contains(above))
        {
            continue;
        }
        let here = below(&top, point);
        let made = if fs::symlink_metadata(point).is_ok_and(|found| !found.is_dir()) {
            File::create(&here).map(drop)
        } else {
            make_directory(&here)
        };
        made.map_err(failed(&here))?;
        known.insert(point.to_path_buf());
    }
    known.extend(plan.spine.iter().cloned());
    // Last, and deepest first: a closed directory takes no more entries.
    for directory in plan.spine.iter().rev() {
        let here = below(&top, directory);
        close(directory, &here).map_err(failed(&here))?;
    }
    for layer in &mut plan.layers {
        if let LayerKind::Skeleton { known: noted } = &mut layer.kind {
            noted.clone_from(&known);
        }
    }
    Ok(())
}

/// Gives the place of a real path below another root.
pub(super) fn below(top: &Path, path: &Path) -> PathBuf {
    let relative = path.strip_prefix("/").unwrap_or(path);
    if relative.as_os_str().is_empty() {
        top.to_path_buf()
    } else {
        top.join(relative)
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o755).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

fn links(directory: &Path, here: &Path, known: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    let Ok(listing) = fs::read_dir(directory) else {
        return Ok(());
    };
    for entry in listing.take(ENTRIES_MAX).flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            symlink(fs::read_link(entry.path())?, here.join(entry.file_name()))?;
            known.insert(entry.path());
        }
    }
    Ok(())
}

fn close(real: &Path, here: &Path) -> io::Result<()> {
    let mode = fs::metadata(real).map_or(0o755, |found| found.permissions().mode());
    let is_open = accessat(CWD, real, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    let mode = if is_open { mode | 0o700 } else { 0o555 };
    fs::set_permissions(here, fs::Permissions::from_mode(mode & 0o7777))
}
