//! Who is at the other side of the relay.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, geteuid};

use super::request::Refusal;
use crate::live::process_info::Scene;
use crate::live::sys;

/// How far above a process to look: more than any tree of processes is deep.
const DEPTH_MAX: usize = 1_000;

/// How often to look again when a process on the way up ended meanwhile.
const TRIES_MAX: usize = 3;

/// How many filters a process of the command has more than the front.
const OWN_FILTERS: u32 = 1;

/// Which process runs the relay. A number alone can be given to another process later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keeper {
    /// The name of the socket.
    pub(super) name: OsString,
    process: i32,
    started: u64,
}

impl Keeper {
    /// This process, for a name.
    pub(super) fn ourselves(name: &str) -> Option<Self> {
        let process = rustix::process::getpid().as_raw_nonzero().get();
        Some(Self {
            name: name.into(),
            process,
            started: started(process)?,
        })
    }

    /// Says it as a variable's value.
    pub(super) fn told(&self) -> OsString {
        let mut value = self.name.clone();
        value.push(format!(":{}:{}", self.process, self.started));
        value
    }

    /// Reads a variable's value.
    pub(super) fn read(value: &OsStr) -> Option<Self> {
        let mut parts = value.as_bytes().splitn(3, |byte| *byte == b':');
        let name = parts.next().filter(|name| !name.is_empty())?;
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse::<u64>().ok();
        let (process, started) = (number()?, number()?);
        Some(Self {
            name: OsStr::from_bytes(name).to_owned(),
            process: i32::try_from(process).ok()?,
            started,
        })
    }

    /// Tells whether it is this process that listens at the other end. The kernel says who that is: whoever took the name
    /// after the front ended is another user, or another process.
    pub(super) fn is_at(&self, socket: impl AsFd) -> bool {
        let Some((uid, pid)) = sys::peer_of(socket.as_fd()) else {
            return false;
        };
        // A process that we cannot see, from a namespace of our own, has no number.
        let is_it = pid == 0 || (pid == self.process && started(pid) == Some(self.started));
        uid == geteuid().as_raw() && is_it
    }
}

/// When a process started, in ticks since the machine did.
fn started(process: i32) -> Option<u64> {
    let after = stat(process)?;
    // The state is the third field, the start the 22nd.
    after.split_whitespace().nth(19)?.parse().ok()
}

/// Gives what the kernel says of a process after its name.
fn stat(process: i32) -> Option<String> {
    let text = fs::read(format!("/proc/{process}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let (_, after) = text.rsplit_once(')')?;
    Some(after.to_owned())
}

/// Finds out whether a caller may ask: a process below the one that watches, with our rights, that sees what we see.
pub(super) fn admit(caller: impl AsFd, watcher: Pid) -> Result<(), Refusal> {
    let (user, process) = sys::peer_of(caller.as_fd()).ok_or(Refusal::Stranger)?;
    // Held from here on: if it is alive in the end, the number was its own all the while.
    let held = sys::peer_process(caller.as_fd());
    if user != geteuid().as_raw() || !is_below(process, watcher) {
        return Err(Refusal::Stranger);
    }
    let scene = Scene::of(process.cast_unsigned());
    if scene != Scene::USUAL || has_more_filters(process) {
        return Err(Refusal::Sandboxed);
    }
    let is_gone = held.is_some_and(|held| {
        let mut fds = [PollFd::new(&held, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())) != Ok(0)
    });
    if is_gone {
        return Err(Refusal::Stranger);
    }
    Ok(())
}

/// Tells whether a process descends from another. Whoever loses its parent becomes a child of the one that watches.
fn is_below(process: i32, watcher: Pid) -> bool {
    let watcher = watcher.as_raw_nonzero().get();
    (0..TRIES_MAX).any(|_| {
        let mut at = process;
        for _ in 0..DEPTH_MAX {
            match parent(at) {
                Some(parent) if parent == watcher => return true,
                Some(parent) if parent > 1 => at = parent,
                _ => return false,
            }
        }
        false
    })
}

fn parent(process: i32) -> Option<i32> {
    let after = stat(process)?;
    after.split_whitespace().nth(1)?.parse().ok()
}

/// Tells whether a process took on filters of its own: then it may not do all that we may.
fn has_more_filters(process: i32) -> bool {
    let ours = filters("self").unwrap_or(0);
    filters(&process.to_string()).is_some_and(|theirs| theirs > ours + OWN_FILTERS)
}

/// How many filters a process has; none where the kernel does not say.
fn filters(who: &str) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{who}/status")).ok()?;
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("Seccomp_filters:"))?;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keeper_survives_its_way_through_a_variable() {
        let keeper = Keeper::ourselves("backout-x").unwrap();
        assert_eq!(Keeper::read(&keeper.told()), Some(keeper));
        for wrong in ["", "x", "x:", "x:1", ":1:2", "x:-1:2", "x:1:2:3", "x:a:b"] {
            assert_eq!(Keeper::read(OsStr::new(wrong)), None, "{wrong}");
        }
    }
}
