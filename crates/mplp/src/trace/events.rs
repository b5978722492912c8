//! What each record of the journal is as events.

use backout_model::{Event, Intent, OperationId, Record, Verb};
use serde_json::{Value, json};

use super::{Known, Teller, Told, files, rollback, set};
use crate::uuid::uuid_of;

impl Teller<'_> {
    /// Adds the events that a record stands for.
    pub(super) fn tell(&mut self, record: &Record) {
        self.count = 0;
        self.segments.begin(record.at);
        match &record.event {
            Event::Intent(intent) => self.intent(record, intent),
            Event::Proposed(proposal) => {
                let payload =
                    json!({"operation": proposal.id.to_string(), "summary": proposal.summary});
                self.execution(
                    record,
                    "operation.proposed",
                    proposal.id,
                    "pending",
                    payload,
                );
            }
            Event::Refused(refusal) => {
                let payload = json!({
                    "operation": refusal.id.to_string(), "summary": refusal.summary, "why": refusal.why,
                });
                self.execution(
                    record,
                    "operation.refused",
                    refusal.id,
                    "cancelled",
                    payload,
                );
            }
            Event::Captured(captured) => {
                let files = files::of_captured(captured, record.at);
                let known = self.operations.get_mut(&captured.id);
                let summary = known.map_or_else(String::new, |known| {
                    known.files = files;
                    known.summary.clone()
                });
                let tool = files::of_command(captured, &summary, record.at);
                self.say_integration(record, "tool.result", &tool);
                self.applied(record, captured.id);
            }
            Event::Interrupted { id, .. } => {
                self.applied(record, *id);
                let payload = json!({"operation": id.to_string()});
                self.execution(record, "operation.interrupted", *id, "failed", payload);
            }
            Event::Applied { id, .. } => self.applied(record, *id),
            Event::Commit { id } => {
                self.applied(record, *id);
                let payload = json!({"operation": id.to_string()});
                self.execution(record, "operation.committed", *id, "completed", payload);
            }
            other @ (Event::Abort { .. }
            | Event::Undone { .. }
            | Event::Redone { .. }
            | Event::UndoFailed { .. }
            | Event::Escalated(_)
            | Event::TaskBegin { .. }
            | Event::TaskCommit { .. }
            | Event::TaskRollback { .. }
            | Event::Checkpoint(_)
            | Event::Prompt(_)
            | Event::Noted(_)
            | Event::Expired { .. }
            | Event::Cut { .. }
            | Event::Lost { .. }
            | Event::Repaired(_)
            | Event::RolloutBegun(_)
            | Event::RolloutAt { .. }
            | Event::RolloutEnded { .. }) => self.ended(record, other),
        }
    }

    /// How operations end, and how they are taken back.
    fn ended(&mut self, record: &Record, event: &Event) {
        match event {
            Event::Abort { id, why, .. } => {
                let payload = json!({"operation": id.to_string(), "why": why});
                self.execution(record, "operation.aborted", *id, "failed", payload);
                self.stopped(record, *id, why);
            }
            Event::Undone {
                id, by, outcomes, ..
            } => self.settled(record, *id, Some(*by), outcomes),
            Event::UndoFailed { id, outcomes } => self.settled(record, *id, None, outcomes),
            Event::Redone { id, by, .. } => {
                let payload = json!({"operation": id.to_string(), "by": by.to_string()});
                self.execution(record, "operation.redone", *id, "completed", payload);
            }
            Event::Escalated(escalated) => {
                let payload = json!({
                    "operation": escalated.id.to_string(),
                    "trigger": escalated.trigger.kind.as_str(),
                    "severity": escalated.trigger.severity.as_str(),
                    "escalated": escalated,
                });
                self.say(
                    record,
                    Told::of("rollback.escalated", "compensation_plan", payload),
                );
            }
            other @ (Event::Intent(_)
            | Event::Proposed(_)
            | Event::Refused(_)
            | Event::Captured(_)
            | Event::Interrupted { .. }
            | Event::Applied { .. }
            | Event::Commit { .. }
            | Event::TaskBegin { .. }
            | Event::TaskCommit { .. }
            | Event::TaskRollback { .. }
            | Event::Checkpoint(_)
            | Event::Prompt(_)
            | Event::Noted(_)
            | Event::Expired { .. }
            | Event::Cut { .. }
            | Event::Lost { .. }
            | Event::Repaired(_)
            | Event::RolloutBegun(_)
            | Event::RolloutAt { .. }
            | Event::RolloutEnded { .. }) => self.rest(record, other),
        }
    }

    /// What is no operation's.
    fn rest(&mut self, record: &Record, event: &Event) {
        match event {
            Event::TaskBegin { task, .. } => {
                self.stage(record, "task.begun", task.as_str(), "running");
            }
            Event::TaskCommit { task } => {
                self.stage(record, "task.committed", task.as_str(), "completed");
            }
            Event::TaskRollback { task, .. } => {
                self.task_rolled_back(record, task);
                self.stage(record, "task.rolledback", task.as_str(), "failed");
            }
            Event::Checkpoint(checkpoint) => {
                let payload = json!({
                    "snapshot": checkpoint.name.as_str(),
                    "task": checkpoint.task.as_ref().map(backout_model::TaskId::as_str),
                });
                self.say(
                    record,
                    Told::of("snapshot.created", "compensation_plan", payload),
                );
            }
            Event::Prompt(prompt) => {
                let payload =
                    json!({"prompt": prompt.id.to_string(), "agent": prompt.agent.as_str()});
                self.say(record, Told::of("prompt.received", "intent", payload));
            }
            Event::Noted(note) => self.note(record, note),
            Event::RolloutBegun(plan) => {
                self.stage(record, "rollout.begun", plan.task.as_str(), "running");
            }
            Event::RolloutAt { id, mark, .. } => {
                let stage = json!({"rollout": id.to_string(), "mark": mark});
                self.stage_with(record, "rollout.moved", &id.to_string(), "running", &stage);
            }
            Event::RolloutEnded { id, end } => {
                let stage = json!({"rollout": id.to_string(), "end": end});
                self.stage_with(
                    record,
                    "rollout.ended",
                    &id.to_string(),
                    "completed",
                    &stage,
                );
            }
            Event::Expired { ids, why } => self.no_more(record, "history.expired", ids, why),
            Event::Lost { ids, why } => self.no_more(record, "history.lost", ids, why),
            Event::Cut { up_to, anchor } => {
                let payload = json!({"up_to": up_to.0, "anchor": anchor.to_string()});
                self.say(record, Told::of("history.cut", "impact_analysis", payload));
            }
            Event::Repaired(repair) => {
                let payload = json!({"repair": repair});
                self.say(
                    record,
                    Told::of("history.repaired", "impact_analysis", payload),
                );
            }
            Event::Intent(_)
            | Event::Proposed(_)
            | Event::Refused(_)
            | Event::Captured(_)
            | Event::Interrupted { .. }
            | Event::Applied { .. }
            | Event::Commit { .. }
            | Event::Abort { .. }
            | Event::Undone { .. }
            | Event::Redone { .. }
            | Event::UndoFailed { .. }
            | Event::Escalated(_) => {}
        }
    }

    fn intent(&mut self, record: &Record, intent: &Intent) {
        let is_rollback = rollback::is_rollback(intent);
        if !is_rollback && let Some(after) = self.segments.works(record.at) {
            let payload = json!({"after": after});
            self.say(
                record,
                Told::of("span.started", "compensation_plan", payload),
            );
        }
        self.operations.insert(
            intent.id,
            Known {
                verb: intent.verb,
                summary: intent.summary.clone(),
                agent: intent.agent.as_ref().map(ToString::to_string),
                is_command: intent.command.is_some(),
                files: files::of_intent(intent, record.at),
                act: is_rollback.then(|| intent.group.unwrap_or(intent.id)),
                is_told: false,
            },
        );
        if is_rollback {
            self.step(record, intent);
            return;
        }
        let payload = json!({
            "operation": intent.id.to_string(),
            "verb": intent.verb.as_str(),
            "summary": intent.summary,
            "task": intent.task.as_ref().map(backout_model::TaskId::as_str),
            "targets": intent.targets.iter().map(ToString::to_string).collect::<Vec<_>>(),
        });
        self.execution(record, "operation.started", intent.id, "running", payload);
    }

    /// An effect happened: what it did to files is told once.
    fn applied(&mut self, record: &Record, id: OperationId) {
        let Some(known) = self.operations.get_mut(&id) else {
            return;
        };
        if std::mem::replace(&mut known.is_told, true) {
            return;
        }
        for file in std::mem::take(&mut known.files) {
            self.say_integration(record, "file.updated", &file);
        }
    }

    fn execution(
        &mut self,
        record: &Record,
        name: &'static str,
        id: OperationId,
        status: &'static str,
        payload: Value,
    ) {
        let known = self.operations.get(&id);
        let kind = match known {
            Some(known) if known.is_command => "tool",
            Some(Known { agent: Some(_), .. }) => "agent",
            Some(Known {
                verb: Verb::Run, ..
            }) => "tool",
            Some(_) | None => "external",
        };
        let mut fields = json!({
            "execution_id": uuid_of("operation", &id.to_string()),
            "executor_kind": kind,
            "status": status,
        });
        if let Some(agent) = known.and_then(|known| known.agent.as_ref()) {
            set(&mut fields, "executor_role", json!(agent));
        }
        self.say(
            record,
            Told::of(name, "runtime_execution", payload).with(fields),
        );
    }

    fn stage(&mut self, record: &Record, name: &'static str, task: &str, status: &'static str) {
        self.stage_with(record, name, task, status, &json!({"task": task}));
    }

    fn stage_with(
        &mut self,
        record: &Record,
        name: &'static str,
        pipeline: &str,
        status: &'static str,
        payload: &Value,
    ) {
        let told = Told::of(name, "pipeline_stage", payload.clone()).with(json!({
            "pipeline_id": uuid_of("pipeline", pipeline),
            "stage_id": pipeline,
            "stage_status": status,
        }));
        self.say(record, told);
    }

    fn no_more(&mut self, record: &Record, name: &'static str, ids: &[OperationId], why: &str) {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let payload = json!({"operations": ids, "why": why});
        self.say(record, Told::of(name, "impact_analysis", payload));
    }
}
