//! A tree in which everything is odd that a file can be odd in. Needs root to be made.

use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::Path;
use std::process::Command;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags};

use crate::world::World;

/// `cap_net_raw+ep`, as the system writes it.
const CAPABILITY: [u8; 20] = [
    1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// The files of the zoo that have content.
pub(crate) const FILES: [&str; 12] = [
    "suid", "sgid", "sticky", "none", "noted", "acl", "capable", "sparse", "holey", "one",
    "nodump", "grouped",
];

impl World {
    /// Puts the zoo into `zoo`, owned by `owner`, with a third name of one of its files outside.
    pub(crate) fn with_zoo(self, owner: u32) -> Self {
        let at = |name: &str| self.path("zoo").join(name);
        fs::create_dir_all(at("inner/empty")).unwrap();
        for name in FILES.iter().filter(|name| **name != "holey") {
            fs::write(at(name), format!("this is {name}\n")).unwrap();
        }
        fs::File::create(at("sparse"))
            .unwrap()
            .set_len(3 << 20)
            .unwrap();
        let holey = fs::File::create(at("holey")).unwrap();
        holey.set_len(48 * 1024).unwrap();
        holey.write_at(b"in the middle", 20 * 1024).unwrap();
        fs::write(at("inner/plain"), "plain\n").unwrap();
        fs::hard_link(at("one"), at("inner/two")).unwrap();
        fs::hard_link(at("one"), self.path("three")).unwrap();
        symlink("inner/plain", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        rustix::fs::mknodat(
            CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o640),
            0,
        )
        .unwrap();
        for name in everything(&self.path("zoo")) {
            lchown(&name, Some(owner), Some(owner)).unwrap();
        }
        chown(self.path("three"), Some(owner), Some(owner)).unwrap();
        chown(at("grouped"), Some(owner), Some(54321)).unwrap();
        for (name, mode) in [
            ("suid", 0o4755),
            ("sgid", 0o2755),
            ("sticky", 0o1644),
            ("none", 0),
        ] {
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(at("inner"), fs::Permissions::from_mode(0o3775)).unwrap();
        set(&at("noted"), "user.note", b"text \0 and \xff");
        set(&at("inner"), "user.note", b"of a directory");
        set(&at("acl"), "system.posix_acl_access", &acl(6));
        set(&at("inner"), "system.posix_acl_default", &acl(7));
        set(&at("capable"), "security.capability", &CAPABILITY);
        run("chattr", &["+d"], &at("nodump"));
        for (number, path) in everything(&self.path("zoo")).iter().enumerate() {
            set_time(
                path,
                1_000_000_000 + i64::try_from(number).unwrap(),
                123_456_789,
            );
        }
        set_time(&self.path("three"), 1_111_111_111, 987_654_321);
        self
    }
}

/// Sets an extended attribute.
pub(crate) fn set(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()).unwrap();
}

/// Runs a tool on a file.
pub(crate) fn run(tool: &str, arguments: &[&str], path: &Path) {
    let status = Command::new(tool).args(arguments).arg(path).status();
    assert!(
        status.unwrap().success(),
        "{tool} {arguments:?} {}",
        path.display()
    );
}

/// Lists a tree, what is in a directory before the directory.
fn everything(path: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    if path.symlink_metadata().unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            found.extend(everything(&entry.unwrap().path()));
        }
    }
    found.push(path.to_path_buf());
    found
}

fn set_time(path: &Path, seconds: i64, nanoseconds: i64) {
    let stamp = Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: stamp,
        last_modification: stamp,
    };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// The owner's permissions as given, then `user:1234:rwx, group::r--, mask::rwx, other::r--`.
fn acl(of_owner: u16) -> Vec<u8> {
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in [
        (1_u16, of_owner, u32::MAX),
        (2, 7, 1234),
        (4, 4, u32::MAX),
        (16, 7, u32::MAX),
        (32, 4, u32::MAX),
    ] {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}
