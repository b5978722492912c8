//! What is run, and how it ended.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A command to run.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The program, looked for in `PATH` unless it has a slash.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Its variables; none stands for ours.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// Whether it has no network but its own loopback.
    pub has_no_network: bool,
    /// Where its words come from and go to.
    pub streams: Streams,
    /// How long it may take; then all of it is ended.
    pub time_max: Option<Duration>,
    /// What becomes of processes that outlive it.
    pub survivors: Survivors,
}

/// Where the words of a command come from and go to.
#[derive(Debug, Clone, Default)]
pub enum Streams {
    /// Ours.
    #[default]
    Ours,
    /// Ours, but its output goes to our stderr.
    OursOnStderr,
    /// It reads nothing, and all its words go here.
    To(Arc<OwnedFd>),
}

/// What becomes of processes that outlive the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Survivors {
    /// They are asked to end, and made to.
    #[default]
    End,
    /// They are waited for.
    Wait,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Code(u8),
    /// By this signal.
    Signal(u8),
}

impl Ended {
    /// Reads what `wait` gives.
    pub(super) fn of_status(status: i32) -> Self {
        let low = u8::try_from(status & 0x7f).unwrap_or(0);
        if low == 0 {
            Self::Code(u8::try_from((status >> 8) & 0xff).unwrap_or(0))
        } else {
            Self::Signal(low)
        }
    }

    /// Gives the exit code that shells show for it.
    pub const fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128_u8.saturating_add(signal),
        }
    }
}
