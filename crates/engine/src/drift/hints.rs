//! What the kernel says of directories that hold recorded targets: a hint where to look, and never the truth.
//!
//! - Only those directories are watched, and the ones above them for their names: a workspace of a million files costs as many watches
//!   as it has directories with recorded targets.
//! - When the watches run out or the queue overflows, that is said, and whoever waits looks at everything on his interval.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// Enough for many events at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// More names than these are not worth telling apart.
const TOUCHED_MAX: usize = 4_096;

/// Where something happened since somebody asked last.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Names at which something happened.
    pub(super) touched: HashSet<PathBuf>,
    /// Whether more happened than was told.
    pub(super) is_overflown: bool,
}

/// Listens to directories.
#[derive(Debug)]
pub(super) struct Hints {
    inotify: Option<OwnedFd>,
    watches: HashMap<PathBuf, i32>,
    paths: HashMap<i32, PathBuf>,
    /// Directories that hold recorded targets.
    needed: HashSet<PathBuf>,
    /// Directories above them: only their names count.
    above: HashSet<PathBuf>,
    /// Why some go unheard.
    blind: Option<String>,
    limits: Limits,
}

/// Limits below the kernel's own, for tests.
#[derive(Debug, Clone, Copy)]
struct Limits {
    watches: usize,
    queue: usize,
}

impl Hints {
    pub(super) fn new() -> Self {
        let made = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        let (inotify, blind) = match made {
            Ok(inotify) => (Some(inotify), None),
            Err(errno) => (None, Some(format!("inotify cannot be used: {errno}"))),
        };
        Self {
            inotify,
            watches: HashMap::new(),
            paths: HashMap::new(),
            needed: HashSet::new(),
            above: HashSet::new(),
            blind,
            limits: limits(),
        }
    }

    /// Says why some directories go unheard, if some do.
    pub(super) fn blind(&self) -> Option<&str> {
        self.blind.as_deref()
    }

    /// Counts the directories that are listened to.
    pub(super) fn len(&self) -> usize {
        self.watches.len()
    }

    /// Listens to these directories, and to no others if `is_all`.
    pub(super) fn listen(&mut self, directories: HashSet<PathBuf>, is_all: bool) {
        if is_all {
            self.needed = directories;
            self.above.clear();
            self.blind = self.blind.take().filter(|_| self.inotify.is_none());
        } else {
            self.needed.extend(directories);
        }
        let mut above: HashSet<PathBuf> = HashSet::new();
        for directory in &self.needed {
            for it in directory.ancestors().skip(1) {
                if it.parent().is_none() || !above.insert(it.to_owned()) {
                    break;
                }
            }
        }
        self.above = above;
        if is_all {
            self.drop_stale();
        }
        let mut wanted: Vec<PathBuf> = self.needed.iter().chain(&self.above).cloned().collect();
        wanted.retain(|it| !self.watches.contains_key(it));
        wanted.sort_unstable();
        for directory in wanted {
            self.watch(directory);
        }
    }

    fn drop_stale(&mut self) {
        let Some(inotify) = &self.inotify else {
            return;
        };
        let (needed, above) = (&self.needed, &self.above);
        let paths = &mut self.paths;
        self.watches.retain(|path, number| {
            let stays = needed.contains(path) || above.contains(path);
            if !stays {
                // It may be gone already.
                let _removed = inotify::remove_watch(inotify, *number);
                paths.remove(number);
            }
            stays
        });
    }

    fn watch(&mut self, directory: PathBuf) {
        let Some(inotify) = &self.inotify else {
            return;
        };
        if self.watches.len() >= self.limits.watches {
            self.blind = Some("there are too many directories to listen to".to_owned());
            return;
        }
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        match inotify::add_watch(inotify, &directory, flags) {
            Ok(number) => {
                self.paths.insert(number, directory.clone());
                self.watches.insert(directory, number);
            }
            Err(Errno::NOSPC | Errno::NOMEM) => {
                self.blind = Some("there are too many directories to listen to".to_owned());
            }
            // It is not there, or something else is: the directory above tells when that changes.
            Err(_) => {}
        }
    }

    /// Waits for something to happen, at most so long.
    pub(super) fn wait(&mut self, at_most: Duration) -> Heard {
        let timeout = Timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(1),
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        let Some(inotify) = &self.inotify else {
            std::thread::sleep(at_most);
            return Heard::default();
        };
        let mut polled = [PollFd::from_borrowed_fd(inotify.as_fd(), PollFlags::IN)];
        // A signal ends the wait: then there is somebody to stop for.
        let _ready = poll(&mut polled, Some(&timeout));
        self.read()
    }

    /// Reads what has happened so far.
    pub(super) fn read(&mut self) -> Heard {
        let mut heard = Heard::default();
        let Some(inotify) = self.inotify.take() else {
            return heard;
        };
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = inotify::Reader::new(&inotify, &mut buffer);
        let mut events = 0;
        let mut gone = Vec::new();
        while let Ok(event) = reader.next() {
            events += 1;
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) || events > self.limits.queue {
                heard.is_overflown = true;
                continue;
            }
            let Some(directory) = self.paths.get(&event.wd()) else {
                continue;
            };
            if event.events().contains(ReadFlags::IGNORED) {
                gone.push(event.wd());
            }
            let name = event
                .file_name()
                .map(|name| OsStr::from_bytes(name.to_bytes()));
            let path = name.map_or_else(|| directory.clone(), |name| directory.join(name));
            if self.counts(directory, &path) {
                heard.touched.insert(path);
            }
            heard.is_overflown |= heard.touched.len() > TOUCHED_MAX;
        }
        for number in gone {
            if let Some(path) = self.paths.remove(&number) {
                self.watches.remove(&path);
            }
        }
        self.inotify = Some(inotify);
        heard
    }

    fn counts(&self, directory: &Path, path: &Path) -> bool {
        self.needed.contains(directory) || self.needed.contains(path) || self.above.contains(path)
    }
}

#[cfg(not(feature = "testing"))]
const fn limits() -> Limits {
    Limits {
        watches: usize::MAX,
        queue: usize::MAX,
    }
}

#[cfg(feature = "testing")]
fn limits() -> Limits {
    let read = |name: &str| std::env::var(name).ok()?.parse().ok();
    Limits {
        watches: read("BACKOUT_TEST_WATCHES_MAX").unwrap_or(usize::MAX),
        queue: read("BACKOUT_TEST_EVENTS_MAX").unwrap_or(usize::MAX),
    }
}
