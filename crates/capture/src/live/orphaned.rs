//! What is left of a command whose watcher and front are both dead.
//!
//! Nobody is its parent any more. But each of its processes was started with a variable that names the command, and has the
//! filter that nobody answers: it can open nothing for writing, but it can write what it has open. Both together are proof
//! enough to end it. A process that was started with another environment is found below one that was not.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, geteuid, getpid, pidfd_open, pidfd_send_signal};

use super::task::{Descendant, descendants_of, named};

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

/// Ends every process that was started with `variable=value` and is watched by nobody who lives, and what is below it. The
/// caller knows that the watcher is dead.
pub fn end_orphans(variable: &str, value: &str) -> Orphans {
    let mark = format!("{variable}={value}");
    let mut ended: Vec<Descendant> = Vec::new();
    for _ in 0..STEPS_MAX {
        let found = orphans(&mark);
        if found.is_empty() {
            break;
        }
        for process in found {
            end(&process, &mark);
            if !ended.contains(&process) {
                ended.push(process);
            }
        }
        std::thread::sleep(STEP);
    }
    let left = orphans(&mark);
    ended.retain(|process| !left.contains(process));
    let names = |processes: &[Descendant]| processes.iter().map(ToString::to_string).collect();
    Orphans {
        ended: names(&ended),
        left: names(&left),
    }
}

fn orphans(mark: &str) -> Vec<Descendant> {
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
fn end(process: &Descendant, mark: &str) {
    let Ok(held) = pidfd_open(process.pid, PidfdFlags::empty()) else {
        return;
    };
    if orphans(mark).contains(process) {
        let _gone = pidfd_send_signal(held, Signal::KILL);
    }
}

fn is_marked(pid: Pid, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
    let is_it = |variable: &[u8]| variable == mark.as_bytes();
    environment.is_ok_and(|all| all.split(|byte| *byte == 0).any(is_it))
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
