//! The calls that can change a file: what each does, and where its paths are among its arguments.

use std::ffi::c_long;

/// What a call is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Open a file for writing, or make it.
    Open {
        /// Whether it is made if it is not there.
        creates: bool,
        /// Whether it is written if it is there.
        writes: bool,
        /// Whether it fails if it is there.
        is_exclusive: bool,
    },
    /// Cut a file or make it longer.
    Truncate,
    /// Take a name away.
    Unlink,
    /// Take an empty directory away.
    Rmdir,
    /// Give a file or a tree another name.
    Rename {
        /// `RENAME_NOREPLACE`, `RENAME_EXCHANGE` and the like.
        flags: u32,
    },
    /// Give a file a second name.
    Link,
    /// Make a new name: a directory, a symbolic link, a pipe, a socket, a device.
    Make,
    /// Change mode, owner or attributes.
    Attributes,
    /// Change times.
    Times,
    /// Open a file for reading.
    Read,
    /// Become another program.
    Exec,
    /// Change what the process sees or may do: root directory, namespaces, user.
    Standing,
    /// Change what is mounted where.
    Mounts,
}

/// Where a path is among the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// A path, starting at the directory of a descriptor or at the current one.
    Path {
        at: Option<usize>,
        path: usize,
        follow: Follow,
    },
    /// A descriptor.
    Fd(usize),
    /// A socket's address.
    Address(usize, usize),
}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follow {
    Always,
    Never,
    /// As the flags of an open say.
    AsOpened(usize),
    /// Unless these flags are among that argument.
    Unless(usize, u64),
    /// If these flags are among that argument.
    If(usize, u64),
}

/// What kind of call it is; arguments complete it to an [`Act`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Open(Option<usize>),
    Truncate,
    Unlink(Option<usize>),
    Rmdir,
    Rename(Option<usize>),
    Link,
    Make,
    Attributes,
    Times,
    Exec,
    Standing,
    Mounts,
}

/// One call that is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) number: c_long,
    pub(crate) kind: Kind,
    pub(crate) first: Option<Operand>,
    pub(crate) second: Option<Operand>,
}

const NOFOLLOW: u64 = 0x100;
const FOLLOW: u64 = 0x400;
pub(crate) const REMOVEDIR: u64 = 0x200;

const fn at(at: usize, path: usize, follow: Follow) -> Operand {
    Operand::Path {
        at: Some(at),
        path,
        follow,
    }
}

const fn from_here(path: usize, follow: Follow) -> Operand {
    Operand::Path {
        at: None,
        path,
        follow,
    }
}

const fn one(number: c_long, kind: Kind, first: Operand) -> Shape {
    Shape {
        number,
        kind,
        first: Some(first),
        second: None,
    }
}

const fn two(number: c_long, kind: Kind, first: Operand, second: Operand) -> Shape {
    Shape {
        number,
        kind,
        first: Some(first),
        second: Some(second),
    }
}

const fn none(number: c_long, kind: Kind) -> Shape {
    Shape {
        number,
        kind,
        first: None,
        second: None,
    }
}

/// Newer than the library's list.
const SYS_SETXATTRAT: c_long = 463;
const SYS_REMOVEXATTRAT: c_long = 466;
const SYS_FCHMODAT2: c_long = 452;

