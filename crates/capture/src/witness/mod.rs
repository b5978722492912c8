//! Which process changed something in a directory, as far as the kernel tells: fanotify, which tells it to those who may administer the system.
//!
//! - Whether it does is found by trying: where it is refused there is no witness, and events that name no process are left out.
//! - A thread reads the events at once, since a process that has ended has no name any more.
//! - Only the last one at each name is known. Who maps a file and writes to the memory is not seen.

mod event;
mod sys;

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rustix::event::{PollFd, PollFlags, poll};

/// More directories than these are not listened to.
const DIRECTORIES_MAX: usize = 8_192;

/// More names than these are not remembered; then all are forgotten.
const NAMES_MAX: usize = 65_536;

/// Enough for many events at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// A process that changed something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// What it is called; none if it had ended when that was asked.
    pub name: Option<String>,
    /// When it was seen: not before it made the change.
    pub at: SystemTime,
}

/// Listens to directories.
#[derive(Debug)]
pub struct Witness {
    fanotify: Arc<OwnedFd>,
    known: Arc<Mutex<Known>>,
    /// The directories that are listened to.
    marked: HashSet<PathBuf>,
    /// Closed when nobody listens any more.
    _end: OwnedFd,
}

#[derive(Debug, Default)]
struct Known {
    /// Directories, by what events name them by.
    directories: HashMap<Vec<u8>, PathBuf>,
    /// Who was last seen at a name.
    seen: HashMap<PathBuf, Process>,
}

impl Witness {
    /// Begins to listen; none if the kernel tells us nothing.
    pub fn new() -> Option<Self> {
        let fanotify = Arc::new(sys::init().ok()?);
        let (ended, end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok()?;
        let known = Arc::new(Mutex::new(Known::default()));
        let (events, told) = (Arc::clone(&fanotify), Arc::clone(&known));
        let thread = std::thread::Builder::new().name("witness".to_owned());
        thread.spawn(move || hear(&events, &told, &ended)).ok()?;
        Some(Self {
            fanotify,
            known,
            marked: HashSet::new(),
            _end: end,
        })
    }

    /// Listens to these directories, and to no others if `is_all`. One that cannot be listened to is left out.
    pub fn listen(&mut self, directories: &HashSet<PathBuf>, is_all: bool) {
        if is_all {
            let stale: Vec<PathBuf> = self.marked.difference(directories).cloned().collect();
            for directory in stale {
                self.mark(&directory, false);
                self.marked.remove(&directory);
            }
            lock(&self.known)
                .directories
                .retain(|_, path| directories.contains(path));
        }
        for directory in directories {
            if self.marked.len() >= DIRECTORIES_MAX {
                return;
            }
            if !self.marked.contains(directory) && self.mark(directory, true) {
                self.marked.insert(directory.clone());
            }
        }
    }

    /// Counts the directories that are listened to.
    pub fn directories(&self) -> usize {
        self.marked.len()
    }

    /// Gives the process that was last seen to change what a path stands for.
    pub fn last_at(&self, path: &Path) -> Option<Process> {
        lock(&self.known).seen.get(path).cloned()
    }

    fn mark(&self, directory: &Path, is_added: bool) -> bool {
        let Ok(text) = CString::new(directory.as_os_str().as_bytes()) else {
            return false;
        };
        if is_added {
            let Ok(name) = sys::name_of(&text) else {
                return false;
            };
            lock(&self.known)
                .directories
                .insert(name, directory.to_owned());
        }
        sys::mark(self.fanotify.as_fd(), &text, is_added).is_ok()
    }
}

/// Reads events until nobody wants them any more.
fn hear(fanotify: &OwnedFd, known: &Mutex<Known>, ended: &OwnedFd) {
    let mut buffer = vec![0_u8; BUFFER_BYTES];
    loop {
        let mut polled = [
            PollFd::from_borrowed_fd(fanotify.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN),
        ];
        match poll(&mut polled, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if polled.get(1).is_none_or(|it| !it.revents().is_empty()) {
            return;
        }
        match rustix::io::read(fanotify, &mut buffer) {
            Ok(length) => take(buffer.get(..length).unwrap_or_default(), known),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn take(bytes: &[u8], known: &Mutex<Known>) {
    let own = std::process::id();
    for event in event::each(bytes) {
        if event.pid == own {
            continue;
        }
        let process = Process {
            pid: event.pid,
            name: name_of(event.pid),
            at: SystemTime::now(),
        };
        let mut known = lock(known);
        let Some(directory) = known.directories.get(event.directory) else {
            continue;
        };
        let path = directory.join(event.name);
        if known.seen.len() >= NAMES_MAX {
            known.seen.clear();
        }
        known.seen.insert(path, process);
    }
}

fn name_of(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn whoever_writes_is_seen_where_the_kernel_tells() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let Some(mut witness) = Witness::new() else {
            return;
        };
        witness.listen(&HashSet::from([path.clone()]), true);
        // It stays until it is asked for its name.
        let mut child = Command::new("sh")
            .args(["-c", "echo theirs > f; read end"])
            .current_dir(&path)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let began = Instant::now();
        let mut seen = None;
        while seen.is_none()
            && witness.directories() > 0
            && began.elapsed() < Duration::from_mins(1)
        {
            seen = witness.last_at(&path.join("f"));
            std::thread::yield_now();
        }
        let pid = child.id();
        drop(child.stdin.take());
        child.wait().unwrap();
        let is_told = rustix::process::geteuid().is_root() && witness.directories() > 0;
        if is_told {
            let seen = seen.unwrap();
            assert_eq!((seen.pid, seen.name.as_deref()), (pid, Some("sh")));
        }
    }
}
