//! Notes as events: versions of the graph, stages, drift.
//!
//! What the body of a stage or of a drift is belongs to others; what is needed is read from it by name, and the rest goes along in the payload.

use backout_model::{Note, Record, Topic};
use serde_json::{Value, json};

use super::{Teller, Told};
use crate::graph::GraphNote;
use crate::uuid::uuid_of;

impl Teller<'_> {
    pub(super) fn note(&mut self, record: &Record, note: &Note) {
        match note.topic {
            Topic::Graph => self.graph_note(record, note),
            Topic::Stage => self.stage_note(record, note),
            Topic::Drift => self.drift_note(record, note),
            // An agent's own state may be anything, and is its own.
            Topic::State => {
                let payload =
                    json!({"subject": note.subject, "agent": agent(note), "task": task(note)});
                self.tell_as(record, "state.saved", "compensation_plan", payload);
            }
        }
    }

    fn graph_note(&mut self, record: &Record, note: &Note) {
        let Ok(read) = serde_json::from_value::<GraphNote>(note.body.clone()) else {
            let payload = json!({"subject": note.subject});
            self.tell_as(record, "graph.unreadable", "impact_analysis", payload);
            return;
        };
        let (graph, update, nodes, edges, payload) = match read {
            GraphNote::Node(it) => {
                let update = match (&it.object, it.version) {
                    (None, _) => "node_delete",
                    (Some(_), 1) => "node_add",
                    (Some(_), _) => "node_update",
                };
                let payload = json!({
                    "node_id": it.id, "kind": it.kind, "version": it.version,
                    "restores": it.restores, "agent": agent(note), "task": task(note),
                });
                (it.graph, update, it.node_delta, it.edge_delta, payload)
            }
            GraphNote::Produces(edges) => {
                let payload = json!({
                    "from": edges.from, "to": edges.to, "version": edges.version,
                    "restores": edges.restores, "agent": agent(note), "task": task(note),
                });
                (edges.graph, "edge_update", 0, edges.edge_delta, payload)
            }
            GraphNote::Violated(violated) => {
                let name = if violated.is_over() {
                    "drift.resolved"
                } else {
                    "drift.detected"
                };
                let payload = json!({
                    "drift_type": "invariant_violation",
                    "invariant_id": violated.violation.invariant,
                    "node_id": violated.node,
                    "severity": violated.violation.severity.as_str(),
                    "place": violated.violation.place,
                    "why": violated.violation.why,
                    "standing": violated.standing,
                });
                self.tell_as(record, name, "impact_analysis", payload);
                return;
            }
        };
        let told = Told::of("graph.updated", "graph_update", payload).with(json!({
            "graph_id": graph,
            "update_kind": update,
            "node_delta": nodes,
            "edge_delta": edges,
            "source_module": "backout",
        }));
        self.say(record, told);
    }

    fn stage_note(&mut self, record: &Record, note: &Note) {
        let word = |value: &Value| match value {
            Value::String(word) => Some(word.clone()),
            // A standing that says more has its name as its tag or its only key.
            Value::Object(map) => match map.get("standing").and_then(Value::as_str) {
                Some(word) => Some(word.to_owned()),
                None => map.keys().next().cloned(),
            },
            _ => None,
        };
        let standing = note.body.get("standing").and_then(word);
        let status = match standing.as_deref() {
            Some("open" | "running" | "begun") | None => "running",
            Some("done" | "ended" | "completed") => "completed",
            Some("skipped") => "skipped",
            Some("pending") => "pending",
            Some(_) => "failed",
        };
        let name = note.body.get("stage").and_then(Value::as_str);
        let name = name.unwrap_or(&note.subject);
        let pipeline = task(note).or_else(|| agent(note)).unwrap_or("project");
        let payload = json!({"stage": note.body, "agent": agent(note), "task": task(note)});
        let told = Told::of("stage.changed", "pipeline_stage", payload).with(json!({
            "pipeline_id": uuid_of("pipeline", pipeline),
            "stage_id": note.subject,
            "stage_name": name,
            "stage_status": status,
        }));
        self.say(record, told);
    }

    fn drift_note(&mut self, record: &Record, note: &Note) {
        let name = match note.body.get("drift").and_then(Value::as_str) {
            Some("detected") => "drift.detected",
            Some("resolved") => "drift.resolved",
            _ => "drift.rule",
        };
        let payload = json!({"subject": note.subject, "drift": note.body, "agent": agent(note)});
        self.tell_as(record, name, "impact_analysis", payload);
    }
}

fn agent(note: &Note) -> Option<&str> {
    note.agent.as_ref().map(backout_model::AgentId::as_str)
}

fn task(note: &Note) -> Option<&str> {
    note.task.as_ref().map(backout_model::TaskId::as_str)
}
