//! Mode, owner, times and extended attributes of any inode, read and written through one descriptor.
//!
//! `/proc/self/fd/N` names exactly the inode that the descriptor holds, a symbolic link included, so no
//! path is walked twice and no kind of inode needs its own calls.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use backout_capture::{attributes, owner};
use backout_files::inode::is_system_given;
use backout_model::TargetPath;
use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, chmodat, chownat,
    fchmod, flistxattr_query, futimens, getxattr, listxattr, removexattr, setxattr, utimensat,
};
use rustix::io::Errno;

use super::{Node, flags};
use crate::file::any_bytes::AnyBytes;
use crate::file::error::{FileError, Naming as _};
use crate::file::recipe::{Kind, Meta, Times};

/// Tells whether this process may give a file to a group.
pub(crate) fn is_our_group(gid: u32) -> bool {
    let others = || rustix::process::getgroups().unwrap_or_default();
    let is_it = |group: Gid| group.as_raw() == gid;
    is_it(rustix::process::getegid()) || others().into_iter().any(is_it)
}

/// Tells whether only root may set this attribute.
pub(crate) fn is_for_root(name: &[u8]) -> bool {
    let is_kept = name.starts_with(b"security.") || name.starts_with(b"trusted.");
    is_kept && !is_system_given(name)
}

/// Under these names XFS shows the ACLs once more to root.
const XFS_ACL: &[u8] = b"trusted.SGI_ACL_";

/// The largest name list and value the kernel allows.
const XATTR_BYTES_MAX: usize = 64 * 1024;

/// Reads everything but the content.
pub(crate) fn read(node: &Node, fd: impl AsFd, path: &TargetPath) -> Result<Meta, FileError> {
    Ok(Meta {
        mode: node.mode,
        uid: node.uid,
        gid: node.gid,
        times: Some(node.times),
        xattrs: xattrs(fd.as_fd(), path)?,
        flags: None,
    })
}

/// Reads the inode flags that people set of what is open, if only to refer to it. None where they cannot be told.
pub(crate) fn flags_of(fd: impl AsFd, kind: Kind) -> Option<u32> {
    let opened = opened(fd.as_fd(), kind)?;
    flags::all(&opened).map(|_| flags::read(&opened).bits())
}

/// Opens a file or a directory for reading that is open only to refer to it.
fn opened(fd: BorrowedFd<'_>, kind: Kind) -> Option<OwnedFd> {
    let is_flagged = matches!(kind, Kind::File | Kind::Directory);
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    is_flagged
        .then(|| rustix::fs::open(proc_path(fd), flags, Mode::empty()).ok())
        .flatten()
}

/// Reads everything but the content of a name in an open directory, if it has no extended attributes: most have none, and
/// need not be opened. None if it has, or if that cannot be told so.
pub(crate) fn read_plain(node: &Node, dir: impl AsFd, name: &OsStr) -> Option<Meta> {
    plain(node, attributes::list_length(dir, name))
}

/// Reads everything but the content of a file that is open, if it has no extended attributes.
pub(crate) fn plain_of(node: &Node, file: impl AsFd) -> Option<Meta> {
    plain(node, rustix::fs::flistxattr_query(file))
}

/// Gives everything but the content of something whose list of extended attributes is so long.
fn plain(node: &Node, attributes: Result<usize, Errno>) -> Option<Meta> {
    match attributes {
        Ok(0) | Err(Errno::NOTSUP) => Some(Meta {
            mode: node.mode,
            uid: node.uid,
            gid: node.gid,
            times: Some(node.times),
            xattrs: Vec::new(),
            flags: None,
        }),
        Ok(_) | Err(_) => None,
    }
}

