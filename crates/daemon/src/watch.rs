//! Seeing what anybody writes into the journal: a thread that waits for the write-ahead log to change, and looks how far it is.
//!
//! inotify tells of writes by every process of this machine, through the file system that both use. What it misses (a log that was
//! replaced, a file system that does not tell) a look every second finds. While nobody reads events, nothing is looked at.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backout_engine::Engine;
use backout_model::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::sync::watch;

/// How long nothing is looked at if nothing is told.
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// How long many writes in a row are gathered.
const GATHER: Duration = Duration::from_millis(10);

/// Watches the journal until it is told to stop.
pub(crate) fn watch_journal(
    engine: &Engine,
    directory: &Path,
    head: &watch::Sender<u64>,
    stop: &Arc<AtomicBool>,
) {
    let eye = open_eye(directory);
    while !stop.load(Ordering::Relaxed) {
        wait(eye.as_ref());
        if head.receiver_count() > 1
            && let Some(last) = last_place(engine)
        {
            head.send_if_modified(|known| {
                let is_new = *known != last;
                *known = last;
                is_new
            });
        }
        std::thread::sleep(GATHER);
    }
}

/// Gives the last place in the journal.
pub(crate) fn last_place(engine: &Engine) -> Option<u64> {
    let last = engine.store().place_at(Timestamp(i64::MAX));
    last.ok().map(|lsn| lsn.0)
}

fn open_eye(directory: &Path) -> Option<OwnedFd> {
    let eye = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
    let what = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
    inotify::add_watch(&eye, directory, what).ok()?;
    Some(eye)
}

fn wait(eye: Option<&OwnedFd>) {
    let Some(eye) = eye else {
        std::thread::sleep(Duration::from_secs(1));
        return;
    };
    let mut ready = [PollFd::new(eye, PollFlags::IN)];
    if poll(&mut ready, Some(&LOOK_EVERY)).is_ok_and(|count| count > 0) {
        // Which file it was does not matter; only that all of it is taken out.
        let mut told = [0_u8; 4096];
        while rustix::io::read(eye, &mut told).is_ok_and(|count| count > 0) {}
    }
}
