//! Which calls are asked about, which do not exist for a command, and the newest one that is known.

use std::ffi::c_long;

use super::calls::{
    FOLLOW, Follow, Kind, NOFOLLOW, Operand, Shape, Without, at, from_here, none, one, or, two,
};
use super::sys::{FCHMODAT2, REMOVEXATTRAT, SETXATTRAT};

/// The newest call that this table knows. What comes later could do anything, and does not exist for a command.
pub(crate) const NEWEST: c_long = 470;

/// Newer than the library's list.
const SYS_OPEN_TREE_ATTR: c_long = 467;
const SYS_FILE_SETATTR: c_long = 469;

const ACCOUNTING: &str = "the kernel would write its accounts into a file by itself, and none of that could be undone; \
                          switch them on without `backout run`";
const SWAPPING: &str = "the kernel would write memory into it by itself, and none of that could be undone; run it \
                        without `backout run`";
const SUBVOLUME: &str = "what happens to a whole subvolume cannot be undone; make, copy or remove its directories and \
                         files instead (`rm -r`, `cp -a`), or run it without `backout run`";
const FOREVER: &str = "it can never be undone; run it without `backout run`";

/// The calls that every architecture has.
pub(crate) const COMMON: &[Shape] = {
    use Follow::{Always, AsOpened, If, Name, Never, Unless};
    use Kind::{
        Attributes, Confining, Exec, Flags, Link, Make, Mounts, Open, Rename, Standing, Times,
        Truncate, Unlink,
    };
    use Without::{Flagged, FlaggedOrNull, Null};
    use libc::{
        SYS_acct, SYS_bind, SYS_capset, SYS_chroot, SYS_execve, SYS_execveat, SYS_fchmod,
        SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_fdatasync, SYS_fremovexattr, SYS_fsetxattr,
        SYS_fsync, SYS_landlock_restrict_self, SYS_linkat, SYS_lremovexattr, SYS_lsetxattr,
        SYS_mkdirat, SYS_mknodat, SYS_mount, SYS_msync, SYS_openat, SYS_pivot_root, SYS_quotactl,
        SYS_quotactl_fd, SYS_removexattr, SYS_renameat2, SYS_setfsgid, SYS_setfsuid, SYS_setgid,
        SYS_setgroups, SYS_setns, SYS_setregid, SYS_setresgid, SYS_setresuid, SYS_setreuid,
        SYS_setuid, SYS_setxattr, SYS_swapon, SYS_symlinkat, SYS_sync, SYS_sync_file_range,
        SYS_syncfs, SYS_truncate, SYS_umask, SYS_umount2, SYS_unlinkat, SYS_unshare, SYS_utimensat,
    };
    &[
        one(SYS_openat, Open(Some(2)), at(0, 1, AsOpened(2))),
        one(SYS_truncate, Truncate, from_here(0, Always)),
        one(SYS_unlinkat, Unlink(Some(2)), at(0, 1, Name)),
        two(
            SYS_renameat2,
            Rename(Some(4)),
            at(0, 1, Name),
            at(2, 3, Name),
        ),
        two(
            SYS_linkat,
            Link,
            or(0, 1, If(4, FOLLOW), Flagged(4)),
            at(2, 3, Name),
        ),
        one(SYS_symlinkat, Make, at(1, 2, Name)),
        one(SYS_mkdirat, Make, at(0, 1, Name)),
        one(SYS_mknodat, Make, at(0, 1, Name)),
        one(SYS_bind, Make, Operand::Address(1, 2)),
        one(SYS_fchmod, Attributes, Operand::Fd(0)),
        one(SYS_fchmodat, Attributes, at(0, 1, Always)),
        one(
            FCHMODAT2,
            Attributes,
            or(0, 1, Unless(3, NOFOLLOW), Flagged(3)),
        ),
        one(SYS_fchown, Attributes, Operand::Fd(0)),
        one(
            SYS_fchownat,
            Attributes,
            or(0, 1, Unless(4, NOFOLLOW), Flagged(4)),
        ),
        one(SYS_setxattr, Attributes, from_here(0, Always)),
        one(SYS_lsetxattr, Attributes, from_here(0, Never)),
        one(SYS_fsetxattr, Attributes, Operand::Fd(0)),
        one(SYS_removexattr, Attributes, from_here(0, Always)),
        one(SYS_lremovexattr, Attributes, from_here(0, Never)),
        one(SYS_fremovexattr, Attributes, Operand::Fd(0)),
        one(
            SETXATTRAT,
            Attributes,
            or(0, 1, Unless(2, NOFOLLOW), FlaggedOrNull(2)),
        ),
        one(
            REMOVEXATTRAT,
            Attributes,
            or(0, 1, Unless(2, NOFOLLOW), FlaggedOrNull(2)),
        ),
        one(
            SYS_FILE_SETATTR,
            Flags,
            or(0, 1, Unless(4, NOFOLLOW), FlaggedOrNull(4)),
        ),
        one(
            SYS_utimensat,
            Times,
            or(0, 1, Unless(3, NOFOLLOW), Null(Some(3))),
        ),
        one(SYS_execve, Exec, from_here(0, Always)),
        one(
            SYS_execveat,
            Exec,
            or(0, 1, Unless(4, NOFOLLOW), Flagged(4)),
        ),
        none(SYS_mount, Mounts),
        none(SYS_umount2, Mounts),
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
        none(SYS_landlock_restrict_self, Confining),
        none(SYS_umask, Kind::Mask),
        none(SYS_acct, Kind::Never(ACCOUNTING)),
        none(SYS_swapon, Kind::Never(SWAPPING)),
        none(SYS_quotactl, Kind::Quotas),
        none(SYS_quotactl_fd, Kind::Quotas),
        none(SYS_fsync, Kind::Sync),
        none(SYS_fdatasync, Kind::Sync),
        none(SYS_msync, Kind::Sync),
        none(SYS_sync, Kind::Sync),
        none(SYS_syncfs, Kind::Sync),
        none(SYS_sync_file_range, Kind::Sync),
    ]
};

