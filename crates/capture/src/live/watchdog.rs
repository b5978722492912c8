//! The front's eye on the watcher: nothing that the watcher waits for may keep a command alive whose end was asked for.
//!
//! The watcher says every second that it is there. It can be silent for good reasons (a large file is being copied) and for
//! bad ones (a file system that does not answer, perhaps because the command itself serves it). Nobody can tell
//! which, so silence alone is only told. But when the time is up, or somebody asked for the end, and the watcher stays silent, its
//! processes are ended in its place, and if that does not help, the watcher itself. What it had noted is settled then.

use std::time::{Duration, Instant};

/// How long the watcher may be silent after its command was to end: while it watches, and while it settles.
const PATIENCE: Duration = Duration::from_secs(3);
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(30);

/// How long a command may take by itself when its time is up.
const GRACE: Duration = Duration::from_secs(3);

/// After how much silence it is told.
const WORTH_TELLING: Duration = Duration::from_secs(20);

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// Say that the watcher is silent.
    Tell,
    /// End what it watches.
    EndCommand,
    /// End the watcher itself.
    EndWatcher,
}

#[derive(Debug)]
pub(super) struct Watchdog {
    /// When the command's time is up.
    time_is_up: Option<Instant>,
    /// When somebody asked for its end.
    asked: Option<Instant>,
    heard: Instant,
    is_watching: bool,
    is_told: bool,
    is_ended: bool,
}

impl Watchdog {
    pub(super) fn new(timeout: Option<Duration>, now: Instant) -> Self {
        Self {
            time_is_up: timeout.and_then(|timeout| now.checked_add(timeout + GRACE)),
            asked: None,
            heard: now,
            is_watching: false,
            is_told: false,
            is_ended: false,
        }
    }

    /// The watcher is there. What it was asked before that, it has heard.
    pub(super) const fn hear(&mut self, is_watching: bool, now: Instant) {
        self.heard = now;
        self.is_watching = is_watching;
        self.asked = None;
        self.is_ended = false;
    }

    /// Somebody wants the command to end.
    pub(super) fn ask(&mut self, now: Instant) {
        self.asked.get_or_insert(now);
    }

    /// Tells what is to be done.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        let silence = now.saturating_duration_since(self.heard);
        let patience = if self.is_watching {
            PATIENCE
        } else {
            PATIENCE_AT_THE_END
        };
        let is_up = self.time_is_up.is_some_and(|up| now >= up);
        let asked = self.asked.or(self.time_is_up.filter(|_| is_up));
        let is_ignored = asked.is_some_and(|asked| now >= asked + patience) && silence >= patience;
        if is_ignored && !self.is_ended {
            // It gets the same time again to go on by itself.
            self.is_ended = true;
            (self.heard, self.asked) = (now, Some(now));
            return Due::EndCommand;
        }
        if is_ignored {
            return Due::EndWatcher;
        }
        if self.is_watching && !self.is_told && silence >= WORTH_TELLING {
            self.is_told = true;
            return Due::Tell;
        }
        Due::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn a_watcher_that_is_there_is_left_alone() {
        let now = Instant::now();
        let mut dog = Watchdog::new(Some(seconds(1)), now);
        for second in 0..100 {
            let now = now + seconds(second);
            dog.ask(now);
            dog.hear(true, now);
            assert_eq!(dog.due(now), Due::Nothing);
        }
    }

    #[test]
    fn silence_alone_is_told_once() {
        let now = Instant::now();
        let mut dog = Watchdog::new(None, now);
        dog.hear(true, now);
        assert_eq!(dog.due(now + seconds(19)), Due::Nothing);
        assert_eq!(dog.due(now + seconds(20)), Due::Tell);
        assert_eq!(dog.due(now + seconds(1000)), Due::Nothing);
    }

    #[test]
    fn who_does_not_hear_is_helped_then_ended() {
        let now = Instant::now();
        let mut dog = Watchdog::new(None, now);
        dog.hear(true, now);
        dog.ask(now + seconds(10));
        assert_eq!(dog.due(now + seconds(12)), Due::Nothing);
        assert_eq!(dog.due(now + seconds(13)), Due::EndCommand);
        assert_eq!(dog.due(now + seconds(15)), Due::Nothing);
        assert_eq!(dog.due(now + seconds(16)), Due::EndWatcher);
    }

    #[test]
    fn time_that_is_up_is_a_question_too() {
        let now = Instant::now();
        let mut dog = Watchdog::new(Some(seconds(5)), now);
        dog.hear(true, now);
        assert_eq!(dog.due(now + seconds(10)), Due::Nothing);
        assert_eq!(dog.due(now + seconds(11)), Due::EndCommand);
    }
}
