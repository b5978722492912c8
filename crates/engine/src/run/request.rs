//! What to run, how, and what came of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use backout_capture::live::Back;
use backout_files::{Ask, OverLimit};
use backout_model::ports::Reason;
use backout_model::{
    CallKey, CaptureLevel, CaptureMode, CommandEnd, OnFailure, OperationId, Status, any_path,
    any_words,
};
use serde::{Deserialize, Serialize};

use super::Watch;
use crate::UndoReport;

/// The largest file that is copied before it is written in place, unless somebody says otherwise.
pub const COPY_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// A command to start, how it is watched, and what follows if it fails.
#[derive(Serialize, Deserialize)]
pub struct RunRequest {
    /// The program and its arguments.
    #[serde(with = "any_words")]
    pub words: Vec<OsString>,
    /// Whether opens for reading are recorded.
    pub reads: bool,
    /// What the capture survives while the command runs.
    pub level: CaptureLevel,
    /// The largest file that is copied before it is written in place.
    pub copy_bytes_max: u64,
    /// What to do with a larger one.
    pub over_limit: OverLimit,
    /// Is asked about a larger one before it is refused. Only this process has it.
    #[serde(skip)]
    pub ask: Option<Ask>,
    /// When the command is ended.
    pub timeout: Option<Duration>,
    /// Whether its words say that it writes nothing: if it does, that is worth knowing.
    pub is_read_only: bool,
    /// How the command is watched.
    pub capture: Capture,
    /// What becomes of what it did if its watcher dies.
    pub on_failure: OnFailure,
    /// Directories that are compared before and after, beside what is watched.
    #[serde(with = "any_path::list")]
    pub roots: Vec<PathBuf>,
    /// Variables that the command gets beside ours, so that what it asks us to do is done in the same connection.
    #[serde(with = "any_words::pairs")]
    pub environment: Vec<(OsString, OsString)>,
    /// Variables that end with the name of the operation, for programs that hand it on.
    #[serde(default, with = "any_words::pairs")]
    pub named: Vec<(OsString, OsString)>,
    /// The environment that the command starts from; ours if none.
    #[serde(with = "any_words::some_pairs")]
    pub base: Option<Vec<(OsString, OsString)>>,
    /// What people are shown instead of the words: what was typed, without what an agent wraps around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// Names that are not part of it, whatever it does to them: an agent's own temporary files.
    #[serde(default, with = "any_path::list")]
    pub left_out: Vec<PathBuf>,
    /// The agent's name for the call that it is, if somebody has to find it by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallKey>,
    /// The process that the caller waits for, if it is another one. Only this process knows it.
    #[serde(skip)]
    pub back: Option<Back>,
}

/// How a command is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capture {
    /// By the best way that works here.
    #[default]
    Auto,
    /// By being asked before each call.
    Live,
    /// By comparing directories before and after.
    Scan,
}

impl RunRequest {
    /// The defaults, for a command.
    pub const fn new(words: Vec<OsString>) -> Self {
        Self {
            words,
            reads: false,
            level: CaptureLevel::Process,
            copy_bytes_max: COPY_BYTES_MAX,
            over_limit: OverLimit::Refuse,
            ask: None,
            timeout: None,
            is_read_only: false,
            capture: Capture::Auto,
            on_failure: OnFailure::Keep,
            roots: Vec::new(),
            environment: Vec::new(),
            named: Vec::new(),
            base: None,
            shown: None,
            left_out: Vec::new(),
            call: None,
            back: None,
        }
    }
}

impl std::fmt::Debug for RunRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunRequest")
            .field("words", &self.words)
            .finish_non_exhaustive()
    }
}

/// A command that has ended, and what it left.
#[derive(Debug, Serialize, Deserialize)]
#[must_use = "what it left running can write nothing unless it stays under watch"]
pub struct Ran {
    /// What it did.
    #[serde(flatten)]
    pub report: RunReport,
    /// What it left running, for [`Engine::watch_on`](crate::Engine::watch_on).
    #[serde(skip)]
    pub left: Option<Watch>,
    /// The process that the caller waits for, to be told.
    #[serde(skip)]
    pub back: Option<Back>,
}

impl From<RunReport> for Ran {
    fn from(report: RunReport) -> Self {
        Self {
            report,
            left: None,
            back: None,
        }
    }
}

/// What a command did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunReport {
    /// By which it is taken back.
    pub id: OperationId,
    /// Its line for people.
    pub summary: String,
    /// Where it stands: applied in a task, committed otherwise.
    pub status: Status,
    /// How it was watched.
    pub mode: CaptureMode,
    /// What became of it.
    pub end: CommandEnd,
    /// Things worth knowing.
    pub notes: Vec<String>,
    /// What was taken back, since it failed or the gates said no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<UndoReport>,
    /// What the gates found in what it wrote, if they said no.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// Whether somebody stopped it while it was watched, when the command itself was over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stopped: bool,
}
