//! A version of a node, or of what it produces, as a note of the journal keeps it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::NodeKind;
use crate::invariant::Violation;

/// What one note says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "graph_note", rename_all = "kebab-case")]
pub enum GraphNote {
    /// A node has a new version.
    Node(NodeVersion),
    /// A node produces this, and nothing else.
    Produces(ProducesVersion),
    /// A node breaks a rule, or does so no more.
    Violated(Violated),
}

/// A node and a rule that it breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violated {
    /// By its id.
    pub node: String,
    /// An object of its own, or a step of one.
    pub kind: NodeKind,
    /// The version that breaks the rule, or would have.
    pub version: u64,
    /// Whether that version was kept.
    pub standing: ViolationStanding,
    /// The rule, and how it is broken.
    #[serde(flatten)]
    pub violation: Violation,
}

/// What became of a version that breaks a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViolationStanding {
    /// The node is kept and breaks the rule.
    Open,
    /// The update was refused: no version of the node breaks the rule.
    Refused,
    /// The node does not break it any more, or is gone.
    Resolved,
}

impl Violated {
    /// Tells whether it is over. One that was refused is told once, as found.
    pub const fn is_over(&self) -> bool {
        matches!(self.standing, ViolationStanding::Resolved)
    }
}

/// An object of the graph as one update left it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeVersion {
    /// By its name.
    pub graph: String,
    /// The node.
    pub id: String,
    /// It decides which schema the object follows.
    pub kind: NodeKind,
    /// From 1, without gaps.
    pub version: u64,
    /// The object; none if it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
    /// The place in the journal whose state it brings back, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<u64>,
    /// How many nodes the graph has more or less by it, steps included.
    pub node_delta: i64,
    /// The same of its edges.
    pub edge_delta: i64,
}

/// What a node produces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProducesVersion {
    /// By its name.
    pub graph: String,
    /// The node that produces.
    pub from: String,
    /// From 1, without gaps.
    pub version: u64,
    /// What it produces.
    pub to: Vec<String>,
    /// The place in the journal whose state it brings back, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<u64>,
    /// How many edges the graph has more or less by it.
    pub edge_delta: i64,
}

impl GraphNote {
    /// Gives the subject that the note goes by: of each the newest counts.
    pub fn subject(&self) -> String {
        match self {
            Self::Node(node) => node.id.clone(),
            Self::Produces(edges) => format!("produces:{}", edges.from),
            Self::Violated(it) => format!("violated:{}:{}", it.violation.invariant, it.node),
        }
    }
}
