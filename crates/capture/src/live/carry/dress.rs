//! Mode, owner, attributes and times of what was looked at.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use rustix::fs::{
    AtFlags, CWD, Mode, XattrFlags, chmodat, chownat, removexattr, setxattr, utimensat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use super::super::calls::as_int;
use super::super::memory::read_path;
use super::super::sys;
use super::times::times_of;
use super::{Call, Carried, link_of};

/// The longest name and the largest value of an attribute.
const XATTR_NAME_BYTES_MAX: usize = 255;
const XATTR_VALUE_BYTES_MAX: usize = 65_536;

impl Call<'_> {
    /// Changes mode, owner or attributes.
    pub(super) fn dress(&self) -> Result<Carried, Carried> {
        let number = self.notice.number;
        let (mode_at, flags_at) = match number {
            libc::SYS_fchmodat => (2, None),
            sys::FCHMODAT2 => (2, Some(3)),
            libc::SYS_fchownat => (2, Some(4)),
            sys::SETXATTRAT | sys::REMOVEXATTRAT => (3, Some(2)),
            _ => (1, None),
        };
        // What the kernel does not know fails there, whatever the path says.
        let known = (AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH).bits();
        if flags_at.is_some_and(|index| self.int(index) & !known != 0) {
            return Err(Carried::ByKernel);
        }
        match dressing(number) {
            Some(Dressing::Mode) => {
                let handle = self.handle()?;
                if self.is_link() {
                    return Err(Carried::Failed(Errno::OPNOTSUPP));
                }
                let mode = Mode::from_raw_mode(self.int(mode_at) & 0o7777);
                let done = chmodat(CWD, link_of(&handle), mode, AtFlags::empty());
                Ok(Carried::from(done))
            }
            Some(Dressing::Owner) => {
                let (user, group) = (self.int(mode_at), self.int(mode_at + 1));
                let user = (user != u32::MAX).then(|| Uid::from_raw(user));
                let group = (group != u32::MAX).then(|| Gid::from_raw(group));
                let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
                Ok(Carried::from(chownat(
                    self.handle()?,
                    "",
                    user,
                    group,
                    flags,
                )))
            }
            Some(Dressing::Attribute) => self.set_attribute(mode_at),
            Some(Dressing::NoAttribute) => {
                let name = self.attribute(mode_at)?;
                let handle = self.handle()?;
                Ok(Carried::from(removexattr(link_of(&handle), name)))
            }
            None => Err(Carried::ByKernel),
        }
    }

    fn set_attribute(&self, name_at: usize) -> Result<Carried, Carried> {
        let name = self.attribute(name_at)?;
        let (value, size, flags) = self.value(name_at)?;
        if flags & !(XattrFlags::CREATE | XattrFlags::REPLACE).bits() != 0 {
            return Err(Carried::Failed(Errno::INVAL));
        }
        if size > XATTR_VALUE_BYTES_MAX {
            return Err(Carried::Failed(Errno::TOOBIG));
        }
        let mut bytes = vec![0; size];
        self.read(value, &mut bytes)?;
        let handle = self.handle()?;
        let flags = XattrFlags::from_bits_retain(flags);
        Ok(Carried::from(setxattr(
            link_of(&handle),
            name,
            &bytes,
            flags,
        )))
    }

    /// Gives where the value of an attribute is, how long it is, and how it is set.
    fn value(&self, name_at: usize) -> Result<(u64, usize, u32), Carried> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        if self.notice.number != sys::SETXATTRAT {
            let (value, bytes) = (self.argument(name_at + 1), self.argument(name_at + 2));
            return Ok((value, size(bytes), self.int(name_at + 3)));
        }
        let mut bytes = [0; 16];
        if self.argument(name_at + 2) < bytes.len() as u64 {
            return Err(Carried::Failed(Errno::INVAL));
        }
        self.read(self.argument(name_at + 1), &mut bytes)?;
        let [value, rest] = [0, 8].map(|at| {
            let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
            u64::from_le_bytes(word.unwrap_or_default())
        });
        let low = |word: u64| as_int(word).cast_unsigned();
        Ok((value, size(u64::from(low(rest))), low(rest >> 32)))
    }

    fn attribute(&self, name_at: usize) -> Result<OsString, Carried> {
        let name = read_path(self.notice.thread, self.argument(name_at));
        let name = match name {
            Ok(name) if (1..=XATTR_NAME_BYTES_MAX).contains(&name.len()) => Ok(name),
            Ok(_) | Err(Errno::NAMETOOLONG) => Err(Errno::RANGE),
            Err(errno) => Err(errno),
        };
        let name = name.map_err(Carried::Failed)?;
        Ok(OsString::from_vec(name))
    }

    pub(super) fn set_times(&self) -> Result<Carried, Carried> {
        let times = times_of(self.notice).map_err(Carried::Failed)?;
        let Some(times) = times else {
            return Err(Carried::ByKernel);
        };
        let handle = self.handle()?;
        Ok(Carried::from(utimensat(
            handle,
            "",
            &times,
            AtFlags::EMPTY_PATH,
        )))
    }
}

/// What of a file's metadata changes.
enum Dressing {
    Mode,
    Owner,
    Attribute,
    NoAttribute,
}

fn dressing(number: i64) -> Option<Dressing> {
    match number {
        libc::SYS_fchmodat | sys::FCHMODAT2 => Some(Dressing::Mode),
        libc::SYS_fchownat => Some(Dressing::Owner),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => Some(Dressing::Mode),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown | libc::SYS_lchown => Some(Dressing::Owner),
        libc::SYS_setxattr | libc::SYS_lsetxattr | sys::SETXATTRAT => Some(Dressing::Attribute),
        libc::SYS_removexattr | libc::SYS_lremovexattr | sys::REMOVEXATTRAT => {
            Some(Dressing::NoAttribute)
        }
        _ => None,
    }
}
