//! Where layers can be: a file system that is no overlay itself and takes the attributes that overlays need.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, XattrFlags, accessat, lremovexattr, lsetxattr, statfs};

use super::OverlayError;
use super::plan::Means;

/// An overlay cannot hold the upper layer of another.
const OVERLAY_MAGIC: u64 = 0x794c_7630;

/// Makes the first of `places` that can hold layers, private.
pub(super) fn choose(places: &[PathBuf], means: Means) -> Result<PathBuf, OverlayError> {
    let mut tried = Vec::new();
    for place in places {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(place);
        match made
            .map_err(|error| error.to_string())
            .and_then(|()| fits(place, means))
        {
            Ok(()) => {
                let scratch = place.join(match means {
                    Means::Root => "root",
                    Means::UserNamespace => "user",
                });
                let unmakable = |source| OverlayError::Unmakable {
                    path: scratch.clone(),
                    source,
                };
                fs::DirBuilder::new()
                    .mode(0o700)
                    .create(&scratch)
                    .map_err(unmakable)?;
                return fs::canonicalize(&scratch).map_err(unmakable);
            }
            Err(why) => {
                let _removed = fs::remove_dir(place);
                tried.push(format!("{}: {why}", place.display()));
            }
        }
    }
    Err(OverlayError::NoPlace { tried })
}

/// Tries what an overlay will do.
fn fits(place: &Path, means: Means) -> Result<(), String> {
    let kind = statfs(place).map_err(|errno| errno.to_string())?.f_type;
    if u64::try_from(kind).is_ok_and(|kind| kind == OVERLAY_MAGIC) {
        return Err("it is an overlay itself".to_owned());
    }
    let name = format!("{}probe", means.xattr_prefix());
    lsetxattr(place, name.as_str(), b"y", XattrFlags::empty())
        .and_then(|()| lremovexattr(place, name.as_str()))
        .map_err(|errno| format!("attributes cannot be set ({errno})"))
}

/// Finds the directories that are not the user's own and that he is likely to write below: the innermost above the working
/// directory, his home and the usual places for temporary files.
pub(super) fn foreign_above(directory: &Path) -> Vec<PathBuf> {
    let (user, group) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    let is_foreign = |path: &&Path| {
        let found = fs::symlink_metadata(path);
        found.is_ok_and(|found| found.is_dir() && (found.uid(), found.gid()) != (user, group))
    };
    let variables = ["HOME", "TMPDIR"].map(std::env::var_os);
    let named = variables.into_iter().flatten().map(PathBuf::from);
    let places = named.chain(["/var/tmp".into(), directory.to_path_buf()]);
    let real = places.filter_map(|place| fs::canonicalize(place).ok());
    let mut foreign: Vec<PathBuf> = real
        .filter_map(|place| place.ancestors().find(is_foreign).map(Path::to_path_buf))
        .collect();
    foreign.sort();
    foreign.dedup();
    foreign
}

/// Gives the top of a layer mode and owner of the directory that it covers. What cannot be given away and may not be
/// written, is closed.
pub(super) fn dress(covered: &Path, upper: &Path) {
    let Ok(found) = fs::metadata(covered) else {
        return;
    };
    let mut mode = found.mode() & 0o7777;
    let is_given = chown(upper, Some(found.uid()), Some(found.gid())).is_ok();
    let is_open = || accessat(CWD, covered, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    if !is_given && !is_open() {
        mode &= !0o222;
    }
    let _set = fs::set_permissions(upper, fs::Permissions::from_mode(mode));
}

/// Reads mode, owner and group of the top of a layer.
pub(super) fn top_of(upper: &Path) -> Option<(u32, u32, u32)> {
    let found = fs::symlink_metadata(upper).ok()?;
    Some((found.mode(), found.uid(), found.gid()))
}

/// Removes a directory with layers. An overlay leaves directories that nobody may enter.
pub fn remove(directory: &Path) -> io::Result<()> {
    open_all(directory);
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn open_all(directory: &Path) {
    let _opened = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    let Ok(listing) = fs::read_dir(directory) else {
        return;
    };
    for entry in listing.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_all(&entry.path());
        }
    }
}
