//! What is kept of a trial until it is applied or discarded: the names that change, what they become, and what they were.

use std::collections::HashSet;
use std::path::PathBuf;

use backout_files::Baseline;
use backout_model::{AgentId, OperationId, Owner, TargetPath, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

/// The newest version of a manifest that this program writes and reads.
pub(super) const VERSION: u16 = 2;

/// A longer command is cut off.
const LINE_CHARS_MAX: usize = 100;

/// Everything about a trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) version: u16,
    pub(super) id: OperationId,
    pub(super) made: Timestamp,
    /// Who runs or ran it, and at which boot of the machine.
    pub(super) owner: Owner,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<AgentId>,
    /// The task that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<TaskId>,
    /// The command, for people.
    pub(super) command: Vec<String>,
    /// Where it ran.
    pub(super) directory: TargetPath,
    /// How it ended; none while it runs.
    pub(super) ended: Option<TrialEnd>,
    /// Directories with layers, to be removed in the end.
    pub(super) places: Vec<TargetPath>,
    pub(super) changes: Vec<TrialChange>,
    /// New directories that were applied and that something which still waits lies in: if they are undone, it needs them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) homes: Vec<TrialChange>,
    /// Whether a part of it was applied, and this is the rest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_rest: bool,
    /// The proposal that it became, if a gate asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) proposed: Option<Proposed>,
    /// The sandbox whose layers these are, if they are no command's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sandbox: Option<String>,
    pub(super) notes: Vec<String>,
}

/// What of a trial waits for a decision.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Proposed {
    /// The proposal.
    pub(super) id: OperationId,
    /// The names that it is about.
    pub(super) names: HashSet<TargetPath>,
}

/// How a tried command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialEnd {
    /// The exit code, as shells show it.
    pub code: u8,
    /// The signal that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
}

/// One name that a tried command changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialChange {
    /// The name.
    pub path: TargetPath,
    /// What happened to it.
    pub what: TrialWhat,
    /// What stands there once the trial is applied.
    pub becomes: TrialState,
    /// What stood there when the command began.
    pub(super) baseline: Baseline,
    /// Whether somebody else changed it while the command ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_conflict: bool,
    /// How many bytes it had, if it was a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_before: Option<u64>,
    /// How many bytes it has, if it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_after: Option<u64>,
    /// How many names lay below it, if it was a directory and is none any more. Older manifests do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_below: Option<u64>,
}

/// What happened to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialWhat {
    /// It is new.
    Created,
    /// It has another content, or is another thing.
    Changed,
    /// Only mode, owner or attributes differ.
    Metadata,
    /// It is gone, with all below.
    Deleted,
    /// It has another name.
    Moved,
}

/// What a name becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum TrialState {
    /// The name goes.
    Nothing,
    /// What is at another path.
    Like {
        /// Where that is.
        source: TargetPath,
    },
    /// A second name.
    Linked {
        /// Which the file has already.
        first: TargetPath,
        /// Where the file is.
        source: TargetPath,
        /// What the first name came to be, if it was applied before this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        made: Option<Baseline>,
    },
    /// What was at another path, with all below.
    Moved {
        /// It is gone from there.
        from: TargetPath,
        /// What was there.
        baseline: Baseline,
    },
}

/// Says a command as it could be typed, cut off where it gets too long.
pub(crate) fn command_line(words: &[String]) -> String {
    let is_plain =
        |character: char| character.is_alphanumeric() || "_-./=:@%+,".contains(character);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let line = words.iter().map(quoted).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

impl TrialChange {
    /// Gives the old name of what moved.
    pub const fn from(&self) -> Option<&TargetPath> {
        match &self.becomes {
            TrialState::Moved { from, .. } => Some(from),
            TrialState::Nothing | TrialState::Like { .. } | TrialState::Linked { .. } => None,
        }
    }

    /// Gives where the new state is, if it has one of its own.
    pub(super) const fn source(&self) -> Option<&TargetPath> {
        match &self.becomes {
            TrialState::Like { source } | TrialState::Linked { source, .. } => Some(source),
            TrialState::Nothing | TrialState::Moved { .. } => None,
        }
    }
}

impl Manifest {
    /// Says the command in one line.
    pub(super) fn line(&self) -> String {
        command_line(&self.command)
    }

    /// Says in one line what an operation does that makes it real.
    pub(super) fn summary(&self) -> String {
        match &self.sandbox {
            Some(name) => format!("sandbox: {name}"),
            None => format!("try: {}", self.line()),
        }
    }

    /// Lists the directories to remove.
    pub(super) fn directories(&self) -> Vec<PathBuf> {
        let paths = self.places.iter().map(TargetPath::as_path);
        paths.map(PathBuf::from).collect()
    }
}
