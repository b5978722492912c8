//! What others do, while a command runs, to the names that it touches.
//!
//! The kernel tells what happens in a directory (inotify), but not who did it. The command asks before each of its calls, so
//! we know how often it makes, removes, opens and changes each name. What happens more often than that was done by somebody
//! else. Each call is expected before it happens, so nothing of the command's own is ever taken for another's. Of a call that
//! fails nothing is expected any more.
//!
//! The kernel makes one event of two that are alike and not read yet. So that two writers who close a file one right after the
//! other stay two, writes are told as well: one of them lies between any two closes that matter.
//!
//! Not seen: who has a file open for writing when the command ends and goes on writing (the guard of the undo sees that), and
//! what hides behind a call of the command that failed and that the kernel carried out.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use backout_capture::live::Place;
use backout_model::TargetPath;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// Enough for many events at once.
const BUFFER_BYTES: usize = 16 * 1024;

/// The most that one event takes: its numbers and the longest name.
const EVENT_BYTES_MAX: usize = 16 + 256;

/// What can happen to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// It comes to be: made, or moved here.
    Arrives,
    /// It goes: removed, or moved away.
    Leaves,
    /// It is closed by somebody who could write it.
    Closed,
    /// Its mode, owner, attributes or times change.
    Dressed,
}

/// How often each may still happen without surprise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Balance {
    arrives: u32,
    leaves: u32,
    closed: u32,
    dressed: u32,
}

impl Balance {
    const fn of(&mut self, what: What) -> &mut u32 {
        match what {
            What::Arrives => &mut self.arrives,
            What::Leaves => &mut self.leaves,
            What::Closed => &mut self.closed,
            What::Dressed => &mut self.dressed,
        }
    }

    /// Adds what is still expected of the inode that another name had.
    const fn take_over(&mut self, other: Self) {
        self.closed += other.closed;
        self.dressed += other.dressed;
    }
}

/// What somebody else did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// Something happened to a name that the command touched.
    Touched(TargetPath),
    /// A directory took a name that the command touched.
    Taken(TargetPath),
    /// Something came to be under a name that the command did not touch.
    Arrived(TargetPath),
}

/// A file with several names.
#[derive(Debug)]
struct Inode {
    /// The name that it was first written by.
    path: TargetPath,
    /// How often it may still be closed without surprise.
    closed: u32,
}

/// Watches what others do.
#[derive(Debug)]
pub(super) struct Others {
    inotify: Option<OwnedFd>,
    /// Watched directories, by the path they have now.
    directories: HashMap<PathBuf, i32>,
    paths: HashMap<i32, PathBuf>,
    /// Files with several names, by device and number: what is done by another name is not told of a directory.
    numbers: HashMap<(u64, u64), i32>,
    inodes: HashMap<i32, Inode>,
    balances: HashMap<TargetPath, Balance>,
    /// What was expected of the last call.
    last: Vec<(TargetPath, What)>,
    /// The file of several names that it was expected to close.
    last_inode: Option<i32>,
    /// Why others may go unseen.
    blind: Option<String>,
    /// The directory that tells of commands which begin and end.
    neighbours: Option<i32>,
    /// Whether some may have begun or ended.
    has_new_neighbours: bool,
}

impl Others {
    pub(super) fn new() -> Self {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let (inotify, blind) = match inotify::init(flags) {
            Ok(inotify) => (Some(inotify), None),
            Err(errno) => (None, Some(format!("inotify cannot be used: {errno}"))),
        };
        Self {
            inotify,
            directories: HashMap::new(),
            paths: HashMap::new(),
            numbers: HashMap::new(),
            inodes: HashMap::new(),
            balances: HashMap::new(),
            last: Vec::new(),
            last_inode: None,
            blind,
            neighbours: None,
            has_new_neighbours: true,
        }
    }

    /// Hears of commands that begin or end, by the directory that their logs are in.
    pub(super) fn hear_of_neighbours(&mut self, logs: &Path) {
        let flags = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::ONLYDIR;
        let inotify = self.inotify.as_ref();
        self.neighbours = inotify.and_then(|it| inotify::add_watch(it, logs, flags).ok());
    }

    /// Tells whether commands may have begun or ended since this was last asked.
    pub(super) const fn has_new_neighbours(&mut self) -> bool {
        let is_new = self.has_new_neighbours || self.neighbours.is_none();
        self.has_new_neighbours = false;
        is_new
    }

    /// Gives the descriptor that tells when something happens.
    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// Says why others may have gone unseen, if they may.
    pub(super) fn blind(&self) -> Option<&str> {
        self.blind.as_deref()
    }

