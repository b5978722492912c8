//! What the journal knows of a command: how it was started, and what became of it.

use serde::{Deserialize, Serialize};

use crate::{Dependency, Digest, OperationId, Recipe, Target, TargetPath};

/// How a command's writes are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureMode {
    /// The kernel asks before each call.
    Live,
    /// Directories are compared before and after.
    Scan,
}

impl CaptureMode {
    /// Names the mode as the journal, JSON and people know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Scan => "scan",
        }
    }
}

/// What a capture survives while the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureLevel {
    /// The death of any process.
    #[default]
    Process,
    /// Loss of power.
    Power,
}

impl CaptureLevel {
    /// Names the level as the journal, JSON and people know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Power => "power",
        }
    }
}

/// What becomes of what a command did if it fails or is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// It stays.
    #[default]
    Keep,
    /// It is taken back.
    Rollback,
}

/// What the kernel was asked to start, and how it is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandStart {
    /// The program and its arguments, as they were given.
    pub words: Vec<String>,
    /// The directory it was started in.
    pub directory: TargetPath,
    /// A digest of its environment: the same again, or not.
    pub environment: Digest,
    /// How its writes are seen.
    pub mode: CaptureMode,
    /// What the capture survives.
    pub level: CaptureLevel,
    /// What becomes of what it did if it fails, or if its watcher dies.
    #[serde(default)]
    pub on_failure: OnFailure,
}

/// What became of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnd {
    /// None if a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// How long it ran.
    pub duration_ms: u64,
    /// Names that were not there before.
    pub created: u64,
    /// Names that stand for something else now.
    pub changed: u64,
    /// Names that are gone.
    pub deleted: u64,
    /// Whether it was ended because its time was up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Its processes that went on; what they do is another operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<String>,
}

/// A file that a command read as another operation had left it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReadFrom {
    /// Whose bytes it read.
    pub on: OperationId,
    /// The file.
    pub path: TargetPath,
}

/// What a command turned out to do: its recipe is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// The command's, since its arm.
    pub id: OperationId,
    /// What it wrote.
    pub targets: Vec<Target>,
    /// What it was built on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// What it read as other operations had left it. Older programs note only the dependency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<ReadFrom>,
    /// Things worth knowing about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Those of the notes that tell what it was let do and nobody kept: taking it back leaves that. Older programs say it only by how a note ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lasting: Vec<String>,
    /// What became of it.
    pub end: CommandEnd,
    /// How to take it back.
    pub recipe: Recipe,
}
