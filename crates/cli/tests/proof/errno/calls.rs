//! The calls that reach a file system, and the one that lets a command be watched. Locks of records (`fcntl`) are not among them: they are kept by the kernel, and
//! fail in none of these ways.

use nix::libc;

/// Number and name.
const CALLS: &[(i64, &str)] = &[
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_open, "open"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_openat2, "openat2"),
    (libc::SYS_stat, "stat"),
    (libc::SYS_lstat, "lstat"),
    (libc::SYS_fstat, "fstat"),
    (libc::SYS_newfstatat, "newfstatat"),
    (libc::SYS_statx, "statx"),
    (libc::SYS_statfs, "statfs"),
    (libc::SYS_fstatfs, "fstatfs"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_syncfs, "syncfs"),
    (libc::SYS_rename, "rename"),
    (libc::SYS_renameat, "renameat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_link, "link"),
    (libc::SYS_linkat, "linkat"),
    (libc::SYS_unlink, "unlink"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_rmdir, "rmdir"),
    (libc::SYS_mkdir, "mkdir"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_mknodat, "mknodat"),
    (libc::SYS_symlinkat, "symlinkat"),
    (libc::SYS_readlink, "readlink"),
    (libc::SYS_readlinkat, "readlinkat"),
    (libc::SYS_fchmod, "fchmod"),
    (libc::SYS_fchmodat, "fchmodat"),
    (libc::SYS_fchown, "fchown"),
    (libc::SYS_fchownat, "fchownat"),
    (libc::SYS_utimensat, "utimensat"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_getdents64, "getdents64"),
    (libc::SYS_setxattr, "setxattr"),
    (libc::SYS_lsetxattr, "lsetxattr"),
    (libc::SYS_fsetxattr, "fsetxattr"),
    (libc::SYS_getxattr, "getxattr"),
    (libc::SYS_lgetxattr, "lgetxattr"),
    (libc::SYS_fgetxattr, "fgetxattr"),
    (libc::SYS_listxattr, "listxattr"),
    (libc::SYS_llistxattr, "llistxattr"),
    (libc::SYS_flistxattr, "flistxattr"),
    (libc::SYS_removexattr, "removexattr"),
    (libc::SYS_fremovexattr, "fremovexattr"),
    (libc::SYS_copy_file_range, "copy_file_range"),
    (libc::SYS_sendfile, "sendfile"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_lseek, "lseek"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_seccomp, "seccomp"),
];

pub(crate) fn name_of(number: u64) -> Option<&'static str> {
    let number = i64::try_from(number).ok()?;
    let found = CALLS.iter().find(|(other, _)| *other == number);
    found.map(|(_, name)| *name)
}

/// Tells whether a call takes bytes, with their number in its third argument.
pub(crate) fn writes(name: &str) -> bool {
    matches!(name, "write" | "pwrite64")
}

/// Tells whether a call changes what is on a disk.
pub(crate) fn changes(name: &str) -> bool {
    let is_kind = |kind| name.starts_with(kind);
    let kinds = ["rename", "link", "unlink", "rmdir", "mk", "symlink"];
    writes(name) || syncs(name) || kinds.into_iter().any(is_kind)
}

pub(crate) fn syncs(name: &str) -> bool {
    matches!(name, "fsync" | "fdatasync" | "syncfs")
}
