//! The calls that can change a file: what each does, and where its paths are among its arguments.

use std::ffi::c_long;

use super::resolve::Last;
use super::table::{COMMON, OLDER, REQUESTS};

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
    /// Change the flags that `chattr` sets.
    Flags {
        /// What they are to be, where the call says just that.
        to: Option<u32>,
    },
    /// Open a file for reading.
    Read,
    /// Become another program.
    Exec,
    /// Change what the process sees or may do: root directory, namespaces, user.
    Standing,
    /// Change what is mounted where.
    Mounts,
    /// Change how much anybody may store.
    Quotas,
    /// Have the disk keep what was written.
    Sync,
}

impl Act {
    /// Tells whether it changes files: what they hold, what they are, or which names there are.
    pub const fn changes_files(self) -> bool {
        match self {
            Self::Open { .. }
            | Self::Truncate
            | Self::Unlink
            | Self::Rmdir
            | Self::Rename { .. }
            | Self::Link
            | Self::Make
            | Self::Attributes
            | Self::Times
            | Self::Flags { .. } => true,
            Self::Read | Self::Exec | Self::Standing | Self::Mounts | Self::Quotas | Self::Sync => {
                false
            }
        }
    }
}

/// Where a path is among the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// A path, starting at the directory of a descriptor or at the current one.
    Path {
        at: Option<usize>,
        path: usize,
        follow: Follow,
        without: Without,
    },
    /// A descriptor.
    Fd(usize),
    /// A socket's address.
    Address(usize, usize),
}

/// What it means that there is no path, or an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Without {
    /// The call fails.
    Fails,
    /// The descriptor itself is meant by an empty path if that argument has `AT_EMPTY_PATH`.
    Flagged(usize),
    /// So it is by no path.
    FlaggedOrNull(usize),
    /// No path means the descriptor itself; an empty one as above.
    Null(Option<usize>),
}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follow {
    Always,
    Never,
    /// The end is a name that is made, taken away or given to something else.
    Name,
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
    Flags,
    Exec,
    Standing,
    /// Rights are given up that nobody can look at.
    Confining,
    /// What is never given to new files changes.
    Mask,
    Mounts,
    Quotas,
    Sync,
    /// What it does cannot be kept: it fails with `EPERM`, and this is said.
    Never(&'static str),
}

/// One call that is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) number: c_long,
    pub(crate) kind: Kind,
    pub(crate) first: Option<Operand>,
    pub(crate) second: Option<Operand>,
}

pub(super) const NOFOLLOW: u64 = 0x100;
pub(super) const FOLLOW: u64 = 0x400;
const EMPTY_PATH: u64 = 0x1000;
pub(crate) const REMOVEDIR: u64 = 0x200;

pub(super) const fn at(at: usize, path: usize, follow: Follow) -> Operand {
    Operand::Path {
        at: Some(at),
        path,
        follow,
        without: Without::Fails,
    }
}

/// A path that may be left out: then the descriptor itself is meant.
pub(super) const fn or(at: usize, path: usize, follow: Follow, without: Without) -> Operand {
    Operand::Path {
        at: Some(at),
        path,
        follow,
        without,
    }
}

pub(super) const fn from_here(path: usize, follow: Follow) -> Operand {
    Operand::Path {
        at: None,
        path,
        follow,
        without: Without::Fails,
    }
}

pub(super) const fn one(number: c_long, kind: Kind, first: Operand) -> Shape {
    Shape {
        number,
        kind,
        first: Some(first),
        second: None,
    }
}

pub(super) const fn two(number: c_long, kind: Kind, first: Operand, second: Operand) -> Shape {
    Shape {
        number,
        kind,
        first: Some(first),
        second: Some(second),
    }
}

pub(super) const fn none(number: c_long, kind: Kind) -> Shape {
    Shape {
        number,
        kind,
        first: None,
        second: None,
    }
}

/// Finds a call that is asked about.
pub(crate) fn shape_of(number: c_long, arguments: &[u64; 6]) -> Option<&'static Shape> {
    if number == libc::SYS_ioctl {
        let request = as_int(arguments[1]).cast_unsigned();
        let found = REQUESTS.iter().find(|(wanted, _)| *wanted == request);
        return found.map(|(_, shape)| shape);
    }
    let mut all = COMMON.iter().chain(OLDER);
    all.find(|shape| shape.number == number)
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
            Kind::Flags => Act::Flags { to: None },
            Kind::Exec => Act::Exec,
            Kind::Standing | Kind::Confining | Kind::Mask | Kind::Never(_) => Act::Standing,
            Kind::Mounts => Act::Mounts,
            Kind::Quotas => Act::Quotas,
            Kind::Sync => Act::Sync,
        }
    }
}

impl Follow {
    /// Tells how the last component is taken.
    pub(crate) fn last(self, arguments: &[u64; 6]) -> Last {
        let argument = |index: usize| arguments.get(index).copied().unwrap_or_default();
        let is_followed = match self {
            Self::Name => return Last::Name,
            Self::Always => true,
            Self::Never => false,
            Self::AsOpened(flags) => {
                let flags = as_int(argument(flags));
                let new = libc::O_CREAT | libc::O_EXCL;
                flags & libc::O_NOFOLLOW == 0 && flags & new != new
            }
            Self::Unless(flags, mask) => argument(flags) & mask == 0,
            Self::If(flags, mask) => argument(flags) & mask != 0,
        };
        if is_followed {
            Last::Followed
        } else {
            Last::Itself
        }
    }
}

impl Without {
    /// Tells whether the descriptor itself is meant by no path, or by an empty one.
    pub(crate) fn means_descriptor(self, is_null: bool, arguments: &[u64; 6]) -> bool {
        let has_flag = |index: usize| {
            arguments
                .get(index)
                .is_some_and(|flags| flags & EMPTY_PATH != 0)
        };
        match self {
            Self::Fails => false,
            Self::Flagged(flags) => !is_null && has_flag(flags),
            Self::FlaggedOrNull(flags) => has_flag(flags),
            Self::Null(flags) => is_null || flags.is_some_and(has_flag),
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