/// Reads the extended attributes, ACLs included, sorted by name.
fn xattrs(fd: BorrowedFd<'_>, path: &TargetPath) -> Result<Vec<(AnyBytes, AnyBytes)>, FileError> {
    let proc = proc_path(fd);
    // Most files have none: ask for the size first and allocate nothing.
    match rustix::fs::listxattr_query(&proc) {
        Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Vec::new()),
        Ok(_) => {}
        Err(errno) => return Err(FileError::of(errno, path, "read the attributes of")),
    }
    let mut names = vec![0_u8; XATTR_BYTES_MAX];
    let length = listxattr(&proc, names.as_mut_slice()).naming(path, "read the attributes of")?;
    names.truncate(length);
    let mut found = Vec::new();
    let names = names.split(|byte| *byte == 0);
    for name in names.filter(|name| !name.is_empty() && !name.starts_with(XFS_ACL)) {
        let mut value = vec![0_u8; XATTR_BYTES_MAX];
        let read = match getxattr(&proc, name, value.as_mut_slice()) {
            // A mode that closes a file to its owner closes its attributes, too.
            Err(Errno::ACCESS) if !rustix::process::geteuid().is_root() => {
                owner::attribute(fd, name, &mut value)
            }
            other => other,
        };
        match read {
            Ok(length) => {
                value.truncate(length);
                found.push((AnyBytes(name.to_vec()), AnyBytes(value)));
            }
            // Gone in the meantime, or listed but not for us to read.
            Err(Errno::NODATA | Errno::PERM | Errno::ACCESS | Errno::NOTSUP) => {}
            Err(errno) => return Err(FileError::of(errno, path, "read the attributes of")),
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Gives an inode exactly this mode, owner, attributes and (where told) times. Returns, in words, what
/// only a more privileged process could have set.
pub(crate) fn write(
    fd: impl AsFd,
    kind: Kind,
    wanted: &Meta,
    path: &TargetPath,
) -> Result<Vec<String>, FileError> {
    let fd = fd.as_fd();
    let mut gaps = Vec::new();
    // Its mode may close it before the flags are given.
    let flagged = wanted.flags.and_then(|_| opened(fd, kind));
    let stat = rustix::fs::fstat(fd).naming(path, "look at")?;
    let node = Node::of(&stat);
    if (node.uid, node.gid) != (wanted.uid, wanted.gid) {
        chown(fd, &node, wanted, path, &mut gaps)?;
    }
    write_xattrs(fd, &node, wanted, path, &mut gaps)?;
    let owner_is_wrong = !gaps.is_empty();
    // A setuid bit must not pass to another owner.
    let mode = if owner_is_wrong {
        wanted.mode & !0o6000
    } else {
        wanted.mode
    };
    let now = Node::of(&rustix::fs::fstat(fd).naming(path, "look at")?);
    if kind != Kind::Symlink && now.mode != mode {
        let mode = Mode::from_raw_mode(mode);
        match chmodat(CWD, proc_path(fd), mode, AtFlags::empty()) {
            Err(Errno::PERM) => gaps.push(format!("mode {:04o}", wanted.mode)),
            other => other.naming(path, "change the mode of")?,
        }
    }
    if let Some(times) = wanted.times {
        write_times(fd, times, path)?;
    }
    if let Some(flags) = wanted.flags
        && !flagged.is_some_and(|opened| flags::give(flags, opened))
    {
        gaps.push("inode flags".to_owned());
    }
    Ok(gaps)
}

/// Gives a file that we have just made, and hold open, exactly this mode, owner, attributes and (where told) times. Returns what
/// it is now, and in words what only a more privileged process could have set.
pub(crate) fn write_made(
    file: &File,
    wanted: &Meta,
    path: &TargetPath,
) -> Result<(Node, Vec<String>), FileError> {
    // A setuid bit must not be there before the owner is.
    let is_plain = wanted.xattrs.is_empty() && wanted.flags.is_none() && wanted.mode & 0o6000 == 0;
    if is_plain && let Some(node) = write_plain(file, wanted, path)? {
        return Ok((node, Vec::new()));
    }
    let gaps = write(file, Kind::File, wanted, path)?;
    let stat = rustix::fs::fstat(file).naming(path, "look at")?;
    Ok((Node::of(&stat), gaps))
}

/// Does it in as few calls as can be where a mode and times are all that is missing. None if there is more to do: its directory
/// gave it attributes or a group, or it is to have another owner.
fn write_plain(file: &File, wanted: &Meta, path: &TargetPath) -> Result<Option<Node>, FileError> {
    let is_bare = matches!(
        flistxattr_query(file),
        Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS)
    );
    if !is_bare || fchmod(file, Mode::from_raw_mode(wanted.mode)).is_err() {
        return Ok(None);
    }
    if let Some(times) = wanted.times {
        futimens(file, &stamps(times)).naming(path, "set the times of")?;
    }
    let node = Node::of(&rustix::fs::fstat(file).naming(path, "look at")?);
    let is_so = (node.uid, node.gid, node.mode) == (wanted.uid, wanted.gid, wanted.mode);
    Ok(is_so.then_some(node))
}

fn chown(
    fd: BorrowedFd<'_>,
    node: &Node,
    wanted: &Meta,
    path: &TargetPath,
    gaps: &mut Vec<String>,
) -> Result<(), FileError> {
    let set = |uid: Option<u32>, gid: Option<u32>| {
        let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        chownat(fd, "", uid, gid, AtFlags::EMPTY_PATH)
    };
    match set(Some(wanted.uid), Some(wanted.gid)) {
        Ok(()) => return Ok(()),
        Err(Errno::PERM | Errno::INVAL) => {}
        Err(errno) => return Err(FileError::of(errno, path, "change the owner of")),
    }
    // The group alone is often allowed where the owner is not.
    let group_is_set = node.gid == wanted.gid || set(None, Some(wanted.gid)).is_ok();
    if node.uid != wanted.uid || !group_is_set {
        gaps.push(format!("owner {}:{}", wanted.uid, wanted.gid));
    }
    Ok(())
}

fn write_xattrs(
    fd: BorrowedFd<'_>,
    node: &Node,
    wanted: &Meta,
    path: &TargetPath,
    gaps: &mut Vec<String>,
) -> Result<(), FileError> {
    let present = xattrs(fd, path)?;
    let is_extra = |name: &AnyBytes| {
        let is_wanted = wanted.xattrs.iter().any(|(other, _)| other == name);
        !is_wanted && !is_system_given(&name.0)
    };
    let names = present.iter().map(|(name, _)| name);
    let extra: Vec<&AnyBytes> = names.filter(|name| is_extra(name)).collect();
    let lacks = |pair: &&(AnyBytes, AnyBytes)| !present.contains(pair);
    let missing: Vec<_> = wanted.xattrs.iter().filter(lacks).collect();
    if extra.is_empty() && missing.is_empty() {
        return Ok(());
    }
    open_to_owner(fd, node, path)?;
    let proc = proc_path(fd);
    let mut tell = |name: &[u8], result: Result<(), Errno>| match result {
        Ok(()) | Err(Errno::NODATA) => Ok(()),
        Err(Errno::PERM | Errno::ACCESS | Errno::NOTSUP) => {
            gaps.push(format!("attribute {}", String::from_utf8_lossy(name)));
            Ok(())
        }
        Err(errno) => Err(FileError::of(errno, path, "set the attributes of")),
    };
    for name in extra {
        tell(&name.0, removexattr(&proc, name.0.as_slice()))?;
    }
    for (name, value) in missing {
        let flags = XattrFlags::empty();
        tell(&name.0, setxattr(&proc, name.0.as_slice(), &value.0, flags))?;
    }
    Ok(())
}

/// Lets an owner write the attributes of something whose mode closes it to him. The mode that it is to have comes last.
fn open_to_owner(fd: BorrowedFd<'_>, node: &Node, path: &TargetPath) -> Result<(), FileError> {
    /// What an owner needs.
    const OPEN: u32 = 0o600;
    let user = rustix::process::geteuid();
    let is_closed = node.kind != Kind::Symlink && node.mode & OPEN != OPEN;
    if user.is_root() || user.as_raw() != node.uid || !is_closed {
        return Ok(());
    }
    let mode = Mode::from_raw_mode(node.mode | OPEN);
    chmodat(CWD, proc_path(fd), mode, AtFlags::empty()).naming(path, "change the mode of")
}

/// Sets access and modification time.
pub(crate) fn write_times(fd: impl AsFd, times: Times, path: &TargetPath) -> Result<(), FileError> {
    utimensat(CWD, proc_path(fd.as_fd()), &stamps(times), AtFlags::empty())
        .naming(path, "set the times of")
}

fn stamps(times: Times) -> Timestamps {
    Timestamps {
        last_access: timespec(times.atime),
        last_modification: timespec(times.mtime),
    }
}

/// Tells whether times are ours to set: only an owner may, or root.
pub(crate) fn may_set_times(node: &Node) -> bool {
    let user = rustix::process::geteuid();
    user.is_root() || user.as_raw() == node.uid
}

fn timespec(nanoseconds: i128) -> Timespec {
    let whole = |number: i128| i64::try_from(number).unwrap_or(i64::MAX);
    Timespec {
        tv_sec: whole(nanoseconds.div_euclid(1_000_000_000)),
        tv_nsec: whole(nanoseconds.rem_euclid(1_000_000_000)),
    }
}

/// Names the inode behind a descriptor, for calls that only take paths.
pub(crate) fn proc_path(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}
