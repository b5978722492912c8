//! The project's state graph: objects as nodes, what they say of each other as edges.
//!
//! - A node is a version of an object. An update makes the next version; nothing is changed or taken out (`docs/design/graph.md`).
//! - Edges follow from the objects, so that there is one truth: a plan's `context_id` *is* its edge to the context. Only what no object says (what a node
//!   produces) is kept as edges of its own.
//! - A step is a node inside of its plan's object, and changes with it.
//! - Ids are unique over all kinds, for ever: an id that was removed comes back only as the same kind.
//!
//! Pure: whoever keeps the notes appends them, all of one update in one entry.

mod change;
mod document;
mod edges;
mod note;
mod order;
mod restore;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use backout_model::{Digest, Lsn};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::NodeKind;
pub use change::{Change, Expect, Refusal, Update, Written, refused_notes};
pub use document::{Document, Drawn};
pub use note::{GraphNote, Violated, ViolationStanding};
pub use restore::Restored;

/// How a node leads to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EdgeKind {
    /// It belongs to this context.
    HasContext,
    /// The plan has this step.
    Contains,
    /// The step comes after this one.
    DependsOn,
    /// This role does it.
    AssignedTo,
    /// It tells of this plan.
    Traces,
    /// It decides about this.
    Confirms,
    /// This came of it. Somebody said so; no object does.
    Produces,
}

impl EdgeKind {
    /// Names the kind as the taxonomy does.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HasContext => "HAS_CONTEXT",
            Self::Contains => "CONTAINS",
            Self::DependsOn => "DEPENDS_ON",
            Self::AssignedTo => "ASSIGNED_TO",
            Self::Traces => "TRACES",
            Self::Confirms => "CONFIRMS",
            Self::Produces => "PRODUCES",
        }
    }
}

impl fmt::Display for EdgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One edge, by the ids of its ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Edge {
    /// Where it begins.
    pub from: String,
    /// What it means.
    pub kind: EdgeKind,
    /// Where it leads.
    pub to: String,
}

/// A node with an object of its own, as its newest version has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// It decides which schema the object follows.
    pub kind: NodeKind,
    /// How often it was written; the first time is 1.
    pub version: u64,
    /// The object; none if it was removed.
    pub object: Option<Arc<Value>>,
    /// Where its version stands in the journal.
    pub lsn: Lsn,
}

/// What a node produces, as somebody said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Produced {
    version: u64,
    to: Vec<String>,
}

/// How much of an id is at least to be said.
const SHORT_MIN: usize = 4;

/// The graph at one place of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// Its name, which the first update gives it.
    id: Option<String>,
    nodes: BTreeMap<String, Node>,
    /// The plan of each step.
    steps: BTreeMap<String, String>,
    produced: BTreeMap<String, Produced>,
    /// Rules that nodes break, by node and rule, as far as that was noted.
    open: BTreeMap<(String, String), Violated>,
    /// The newest note that it was made of.
    at: Lsn,
}

impl Graph {
    /// Puts the graph together from notes: of each subject the newest counts. A note that cannot be read is an error, since a graph without
    /// it would be another.
    pub fn of(notes: impl IntoIterator<Item = (Lsn, GraphNote)>) -> Self {
        let mut graph = Self::default();
        for (lsn, note) in notes {
            graph.take(lsn, note);
        }
        graph
    }

    /// Brings the graph to the state after one note.
    pub(crate) fn take(&mut self, lsn: Lsn, note: GraphNote) {
        self.at = self.at.max(lsn);
        match note {
            GraphNote::Node(version) => {
                self.id.get_or_insert(version.graph);
                self.put(
                    version.id,
                    Node {
                        kind: version.kind,
                        version: version.version,
                        object: version.object.map(Arc::new),
                        lsn,
                    },
                );
            }
            GraphNote::Produces(edges) => {
                self.id.get_or_insert(edges.graph);
                let produced = Produced {
                    version: edges.version,
                    to: edges.to,
                };
                self.produced.insert(edges.from, produced);
            }
            GraphNote::Violated(violated) => {
                let key = (violated.node.clone(), violated.violation.invariant.clone());
                if violated.standing == ViolationStanding::Open {
                    self.open.insert(key, violated);
                } else {
                    self.open.remove(&key);
                }
            }
        }
    }

