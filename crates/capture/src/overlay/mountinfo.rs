//! The mounts of this process, as `/proc/self/mountinfo` lists them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::OverlayError;

/// File systems that are windows into the kernel, not places where files are kept.
const WINDOWS: [&str; 24] = [
    "autofs",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nfsd",
    "nsfs",
    "proc",
    "pstore",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tracefs",
];

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its number.
    pub id: u64,
    /// The mount it is on.
    pub parent: u64,
    /// Where it is.
    pub point: PathBuf,
    /// The type of the file system.
    pub kind: String,
    /// The options of the mount, separated by commas.
    pub options: String,
    /// Whether the mount or its file system is read-only.
    pub is_read_only: bool,
}

impl Mount {
    /// Tells whether it shows the kernel rather than files. A `/dev` is devices whatever it is made of.
    pub fn is_window(&self) -> bool {
        let is_below = |top: &str| self.point.starts_with(top);
        WINDOWS.contains(&self.kind.as_str())
            || self.point == Path::new("/dev")
            || is_below("/proc")
            || is_below("/sys")
    }
}

/// Reads the mounts of this process that can be reached: what another mount covers is left out.
pub fn mounts() -> Result<Vec<Mount>, OverlayError> {
    let path = "/proc/self/mountinfo";
    let text = std::fs::read(path).map_err(|source| OverlayError::Unreadable {
        path: PathBuf::from(path),
        source,
    })?;
    let mut found = parse(&text);
    found.retain(is_reachable);
    Ok(found)
}

/// Asks the kernel which mount a path leads to. One that may not be looked at counts as there.
fn is_reachable(mount: &Mount) -> bool {
    let flags = AtFlags::NO_AUTOMOUNT | AtFlags::SYMLINK_NOFOLLOW;
    statx(CWD, &mount.point, flags, StatxFlags::MNT_ID)
        .map_or(true, |found| found.stx_mnt_id == mount.id)
}

/// Reads the text of a `mountinfo`; lines that are none are left out.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

/// `36 35 98:0 /root /point rw,noatime shared:1 - ext3 /dev/sda rw,errors=continue`
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut number = || -> Option<u64> {
        let field = fields.next()?;
        std::str::from_utf8(field).ok()?.parse().ok()
    };
    let (id, parent) = (number()?, number()?);
    let point = fields.nth(2)?;
    let options = String::from_utf8_lossy(fields.next()?).into_owned();
    fields.find(|field| *field == b"-")?;
    let kind = String::from_utf8_lossy(fields.next()?).into_owned();
    let of_all = fields.nth(1).unwrap_or_default();
    let is_ro = |options: &[u8]| options.split(|byte| *byte == b',').any(|one| one == b"ro");
    Some(Mount {
        id,
        parent,
        point: PathBuf::from(unescaped(point)),
        is_read_only: is_ro(options.as_bytes()) || is_ro(of_all),
        kind,
        options,
    })
}

/// Takes the octal escapes out: the kernel writes blanks, tabs, newlines and backslashes so.
fn unescaped(text: &[u8]) -> OsString {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let octal = (*first == b'\\')
            .then(|| after.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(octal.unwrap_or(*first));
        rest = octal.and_then(|_| after.get(3..)).unwrap_or(after);
    }
    OsString::from_vec(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_its_escapes_and_optional_fields() {
        let text =
            b"36 35 98:0 /r /a\\040b\\134c rw,noatime shared:1 master:2 - ext4 /dev/sda ro,x=y\n\
                     37 36 0:5 / /proc rw - proc proc rw\nnonsense\n";
        let found = parse(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].point, Path::new("/a b\\c"));
        assert_eq!((found[0].id, found[0].parent), (36, 35));
        assert!(found[0].is_read_only && found[0].options == "rw,noatime");
        assert!(!found[0].is_window() && found[1].is_window());
    }

    #[test]
    fn the_mounts_of_this_machine_begin_at_the_root() {
        let found = mounts().unwrap();
        assert!(found.iter().any(|mount| mount.point == Path::new("/")));
    }
}