    /// Begins to watch the directory of a name. What happened before does not count.
    pub(super) fn watch(&mut self, place: &Place) {
        let Some(inotify) = &self.inotify else {
            return;
        };
        if self.directories.contains_key(&place.dir_path) {
            return;
        }
        let flags = WatchFlags::CREATE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::ONLYDIR;
        let path = format!("/proc/self/fd/{}", place.dir.as_fd().as_raw_fd());
        match inotify::add_watch(inotify, path, flags) {
            Ok(number) => {
                // Known by another path until now.
                if let Some(other) = self.paths.insert(number, place.dir_path.clone()) {
                    self.directories.remove(&other);
                }
                self.directories.insert(place.dir_path.clone(), number);
            }
            Err(errno) => self.is_blind(errno),
        }
    }

    /// Expects that a file which has other names is opened for writing, and closed.
    pub(super) fn expect_inode(&mut self, place: &Place, path: &TargetPath, number: (u64, u64)) {
        let Some(inotify) = &self.inotify else {
            return;
        };
        let flags = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::DONT_FOLLOW;
        let directory = place.dir.as_fd().as_raw_fd().to_string();
        let at = Path::new("/proc/self/fd").join(directory).join(&place.name);
        let watch = match self.numbers.get(&number) {
            Some(watch) => Ok(*watch),
            None => inotify::add_watch(inotify, &at, flags),
        };
        let watch = match watch {
            Ok(watch) => watch,
            Err(errno) => return self.is_blind(errno),
        };
        // What was opened before it had other names is still to be closed.
        let open = self.balances.get(path).map_or(0, |balance| balance.closed);
        self.numbers.insert(number, watch);
        let inode = self.inodes.entry(watch).or_insert_with(|| Inode {
            path: path.clone(),
            closed: open,
        });
        inode.closed += 1;
        self.last_inode = Some(watch);
    }

    fn is_blind(&mut self, errno: Errno) {
        // What is gone needs no watch.
        if !matches!(errno, Errno::NOENT | Errno::NOTDIR) {
            let why = match errno {
                Errno::NOSPC => "there are too many directories to watch".to_owned(),
                errno => format!("a directory cannot be watched: {errno}"),
            };
            self.blind.get_or_insert(why);
        }
    }

    /// Expects the command to do something to a name.
    pub(super) fn expect(&mut self, path: &TargetPath, what: What) {
        if self.inotify.is_some() {
            *self.balances.entry(path.clone()).or_default().of(what) += 1;
        }
    }

    /// Expects the same of the call that is asked about, as long as that does not fail.
    pub(super) fn expect_of_call(&mut self, path: &TargetPath, what: What) {
        self.expect(path, what);
        self.last.push((path.clone(), what));
    }

    /// What is expected from now on is of another call.
    pub(super) fn expects_anew(&mut self) {
        self.last.clear();
        self.last_inode = None;
    }

    /// The call did not do what was expected of it. Else the next that somebody else does of the kind would pass for it.
    pub(super) fn expect_no_more(&mut self) {
        for (path, what) in self.last.drain(..) {
            if let Some(balance) = self.balances.get_mut(&path) {
                let expected = balance.of(what);
                *expected = expected.saturating_sub(1);
            }
        }
        let inode = self
            .last_inode
            .take()
            .and_then(|it| self.inodes.get_mut(&it));
        if let Some(inode) = inode {
            inode.closed = inode.closed.saturating_sub(1);
        }
    }

    /// The inode of a name went where nobody looks: what is done to it from now on is not told.
    pub(super) fn went(&mut self, path: &TargetPath) {
        if let Some(balance) = self.balances.get_mut(path) {
            (balance.closed, balance.dressed) = (0, 0);
        }
    }

    /// Forgets a name: what happens to it is none of the command's business any more.
    pub(super) fn forget(&mut self, path: &TargetPath) {
        self.balances.remove(path);
    }

    /// Forgets every name.
    pub(super) fn forget_all(&mut self) {
        self.balances.clear();
    }

    /// The command gave something another name; what is expected of it goes along. Nothing is below what is no `tree`.
    pub(super) fn moved(
        &mut self,
        from: &TargetPath,
        to: &TargetPath,
        is_exchange: bool,
        is_tree: bool,
    ) {
        let ours = self.balances.get(from).copied().unwrap_or_default();
        let theirs = self.balances.get(to).copied().unwrap_or_default();
        self.balances.entry(to.clone()).or_default().take_over(ours);
        if is_exchange {
            self.balances
                .entry(from.clone())
                .or_default()
                .take_over(theirs);
        }
        if is_tree {
            self.rebase(from, to, is_exchange);
        }
    }

