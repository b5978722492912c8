//! Which error comes first.
//!
//! A call that cannot happen is refused, and is not left to the kernel: what it is about could be another thing by then.
//! It must fail as it does without us, and often there are several reasons. Here the kernel's checks are made in the
//! kernel's order, up to the reason that is known. Nothing here lets a call happen.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, StatVfsMountFlags, StatxFlags, fstat, fstatvfs,
    openat, statx,
};
use rustix::io::Errno;

use super::calls::{Act, as_int};
use super::process_info::Scene;
use super::resolve::{Base, Dots, Held, Last, Lost, stat_of};
use super::rights::Rights;
use super::sys::Notice;
use super::walk::{Lead, Walk, split};

const NOREPLACE: u32 = 1;
const EXCHANGE: u32 = 2;

/// Tells whether a call has flags that do not exist, or not together. Those that are not known here cannot be honoured.
pub(super) fn has_odd_flags(notice: &Notice) -> bool {
    let flags = |index: usize| notice.arguments.get(index).copied().map_or(0, as_int);
    match notice.number {
        libc::SYS_unlinkat => flags(2) & !libc::AT_REMOVEDIR != 0,
        libc::SYS_linkat => flags(4) & !(libc::AT_SYMLINK_FOLLOW | libc::AT_EMPTY_PATH) != 0,
        libc::SYS_renameat2 => {
            let flags = flags(4);
            flags & !7 != 0 || flags & 2 != 0 && flags & 5 != 0
        }
        _ => false,
    }
}

/// One path of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<'p> {
    pub(super) base: Base,
    pub(super) bytes: &'p [u8],
    pub(super) last: Last,
}

