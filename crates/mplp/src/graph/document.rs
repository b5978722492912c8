//! The graph as one file, and as a list that can be drawn.
//!
//! A file names each node's version, so that whoever changes an object in it and gives it back says by that what he saw. Its edges are for readers; where they
//! say something that the objects do not, somebody edited the wrong place, and the file is refused.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::order::ordered;
use super::{Change, Edge, EdgeKind, Expect, Graph, Refusal, steps, text};
use crate::{Kind, NodeKind};

/// The graph as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The graph's name; none if nothing was ever in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_id: Option<String>,
    /// The place in the journal that it shows.
    #[serde(default)]
    pub lsn: u64,
    /// The objects.
    pub nodes: Vec<DocumentNode>,
    /// What leads where.
    #[serde(default)]
    pub edges: Vec<Edge>,
}

/// An object in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentNode {
    /// It decides which schema the object follows.
    pub kind: NodeKind,
    /// Which version the file shows; none means that the file does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// As its schema has it.
    pub object: Value,
}

/// A node in a list, each after those that it leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drawn {
    /// As its object has it.
    pub id: String,
    /// An object of its own, or a step of one.
    pub kind: NodeKind,
    /// Its version; a step has its plan's.
    pub version: u64,
    /// What people call it.
    pub title: String,
    /// How it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Each edge by its kind and the id at its other end.
    pub leads: Vec<(EdgeKind, String)>,
}

impl Graph {
    /// Writes the graph down.
    pub fn document(&self) -> Document {
        let node = |(_, node, object): (&str, &super::Node, &Value)| DocumentNode {
            kind: node.kind,
            version: Some(node.version),
            object: object.clone(),
        };
        Document {
            graph_id: self.id.clone(),
            lsn: self.at.0,
            nodes: self.objects().map(node).collect(),
            edges: self.edges(),
        }
    }

    /// Lists all nodes so that each stands above what it leads to, as far as circles allow: steps from the last to the first, below their plan.
    pub fn drawn(&self) -> Vec<Drawn> {
        let mut leads: BTreeMap<String, Vec<(EdgeKind, String)>> = BTreeMap::new();
        for edge in self.edges() {
            leads
                .entry(edge.from)
                .or_default()
                .push((edge.kind, edge.to));
        }
        let mut list = Vec::new();
        let mut objects: Vec<(&str, &super::Node, &Value)> = self.objects().collect();
        objects.sort_by_key(|(id, node, _)| (rank(node.kind), *id));
        for (id, node, object) in objects {
            let mut draw = |id: &str, kind: NodeKind, object: &Value| {
                list.push(Drawn {
                    id: id.to_owned(),
                    kind,
                    version: node.version,
                    title: title(kind, object).to_owned(),
                    status: text(object, "status").map(str::to_owned),
                    leads: leads.remove(id).unwrap_or_default(),
                });
            };
            draw(id, node.kind, object);
            if node.kind == NodeKind::Plan {
                let by_id: BTreeMap<&str, &Value> = steps(object)
                    .filter_map(|step| Some((text(step, "step_id")?, step)))
                    .collect();
                for step in ordered(object).unwrap_or_default().into_iter().rev() {
                    if let Some(object) = by_id.get(step) {
                        draw(step, NodeKind::Step, object);
                    }
                }
            }
        }
        list
    }
}

/// What tells of others stands above them.
const fn rank(kind: NodeKind) -> u8 {
    match kind {
        NodeKind::Confirm => 0,
        NodeKind::Trace => 1,
        NodeKind::Dialog => 2,
        NodeKind::Collab => 3,
        NodeKind::Extension => 4,
        NodeKind::Network => 5,
        NodeKind::Plan | NodeKind::Step => 6,
        NodeKind::Role => 7,
        NodeKind::Context => 8,
    }
}

fn title(kind: NodeKind, object: &Value) -> &str {
    let key = match kind {
        NodeKind::Context | NodeKind::Plan | NodeKind::Collab => "title",
        NodeKind::Step => "description",
        NodeKind::Role | NodeKind::Extension | NodeKind::Network => "name",
        NodeKind::Confirm => "reason",
        NodeKind::Trace | NodeKind::Dialog => "",
    };
    text(object, key).unwrap_or_default()
}

impl Document {
    /// Reads a file: a document, an object, or a list of objects.
    pub fn read(json: Value) -> Result<Self, serde_json::Error> {
        let bare = |object: Value| DocumentNode {
            kind: Kind::of(&object)
                .and_then(NodeKind::of)
                .unwrap_or(NodeKind::Context),
            version: None,
            object,
        };
        let nodes = match json {
            Value::Array(objects) => objects.into_iter().map(bare).collect(),
            json if json.get("nodes").is_some() && Kind::of(&json).is_none() => {
                return serde_json::from_value(json);
            }
            object => vec![bare(object)],
        };
        Ok(Self {
            graph_id: None,
            lsn: 0,
            nodes,
            edges: Vec::new(),
        })
    }

    /// Says what has to change for a graph to have all that is in the file. Whatever else is in the graph stays.
    pub fn changes(self, graph: &Graph, expect: Expect) -> Result<Vec<Change>, Refusal> {
        let mut changes = Vec::new();
        let mut known = Graph::default();
        for node in self.nodes {
            let kind = Kind::of(&node.object).and_then(NodeKind::of);
            let id = |kind: NodeKind| text(&node.object, kind.id_key()).unwrap_or_default();
            match kind {
                Some(kind) if kind == node.kind => {
                    let id = id(kind).to_owned();
                    known.put(
                        id,
                        super::Node {
                            kind,
                            version: 0,
                            object: Some(std::sync::Arc::new(node.object.clone())),
                            lsn: backout_model::Lsn(0),
                        },
                    );
                }
                Some(now) => {
                    return Err(Refusal::KindChanged {
                        id: id(now).to_owned(),
                        was: node.kind,
                        now,
                    });
                }
                None => {}
            }
            let expect = match (expect, node.version) {
                (Expect::Unsaid, Some(version)) => Expect::Version(version),
                (said, _) => said,
            };
            changes.push(Change::Put {
                object: node.object,
                expect,
            });
        }
        changes.extend(produced(self.edges, &known, graph)?);
        Ok(changes)
    }
}

/// Takes the edges that no object says; one that an object would have to say, and does not, is a mistake.
fn produced(edges: Vec<Edge>, known: &Graph, graph: &Graph) -> Result<Vec<Change>, Refusal> {
    let follow: BTreeSet<Edge> = known.edges().into_iter().chain(graph.edges()).collect();
    let mut produced: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for edge in edges {
        if edge.kind == EdgeKind::Produces {
            produced.entry(edge.from).or_default().push(edge.to);
        } else if !follow.contains(&edge) {
            return Err(Refusal::ForeignEdge {
                from: edge.from,
                edge: edge.kind,
                to: edge.to,
            });
        }
    }
    let change = |(from, to)| Change::Produce { from, to };
    Ok(produced.into_iter().map(change).collect())
}
