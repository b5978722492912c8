//! Extended attributes of what is in a layer. Overlays keep notes of their own there, which are nobody else's business.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{lgetxattr, llistxattr};
use rustix::io::Errno;

/// The largest list and value that the kernel allows.
const BYTES_MAX: usize = 64 * 1024;

/// Tells whether an attribute is an overlay's own note.
pub fn is_private(name: &[u8]) -> bool {
    name.starts_with(b"trusted.overlay.") || name.starts_with(b"user.overlay.")
}

/// Reads one attribute; none if it is not there.
pub(super) fn read(path: &Path, name: &str) -> io::Result<Option<Vec<u8>>> {
    let mut value = vec![0_u8; BYTES_MAX];
    match lgetxattr(path, name, value.as_mut_slice()) {
        Ok(length) => {
            value.truncate(length);
            Ok(Some(value))
        }
        // Links have no attributes of this kind, and nobody may ask.
        Err(Errno::NODATA | Errno::NOTSUP | Errno::PERM) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Reads all attributes but those of overlays.
pub fn attributes(path: &Path) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    read_all(path)
}

pub(super) fn read_all(path: &Path) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut names = vec![0_u8; BYTES_MAX];
    match llistxattr(path, names.as_mut_slice()) {
        Ok(length) => names.truncate(length),
        Err(Errno::NOTSUP) => return Ok(found),
        Err(errno) => return Err(errno.into()),
    }
    let names = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty() && !is_private(name));
    for name in names {
        let mut value = vec![0_u8; BYTES_MAX];
        match lgetxattr(path, OsStr::from_bytes(name), value.as_mut_slice()) {
            Ok(length) => {
                value.truncate(length);
                found.insert(name.to_vec(), value);
            }
            Err(Errno::NODATA) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(found)
}
