//! What the system says of the processes that are watched.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags, fstat, openat};
use rustix::process::Pid;

/// How far below a process to look: more than any tree of processes is deep.
const DEPTH_MAX: usize = 1_000;

/// A living process below another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descendant {
    /// Its number.
    pub pid: Pid,
    /// Its name, as the kernel keeps it.
    pub name: String,
}

impl std::fmt::Display for Descendant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.pid.as_raw_nonzero())
    }
}

/// Lists the living processes below this one.
pub fn descendants() -> Vec<Descendant> {
    descendants_of(rustix::process::getpid())
}

/// Lists the living processes below one.
pub(super) fn descendants_of(process: Pid) -> Vec<Descendant> {
    let own = process.as_raw_nonzero().get();
    let mut parents: HashMap<i32, (i32, String)> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if let Some((name, parent)) = stat(pid) {
            parents.insert(pid, (parent, name));
        }
    }
    let is_below = |pid: &i32| {
        let mut at = *pid;
        for _ in 0..DEPTH_MAX {
            match parents.get(&at) {
                Some((parent, _)) if *parent == own => return true,
                Some((parent, _)) => at = *parent,
                None => return false,
            }
        }
        false
    };
    let mut found: Vec<Descendant> = parents
        .iter()
        .filter(|(pid, _)| is_below(pid))
        .filter_map(|(pid, (_, name))| {
            let pid = Pid::from_raw(*pid)?;
            let name = name.clone();
            Some(Descendant { pid, name })
        })
        .collect();
    found.sort_by_key(|process| process.pid.as_raw_nonzero());
    found
}

/// Gives a living process with its name.
pub(super) fn named(pid: Pid) -> Option<Descendant> {
    let (name, _) = stat(pid.as_raw_nonzero().get())?;
    Some(Descendant { pid, name })
}

/// Reads a process's name and parent; none if it is gone or a zombie.
fn stat(pid: i32) -> Option<(String, i32)> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let mut rest = after.split_whitespace();
    let state = rest.next()?;
    let parent = rest.next()?.parse().ok()?;
    (state != "Z" && state != "X").then_some((name, parent))
}

/// Lists the children of this process, as far as the system tells.
pub(super) fn children() -> Vec<Pid> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let number = |word: &str| Pid::from_raw(word.parse().ok()?);
    lists
        .flat_map(|list| {
            let found: Vec<Pid> = list.split_whitespace().filter_map(number).collect();
            found
        })
        .collect()
}

/// Lists the files that a process can write without another call that would be asked about: those it has open, and those
/// that it shares its memory with. Only files that still have the name are told, once for each way to write them.
pub fn opened_for_writing(process: Pid) -> Vec<PathBuf> {
    const ACCESS: u32 = 0o3;
    let process = PathBuf::from(format!("/proc/{}", process.as_raw_nonzero()));
    let mut files = Vec::new();
    for entry in fs::read_dir(process.join("fd"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let info = process.join("fdinfo").join(entry.file_name());
        let info = fs::read_to_string(info).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        if flags.is_some_and(|flags| flags & ACCESS != 0)
            && let (Ok(path), Ok(opened)) =
                (fs::read_link(entry.path()), fs::metadata(entry.path()))
            && opened.is_file()
            && fs::symlink_metadata(&path).is_ok_and(|found| is_one(&found, &opened))
        {
            files.push(path);
        }
    }
    let maps = fs::read(process.join("maps")).unwrap_or_default();
    files.extend(maps.split(|byte| *byte == b'\n').filter_map(shared_file));
    files
}

fn is_one(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Reads a line of `maps`, such as `7f00-7f01 rw-s 00000000 08:01 1234 /a file`: the file, if it is written through memory.
fn shared_file(line: &[u8]) -> Option<PathBuf> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let rights = words.nth(1)?;
    let number: u64 = words.nth(2)?.parse().ok()?;
    let path = PathBuf::from(line.get(line.find(" /")? + 1..)?);
    let is_shared = rights.contains('w') && rights.ends_with('s');
    let is_there = |found: fs::Metadata| found.is_file() && found.ino() == number;
    (is_shared && fs::symlink_metadata(&path).is_ok_and(is_there)).then_some(path)
}

/// What a task's paths and rights are against ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one thing that can differ"
)]
pub(super) struct Scene {
    /// Whether `/` is the same directory for it as for us.
    pub(super) has_our_root: bool,
    /// Whether it sees the same mounts.
    pub(super) has_our_mounts: bool,
    /// Whether its user and rights are ours.
    pub(super) has_our_rights: bool,
    /// Whether the command changed what is mounted: a path may stand for something else than it did.
    pub(super) has_new_mounts: bool,
}

