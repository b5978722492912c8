//! What a new file or directory gets without being told: umask, setgid group, default ACL.
//!
//! What is made before it has a name inherits by itself; this is for what is only planned, so that the
//! recipe can say exactly what will be there.

use backout_files::umask;

use super::Dir;
use crate::file::any_bytes::AnyBytes;
use crate::file::error::FileError;
use crate::file::recipe::Meta;

const ACL_DEFAULT: &[u8] = b"system.posix_acl_default";
const ACL_ACCESS: &[u8] = b"system.posix_acl_access";

/// Reads a directory's own metadata, from which its new entries inherit.
pub(crate) fn of_dir(dir: &Dir) -> Result<Meta, FileError> {
    super::meta::read(&dir.node()?, dir, dir.path())
}

/// Foresees the metadata of a new entry of `parent`: `mode` as asked for exactly, or what the system
/// makes of the usual default.
pub(crate) fn foresee(parent: &Meta, mode: Option<u32>, is_directory: bool) -> Meta {
    let usual = if is_directory { 0o777 } else { 0o666 };
    let is_setgid = parent.mode & 0o2000 != 0;
    let gid = if is_setgid {
        parent.gid
    } else {
        rustix::process::getegid().as_raw()
    };
    let mut meta = Meta {
        mode: usual & !umask(),
        uid: rustix::process::geteuid().as_raw(),
        gid,
        times: None,
        xattrs: Vec::new(),
        flags: None,
    };
    let default = parent.xattrs.iter().find(|(name, _)| name.0 == ACL_DEFAULT);
    if let Some((_, acl)) = default {
        let mut access = acl.0.clone();
        if let Some((bits, is_plain)) = mask_acl(&mut access, usual) {
            meta.mode = bits;
            if !is_plain {
                meta.xattrs
                    .push((AnyBytes(ACL_ACCESS.to_vec()), AnyBytes(access)));
            }
            if is_directory {
                meta.xattrs
                    .push((AnyBytes(ACL_DEFAULT.to_vec()), acl.clone()));
            }
        }
    }
    if let Some(mode) = mode {
        meta.mode = mode & 0o7777;
        if let Some((_, acl)) = meta
            .xattrs
            .iter_mut()
            .find(|(name, _)| name.0 == ACL_ACCESS)
        {
            let _bits = set_acl_mode(&mut acl.0, mode);
        }
    }
    if is_directory && is_setgid {
        meta.mode |= 0o2000;
    }
    meta
}

/// Adjusts an access ACL to a mode set by `chmod`, as the kernel does.
pub(crate) fn chmod_acl(meta: &mut Meta) {
    let mode = meta.mode;
    if let Some((_, acl)) = meta
        .xattrs
        .iter_mut()
        .find(|(name, _)| name.0 == ACL_ACCESS)
    {
        let _bits = set_acl_mode(&mut acl.0, mode);
    }
}

/// Takes away from a default ACL what the asked mode does not allow. Gives the resulting permission bits
/// and whether they say all that the list says.
fn mask_acl(acl: &mut [u8], mode: u32) -> Option<(u32, bool)> {
    edit_acl(acl, |perm, bits| perm & bits, mode)
}

fn set_acl_mode(acl: &mut [u8], mode: u32) -> Option<(u32, bool)> {
    edit_acl(acl, |_, bits| bits, mode)
}

/// The list is a version word and eight bytes per entry: tag, permissions, id, all little endian.
fn edit_acl(acl: &mut [u8], change: impl Fn(u16, u16) -> u16, mode: u32) -> Option<(u32, bool)> {
    const USER_OBJ: u16 = 1;
    const GROUP_OBJ: u16 = 4;
    const MASK: u16 = 16;
    const OTHER: u16 = 32;
    let entries = acl.get_mut(4..)?;
    let tag_of = |entry: &[u8]| match entry {
        [low, high, ..] => u16::from_le_bytes([*low, *high]),
        _ => 0,
    };
    let has_mask = entries.chunks_exact(8).any(|entry| tag_of(entry) == MASK);
    let is_plain = entries
        .chunks_exact(8)
        .all(|e| [USER_OBJ, GROUP_OBJ, OTHER].contains(&tag_of(e)));
    let mut result = 0;
    for entry in entries.chunks_exact_mut(8) {
        let shift = match tag_of(entry) {
            USER_OBJ => 6,
            GROUP_OBJ if !has_mask => 3,
            MASK => 3,
            OTHER => 0,
            _ => continue,
        };
        let [_, _, low, high, ..] = entry else {
            return None;
        };
        let wanted = u16::try_from((mode >> shift) & 7).ok()?;
        let perm = change(u16::from_le_bytes([*low, *high]), wanted);
        [*low, *high] = perm.to_le_bytes();
        result |= u32::from(perm) << shift;
    }
    Some((result, is_plain))
}
