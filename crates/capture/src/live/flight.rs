//! Calls that the kernel carries out itself, until they are over.
//!
//! Such a call was looked at, and then goes its own way: if a name that it uses were changed before it comes there, it would
//! change something that nobody kept. So a call that changes names waits until those before it are over that lead to the same
//! place. What we carry out ourselves needs no waiting.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;

use super::calls::Act;
use super::ending::{has_left, ran};
use super::resolve::{Place, is_link};
use super::supervise::Touch;
use super::sys::{self, Notice};

/// So many are remembered; there is one for each thread at most.
const CALLS_MAX: usize = 256;

/// How often to look whether one is over, and when to give up: its file system is stuck.
const STEP: Duration = Duration::from_micros(50);
const WAIT_MAX: Duration = Duration::from_secs(5);

/// A call that may not be over.
#[derive(Debug)]
struct Flying {
    notice: Notice,
    act: Act,
    paths: Vec<PathBuf>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Flight {
    calls: VecDeque<Flying>,
}

impl Flight {
    /// Hears that a thread makes another call: what it did before is over.
    pub(super) fn asks_again(&mut self, thread: u32) {
        self.calls.retain(|call| call.notice.thread != thread);
    }

    /// Remembers a call that goes on.
    pub(super) fn begins(&mut self, notice: &Notice, touch: &Touch) {
        // Who opens a pipe may wait for long, and nothing is lost by it.
        if !touch.act.changes_files() || touch.first.as_ref().is_some_and(may_wait) {
            return;
        }
        if self.calls.len() == CALLS_MAX {
            self.calls.pop_front();
        }
        self.calls.push_back(Flying {
            notice: *notice,
            act: touch.act,
            paths: paths_of(touch),
        });
    }

    /// Tells whether a call must wait for another.
    pub(super) fn holds(&self, touch: &Touch) -> bool {
        !self.calls.is_empty() && self.calls.iter().any(|call| call.meets(touch))
    }

    /// Waits until the calls are over that a call must wait for. Calls that come meanwhile are put to those that wait.
    pub(super) fn see_out(
        &mut self,
        listener: BorrowedFd<'_>,
        touch: &Touch,
        waiting: &mut VecDeque<Notice>,
    ) {
        let began = Instant::now();
        while let Some(at) = self.calls.iter().position(|call| call.meets(touch)) {
            let Some(call) = self.calls.remove(at) else {
                return;
            };
            let ran = ran(call.notice.thread);
            let is_known = |waiting: &VecDeque<Notice>| {
                let mut threads = waiting.iter().map(|next| next.thread);
                threads.any(|thread| thread == call.notice.thread)
            };
            while !is_known(waiting) && !has_left(&call.notice, ran) && began.elapsed() < WAIT_MAX {
                let mut fds = [PollFd::from_borrowed_fd(listener, PollFlags::IN)];
                let step = Timespec {
                    tv_sec: 0,
                    tv_nsec: i64::from(STEP.subsec_nanos()),
                };
                let polled = poll(&mut fds, Some(&step));
                let is_called = fds.iter().any(|fd| fd.revents().contains(PollFlags::IN));
                if polled.is_ok()
                    && is_called
                    && let Ok(Some(next)) = sys::receive(listener)
                {
                    waiting.push_back(next);
                }
            }
        }
    }
}

impl Flying {
    /// Tells whether the outcome depends on which of the two is first.
    fn meets(&self, touch: &Touch) -> bool {
        if self.notice.thread == touch.thread || !(names(self.act) || names(touch.act)) {
            return false;
        }
        let places = [&touch.first, &touch.second];
        // Whoever came by that link would come somewhere else.
        if names(touch.act) && places.into_iter().flatten().any(is_old_link) {
            return true;
        }
        let theirs = paths_of(touch);
        let mut own = self.paths.iter();
        own.any(|path| theirs.iter().any(|other| is_related(path, other)))
    }
}

fn paths_of(touch: &Touch) -> Vec<PathBuf> {
    let places = [&touch.first, &touch.second].into_iter().flatten();
    places.map(Place::path).collect()
}

fn is_related(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn is_old_link(place: &Place) -> bool {
    place.stat.as_ref().is_some_and(is_link)
}

fn may_wait(place: &Place) -> bool {
    place.stat.as_ref().is_some_and(|stat| {
        let kind = FileType::from_raw_mode(stat.st_mode);
        matches!(kind, FileType::Fifo | FileType::CharacterDevice)
    })
}

/// Tells whether a call changes which names there are, or what they stand for.
const fn names(act: Act) -> bool {
    match act {
        Act::Open { creates, .. } => creates,
        Act::Unlink | Act::Rmdir | Act::Rename { .. } | Act::Link | Act::Make => true,
        Act::Truncate
        | Act::Attributes
        | Act::Times
        | Act::Flags { .. }
        | Act::Read
        | Act::Exec
        | Act::Standing
        | Act::Mounts
        | Act::Quotas
        | Act::Sync => false,
    }
}
