//! Updates: what somebody wants changed, and the versions that come of it, or why none does.
//!
//! Decided as a whole: all of it becomes notes of one entry, or nothing does.

use std::collections::BTreeSet;
use std::sync::Arc;

use backout_model::{Lsn, Severity};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::note::{GraphNote, NodeVersion, ProducesVersion, Violated, ViolationStanding};
use super::order::ordered;
use super::{EdgeKind, Graph, Node, Produced, step_ids, steps, text};
use crate::invariant::{Scope, Surroundings, Violation, invariants};
use crate::schema::{Flaw, check};
use crate::{Kind, NodeKind};

/// The most nodes that a graph may have, steps included.
const NODES_MAX: usize = 1_000_000;

/// What the caller believes a node's version to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expect {
    /// Nothing was said: a node that is there and differs is not overwritten.
    #[default]
    Unsaid,
    /// Whatever it is.
    Any,
    /// This one; 0 means that it is not there.
    Version(u64),
}

/// One thing to change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A node is to be this object.
    Put {
        /// The object, which says by its id what it is.
        object: Value,
        /// The version that it follows.
        #[serde(default)]
        expect: Expect,
    },
    /// A node is to be gone. Its versions stay in the journal.
    Remove {
        /// It is refused if something that stays names it.
        id: String,
        /// The version that is removed.
        #[serde(default)]
        expect: Expect,
    },
    /// A node produces this, and nothing else.
    Produce {
        /// Its id.
        from: String,
        /// What it produces.
        to: Vec<String>,
    },
}

/// Says why a graph is not updated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
pub enum Refusal {
    /// Nothing says what an object is.
    #[error("an object is no node: it has none of the ids that nodes have")]
    NoNode,
    /// The schema of its kind does not like an object.
    #[error("the {kind} {id} does not follow its schema")]
    Invalid {
        kind: Kind,
        id: String,
        /// What is wrong.
        flaws: Vec<Flaw>,
    },
    /// Two nodes would have one id.
    #[error("the id {id} is there already")]
    Duplicate { id: String },
    /// A node would become another kind.
    #[error("{id} is a {was} and does not become a {now}")]
    KindChanged {
        /// The node.
        id: String,
        was: NodeKind,
        /// What it would be.
        now: NodeKind,
    },
    /// A node has come to its end.
    #[error("the {kind} {id} is {status} and does not change any more")]
    Terminal {
        /// The node.
        id: String,
        kind: NodeKind,
        status: String,
    },
    /// Somebody else was faster.
    #[error("{id} has version {found}, not {expected}")]
    Conflict {
        /// The node.
        id: String,
        /// The version that the caller saw.
        expected: u64,
        /// The version that there is.
        found: u64,
    },
    /// A node is there, and the caller did not say which version he saw.
    #[error("{id} is there in version {found}, and nobody said that this is the one to follow")]
    Unsaid {
        /// The node.
        id: String,
        /// The version that there is.
        found: u64,
    },
    /// There is no such node.
    #[error("there is no node {id}")]
    Unknown { id: String },
    /// It is a step, which goes with its plan.
    #[error("{id} is a step of plan {plan}")]
    IsStep {
        /// The step.
        id: String,
        plan: String,
    },
    /// Steps wait for each other.
    #[error("the steps of plan {plan} wait for each other: {}", steps.join(" → "))]
    Cycle {
        plan: String,
        /// The steps of the circle.
        steps: Vec<String>,
    },
    /// A step depends on a step of another plan.
    #[error("step {step} depends on {dependency}, which is a step of another plan, {plan}")]
    ForeignStep {
        step: String,
        /// What it depends on.
        dependency: String,
        /// The other plan.
        plan: String,
    },
    /// An edge leads nowhere, or to something else than it must.
    #[error("{from} leads by {edge} to {to}, which is {}", found.map_or("not there".to_owned(), |kind| format!("a {kind}")))]
    Dangling {
        /// Where it begins.
        from: String,
        /// What it means.
        edge: EdgeKind,
        /// Where it leads.
        to: String,
        /// What is there.
        found: Option<NodeKind>,
    },
    /// A file says something of an edge that its objects do not.
    #[error("the edge {from} {edge} {to} does not follow from the objects")]
    ForeignEdge {
        /// Where it begins.
        from: String,
        /// What it means.
        edge: EdgeKind,
        /// Where it leads.
        to: String,
    },
    /// A rule of high severity is broken.
    #[error("an invariant of severity high does not hold")]
    Violated(Vec<Written>),
    /// Its object has more bytes than a node may have.
    #[error("a graph has at most {NODES_MAX} nodes")]
    TooLarge,
}

