//! What is left of a command whose watcher and front are both dead.
//!
//! Nobody is its parent any more. But each of its processes was started with a variable that names the command, and has the
//! filter that nobody answers: it can open nothing for writing, but it can write what it has open. Both together are proof
//! enough to end it. A process that was started with another environment is found below one that was not.
//!
//! Two stores may have given the same name to a command: one is a copy of the other. So a process that says that its store is
//! in another directory, which is there, is left alone.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, geteuid, getpid, pidfd_open, pidfd_send_signal};

use super::process_info::{Descendant, descendants_of, named};

/// How often to look whether what was ended is gone, and for what it started meanwhile.
const STEP: Duration = Duration::from_millis(20);
const STEPS_MAX: usize = 100;

/// What became of the processes of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orphans {
    /// Those that were ended.
    pub ended: Vec<String>,
    /// Those that are still there.
    pub left: Vec<String>,
}

/// How the processes of a command are known: by variables that they were started with.
#[derive(Debug, Clone, Copy)]
pub struct Mark<'m> {
    /// The one that names the command, and its value.
    pub command: (&'m str, &'m str),
    /// The one that names the directory of the store, and the directory.
    pub store: (&'m str, &'m Path),
}

/// Ends every process of a command that is watched by nobody who lives, and what is below it. The caller knows that the
/// watcher is dead.
pub fn end_orphans(mark: Mark<'_>) -> Orphans {
    let mut ended: Vec<Descendant> = Vec::new();
    for _ in 0..STEPS_MAX {
        let found = orphans(mark);
        if found.is_empty() {
            break;
        }
        for process in found {
            end(&process, mark);
            if !ended.contains(&process) {
                ended.push(process);
            }
        }
        std::thread::sleep(STEP);
    }
    let left = orphans(mark);
    ended.retain(|process| !left.contains(process));
    let names = |processes: &[Descendant]| processes.iter().map(ToString::to_string).collect();
    Orphans {
        ended: names(&ended),
        left: names(&left),
    }
}

fn orphans(mark: Mark<'_>) -> Vec<Descendant> {
    let mut found: Vec<Descendant> = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else {
            continue;
        };
        if is_marked(pid, mark) && is_filtered(pid) {
            let below = descendants_of(pid).into_iter();
            found.extend(below.filter(|below| is_filtered(below.pid)));
            found.extend(named(pid));
        }
    }
    found.retain(|process| process.pid != getpid());
    found.sort_by_key(|process| process.pid.as_raw_nonzero());
    found.dedup();
    found
}

/// Ends a process, if its number still means it.
fn end(process: &Descendant, mark: Mark<'_>) {
    let Ok(held) = pidfd_open(process.pid, PidfdFlags::empty()) else {
        return;
    };
    if orphans(mark).contains(process) {
        let _gone = pidfd_send_signal(held, Signal::KILL);
    }
}

fn is_marked(pid: Pid, mark: Mark<'_>) -> bool {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
    let environment = environment.unwrap_or_default();
    let value_of = |name: &str| {
        let mut variables = environment.split(|byte| *byte == 0);
        variables.find_map(|it| it.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    let (command, (variable, directory)) = (mark.command, mark.store);
    let is_elsewhere = |path: &[u8]| {
        let (there, here) = (
            identity(Path::new(OsStr::from_bytes(path))),
            identity(directory),
        );
        there.is_some() && there != here
    };
    value_of(command.0) == Some(command.1.as_bytes())
        && !value_of(variable).is_some_and(is_elsewhere)
}

/// Tells which directory a path leads to; none if it leads nowhere, as after a move.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Tells whether a process is ours and has a filter like the one that a watched command has.
fn is_filtered(pid: Pid) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())) else {
        return false;
    };
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next())
    };
    let uid = geteuid().as_raw().to_string();
    field("Seccomp:") == Some("2") && (uid == "0" || field("Uid:") == Some(uid.as_str()))
}
