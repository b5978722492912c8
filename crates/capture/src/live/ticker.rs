//! A clock that ticks while calls come.
//!
//! Whoever waits for the next call must look at other things from time to time. A wait with a time limit of its own sets a timer
//! and takes it back for each call, which in a virtual machine costs half as much as asking and answering. A clock that ticks
//! by itself costs nothing in between.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// How often it ticks.
pub(super) const PERIOD: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 2_000_000,
};

/// The clock.
#[derive(Debug)]
pub(super) struct Ticker {
    /// None where there is none to be had.
    timer: Option<OwnedFd>,
    is_ticking: bool,
}

impl Ticker {
    pub(super) fn new() -> Self {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Self {
            timer: timerfd_create(TimerfdClockId::Monotonic, flags).ok(),
            is_ticking: false,
        }
    }

    /// Lets it tick, and gives what can be read after each tick.
    pub(super) fn start(&mut self) -> Option<BorrowedFd<'_>> {
        if !self.is_ticking {
            self.is_ticking = self.set(PERIOD);
        }
        let timer = self.timer.as_ref().filter(|_| self.is_ticking);
        timer.map(|timer| timer.as_fd())
    }

    /// Lets it rest.
    pub(super) fn stop(&mut self) {
        if self.is_ticking {
            self.set(Timespec::default());
            self.is_ticking = false;
        }
    }

    /// Hears the ticks so far.
    pub(super) fn heard(&self) {
        if let Some(timer) = &self.timer {
            let _ticks = rustix::io::read(timer, &mut [0; 8]);
        }
    }

    fn set(&self, period: Timespec) -> bool {
        let times = Itimerspec {
            it_interval: period,
            it_value: period,
        };
        self.timer
            .as_ref()
            .is_some_and(|timer| timerfd_settime(timer, TimerfdTimerFlags::empty(), &times).is_ok())
    }
}