/// The calls that every architecture has.
pub(crate) const COMMON: &[Shape] = {
    use Follow::{Always, AsOpened, If, Never, Unless};
    use Kind::{
        Attributes, Exec, Link, Make, Mounts, Open, Rename, Standing, Times, Truncate, Unlink,
    };
    use libc::{
        SYS_bind, SYS_capset, SYS_chroot, SYS_execve, SYS_execveat, SYS_fchmod, SYS_fchmodat,
        SYS_fchown, SYS_fchownat, SYS_fremovexattr, SYS_fsetxattr, SYS_linkat, SYS_lremovexattr,
        SYS_lsetxattr, SYS_mkdirat, SYS_mknodat, SYS_mount, SYS_move_mount, SYS_openat,
        SYS_pivot_root, SYS_removexattr, SYS_renameat2, SYS_setfsgid, SYS_setfsuid, SYS_setgid,
        SYS_setgroups, SYS_setns, SYS_setregid, SYS_setresgid, SYS_setresuid, SYS_setreuid,
        SYS_setuid, SYS_setxattr, SYS_symlinkat, SYS_truncate, SYS_umount2, SYS_unlinkat,
        SYS_unshare, SYS_utimensat,
    };
    &[
        one(SYS_openat, Open(Some(2)), at(0, 1, AsOpened(2))),
        one(SYS_truncate, Truncate, from_here(0, Always)),
        one(SYS_unlinkat, Unlink(Some(2)), at(0, 1, Never)),
        two(
            SYS_renameat2,
            Rename(Some(4)),
            at(0, 1, Never),
            at(2, 3, Never),
        ),
        two(SYS_linkat, Link, at(0, 1, If(4, FOLLOW)), at(2, 3, Never)),
        one(SYS_symlinkat, Make, at(1, 2, Never)),
        one(SYS_mkdirat, Make, at(0, 1, Never)),
        one(SYS_mknodat, Make, at(0, 1, Never)),
        one(SYS_bind, Make, Operand::Address(1, 2)),
        one(SYS_fchmod, Attributes, Operand::Fd(0)),
        one(SYS_fchmodat, Attributes, at(0, 1, Always)),
        one(SYS_FCHMODAT2, Attributes, at(0, 1, Unless(3, NOFOLLOW))),
        one(SYS_fchown, Attributes, Operand::Fd(0)),
        one(SYS_fchownat, Attributes, at(0, 1, Unless(4, NOFOLLOW))),
        one(SYS_setxattr, Attributes, from_here(0, Always)),
        one(SYS_lsetxattr, Attributes, from_here(0, Never)),
        one(SYS_fsetxattr, Attributes, Operand::Fd(0)),
        one(SYS_removexattr, Attributes, from_here(0, Always)),
        one(SYS_lremovexattr, Attributes, from_here(0, Never)),
        one(SYS_fremovexattr, Attributes, Operand::Fd(0)),
        one(SYS_SETXATTRAT, Attributes, at(0, 1, Unless(2, NOFOLLOW))),
        one(SYS_REMOVEXATTRAT, Attributes, at(0, 1, Unless(2, NOFOLLOW))),
        one(SYS_utimensat, Times, at(0, 1, Unless(3, NOFOLLOW))),
        one(SYS_execve, Exec, from_here(0, Always)),
        one(SYS_execveat, Exec, at(0, 1, Unless(4, NOFOLLOW))),
        none(SYS_mount, Mounts),
        none(SYS_umount2, Mounts),
        none(SYS_move_mount, Mounts),
        none(SYS_pivot_root, Mounts),
        none(SYS_chroot, Standing),
        none(SYS_unshare, Standing),
        none(SYS_setns, Standing),
        none(SYS_setuid, Standing),
        none(SYS_setgid, Standing),
        none(SYS_setreuid, Standing),
        none(SYS_setregid, Standing),
        none(SYS_setresuid, Standing),
        none(SYS_setresgid, Standing),
        none(SYS_setfsuid, Standing),
        none(SYS_setfsgid, Standing),
        none(SYS_setgroups, Standing),
        none(SYS_capset, Standing),
    ]
};

