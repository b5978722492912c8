//! A stage as it stands: what the journal keeps of it, and what every surface shows.

use std::fmt;

use backout_model::{
    AgentId, CheckpointName, Digest, Lsn, OperationId, TargetOutcome, TaskId, Timestamp, Trigger,
    TriggerAction,
};
use serde::{Deserialize, Serialize};

/// Whether a stage is open, and what became of it if not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageStanding {
    /// It has begun.
    Open,
    /// It ended well.
    Done,
    /// It failed, and its work was taken back.
    RolledBack,
    /// It failed, and its work stays.
    Kept,
    /// It failed, and somebody has to decide about its work.
    Waits,
}

impl StageStanding {
    /// Names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Done => "done",
            Self::RolledBack => "rolled back",
            Self::Kept => "kept",
            Self::Waits => "waits",
        }
    }

    /// Tells whether it can still be ended.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Waits)
    }
}

/// A stage, with what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageView {
    /// By which it began.
    pub stage: CheckpointName,
    /// Whose work it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The task that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Open, or what became of it.
    pub standing: StageStanding,
    /// Since when.
    #[serde(default)]
    pub at: Timestamp,
    /// Where in the journal it began.
    #[serde(default)]
    pub lsn: Lsn,
    /// The place in the journal that it goes back to.
    pub position: Lsn,
    /// What was done already after that place when it began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<OperationId>,
    /// The digest of the project's graph at its boundary, if there is a graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Digest>,
    /// What becomes of its work if it fails, if whoever began it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<TriggerAction>,
    /// What made it fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// The undo that took its work back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<OperationId>,
    /// The operations that were taken back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverted: Vec<OperationId>,
    /// How many targets came back.
    #[serde(default)]
    pub targets: usize,
    /// Targets that a second look did not find as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_as_before: Vec<TargetOutcome>,
    /// What others had changed and the rollback overwrote; a redo of `act` brings it back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overwritten: Vec<TargetOutcome>,
    /// Whether the project's graph is as it was, by digest; none if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_graph_restored: Option<bool>,
    /// The place in the journal from which the graph as it was before the rollback can be brought back, if that changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_before: Option<Lsn>,
    /// Why the project's graph is not as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_left: Option<GraphLeft>,
}

/// Why the project's graph stays as it is although its stage was rolled back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum GraphLeft {
    /// Others changed it since, and nobody said that their work may go.
    Others {
        /// A node that they changed.
        node: String,
    },
    /// Nodes that were not there then are named by a trace, a confirmation or a dialog, and those stay.
    Told {
        /// By their ids.
        nodes: Vec<String>,
    },
    /// The journal does not reach back to its snapshot, or tells another state there.
    Unknown {
        /// What is wrong.
        how: String,
    },
}

impl fmt::Display for GraphLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Others { node } => write!(f, "others changed {node} in it since"),
            Self::Told { nodes } => {
                let nodes = nodes.join(", ");
                write!(f, "what happened since tells of {nodes}, which stays")
            }
            Self::Unknown { how } => f.write_str(how),
        }
    }
}

impl StageView {
    /// Says whose it is, as an option of the command line.
    pub fn whose(&self) -> String {
        match (&self.task, &self.agent) {
            (Some(task), _) => format!("--task {}", crate::quoted(task.as_str().as_ref())),
            (None, Some(agent)) => format!("--agent {}", crate::quoted(agent.as_str().as_ref())),
            (None, None) => String::new(),
        }
    }
}