/// What became of a node, with the rules that it breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The node.
    pub id: String,
    /// It decides which schema the object follows.
    pub kind: NodeKind,
    /// Its new version.
    pub version: u64,
    /// Whether it is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// The rules that it breaks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
}

/// An update that may be appended.
#[derive(Debug, Clone)]
pub struct Update {
    /// What to append, in one entry. Nothing if all is as it was asked to be.
    pub notes: Vec<GraphNote>,
    /// The nodes that have a new version.
    pub written: Vec<Written>,
    /// The graph that comes of it.
    pub after: Graph,
}

impl Graph {
    /// Decides what comes of changes. `name` is the graph's, should it have none yet.
    pub fn update(&self, name: &str, changes: Vec<Change>) -> Result<Update, Refusal> {
        let mut draft = Draft {
            before: self,
            after: self.clone(),
            touched: BTreeSet::new(),
            notes: Vec::new(),
            restores: None,
        };
        draft.after.id.get_or_insert_with(|| name.to_owned());
        for change in changes {
            match change {
                Change::Put { object, expect } => draft.put(object, expect)?,
                Change::Remove { id, expect } => draft.remove(&id, expect)?,
                Change::Produce { from, to } => draft.produce(from, to),
            }
        }
        draft.finish()
    }
}

/// An update in the making.
pub(super) struct Draft<'g> {
    pub(super) before: &'g Graph,
    pub(super) after: Graph,
    /// Nodes and producers that have a note already.
    pub(super) touched: BTreeSet<String>,
    pub(super) notes: Vec<GraphNote>,
    /// The place whose state is brought back, if that is what it does.
    pub(super) restores: Option<Lsn>,
}