/// The older calls that only some architectures have.
#[cfg(target_arch = "x86_64")]
pub(crate) const OLDER: &[Shape] = {
    use Follow::{Always, AsOpened, Never};
    use Kind::{Attributes, Link, Make, Open, Rename, Rmdir, Times, Unlink};
    use libc::{
        SYS_chmod, SYS_chown, SYS_creat, SYS_futimesat, SYS_lchown, SYS_link, SYS_mkdir, SYS_mknod,
        SYS_open, SYS_rename, SYS_renameat, SYS_rmdir, SYS_symlink, SYS_unlink, SYS_utime,
        SYS_utimes,
    };
    &[
        one(SYS_open, Open(Some(1)), from_here(0, AsOpened(1))),
        one(SYS_creat, Open(None), from_here(0, Always)),
        one(SYS_unlink, Unlink(None), from_here(0, Never)),
        one(SYS_rmdir, Rmdir, from_here(0, Never)),
        two(
            SYS_rename,
            Rename(None),
            from_here(0, Never),
            from_here(1, Never),
        ),
        two(SYS_renameat, Rename(None), at(0, 1, Never), at(2, 3, Never)),
        two(SYS_link, Link, from_here(0, Never), from_here(1, Never)),
        one(SYS_symlink, Make, from_here(1, Never)),
        one(SYS_mkdir, Make, from_here(0, Never)),
        one(SYS_mknod, Make, from_here(0, Never)),
        one(SYS_chmod, Attributes, from_here(0, Always)),
        one(SYS_chown, Attributes, from_here(0, Always)),
        one(SYS_lchown, Attributes, from_here(0, Never)),
        one(SYS_utime, Times, from_here(0, Always)),
        one(SYS_utimes, Times, from_here(0, Always)),
        one(SYS_futimesat, Times, at(0, 1, Always)),
    ]
};
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const OLDER: &[Shape] = &[two(
    libc::SYS_renameat,
    Kind::Rename(None),
    at(0, 1, Follow::Never),
    at(2, 3, Follow::Never),
)];

/// The calls that a filter cannot look into, or whose effects pass it by. Programs have another way.
pub(crate) const ABSENT: &[c_long] = &[
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at,
];

/// Finds a call.
pub(crate) fn shape_of(number: c_long) -> Option<&'static Shape> {
    let all = COMMON.iter().chain(OLDER);
    let mut found = all.filter(|shape| shape.number == number);
    found.next()
}

impl Shape {
    /// Tells what the call does with these arguments.
    pub(crate) fn act(&self, arguments: &[u64; 6]) -> Act {
        let argument = |index: usize| arguments.get(index).copied().unwrap_or_default();
        match self.kind {
            Kind::Open(flags) => {
                let creat = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                let flags = flags.map_or(creat, |index| as_int(argument(index)));
                let writes = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC;
                if flags & writes == 0 {
                    Act::Read
                } else {
                    Act::Open {
                        creates: flags & libc::O_CREAT != 0,
                        writes: flags & (libc::O_ACCMODE | libc::O_TRUNC) != 0,
                        is_exclusive: flags & libc::O_EXCL != 0,
                    }
                }
            }
            Kind::Truncate => Act::Truncate,
            Kind::Unlink(flags) => {
                let is_rmdir = flags.is_some_and(|index| argument(index) & REMOVEDIR != 0);
                if is_rmdir { Act::Rmdir } else { Act::Unlink }
            }
            Kind::Rmdir => Act::Rmdir,
            Kind::Rename(flags) => Act::Rename {
                flags: flags.map_or(0, |index| as_int(argument(index)).cast_unsigned()),
            },
            Kind::Link => Act::Link,
            Kind::Make => Act::Make,
            Kind::Attributes => Act::Attributes,
            Kind::Times => Act::Times,
            Kind::Exec => Act::Exec,
            Kind::Standing => Act::Standing,
            Kind::Mounts => Act::Mounts,
        }
    }
}

impl Follow {
    /// Tells whether a link at the end is followed.
    pub(crate) fn is_on(self, arguments: &[u64; 6]) -> bool {
        let argument = |index: usize| arguments.get(index).copied().unwrap_or_default();
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::AsOpened(flags) => {
                let flags = as_int(argument(flags));
                let new = libc::O_CREAT | libc::O_EXCL;
                flags & libc::O_NOFOLLOW == 0 && flags & new != new
            }
            Self::Unless(flags, mask) => argument(flags) & mask == 0,
            Self::If(flags, mask) => argument(flags) & mask != 0,
        }
    }
}

/// The kernel looks at the low half of an argument that is an `int`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "this is what the kernel does"
)]
pub(crate) const fn as_int(argument: u64) -> i32 {
    argument as u32 as i32
}