/// Gives the error that the kernel meets first in a call that fails with `known` at last.
pub(super) fn first_error(
    notice: &Notice,
    act: Act,
    scene: Scene,
    paths: [Option<Path<'_>>; 2],
    known: Errno,
) -> Errno {
    let Some(rights) = Rights::of(notice.thread, scene.has_our_rights) else {
        return known;
    };
    let looking = Looking {
        thread: notice.thread,
        scene,
        rights,
    };
    let found = match (act, paths) {
        _ if is_malformed(notice) => Err(Errno::INVAL),
        (Act::Rename { flags }, [Some(from), Some(to)]) => looking.rename(from, to, flags),
        (Act::Link, [Some(old), Some(new)]) => looking.link(old, new),
        (Act::Unlink, [Some(path), None]) => looking.unlink(path),
        (Act::Rmdir, [Some(path), None]) => looking.rmdir(path),
        (_, [Some(path), _]) => looking.parent(path).map(drop),
        (_, [None, _]) => Ok(()),
    };
    found.err().unwrap_or(known)
}

/// Tells whether a call fails whatever its path is.
pub(super) fn is_malformed(notice: &Notice) -> bool {
    let argument = |index: usize| notice.arguments.get(index).copied().unwrap_or_default();
    let flags = match notice.number {
        libc::SYS_truncate => return argument(1).cast_signed() < 0,
        libc::SYS_openat => argument(2),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => argument(1),
        _ => return false,
    };
    // The kernel looks at the flags before it looks at the path, and this one leads nowhere.
    let flags = OFlags::from_bits_retain(as_int(flags).cast_unsigned());
    openat(CWD, "", flags, Mode::empty()).is_err_and(|errno| errno == Errno::INVAL)
}

/// A name in a directory, as a call means it.
struct Named {
    dir: Held,
    dots: Option<Dots>,
    /// What the name stands for, or why it cannot be a name.
    found: Result<Option<Stat>, Errno>,
    is_slashed: bool,
    name: PathBuf,
}

impl Named {
    fn is_directory(&self) -> bool {
        matches!(&self.found, Ok(Some(stat)) if is_directory(stat))
    }

    /// Gives what is there.
    fn there(&self) -> Result<&Stat, Errno> {
        match &self.found {
            Ok(Some(stat)) => Ok(stat),
            Ok(None) => Err(Errno::NOENT),
            Err(errno) => Err(*errno),
        }
    }

    fn is_read_only(&self) -> Result<(), Errno> {
        let flags = fstatvfs(&self.dir).map(|found| found.f_flag);
        let is_so = flags.is_ok_and(|flags| flags.contains(StatVfsMountFlags::RDONLY));
        fails_if(is_so, Errno::ROFS)
    }

    fn path(&self) -> PathBuf {
        path_of(&self.dir).join(&self.name)
    }
}

struct Looking {
    thread: u32,
    scene: Scene,
    rights: Rights,
}

impl Looking {
    fn rename(&self, from: Path<'_>, to: Path<'_>, flags: u32) -> Result<(), Errno> {
        let (from, to) = (self.parent(from)?, self.parent(to)?);
        let is_exchange = flags & EXCHANGE != 0;
        let keeps = flags & NOREPLACE != 0;
        fails_if(mount_of(&from.dir) != mount_of(&to.dir), Errno::XDEV)?;
        fails_if(from.dots.is_some(), Errno::BUSY)?;
        fails_if(
            to.dots.is_some(),
            if keeps { Errno::EXIST } else { Errno::BUSY },
        )?;
        from.is_read_only()?;
        let source = from.there()?;
        let target = to.found.as_ref().map_err(|errno| *errno)?.as_ref();
        fails_if(keeps && target.is_some(), Errno::EXIST)?;
        fails_if(is_exchange && target.is_none(), Errno::NOENT)?;
        let is_misnamed = is_exchange && to.is_slashed && !to.is_directory();
        fails_if(is_misnamed, Errno::NOTDIR)?;
        let is_slashed = from.is_slashed || to.is_slashed && !is_exchange;
        fails_if(is_slashed && !from.is_directory(), Errno::NOTDIR)?;
        let (old, new) = (from.path(), to.path());
        let is_into_itself = from.is_directory() && new != old && new.starts_with(&old);
        fails_if(is_into_itself, Errno::INVAL)?;
        let is_above = to.is_directory() && new != old && old.starts_with(&new);
        let above = if is_exchange {
            Errno::INVAL
        } else {
            Errno::NOTEMPTY
        };
        fails_if(is_above, above)?;
        self.may_remove(&from, source, from.is_directory())?;
        match target {
            None => self.may_change(&to)?,
            Some(target) if is_exchange => self.may_remove(&to, target, to.is_directory())?,
            Some(target) => self.may_remove(&to, target, from.is_directory())?,
        }
        let is_moved = from.is_directory() && path_of(&from.dir) != path_of(&to.dir);
        fails_if(is_moved && !self.rights.may_write(source), Errno::ACCESS)
    }

    fn link(&self, old: Path<'_>, new: Path<'_>) -> Result<(), Errno> {
        let old = self.looked_up(old)?;
        let source = old.there()?;
        fails_if(old.is_slashed && !old.is_directory(), Errno::NOTDIR)?;
        let new = self.parent(new)?;
        fails_if(new.dots.is_some(), Errno::EXIST)?;
        let target = new.found.as_ref().map_err(|errno| *errno)?;
        fails_if(target.is_some(), Errno::EXIST)?;
        fails_if(new.is_slashed, Errno::NOENT)?;
        new.is_read_only()?;
        fails_if(mount_of(&old.dir) != mount_of(&new.dir), Errno::XDEV)?;
        let is_kept = old.is_directory() && !self.rights.owns(source);
        fails_if(is_kept && is_linking_restricted(), Errno::PERM)?;
        self.may_change(&new)
    }

    fn unlink(&self, path: Path<'_>) -> Result<(), Errno> {
        let named = self.parent(path)?;
        fails_if(named.dots.is_some(), Errno::ISDIR)?;
        named.is_read_only()?;
        let there = named.there()?;
        fails_if(named.is_slashed && named.is_directory(), Errno::ISDIR)?;
        fails_if(named.is_slashed, Errno::NOTDIR)?;
        self.may_remove(&named, there, false)
    }

    fn rmdir(&self, path: Path<'_>) -> Result<(), Errno> {
        let named = self.parent(path)?;
        match named.dots {
            Some(Dots::One) => return Err(Errno::INVAL),
            Some(Dots::Two) => return Err(Errno::NOTEMPTY),
            Some(Dots::Root) => return Err(Errno::BUSY),
            None => {}
        }
        named.is_read_only()?;
        self.may_remove(&named, named.there()?, true)
    }

    /// Whether entries of a directory may come and go.
    fn may_change(&self, named: &Named) -> Result<(), Errno> {
        fails_if(!self.rights.may_change(&named.dir), Errno::ACCESS)
    }

    /// Whether a name may go, or be taken by another.
    fn may_remove(&self, named: &Named, there: &Stat, is_directory: bool) -> Result<(), Errno> {
        self.may_change(named)?;
        let dir = fstat(&named.dir)?;
        fails_if(self.rights.is_stuck(&dir, there), Errno::PERM)?;
        fails_if(is_directory && !self::is_directory(there), Errno::NOTDIR)?;
        fails_if(!is_directory && self::is_directory(there), Errno::ISDIR)
    }

    /// Walks to the directory that a name is in.
    fn parent(&self, path: Path<'_>) -> Result<Named, Errno> {
        let (parent, name) = split(path.bytes);
        fails_if(path.bytes.is_empty(), Errno::NOENT)?;
        let dir = self.directory(path.base, parent)?;
        let end = name.iter().rposition(|byte| *byte != b'/');
        let bare = name.get(..end.map_or(0, |at| at + 1)).unwrap_or_default();
        let dots = match bare {
            b"" => Some(Dots::Root),
            b"." => Some(Dots::One),
            b".." => Some(Dots::Two),
            _ => None,
        };
        let bare = OsStr::from_bytes(bare);
        let found = match dots {
            Some(_) => Ok(None),
            None => stat_of(dir.as_fd(), bare),
        };
        Ok(Named {
            found,
            dots,
            is_slashed: name.ends_with(b"/"),
            name: PathBuf::from(bare),
            dir,
        })
    }

    /// Walks to what a path stands for, its last link followed or not.
    fn looked_up(&self, path: Path<'_>) -> Result<Named, Errno> {
        let named = self.parent(path)?;
        let lead = Walk::new(self.thread, self.scene).lead(path.base, path.bytes, path.last);
        match lead.map_err(errno_of)? {
            Lead::Name {
                dir,
                name,
                stat,
                is_slashed,
            } => Ok(Named {
                dir,
                dots: None,
                found: Ok(stat),
                is_slashed,
                name: PathBuf::from(OsStr::from_bytes(&name)),
            }),
            Lead::Itself(opened) => Ok(Named {
                found: fstat(&opened).map(Some),
                dots: None,
                dir: opened,
                ..named
            }),
            Lead::Dots(_) => Ok(named),
        }
    }

    /// Opens a directory on the way. Whoever has other rights than we have may be stopped at any of them.
    fn directory(&self, base: Base, path: &[u8]) -> Result<Held, Errno> {
        let mut ends: Vec<usize> = Vec::new();
        if !self.scene.has_our_rights {
            let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            ends.extend(slashes.map(|(at, _)| at + 1));
        }
        for end in ends.into_iter().chain([path.len()]) {
            let way = path.get(..end).unwrap_or(path);
            let way = if way.is_empty() || way.ends_with(b"/") {
                [way, b"."].concat()
            } else {
                [way, b"/."].concat()
            };
            let lead = Walk::new(self.thread, self.scene).lead(base, &way, Last::Followed);
            let Lead::Itself(dir) = lead.map_err(errno_of)? else {
                return Err(Errno::NOENT);
            };
            let is_walkable = fstat(&dir).is_ok_and(|found| is_directory(&found));
            fails_if(!is_walkable, Errno::NOTDIR)?;
            fails_if(!self.rights.may_search(&dir), Errno::ACCESS)?;
            if end == path.len() {
                return Ok(dir);
            }
        }
        Err(Errno::NOENT)
    }
}

fn fails_if(is_so: bool, errno: Errno) -> Result<(), Errno> {
    if is_so { Err(errno) } else { Ok(()) }
}

const fn errno_of(lost: Lost) -> Errno {
    match lost {
        Lost::Fails(errno) | Lost::Blind(errno, _) => errno,
        Lost::Nameless { .. } | Lost::Root | Lost::Dots(_) => Errno::NOENT,
    }
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

fn mount_of(opened: &OwnedFd) -> Option<u64> {
    let found = statx(opened, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID);
    found.ok().map(|found| found.stx_mnt_id)
}

fn path_of(opened: &OwnedFd) -> PathBuf {
    let link = format!("/proc/self/fd/{}", opened.as_raw_fd());
    std::fs::read_link(link).unwrap_or_default()
}

/// Tells whether only owners may give files other names.
fn is_linking_restricted() -> bool {
    let set = std::fs::read("/proc/sys/fs/protected_hardlinks");
    set.is_ok_and(|set| set.starts_with(b"1"))
}