impl Draft<'_> {
    fn put(&mut self, object: Value, expect: Expect) -> Result<(), Refusal> {
        let object_kind = Kind::of(&object).ok_or(Refusal::NoNode)?;
        let kind = NodeKind::of(object_kind).ok_or(Refusal::NoNode)?;
        let id = text(&object, kind.id_key()).unwrap_or_default().to_owned();
        let flaws = check(object_kind, &object);
        if !flaws.is_empty() {
            return Err(Refusal::Invalid {
                kind: object_kind,
                id,
                flaws,
            });
        }
        if self.touched.contains(&id) || self.after.steps.contains_key(&id) {
            return Err(Refusal::Duplicate { id });
        }
        if let Some(before) = self.before.nodes.get(&id) {
            if before.kind != kind {
                let was = before.kind;
                return Err(Refusal::KindChanged { id, was, now: kind });
            }
            if before.object.as_deref() == Some(&object) {
                self.touched.insert(id);
                return Ok(());
            }
        }
        self.expect(&id, expect)?;
        self.check_end(&id, kind, &object)?;
        if kind == NodeKind::Plan {
            self.check_steps(&id, &object)?;
        }
        self.write(&id, kind, Some(object));
        Ok(())
    }

    fn remove(&mut self, id: &str, expect: Expect) -> Result<(), Refusal> {
        let Some((node, object)) = self.before.object(id) else {
            let id = id.to_owned();
            return Err(match self.before.steps.get(&id) {
                Some(plan) => Refusal::IsStep {
                    id,
                    plan: plan.clone(),
                },
                None => Refusal::Unknown { id },
            });
        };
        let kind = node.kind;
        if self.touched.contains(id) {
            return Err(Refusal::Duplicate { id: id.to_owned() });
        }
        self.expect(id, expect)?;
        let status = text(object, "status").unwrap_or_default();
        if kind.is_terminal(status) || kind == NodeKind::Trace {
            return Err(Refusal::Terminal {
                id: id.to_owned(),
                kind,
                status: status.to_owned(),
            });
        }
        self.write(id, kind, None);
        Ok(())
    }

    pub(super) fn produce(&mut self, from: String, mut to: Vec<String>) {
        to.sort();
        to.dedup();
        let before = self.after.produced.get(&from).cloned().unwrap_or_default();
        if before.to == to {
            return;
        }
        let version = before.version + 1;
        let signed = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.notes.push(GraphNote::Produces(ProducesVersion {
            graph: self.after.id.clone().unwrap_or_default(),
            from: from.clone(),
            version,
            to: to.clone(),
            restores: self.restores.map(|lsn| lsn.0),
            edge_delta: signed(to.len()) - signed(before.to.len()),
        }));
        self.after.produced.insert(from, Produced { version, to });
    }

    /// Makes the next version of a node.
    pub(super) fn write(&mut self, id: &str, kind: NodeKind, object: Option<Value>) {
        let version = self.before.nodes.get(id).map_or(0, |node| node.version) + 1;
        self.touched.insert(id.to_owned());
        self.notes.push(GraphNote::Node(NodeVersion {
            graph: self.after.id.clone().unwrap_or_default(),
            id: id.to_owned(),
            kind,
            version,
            object: object.clone(),
            restores: self.restores.map(|lsn| lsn.0),
            node_delta: 0,
            edge_delta: 0,
        }));
        let node = Node {
            kind,
            version,
            object: object.map(Arc::new),
            lsn: Lsn(0),
        };
        self.after.put(id.to_owned(), node);
    }

    fn expect(&self, id: &str, expect: Expect) -> Result<(), Refusal> {
        let node = self.before.nodes.get(id);
        let found = node.map_or(0, |node| node.version);
        let is_there = node.is_some_and(|node| node.object.is_some());
        let id = id.to_owned();
        match expect {
            Expect::Unsaid if is_there => Err(Refusal::Unsaid { id, found }),
            Expect::Version(0) if !is_there => Ok(()),
            Expect::Version(expected) if expected != found => Err(Refusal::Conflict {
                id,
                expected,
                found,
            }),
            Expect::Unsaid | Expect::Any | Expect::Version(_) => Ok(()),
        }
    }

    /// Makes sure that nothing changes that has come to its end: the node, or a step of a plan.
    fn check_end(&self, id: &str, kind: NodeKind, object: &Value) -> Result<(), Refusal> {
        let Some((_, before)) = self.before.object(id) else {
            return Ok(());
        };
        let ended = |kind: NodeKind, id: &str, status: &str| Refusal::Terminal {
            id: id.to_owned(),
            kind,
            status: status.to_owned(),
        };
        let status = text(before, "status").unwrap_or_default();
        if kind.is_terminal(status) {
            return Err(ended(kind, id, status));
        }
        if kind != NodeKind::Plan {
            return Ok(());
        }
        let now: std::collections::BTreeMap<&str, &Value> = steps(object)
            .filter_map(|step| Some((text(step, "step_id")?, step)))
            .collect();
        for step in steps(before) {
            let id = text(step, "step_id").unwrap_or_default();
            let status = text(step, "status").unwrap_or_default();
            if NodeKind::Step.is_terminal(status) && now.get(id) != Some(&step) {
                return Err(ended(NodeKind::Step, id, status));
            }
        }
        Ok(())
    }

    /// Makes sure that a plan's steps are nobody else's, and can be done in some order.
    fn check_steps(&self, id: &str, plan: &Value) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        for step in step_ids(plan) {
            let is_elsewhere = self.after.steps.get(step).is_some_and(|plan| plan != id);
            let is_node = self.after.nodes.contains_key(step) || step == id;
            if is_elsewhere || is_node || !seen.insert(step) {
                let id = step.to_owned();
                return Err(Refusal::Duplicate { id });
            }
        }
        ordered(plan).map(drop).map_err(|steps| Refusal::Cycle {
            plan: id.to_owned(),
            steps,
        })
    }

    /// Looks at the whole that came of it.
    fn finish(self) -> Result<Update, Refusal> {
        if self.after.len() > NODES_MAX {
            return Err(Refusal::TooLarge);
        }
        let written = self.written();
        let is_grave = |written: &&Written| {
            let mut all = written.violations.iter();
            all.any(|violation| violation.severity >= Severity::High)
        };
        let grave: Vec<Written> = written.iter().filter(is_grave).cloned().collect();
        if !grave.is_empty() {
            return Err(Refusal::Violated(grave));
        }
        if !self.notes.is_empty() {
            self.after.check_edges()?;
        }
        Ok(self.counted(written))
    }

    /// Says of each node that has a new version which rules it breaks.
    pub(super) fn written(&self) -> Vec<Written> {
        let nodes = self.notes.iter().filter_map(|note| match note {
            GraphNote::Node(node) => Some(node),
            GraphNote::Produces(_) | GraphNote::Violated(_) => None,
        });
        let told = nodes.map(|node| Written {
            id: node.id.clone(),
            kind: node.kind,
            version: node.version,
            removed: node.object.is_none(),
            violations: self.after.violations_of(&node.id),
        });
        told.collect()
    }

    /// Tells in each note how the graph grew by it.
    pub(super) fn counted(mut self, written: Vec<Written>) -> Update {
        let (roles_before, roles_after) = (self.before.roles(), self.after.roles());
        let steps = |graph: &Graph, id: &str| {
            let object = graph.object(id).map(|(_, object)| object);
            object.map_or(0, |object| 1 + step_ids_if_plan(object))
        };
        let signed = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        for note in &mut self.notes {
            if let GraphNote::Node(node) = note {
                let (before, after) = (self.before, &self.after);
                node.node_delta = signed(steps(after, &node.id)) - signed(steps(before, &node.id));
                node.edge_delta = signed(after.edges_of(&roles_after, &node.id))
                    - signed(before.edges_of(&roles_before, &node.id));
            }
        }
        let news = self.before.news(&written);
        self.notes.extend(news);
        Update {
            notes: self.notes,
            written,
            after: self.after,
        }
    }
}