impl Scene {
    /// The usual one.
    pub(super) const USUAL: Self = Self {
        has_our_root: true,
        has_our_mounts: true,
        has_our_rights: true,
        has_new_mounts: false,
    };

    /// Looks at a task. What cannot be looked at is another's.
    pub(super) fn of(thread: u32) -> Self {
        static OURS: OnceLock<Standing> = OnceLock::new();
        // Nothing ever changes what we are ourselves.
        let ours = OURS.get_or_init(|| Standing::of("self"));
        let theirs = Standing::of(&thread.to_string());
        Self {
            has_our_root: has_our_root(thread),
            has_our_mounts: is_same(ours.mounts.as_ref(), theirs.mounts.as_ref()),
            has_our_rights: is_same(ours.users.as_ref(), theirs.users.as_ref())
                && is_same(ours.rights.as_ref(), theirs.rights.as_ref()),
            has_new_mounts: false,
        }
    }

    /// Tells whether a path is the same for it as for us.
    pub(super) const fn is_plain(self) -> bool {
        self.has_our_root && self.has_our_mounts
    }
}

fn has_our_root(thread: u32) -> bool {
    let inode = |path: String| {
        fs::metadata(path)
            .map(|found| (found.dev(), found.ino()))
            .ok()
    };
    let ours = inode("/".to_owned());
    ours.is_some() && inode(format!("/proc/{thread}/root/.")) == ours
}

/// Tells whether two answers are the same; no answer is like none.
fn is_same<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
    one.is_some() && one == other
}

/// What a task sees and may do, as the system tells it.
#[derive(Debug)]
struct Standing {
    mounts: Option<PathBuf>,
    users: Option<PathBuf>,
    rights: Option<Vec<String>>,
}

impl Standing {
    fn of(who: &str) -> Self {
        let namespace = |what: &str| fs::read_link(format!("/proc/{who}/ns/{what}")).ok();
        Self {
            mounts: namespace("mnt"),
            users: namespace("user"),
            rights: rights_of(who),
        }
    }
}

/// Gives the lines that say who a task is and what it may do.
fn rights_of(who: &str) -> Option<Vec<String>> {
    let status = fs::read_to_string(format!("/proc/{who}/status")).ok()?;
    let is_right = |line: &&str| {
        ["Uid:", "Gid:", "Groups:", "CapEff:"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let lines = status.lines().filter(is_right);
    // What a security module adds; none where there is none.
    let label = fs::read_to_string(format!("/proc/{who}/attr/current")).unwrap_or_default();
    Some(lines.map(str::to_owned).chain([label]).collect())
}

/// Gives which rights a task never gives to what it makes.
pub(super) fn umask_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok()
}

/// Gives the numbers of a task's process and of itself, as the `/proc` that is open tells them.
pub(super) fn number_in(thread: u32, proc: BorrowedFd<'_>) -> Option<(u32, u32)> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let numbers = |word: &str| -> Option<Vec<u32>> {
        let line = status.lines().find_map(|line| line.strip_prefix(word))?;
        line.split_whitespace()
            .map(|number| number.parse().ok())
            .collect()
    };
    let (processes, threads) = (numbers("NStgid:")?, numbers("NSpid:")?);
    let both: Vec<(u32, u32)> = processes.into_iter().zip(threads).collect();
    let own = *both.first()?;
    let is_ours = matches!((fstat(proc), rustix::fs::stat("/proc")),
        (Ok(there), Ok(here)) if there.st_dev == here.st_dev);
    if is_ours {
        return Some(own);
    }
    // Another one counts from another beginning: the process there that began at the same moment.
    let began = began(&fs::read(format!("/proc/{}/stat", own.0)).ok()?)?;
    let is_it = |(process, _): &&(u32, u32)| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = openat(proc, format!("{process}/stat"), flags, Mode::empty());
        let mut text = Vec::new();
        let read = opened.map(|file| fs::File::from(file).read_to_end(&mut text));
        matches!(read, Ok(Ok(_))) && self::began(&text) == Some(began)
    };
    both.iter().rev().find(is_it).copied()
}

/// Reads when a process began from what the system says of it.
fn began(stat: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(stat).into_owned();
    let (_, after) = text.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}