/// The older calls that only some architectures have.
#[cfg(target_arch = "x86_64")]
pub(crate) const OLDER: &[Shape] = {
    use Follow::{Always, AsOpened, Name, Never};
    use Kind::{Attributes, Link, Make, Open, Rename, Rmdir, Times, Unlink};
    use libc::{
        SYS_chmod, SYS_chown, SYS_creat, SYS_futimesat, SYS_lchown, SYS_link, SYS_mkdir, SYS_mknod,
        SYS_open, SYS_rename, SYS_renameat, SYS_rmdir, SYS_symlink, SYS_unlink, SYS_utime,
        SYS_utimes,
    };
    &[
        one(SYS_open, Open(Some(1)), from_here(0, AsOpened(1))),
        one(SYS_creat, Open(None), from_here(0, Always)),
        one(SYS_unlink, Unlink(None), from_here(0, Name)),
        one(SYS_rmdir, Rmdir, from_here(0, Name)),
        two(
            SYS_rename,
            Rename(None),
            from_here(0, Name),
            from_here(1, Name),
        ),
        two(SYS_renameat, Rename(None), at(0, 1, Name), at(2, 3, Name)),
        two(SYS_link, Link, from_here(0, Never), from_here(1, Name)),
        one(SYS_symlink, Make, from_here(1, Name)),
        one(SYS_mkdir, Make, from_here(0, Name)),
        one(SYS_mknod, Make, from_here(0, Name)),
        one(SYS_chmod, Attributes, from_here(0, Always)),
        one(SYS_chown, Attributes, from_here(0, Always)),
        one(SYS_lchown, Attributes, from_here(0, Never)),
        one(SYS_utime, Times, from_here(0, Always)),
        one(SYS_utimes, Times, from_here(0, Always)),
        one(SYS_futimesat, Times, or(0, 1, Always, Without::Null(None))),
    ]
};
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const OLDER: &[Shape] = &[two(
    libc::SYS_renameat,
    Kind::Rename(None),
    at(0, 1, Follow::Name),
    at(2, 3, Follow::Name),
)];

const fn asks(request: u32, kind: Kind) -> (u32, Shape) {
    (request, one(libc::SYS_ioctl, kind, Operand::Fd(0)))
}

/// `FS_IOC_SETFLAGS` and its 32-bit form.
pub(super) const SET_FLAGS: [u32; 2] = [0x4008_6602, 0x4004_6602];

/// What is asked of a descriptor that needs not be open for writing, and changes files.
pub(crate) const REQUESTS: &[(u32, Shape)] = {
    use Kind::{Flags, Never};
    &[
        // FS_IOC_SETFLAGS, its 32-bit form, FS_IOC_FSSETXATTR, FAT_IOCTL_SET_ATTRIBUTES
        asks(SET_FLAGS[0], Flags),
        asks(SET_FLAGS[1], Flags),
        asks(0x401c_5820, Flags),
        asks(0x4004_7211, Flags),
        // FS_IOC_SETVERSION, FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY
        asks(0x4008_7602, Never(FOREVER)),
        asks(0x4080_6685, Never(FOREVER)),
        asks(0x800c_6613, Never(FOREVER)),
        // BTRFS_IOC_SNAP_CREATE, _SUBVOL_CREATE, _SNAP_DESTROY, _DEFAULT_SUBVOL, their second forms, _SUBVOL_SETFLAGS,
        // _SET_RECEIVED_SUBVOL, _SNAP_DESTROY_V2
        asks(0x5000_9401, Never(SUBVOLUME)),
        asks(0x5000_940e, Never(SUBVOLUME)),
        asks(0x5000_940f, Never(SUBVOLUME)),
        asks(0x4008_9413, Never(SUBVOLUME)),
        asks(0x5000_9417, Never(SUBVOLUME)),
        asks(0x5000_9418, Never(SUBVOLUME)),
        asks(0x4008_941a, Never(SUBVOLUME)),
        asks(0xc0c8_9425, Never(SUBVOLUME)),
        asks(0x5000_943f, Never(SUBVOLUME)),
        // EXT4_IOC_SWAP_BOOT
        asks(0x0000_6611, Never(FOREVER)),
    ]
};

/// The calls that a filter cannot look into, or whose effects pass it by. Programs have another way: `openat`, `read`
/// and `write`, `mount`.
pub(crate) const ABSENT: &[c_long] = &[
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
];
