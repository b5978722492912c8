//! What each record of the journal is as events.

use backout_model::{
    Captured, Checkpoint, Escalated, Event, Intent, OperationId, Prompt, Record, RolloutEnd,
    RolloutMark, TaskId, Verb,
};
use serde_json::{Value, json};

use super::{Known, Teller, Told, files, object, rollback, set};
use crate::uuid::uuid_of;

impl Teller<'_> {
    /// Adds the events that a record stands for.
    pub(super) fn tell(&mut self, record: &Record) {
        self.count = 0;
        self.segments.begin(record.at);
        match &record.event {
            Event::Intent(intent) => self.intent(record, intent),
            Event::Proposed(proposal) => {
                let more = json!({"summary": proposal.summary});
                self.operation(record, "operation.proposed", proposal.id, "pending", more);
            }
            Event::Refused(refusal) => {
                let more = json!({"summary": refusal.summary, "why": refusal.why});
                self.operation(record, "operation.refused", refusal.id, "cancelled", more);
            }
            Event::Captured(captured) => self.captured(record, captured),
            Event::Interrupted { id, .. } => {
                self.applied(record, *id);
                self.operation(record, "operation.interrupted", *id, "failed", json!({}));
            }
            Event::Applied { id, .. } => self.applied(record, *id),
            Event::Commit { id } => {
                self.applied(record, *id);
                self.operation(record, "operation.committed", *id, "completed", json!({}));
            }
            Event::Abort { id, why, .. } => {
                self.operation(
                    record,
                    "operation.aborted",
                    *id,
                    "failed",
                    json!({"why": why}),
                );
                self.stopped(record, *id, why);
            }
            Event::Undone {
                id, by, outcomes, ..
            } => self.settled(record, *id, Some(*by), outcomes),
            Event::UndoFailed { id, outcomes } => self.settled(record, *id, None, outcomes),
            Event::Redone { id, by, .. } => {
                let more = json!({"by": by.to_string()});
                self.operation(record, "operation.redone", *id, "completed", more);
            }
            Event::Escalated(escalated) => self.escalated(record, escalated),
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
            Event::Checkpoint(checkpoint) => self.checkpoint(record, checkpoint),
            Event::Prompt(prompt) => self.prompt(record, prompt),
            Event::Noted(note) => self.note(record, note),
            Event::RolloutBegun(plan) => {
                self.stage(record, "rollout.begun", plan.task.as_str(), "running");
            }
            Event::RolloutAt { id, mark, .. } => self.moved(record, *id, mark),
            Event::RolloutEnded { id, end } => self.rollout_over(record, *id, end),
            Event::Expired { ids, why } => self.no_more(record, "history.expired", ids, why),
            Event::Lost { ids, why } => self.no_more(record, "history.lost", ids, why),
            Event::Cut { up_to, anchor } => {
                let payload = json!({"up_to": up_to.0, "anchor": anchor.to_string()});
                self.history(record, "history.cut", payload);
            }
            Event::Repaired(repair) => {
                self.history(record, "history.repaired", json!({"repair": repair}));
            }
        }
    }

    /// Says what became of an operation.
    fn operation(
        &mut self,
        record: &Record,
        name: &'static str,
        id: OperationId,
        status: &'static str,
        more: Value,
    ) {
        let mut payload = json!({"operation": id.to_string()});
        for (key, value) in object(more) {
            set(&mut payload, &key, value);
        }
        self.execution(record, name, id, status, payload);
    }

    fn captured(&mut self, record: &Record, captured: &Captured) {
        let known = self.operations.get_mut(&captured.id);
        let (tool, summary) = known.map_or_else(Default::default, |known| {
            known.files = files::of_captured(captured, record.at);
            (known.tool.clone(), known.summary.clone())
        });
        let tool = files::of_command(captured, tool.as_deref(), &summary, record.at);
        self.say_integration(record, "tool.result", &tool);
        self.applied(record, captured.id);
    }

    fn escalated(&mut self, record: &Record, escalated: &Escalated) {
        let payload = json!({
            "operation": escalated.id.to_string(),
            "trigger": escalated.trigger.kind.as_str(),
            "severity": escalated.trigger.severity.as_str(),
            "escalated": escalated,
        });
        self.tell_as(record, "rollback.escalated", "compensation_plan", payload);
    }

    fn checkpoint(&mut self, record: &Record, checkpoint: &Checkpoint) {
        let task = checkpoint.task.as_ref().map(TaskId::as_str);
        let payload = json!({"snapshot": checkpoint.name.as_str(), "task": task});
        self.tell_as(record, "snapshot.created", "compensation_plan", payload);
    }

    fn prompt(&mut self, record: &Record, prompt: &Prompt) {
        let payload = json!({"prompt": prompt.id.to_string(), "agent": prompt.agent.as_str()});
        self.tell_as(record, "prompt.received", "intent", payload);
    }

    fn history(&mut self, record: &Record, name: &'static str, payload: Value) {
        self.tell_as(record, name, "impact_analysis", payload);
    }

    fn moved(&mut self, record: &Record, id: OperationId, mark: &RolloutMark) {
        let id = id.to_string();
        let stage = json!({"rollout": id, "mark": mark});
        self.stage_with(record, "rollout.moved", &id, "running", &stage);
    }

    fn rollout_over(&mut self, record: &Record, id: OperationId, end: &RolloutEnd) {
        let id = id.to_string();
        let stage = json!({"rollout": id, "end": end});
        self.stage_with(record, "rollout.ended", &id, "completed", &stage);
    }

    fn intent(&mut self, record: &Record, intent: &Intent) {
        let is_rollback = rollback::is_rollback(intent);
        if !is_rollback && let Some(after) = self.segments.works(record.at) {
            let payload = json!({"after": after});
            self.tell_as(record, "span.started", "compensation_plan", payload);
        }
        self.operations.insert(
            intent.id,
            Known {
                verb: intent.verb,
                summary: intent.summary.clone(),
                agent: intent.agent.as_ref().map(ToString::to_string),
                tool: intent
                    .command
                    .as_ref()
                    .and_then(|it| it.words.first().cloned()),
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
            "task": intent.task.as_ref().map(TaskId::as_str),
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
            Some(known) if known.tool.is_some() => "tool",
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
        self.history(record, name, payload);
    }
}