    /// Names directories and what is below them anew.
    fn rebase(&mut self, from: &TargetPath, to: &TargetPath, is_exchange: bool) {
        let renamed = |path: &Path| {
            let path = TargetPath::new(path).ok()?;
            let below = |one: &TargetPath, other: &TargetPath| {
                let is_part = path == *one || path.is_below(one);
                is_part.then(|| path.rebase(one, other)).flatten()
            };
            let back = || is_exchange.then(|| below(to, from)).flatten();
            below(from, to).or_else(back)
        };
        let moved: Vec<(i32, PathBuf)> = self
            .paths
            .iter()
            .filter_map(|(number, path)| {
                let new = renamed(path)?;
                Some((*number, new.as_path().to_path_buf()))
            })
            .collect();
        for (number, path) in &moved {
            if let Some(old) = self.paths.insert(*number, path.clone()) {
                self.directories.remove(&old);
            }
        }
        self.directories
            .extend(moved.into_iter().map(|(number, path)| (path, number)));
        let names: Vec<TargetPath> = self
            .balances
            .keys()
            .filter(|name| name.is_below(from) || is_exchange && name.is_below(to))
            .cloned()
            .collect();
        let lifted: Vec<_> = names
            .into_iter()
            .filter_map(|name| Some((renamed(name.as_path())?, self.balances.remove(&name)?)))
            .collect();
        self.balances.extend(lifted);
    }

    /// Reads what has happened, and gives what the command did not do.
    pub(super) fn seen(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        let Some(inotify) = self.inotify.take() else {
            return seen;
        };
        let mut buffer = [MaybeUninit::<u8>::uninit(); BUFFER_BYTES];
        let mut reader = inotify::Reader::new(inotify.as_fd(), &mut buffer);
        let mut filled = 0;
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| name.to_bytes().to_vec());
                    let (number, events) = (event.wd(), event.events());
                    filled += EVENT_BYTES_MAX;
                    seen.extend(self.judge(number, events, name.as_deref()));
                }
                Err(Errno::INTR) => continue,
                Err(_) => break,
            }
            // There was room for more: so there was no more.
            if reader.is_buffer_empty() && filled + EVENT_BYTES_MAX < BUFFER_BYTES {
                break;
            }
        }
        self.inotify = Some(inotify);
        seen
    }

    fn judge(&mut self, number: i32, events: ReadFlags, name: Option<&[u8]>) -> Option<Seen> {
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            let why = "more happened at once than could be looked at".to_owned();
            self.blind.get_or_insert(why);
            self.has_new_neighbours = true;
            return None;
        }
        if self.neighbours == Some(number) {
            self.has_new_neighbours = true;
            return None;
        }
        if events.contains(ReadFlags::IGNORED) {
            self.inodes.remove(&number);
            self.numbers.retain(|_, watch| *watch != number);
            if let Some(path) = self.paths.remove(&number) {
                self.directories.remove(&path);
            }
            return None;
        }
        if events.contains(ReadFlags::MODIFY) {
            return None;
        }
        let (Some(name), Some(directory)) = (name, self.paths.get(&number)) else {
            let inode = self.inodes.get_mut(&number)?;
            return take(&mut inode.closed).map(|()| Seen::Touched(inode.path.clone()));
        };
        let path = TargetPath::new(directory.join(OsStr::from_bytes(name))).ok()?;
        let what = if events.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            What::Arrives
        } else if events.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
            What::Leaves
        } else if events.contains(ReadFlags::CLOSE_WRITE) {
            What::Closed
        } else if events.contains(ReadFlags::ATTRIB) {
            What::Dressed
        } else {
            return None;
        };
        let is_directory = events.contains(ReadFlags::ISDIR);
        match self.balances.get_mut(&path) {
            Some(balance) => take(balance.of(what)).map(|()| {
                if what == What::Arrives && is_directory {
                    Seen::Taken(path)
                } else {
                    Seen::Touched(path)
                }
            }),
            None if what == What::Arrives => Some(Seen::Arrived(path)),
            None => None,
        }
    }
}

/// Takes one off what is expected; something if nothing is.
const fn take(expected: &mut u32) -> Option<()> {
    match expected.checked_sub(1) {
        Some(less) => {
            *expected = less;
            None
        }
        None => Some(()),
    }
}