impl Graph {
    /// Says what is to be noted of rules: those that nodes break and nobody noted, and those that are kept again.
    fn news(&self, written: &[Written]) -> Vec<GraphNote> {
        let mut notes = Vec::new();
        for node in written {
            let told = |violation: &Violation, standing| {
                GraphNote::Violated(Violated {
                    node: node.id.clone(),
                    kind: node.kind,
                    version: node.version,
                    standing,
                    violation: violation.clone(),
                })
            };
            let mut broken: BTreeSet<&str> = BTreeSet::new();
            for violation in &node.violations {
                let key = (node.id.clone(), violation.invariant.clone());
                // Of a rule that is broken at several places the first is noted.
                if broken.insert(&violation.invariant) && !self.open.contains_key(&key) {
                    notes.push(told(violation, ViolationStanding::Open));
                }
            }
            for open in self.open.values().filter(|open| open.node == node.id) {
                if !broken.contains(open.violation.invariant.as_str()) {
                    notes.push(told(&open.violation, ViolationStanding::Resolved));
                }
            }
        }
        notes
    }
}

/// Says what is to be noted of an update that was refused for its violations.
pub fn refused_notes(written: &[Written]) -> Vec<GraphNote> {
    let each = written.iter().flat_map(|node| {
        let grave = node.violations.iter();
        let grave = grave.filter(|violation| violation.severity >= Severity::High);
        grave.map(|violation| {
            GraphNote::Violated(Violated {
                node: node.id.clone(),
                kind: node.kind,
                version: node.version,
                standing: ViolationStanding::Refused,
                violation: violation.clone(),
            })
        })
    });
    each.collect()
}

fn step_ids_if_plan(object: &Value) -> usize {
    step_ids(object).count()
}

impl Graph {
    /// Says which rules a node breaks, with the objects around it that it names.
    pub fn violations_of(&self, id: &str) -> Vec<Violation> {
        self.judged(id).1
    }

    /// The same, with how many rules were carried out.
    pub fn judged(&self, id: &str) -> (u64, Vec<Violation>) {
        let Some((node, object)) = self.object(id) else {
            return (0, Vec::new());
        };
        let Some(scope) = Scope::named(node.kind.as_str()) else {
            return (0, Vec::new());
        };
        let mut around = Surroundings::new();
        let mut add = |scope: Scope, kind: NodeKind, key: &str| {
            let found = text(object, key).and_then(|id| self.object(id));
            if let Some((_, other)) = found.filter(|(node, _)| node.kind == kind) {
                around.insert(scope, other);
            }
        };
        add(Scope::Context, NodeKind::Context, "context_id");
        add(Scope::Plan, NodeKind::Plan, "plan_id");
        let (mut count, mut broken) = (0, Vec::new());
        for rule in invariants().iter().filter(|rule| rule.scope == Some(scope)) {
            count += 1;
            broken.extend(rule.check(object, &around));
        }
        (count, broken)
    }
}
