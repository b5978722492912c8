//! Sandboxes as people and programs see them.

use backout_model::{TargetPath, Timestamp, wide};
use serde::{Deserialize, Serialize};

use super::manifest::{Entry, Manifest, Running};
use crate::TrialChangeView;

/// Where a sandbox stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxStanding {
    /// It waits for a command.
    Ready,
    /// A command runs in it.
    Running,
    /// The owner of its last command died: what that wrote is dropped by whoever comes next.
    Interrupted,
    /// The machine was started anew since, and the layers are not to be trusted.
    Lost,
}

/// What a line of the log is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxAct {
    /// A command ran.
    Ran,
    /// Somebody went to another checkpoint.
    Returned,
    /// It was made real.
    Applied,
    /// A part of it was made real.
    AppliedInPart,
}

/// How a command in a sandbox went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxVerdict {
    /// It ended with code zero.
    Succeeded,
    /// It ended with another code.
    Failed,
    /// A signal ended it.
    Killed,
    /// Its time was up.
    TimedOut,
    /// Its owner died before it had ended.
    Interrupted,
}

/// A sandbox, with the checkpoints that can be gone back to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxView {
    /// By which it is found.
    pub name: String,
    /// Where it stands.
    pub standing: SandboxStanding,
    /// When it was begun.
    pub made: Timestamp,
    /// The checkpoint that the next command runs above.
    pub checkpoint: u64,
    /// The checkpoint that it was at before, if that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// The directory that the next command begins in.
    pub directory: TargetPath,
    /// How many layers the next command runs above.
    pub depth: u64,
    /// Whether it holds changes that were not applied.
    pub is_pending: bool,
    /// The command that runs, or whose owner died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// What can be gone back to, oldest first, if that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<SandboxCheckpoint>,
    /// What was done in it, oldest first, if that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<SandboxEntry>,
    /// Things worth knowing.
    pub notes: Vec<String>,
}

/// A state that can be gone back to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxCheckpoint {
    /// From 0, in their order.
    pub number: u64,
    /// The one before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// The directory that a command after it begins in.
    pub directory: TargetPath,
    /// When it was made.
    pub at: Timestamp,
    /// Whether it was set aside: it is not behind the present state.
    pub is_aside: bool,
}

/// One line of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxEntry {
    /// What it is about.
    pub act: SandboxAct,
    /// The command, as it could be typed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// How it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<SandboxVerdict>,
    /// The exit code, as shells show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// The checkpoint that it led to.
    pub checkpoint: u64,
    /// Whether what it did was taken back.
    pub is_rolled_back: bool,
    /// Where it ran.
    pub directory: TargetPath,
    /// When.
    pub at: Timestamp,
    /// How long it took.
    pub took_ms: u64,
    /// How many names it changed; none where nobody counted them before they were dropped.
    #[serde(default, skip_serializing_if = "wide::is_none_or_wide")]
    pub changes: Option<u64>,
}

/// What commands in a sandbox did, one after the other.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SandboxBatch {
    /// Those that ran, in their order.
    pub ran: Vec<SandboxRan>,
    /// They ended with 0.
    pub succeeded: u64,
    /// How many were not begun.
    pub not_run: u64,
    /// Why it ended before its end, if a command could not even be begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a command in a sandbox did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxRan {
    /// By its name.
    pub sandbox: String,
    /// The command, as it could be typed.
    pub command: String,
    /// How it went.
    pub verdict: SandboxVerdict,
    /// The exit code, as shells show it.
    pub exit_code: u8,
    /// The signal that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
    /// How long it took.
    pub took_ms: u64,
    /// The checkpoint that the sandbox is at now.
    pub checkpoint: u64,
    /// The checkpoint that the command ran above.
    pub before: u64,
    /// Whether what it did was taken back.
    pub is_rolled_back: bool,
    /// The directory that the next command begins in.
    pub directory: TargetPath,
    /// What it changed, or had changed before it was taken back.
    pub changes: Vec<TrialChangeView>,
    /// The end of its words, if they were to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// How many bytes of its words were left out before that.
    #[serde(default, skip_serializing_if = "wide::is_none_or_wide")]
    pub output_left_out: Option<u64>,
    /// Things worth knowing.
    pub notes: Vec<String>,
    /// All of it in words, for a model.
    pub text: String,
}

impl SandboxView {
    pub(super) fn of(manifest: &Manifest, standing: SandboxStanding, is_whole: bool) -> Self {
        let here: Vec<u64> = manifest
            .chain(manifest.head)
            .iter()
            .map(|it| it.number)
            .collect();
        let directory = manifest.checkpoint(manifest.head).map(|it| &it.directory);
        let listed = manifest.checkpoints.iter().filter(|it| !it.is_folded);
        let checkpoints = listed.map(|it| SandboxCheckpoint {
            number: it.number,
            parent: it.parent,
            directory: it.directory.clone(),
            at: it.at,
            is_aside: !here.contains(&it.number),
        });
        Self {
            name: manifest.name.clone(),
            standing,
            made: manifest.made,
            checkpoint: manifest.head,
            before: None,
            directory: directory.unwrap_or(&manifest.home).clone(),
            depth: manifest.layers(manifest.head).len() as u64,
            is_pending: manifest.is_pending(),
            running: manifest.running.as_ref().map(Running::said),
            checkpoints: checkpoints.filter(|_| is_whole).collect(),
            log: manifest
                .log
                .iter()
                .filter(|_| is_whole)
                .map(SandboxEntry::from)
                .collect(),
            notes: Vec::new(),
        }
    }
}

impl From<&Entry> for SandboxEntry {
    fn from(entry: &Entry) -> Self {
        Self {
            act: entry.act,
            command: entry.said(),
            verdict: entry.verdict,
            exit_code: entry.code,
            checkpoint: entry.checkpoint,
            is_rolled_back: entry.is_rolled_back,
            directory: entry.directory.clone(),
            at: entry.at,
            took_ms: entry.took_ms,
            changes: (entry.verdict != Some(SandboxVerdict::Interrupted)).then_some(entry.changes),
        }
    }
}
