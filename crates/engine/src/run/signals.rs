//! Which signals reach the command by themselves, and which must be passed on.
//!
//! A signal for the whole process group arrives at the front, at the back and at the command. One for the front alone,
//! which is the process that everybody sees, arrives nowhere else. So: heard by both of us, the command has it; heard by
//! one, the command gets it from us.

use std::time::{Duration, Instant};

/// How long the other of us may take to hear the same signal.
pub(super) const PATIENCE: Duration = Duration::from_millis(30);

/// Who heard a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Front,
    Back,
}

/// Signals that one of us has heard so far.
#[derive(Debug, Default)]
pub(super) struct Heard {
    waiting: Vec<(i32, By, Instant)>,
}

impl Heard {
    /// Takes a signal in.
    pub(super) fn hear(&mut self, signal: i32, by: By, now: Instant) {
        let is_the_same =
            |(other, heard_by, _): &(i32, By, Instant)| *other == signal && *heard_by != by;
        match self.waiting.iter().position(is_the_same) {
            Some(index) => drop(self.waiting.swap_remove(index)),
            None => self.waiting.push((signal, by, now + PATIENCE)),
        }
    }

    /// Gives the moment at which something may have to be passed on.
    pub(super) fn next(&self) -> Option<Instant> {
        self.waiting.iter().map(|(_, _, due)| *due).min()
    }

    /// Gives the signals that are to be passed on now.
    pub(super) fn due(&mut self, now: Instant) -> Vec<i32> {
        let (due, waiting) = self.waiting.iter().partition(|(_, _, due)| *due <= now);
        self.waiting = waiting;
        let due: Vec<(i32, By, Instant)> = due;
        due.into_iter().map(|(signal, _, _)| signal).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_heard_is_not_passed_on() {
        let now = Instant::now();
        let mut heard = Heard::default();
        heard.hear(15, By::Front, now);
        heard.hear(15, By::Back, now);
        assert!(heard.due(now + PATIENCE).is_empty());
        heard.hear(15, By::Front, now);
        heard.hear(1, By::Back, now);
        assert!(heard.due(now).is_empty(), "not before the other had time");
        assert_eq!(heard.due(now + PATIENCE), [15, 1]);
        assert_eq!(heard.next(), None);
    }
}
