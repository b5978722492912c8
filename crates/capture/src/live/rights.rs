//! What a task may do, as far as owners, groups and modes tell: enough to say why a call fails, never to let one happen.

use std::fs;

use rustix::fs::{Access, AtFlags, FileType, Stat, accessat, fstat};
use rustix::process::{getegid, geteuid};
use std::os::fd::OwnedFd;

/// Capabilities that go before modes, by their numbers.
const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const FOWNER: u64 = 1 << 3;

const WRITE: u32 = 0o2;
const SEARCH: u32 = 0o1;
const STICKY: u32 = 0o1000;

/// Who a task is to the file system.
#[derive(Debug)]
pub(super) struct Rights {
    /// Whether they are ours: then the system is asked, which knows of access lists as well.
    are_ours: bool,
    user: u32,
    groups: Vec<u32>,
    capabilities: u64,
}

impl Rights {
    /// Looks at a task; none if it is gone.
    pub(super) fn of(thread: u32, are_ours: bool) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
        let words = |key: &str| -> Option<Vec<&str>> {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.split_whitespace().collect())
        };
        // Real, effective, saved, and the one that counts for files.
        let number = |key: &str| words(key)?.get(3)?.parse::<u32>().ok();
        let more = words("Groups:")?.into_iter();
        let mut groups: Vec<u32> = more.filter_map(|group| group.parse().ok()).collect();
        groups.push(number("Gid:")?);
        let capabilities = words("CapEff:")?.first().copied()?;
        Some(Self {
            are_ours,
            user: number("Uid:")?,
            groups,
            capabilities: u64::from_str_radix(capabilities, 16).ok()?,
        })
    }

    /// Whether entries of a directory may be made and removed.
    pub(super) fn may_change(&self, dir: &OwnedFd) -> bool {
        self.may(dir, Access::WRITE_OK | Access::EXEC_OK, WRITE | SEARCH)
    }

    /// Whether names may be looked up in a directory.
    pub(super) fn may_search(&self, dir: &OwnedFd) -> bool {
        self.capabilities & DAC_READ_SEARCH != 0 || self.may(dir, Access::EXEC_OK, SEARCH)
    }

    /// Whether something may be written to.
    pub(super) fn may_write(&self, stat: &Stat) -> bool {
        self.has(stat, WRITE)
    }

    /// Whether a sticky directory keeps something from being removed.
    pub(super) fn is_stuck(&self, dir: &Stat, there: &Stat) -> bool {
        dir.st_mode & STICKY != 0 && self.user != dir.st_uid && !self.owns(there)
    }

    /// Whether it counts as the owner.
    pub(super) const fn owns(&self, stat: &Stat) -> bool {
        self.user == stat.st_uid || self.capabilities & FOWNER != 0
    }

    fn may(&self, dir: &OwnedFd, access: Access, bits: u32) -> bool {
        let is_like_us = self.are_ours && self.user == geteuid().as_raw();
        if is_like_us && self.groups.contains(&getegid().as_raw()) {
            return accessat(dir, ".", access, AtFlags::EACCESS).is_ok();
        }
        fstat(dir).is_ok_and(|stat| self.has(&stat, bits))
    }

    fn has(&self, stat: &Stat, bits: u32) -> bool {
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let is_above =
            self.capabilities & DAC_OVERRIDE != 0 && (is_directory || bits & SEARCH == 0);
        let shift = if self.user == stat.st_uid {
            6
        } else if self.groups.contains(&stat.st_gid) {
            3
        } else {
            0
        };
        is_above || (stat.st_mode >> shift) & bits == bits
    }
}
