//! Several layers become one that means the same: files as further names of the same inode, directories made anew.
//!
//! What hides something below stays: whiteouts, and the note that a directory is opaque. Nothing of the merged layers
//! changes, so that each of them can be gone back to.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags, lsetxattr, utimensat};

use super::plan::Means;
use super::touched::{is_opaque, is_whiteout, look};
use super::{OverlayError, xattrs};

/// Merges layers, topmost first, into a new one.
pub fn merge(
    means: Means,
    layers: &[PathBuf],
    points: usize,
    into: &Path,
) -> Result<(), OverlayError> {
    let failed = |source| OverlayError::Unmakable {
        path: into.to_path_buf(),
        source,
    };
    for number in 0..points {
        let upper = |layer: &Path| layer.join(number.to_string()).join("upper");
        let chain: Vec<PathBuf> = layers.iter().map(|layer| upper(layer)).collect();
        let chain: Vec<PathBuf> = chain.into_iter().filter(|path| path.is_dir()).collect();
        if !chain.is_empty() {
            let home = into.join(number.to_string());
            make_private(&home).map_err(failed)?;
            directory(means, &chain, false, &upper(into)).map_err(failed)?;
        }
    }
    // A layer of nothing is a layer too.
    make_private(into).map_err(failed)
}

fn make_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Merges directories, topmost first. `is_cut_off` says that something between them hides what is below.
fn directory(means: Means, chain: &[PathBuf], is_cut_off: bool, to: &Path) -> io::Result<()> {
    let Some(top) = chain.first() else {
        return Ok(());
    };
    fs::DirBuilder::new().mode(0o700).create(to)?;
    let mut is_closed = is_cut_off;
    let mut shown = chain;
    for (place, path) in chain.iter().enumerate() {
        if is_opaque(means, path)? {
            is_closed = true;
            shown = chain.get(..=place).unwrap_or(chain);
            break;
        }
    }
    let mut seen: BTreeSet<OsString> = BTreeSet::new();
    for (place, from) in shown.iter().enumerate() {
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            if !seen.insert(name.clone()) {
                continue;
            }
            let (source, target) = (from.join(&name), to.join(&name));
            let Some(found) = look(&source)? else {
                continue;
            };
            if found.is_dir() {
                let below = shown.get(place..).unwrap_or_default();
                let (same, is_hidden) = alike(below, &name)?;
                directory(means, &same, is_hidden, &target)?;
            } else if !(is_whiteout(&found) && is_closed) {
                fs::hard_link(&source, &target)?;
            }
        }
    }
    if is_closed {
        let name = format!("{}opaque", means.xattr_prefix());
        lsetxattr(to, name.as_str(), b"y", XattrFlags::empty())?;
    }
    dress(top, to)
}

/// Gives the directories of a name, as far down as they merge, and whether something else is below them.
fn alike(chain: &[PathBuf], name: &OsString) -> io::Result<(Vec<PathBuf>, bool)> {
    let mut same = Vec::new();
    for directory in chain {
        let path = directory.join(name);
        match look(&path)? {
            Some(found) if found.is_dir() => same.push(path),
            Some(_) => return Ok((same, true)),
            None => {}
        }
    }
    Ok((same, false))
}

/// Makes a directory look like another, times last.
fn dress(from: &Path, to: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(from)?;
    for (name, value) in xattrs::read_all(from)? {
        let name = std::ffi::OsStr::from_bytes(&name);
        lsetxattr(to, name, &value, XattrFlags::empty())?;
    }
    let made = fs::symlink_metadata(to)?;
    if (made.uid(), made.gid()) != (found.uid(), found.gid()) {
        chown(to, Some(found.uid()), Some(found.gid()))?;
    }
    fs::set_permissions(to, fs::Permissions::from_mode(found.mode() & 0o7777))?;
    utimensat(CWD, to, &times(&found), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

fn times(found: &Metadata) -> Timestamps {
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    Timestamps {
        last_access: time(found.atime(), found.atime_nsec()),
        last_modification: time(found.mtime(), found.mtime_nsec()),
    }
}
