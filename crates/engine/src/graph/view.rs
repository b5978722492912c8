//! What is told of the graph.

use backout_model::{Digest, Lsn, Severity};
use backout_mplp::{Drawn, EvidenceFlaw, Flaw, Graph, Kind, Violated, Violation, Written, check};
use serde::{Deserialize, Serialize};

/// The graph as a list that can be drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphView {
    /// Its name; none if nothing was ever in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_id: Option<String>,
    /// The newest record that it shows.
    pub lsn: Lsn,
    /// Two graphs with the same nodes have the same.
    pub digest: Digest,
    /// The nodes, each above what it leads to.
    pub nodes: Vec<Drawn>,
    /// How many edges there are.
    pub edges: u64,
    /// Rules that nodes break.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violated: Vec<Violated>,
}

impl GraphView {
    pub(super) fn of(graph: &Graph) -> Self {
        let nodes = graph.drawn();
        let edges: usize = nodes.iter().map(|node| node.leads.len()).sum();
        Self {
            graph_id: graph.id().map(str::to_owned),
            lsn: graph.at(),
            digest: graph.digest(),
            edges: u64::try_from(edges).unwrap_or(u64::MAX),
            nodes,
            violated: graph.violated().cloned().collect(),
        }
    }
}

/// What an update came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphUpdated {
    /// The graph's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_id: Option<String>,
    /// Where it is in the journal; none if nothing had to change, or only a look was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lsn: Option<Lsn>,
    /// The place right before it: a restore of the graph to there takes it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Lsn>,
    /// The nodes that have a new version, with the rules that they break.
    pub written: Vec<Written>,
    /// Nodes that were not there then and stay, since something that stays tells of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// The place whose state was brought back, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Lsn>,
    /// The digest of the graph that came of it.
    pub digest: Digest,
    /// Whether nothing was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dry_run: bool,
}

/// What is wrong with the graph, or with objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphChecked {
    /// How many objects were looked at.
    pub objects: u64,
    /// How many times a rule was carried out.
    pub rules: u64,
    /// What is wrong.
    pub flaws: Vec<GraphFlaw>,
}

impl GraphChecked {
    pub(super) fn of(graph: &Graph) -> Self {
        let mut checked = Self {
            objects: 0,
            rules: 0,
            flaws: Vec::new(),
        };
        for (id, node, object) in graph.objects() {
            let kind = node.kind.object();
            checked.objects += 1;
            let wrong = check(kind, object).into_iter();
            let wrong = wrong.map(|flaw| GraphFlaw::of_schema(id, kind, flaw));
            checked.flaws.extend(wrong);
            let (rules, broken) = graph.judged(id);
            checked.rules += rules;
            let broken = broken.into_iter();
            let broken = broken.map(|violation| GraphFlaw::of_rule(id, kind, violation));
            checked.flaws.extend(broken);
        }
        checked
    }

    /// Tells whether something is so wrong that an update would have been refused.
    pub fn is_grave(&self) -> bool {
        let mut flaws = self.flaws.iter();
        flaws.any(|flaw| flaw.severity >= Severity::High)
    }
}

/// Something wrong with an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphFlaw {
    /// The object.
    pub id: String,
    /// What it is; none if nothing says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The rule that it breaks; none if it is the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invariant: Option<String>,
    /// Where in it.
    pub place: String,
    /// What is wrong there.
    pub what: String,
    /// How grave it is.
    pub severity: Severity,
}

impl GraphFlaw {
    pub(super) fn unknown(number: usize) -> Self {
        Self {
            id: format!("object {}", number + 1),
            kind: None,
            invariant: None,
            place: String::new(),
            what: "nothing says what it is".to_owned(),
            severity: Severity::High,
        }
    }

    pub(super) fn of_schema(id: &str, kind: Kind, flaw: Flaw) -> Self {
        Self {
            id: id.to_owned(),
            kind: Some(kind),
            invariant: None,
            place: flaw.place,
            what: flaw.what,
            severity: Severity::High,
        }
    }

    pub(super) fn of_rule(id: &str, kind: Kind, violation: Violation) -> Self {
        Self {
            id: id.to_owned(),
            kind: Some(kind),
            invariant: Some(violation.invariant),
            place: violation.place,
            what: violation.why,
            severity: violation.severity,
        }
    }
}

/// What became of evidence: it was written, or looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvidenceView {
    /// How many records it tells of.
    pub records: u64,
    /// How many of MPLP's events it holds.
    pub events: u64,
    /// The first record.
    pub first: Lsn,
    /// Where in the journal it ends.
    pub last: Lsn,
    /// The hash of the last one.
    pub head: Digest,
    /// How many of its records were cut out of the journal since, and are known by its anchor only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut: u64,
    /// Whether nobody here can tell how the graph was before its first record, so that its objects were not compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_graph_unknown: bool,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaws: Vec<EvidenceFlaw>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks with a reference"
)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
