//! The kernel's errors as numbers, as an answer to a call carries them.

use rustix::io::Errno;

pub(super) const ENOENT: i32 = Errno::NOENT.raw_os_error();
pub(super) const EINVAL: i32 = Errno::INVAL.raw_os_error();
pub(super) const ENOTDIR: i32 = Errno::NOTDIR.raw_os_error();
pub(super) const EEXIST: i32 = Errno::EXIST.raw_os_error();
pub(super) const EISDIR: i32 = Errno::ISDIR.raw_os_error();
pub(super) const ENOTEMPTY: i32 = Errno::NOTEMPTY.raw_os_error();
pub(super) const EPERM: i32 = Errno::PERM.raw_os_error();
pub(super) const EIO: i32 = Errno::IO.raw_os_error();
pub(super) const EFBIG: i32 = Errno::FBIG.raw_os_error();
