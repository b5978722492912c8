//! A progress bar for work that takes long enough to wonder about, and the wish to stop it.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use backout_model::ports::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::printable;

/// Work that is done sooner shows no bar.
const PATIENCE: Duration = Duration::from_millis(400);

/// How long to wait before the bar is shown. Tests do not wait.
fn patience() -> Duration {
    #[cfg(feature = "testing")]
    if std::env::var_os("BACKOUT_TEST_IMPATIENT").is_some() {
        return Duration::ZERO;
    }
    PATIENCE
}

/// A bar on stderr that appears when patience ends, and leaves no trace.
#[derive(Debug)]
pub(crate) struct Bar {
    drawn: ProgressBar,
    began: Instant,
    is_shown: AtomicBool,
    /// Whether there is somebody to see it.
    is_seen: bool,
    /// Whether there is somebody to talk to.
    is_told: bool,
    /// What was said of a wait, for programs.
    waited: Arc<Mutex<Vec<String>>>,
    /// Whether Ctrl-C was pressed, or the process was asked to end.
    is_stopped: Arc<AtomicBool>,
}

/// The signals that stop the work at the next step. A second one ends the process at once.
const STOPS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

impl Bar {
    /// Makes a bar that is not seen yet.
    pub(crate) fn new(is_seen: bool, is_told: bool, waited: Arc<Mutex<Vec<String>>>) -> Self {
        let drawn = ProgressBar::hidden();
        if let Ok(style) = ProgressStyle::with_template("{bar:30.cyan} {percent:>3}% {elapsed}") {
            drawn.set_style(style.progress_chars("━╸ "));
        }
        Self {
            drawn,
            began: Instant::now(),
            is_shown: AtomicBool::new(false),
            is_seen,
            is_told,
            waited,
            is_stopped: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Lets signals stop the work. If that cannot be had, they end the process as ever.
    pub(crate) fn heed_signals(&self) {
        for signal in STOPS {
            let flag = || Arc::clone(&self.is_stopped);
            // In this order: the first signal is not the second one, too.
            let _default = flag::register_conditional_default(signal, flag());
            let _heard = flag::register(signal, flag());
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.drawn.finish_and_clear();
    }
}

impl Progress for Bar {
    fn total(&self, items: u64) {
        // The next piece of work begins anew.
        let is_done = self
            .drawn
            .length()
            .is_some_and(|length| self.drawn.position() >= length);
        if is_done || self.drawn.length() != Some(items) {
            self.drawn.set_position(0);
            self.drawn.set_length(items);
        }
    }

    fn advance(&self, items: u64) {
        if self.is_seen
            && self.began.elapsed() >= patience()
            && !self.is_shown.swap(true, Ordering::Relaxed)
        {
            self.drawn.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.drawn.inc(items);
    }

    fn waits(&self, for_what: &str) {
        let mut waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        waited.push(for_what.to_owned());
        if self.is_told {
            let line = format!("note: {}\n", printable(for_what));
            // If stderr is gone there is nobody left to tell.
            let _said = self
                .drawn
                .suspend(|| io::stderr().write_all(line.as_bytes()));
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}
