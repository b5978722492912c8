//! The edges that follow from objects, and those that lead nowhere.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Edge, EdgeKind, Graph, Refusal, steps, text};
use crate::NodeKind;

impl Graph {
    /// Gives all edges: those that follow from objects, then those that somebody declared.
    pub fn edges(&self) -> Vec<Edge> {
        let roles = self.roles();
        let mut edges = Vec::new();
        for (id, node, object) in self.objects() {
            self.add_edges(&mut edges, &roles, (id, node.kind, object));
        }
        edges.extend(self.produces());
        edges
    }

    /// Gives the edges of one node and its steps, by what the other nodes are now.
    pub(super) fn edges_of(&self, roles: &Roles<'_>, id: &str) -> usize {
        let mut edges = Vec::new();
        if let Some((node, object)) = self.object(id) {
            self.add_edges(&mut edges, roles, (id, node.kind, object));
        }
        edges.len()
    }

    /// Gives the edges that somebody declared.
    pub(super) fn produces(&self) -> impl Iterator<Item = Edge> {
        self.produced.iter().flat_map(|(from, produced)| {
            produced.to.iter().map(|to| Edge {
                from: from.clone(),
                kind: EdgeKind::Produces,
                to: to.clone(),
            })
        })
    }

    /// Finds roles by the names and ids that others call them by.
    pub(super) fn roles(&self) -> Roles<'_> {
        let roles = self
            .objects()
            .filter(|(_, node, _)| node.kind == NodeKind::Role);
        let mut known = BTreeMap::new();
        for (id, _, object) in roles {
            known.insert(id, id);
            if let Some(name) = text(object, "name") {
                known.entry(name).or_insert(id);
            }
        }
        known
    }

    fn add_edges(
        &self,
        edges: &mut Vec<Edge>,
        roles: &Roles<'_>,
        (id, kind, object): (&str, NodeKind, &Value),
    ) {
        let mut add = |from: &str, kind: EdgeKind, to: &str| {
            edges.push(Edge {
                from: from.to_owned(),
                kind,
                to: to.to_owned(),
            });
        };
        if kind != NodeKind::Context
            && let Some(context) = text(object, "context_id")
        {
            add(id, EdgeKind::HasContext, context);
        }
        match kind {
            NodeKind::Plan => {
                for step in steps(object) {
                    let Some(step_id) = text(step, "step_id") else {
                        continue;
                    };
                    add(id, EdgeKind::Contains, step_id);
                    for dependency in dependencies(step) {
                        add(step_id, EdgeKind::DependsOn, dependency);
                    }
                    // A role is a free text; where it is the name of one, that is an edge.
                    if let Some(role) = text(step, "agent_role").and_then(|role| roles.get(role)) {
                        add(step_id, EdgeKind::AssignedTo, role);
                    }
                }
            }
            NodeKind::Trace => {
                if let Some(plan) = text(object, "plan_id") {
                    add(id, EdgeKind::Traces, plan);
                }
            }
            NodeKind::Confirm => {
                let is_free = text(object, "target_type") == Some("other");
                if let Some(target) = text(object, "target_id")
                    && (!is_free || self.kind_of(target).is_some())
                {
                    add(id, EdgeKind::Confirms, target);
                }
            }
            NodeKind::Collab => {
                let all = object.get("participants").and_then(Value::as_array);
                for participant in all.into_iter().flatten() {
                    let role = text(participant, "role_id").and_then(|role| roles.get(role));
                    if let Some(role) = role {
                        add(id, EdgeKind::AssignedTo, role);
                    }
                }
            }
            NodeKind::Context
            | NodeKind::Step
            | NodeKind::Role
            | NodeKind::Dialog
            | NodeKind::Extension
            | NodeKind::Network => {}
        }
    }

    /// Finds an edge that leads nowhere, or to something that it must not lead to.
    pub(super) fn check_edges(&self) -> Result<(), Refusal> {
        for edge in self.edges() {
            let Edge { from, kind, to } = edge;
            let found = self.kind_of(&to);
            let dangles = |found| Refusal::Dangling {
                from: from.clone(),
                edge: kind,
                to: to.clone(),
                found,
            };
            if kind == EdgeKind::Produces && self.kind_of(&from).is_none() {
                return Err(dangles(None));
            }
            let Some(found) = found else {
                return Err(dangles(None));
            };
            let fits = match kind {
                EdgeKind::HasContext => found == NodeKind::Context,
                EdgeKind::Contains => found == NodeKind::Step,
                EdgeKind::Traces => found == NodeKind::Plan,
                EdgeKind::AssignedTo => found == NodeKind::Role,
                EdgeKind::Confirms => self.may_confirm(&from, found),
                EdgeKind::Produces => true,
                EdgeKind::DependsOn => {
                    if found == NodeKind::Step && self.steps.get(&to) != self.steps.get(&from) {
                        return Err(Refusal::ForeignStep {
                            step: from,
                            dependency: to.clone(),
                            plan: self.steps.get(&to).cloned().unwrap_or_default(),
                        });
                    }
                    found == NodeKind::Step
                }
            };
            if !fits {
                return Err(dangles(Some(found)));
            }
        }
        Ok(())
    }

    fn may_confirm(&self, confirm: &str, found: NodeKind) -> bool {
        let declared = self.object(confirm);
        match declared.and_then(|(_, object)| text(object, "target_type")) {
            Some("other") => true,
            Some(declared) => declared == found.as_str(),
            None => false,
        }
    }
}

/// The id of each role, by its id and its name.
pub(super) type Roles<'g> = BTreeMap<&'g str, &'g str>;

/// Gives what a step comes after.
pub(super) fn dependencies(step: &Value) -> impl Iterator<Item = &str> {
    let all = step.get("dependencies").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str)
}