    fn put(&mut self, id: String, node: Node) {
        if node.kind == NodeKind::Plan {
            if let Some(before) = self.nodes.get(&id).and_then(|node| node.object.as_deref()) {
                for step in step_ids(before) {
                    self.steps.remove(step);
                }
            }
            for step in node.object.as_deref().into_iter().flat_map(step_ids) {
                self.steps.insert(step.to_owned(), id.clone());
            }
        }
        self.nodes.insert(id, node);
    }

    /// Gives its name; none while nothing was ever in it.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Gives the place of the newest note that it was made of.
    pub const fn at(&self) -> Lsn {
        self.at
    }

    /// Gives the nodes that have an object, by their ids.
    pub fn objects(&self) -> impl Iterator<Item = (&str, &Node, &Value)> {
        let all = self.nodes.iter();
        all.filter_map(|(id, node)| Some((id.as_str(), node, node.object.as_deref()?)))
    }

    /// Gives the id that somebody means: the whole of it, or so much of its beginning that it is the only one.
    pub fn meant<'i>(&'i self, given: &'i str) -> &'i str {
        let mut found = self.objects().map(|(id, ..)| id);
        let mut fits = found.by_ref().filter(|id| id.starts_with(given));
        match (fits.next(), fits.next()) {
            (Some(only), None) if given.len() >= SHORT_MIN => only,
            _ => given,
        }
    }

    /// Finds a node that has an object.
    pub fn object(&self, id: &str) -> Option<(&Node, &Value)> {
        let node = self.nodes.get(id)?;
        Some((node, node.object.as_deref()?))
    }

    /// Says what the node of an id is, a step too.
    pub fn kind_of(&self, id: &str) -> Option<NodeKind> {
        if self.steps.contains_key(id) {
            return Some(NodeKind::Step);
        }
        self.object(id).map(|(node, _)| node.kind)
    }

    /// Gives the rules that nodes break, as far as that was noted.
    pub fn violated(&self) -> impl Iterator<Item = &Violated> {
        self.open.values()
    }

    /// Counts the nodes, with the steps.
    pub fn len(&self) -> usize {
        self.objects().count() + self.steps.len()
    }

    /// Tells whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives the digest of all that is in it: the same nodes and edges, whatever their versions, have the same.
    pub fn digest(&self) -> Digest {
        self.digest_of(|_| true)
    }

    /// The same, of what a rollback brings back: without what happened, was decided or said.
    pub fn digest_of_state(&self) -> Digest {
        self.digest_of(|kind| !kind.is_history())
    }

    fn digest_of(&self, counts: impl Fn(NodeKind) -> bool) -> Digest {
        let mut text = Vec::new();
        for (id, node, object) in self.objects() {
            if counts(node.kind) {
                text.extend_from_slice(format!("{} {id} {object}\n", node.kind).as_bytes());
            }
        }
        for edge in self.produces() {
            text.extend_from_slice(format!("{} {} {}\n", edge.from, edge.kind, edge.to).as_bytes());
        }
        Digest::of(&text)
    }
}

/// Gives the ids of a plan's steps.
fn step_ids(plan: &Value) -> impl Iterator<Item = &str> {
    steps(plan).filter_map(|step| text(step, "step_id"))
}

fn steps(plan: &Value) -> impl Iterator<Item = &Value> {
    let steps = plan.get("steps").and_then(Value::as_array);
    steps.into_iter().flatten()
}

fn text<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get(key).and_then(Value::as_str)
}
