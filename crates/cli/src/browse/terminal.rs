//! The terminal: its screen, its keys, and the signals that come with it.
//!
//! It is put back when this is dropped, also by a panic, and before the process is stopped.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use backout_model::ports::Progress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::{flag, low_level};

use super::keys::{self, Key};
use crate::args::Color;

/// The other screen, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// A terminal that does not say how large it is.
const USUAL: (usize, usize) = (80, 24);

/// What was heard.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Key(Key),
    /// The screen has another size, or somebody else's words on it.
    Resized,
    /// Somebody wants this to be stopped, to go on later.
    Stopped,
    /// Somebody wants this to end, or the terminal is gone.
    Ended,
    Nothing,
}

/// The signals, as far as they came.
#[derive(Debug, Clone, Default)]
struct Signals {
    resized: Arc<AtomicBool>,
    went_on: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    interrupted: Arc<AtomicBool>,
}

impl Signals {
    fn register() -> Self {
        let signals = Self::default();
        for (signal, heard) in [
            (SIGWINCH, &signals.resized),
            (SIGCONT, &signals.went_on),
            (SIGTSTP, &signals.stopped),
            (SIGTERM, &signals.ended),
            (SIGHUP, &signals.ended),
            (SIGINT, &signals.interrupted),
        ] {
            // One that cannot be had does what it always does.
            let _id = flag::register(signal, Arc::clone(heard));
        }
        signals
    }
}

/// The wish to stop work that is under way: Ctrl-C while it goes on.
#[derive(Debug)]
struct Interrupt(Arc<AtomicBool>);

impl Progress for Interrupt {
    fn total(&self, _items: u64) {}

    fn advance(&self, _items: u64) {}

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The terminal, taken.
#[derive(Debug)]
pub(super) struct Terminal {
    before: Termios,
    signals: Signals,
    read: Vec<u8>,
    out: AutoStream<io::Stdout>,
    /// What is on the screen.
    shown: Vec<String>,
}

impl Terminal {
    /// Takes the terminal, if there is one.
    pub(super) fn take(color: Color) -> Option<Self> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return None;
        }
        let choice = match color {
            Color::Auto => AutoStream::choice(&io::stdout()),
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        let mut terminal = Self {
            before: tcgetattr(io::stdin()).ok()?,
            signals: Signals::register(),
            read: Vec::new(),
            out: AutoStream::new(io::stdout(), choice),
            shown: Vec::new(),
        };
        terminal.enter();
        Some(terminal)
    }

    fn enter(&mut self) {
        let mut raw = self.before.clone();
        raw.make_raw();
        let _set = tcsetattr(io::stdin(), OptionalActions::Now, &raw);
        Self::send(ENTER);
        self.shown.clear();
    }

    fn leave(&self) {
        Self::send(LEAVE);
        let _set = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }

    /// Sends something that is no text, whatever is thought of colours.
    fn send(bytes: &str) {
        let mut out = io::stdout();
        // If the terminal is gone there is nobody to tell.
        let _sent = out.write_all(bytes.as_bytes());
        let _flushed = out.flush();
    }

    /// Says how many columns and lines there are.
    pub(super) fn size() -> (usize, usize) {
        let size = tcgetwinsize(io::stdout()).ok();
        let size = size.map(|it| (usize::from(it.ws_col), usize::from(it.ws_row)));
        size.filter(|(width, height)| *width > 0 && *height > 0)
            .unwrap_or(USUAL)
    }

    /// Shows lines; those that are on the screen already are not sent again.
    pub(super) fn show(&mut self, lines: &[String]) {
        for (at, line) in lines.iter().enumerate() {
            if self.shown.get(at) == Some(line) {
                continue;
            }
            Self::send(&format!("\x1b[{};1H\x1b[2K", at + 1));
            let _written = self.out.write_all(line.as_bytes());
            let _flushed = self.out.flush();
        }
        if lines.len() < self.shown.len() {
            Self::send(&format!("\x1b[{};1H\x1b[J", lines.len() + 1));
        }
        self.shown = lines.to_vec();
    }

    /// Waits for a key or a signal.
    pub(super) fn hear(&mut self, patience: Duration) -> Heard {
        if let Some(key) = keys::next(&mut self.read) {
            return Heard::Key(key);
        }
        if let Some(heard) = self.signalled() {
            return heard;
        }
        let stdin = io::stdin();
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        let wait = Timespec::try_from(patience).ok();
        // A signal ends the wait as well.
        let is_there = matches!(poll(&mut polled, wait.as_ref()), Ok(1..));
        if !is_there {
            return self.signalled().unwrap_or(Heard::Nothing);
        }
        let mut bytes = [0; 256];
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(0) => Heard::Ended,
            Ok(count) => {
                self.read.extend(bytes.get(..count).unwrap_or_default());
                keys::next(&mut self.read).map_or(Heard::Nothing, Heard::Key)
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Heard::Nothing,
            Err(_) => Heard::Ended,
        }
    }

    fn signalled(&mut self) -> Option<Heard> {
        let signals = &self.signals;
        let came = |flag: &AtomicBool| flag.swap(false, Ordering::Relaxed);
        if came(&signals.ended) || came(&signals.interrupted) {
            return Some(Heard::Ended);
        }
        if came(&signals.stopped) {
            return Some(Heard::Stopped);
        }
        if came(&signals.went_on) {
            // Somebody stopped us without asking; the shell has set the terminal to its own liking.
            self.enter();
            return Some(Heard::Resized);
        }
        if came(&signals.resized) {
            self.shown.clear();
            Self::send("\x1b[2J");
            return Some(Heard::Resized);
        }
        None
    }

    /// Puts the terminal back, stops this process, and takes it again when somebody lets it go on.
    pub(super) fn stop(&mut self) {
        self.leave();
        let _stopped = low_level::emulate_default_handler(SIGTSTP);
        self.signals.went_on.store(false, Ordering::Relaxed);
        self.enter();
    }

    /// Does work that Ctrl-C stops: whoever does it asks the given one.
    pub(super) fn working<T>(&self, work: impl FnOnce(Arc<dyn Progress>) -> T) -> T {
        let interrupted = &self.signals.interrupted;
        interrupted.store(false, Ordering::Relaxed);
        let mut heeding = self.before.clone();
        heeding.make_raw();
        heeding.local_modes |= LocalModes::ISIG;
        let _set = tcsetattr(io::stdin(), OptionalActions::Now, &heeding);
        let result = work(Arc::new(Interrupt(Arc::clone(interrupted))));
        let mut raw = self.before.clone();
        raw.make_raw();
        let _set = tcsetattr(io::stdin(), OptionalActions::Now, &raw);
        interrupted.store(false, Ordering::Relaxed);
        result
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}
