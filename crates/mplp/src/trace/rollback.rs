//! A rollback as a chapter: what set it off, what is taken back by what, and how that ended.

use std::collections::BTreeMap;

use backout_model::compensation::{CompensationAction, CompensationStatus};
use backout_model::{Intent, OperationId, Record, TargetOutcome, TaskId, Trigger, Verb};
use serde_json::{Value, json};

use super::{Known, Teller, Told, set};
use crate::uuid::uuid_of;

/// An act that takes something back, until all of it has come to something.
pub(super) struct Act {
    segment: String,
    trigger: Trigger,
    task: Option<TaskId>,
    /// Each operation that is to be taken back, and how that is.
    actions: BTreeMap<OperationId, CompensationAction>,
    is_over: bool,
}

/// Tells whether an operation is a step of a rollback: a redo brings back, and undoes only what is in its way.
pub(super) fn is_rollback(intent: &Intent) -> bool {
    match intent.verb {
        Verb::Undo => intent.asked != Some(Verb::Redo),
        Verb::Recover => true,
        Verb::Write
        | Verb::Edit
        | Verb::Append
        | Verb::Remove
        | Verb::Move
        | Verb::Copy
        | Verb::Mkdir
        | Verb::Link
        | Verb::Chmod
        | Verb::Chown
        | Verb::Restore
        | Verb::Batch
        | Verb::Run
        | Verb::Redo => false,
    }
}

impl Teller<'_> {
    /// A step of a rollback is armed; if it is the first, the rollback begins.
    pub(super) fn step(&mut self, record: &Record, intent: &Intent) {
        let act = intent.group.unwrap_or(intent.id);
        if !self.acts.contains_key(&act) {
            self.initiate(record, intent, act);
        }
        let Some(undone) = intent.undoes else {
            return;
        };
        let original = self.named(undone);
        if let Some(found) = self.acts.get_mut(&act) {
            let action = CompensationAction {
                original_action: original,
                compensation_action: format!("{} ({})", intent.summary, intent.id),
                status: CompensationStatus::Pending,
                error: None,
            };
            found.actions.insert(undone, action.clone());
            self.say_action(record, act, undone, &action);
        }
    }

    fn initiate(&mut self, record: &Record, intent: &Intent, act: OperationId) {
        let trigger = intent.trigger.clone().unwrap_or_else(Trigger::asked_for);
        let plan = intent.plan.as_ref();
        let planned: Vec<OperationId> = match plan {
            Some(plan) => plan.steps.clone(),
            None => intent.undoes.into_iter().collect(),
        };
        let task = plan.and_then(|plan| plan.task.clone());
        let label = format!("rollback {}", act.short());
        let segment = self.segments.rollback(label, record.at);
        let actions: BTreeMap<OperationId, CompensationAction> = planned
            .iter()
            .map(|id| {
                let action = CompensationAction {
                    original_action: self.named(*id),
                    compensation_action: "undo".to_owned(),
                    status: CompensationStatus::Pending,
                    error: None,
                };
                (*id, action)
            })
            .collect();
        let will = planned.iter().map(|id| {
            json!({
                "operation": id.to_string(),
                "action": self.named(*id),
            })
        });
        let told = Told::of(
            "rollback.initiated",
            "compensation_plan",
            json!({
                "rollback_id": uuid_of("operation", &act.to_string()),
                "act": act.to_string(),
                "trigger": trigger.kind.as_str(),
                "source": trigger.source.to_string(),
                "severity": trigger.severity.as_str(),
                "why": trigger.why,
                "task": task.as_ref().map(TaskId::as_str),
                "snapshot": {"lsn": record.lsn.0.saturating_sub(1)},
                "will_undo": will.collect::<Vec<Value>>(),
            }),
        );
        self.say(record, told);
        self.acts.insert(
            act,
            Act {
                segment,
                trigger,
                task,
                actions,
                is_over: false,
            },
        );
    }

    /// Says in words what an operation was.
    pub(super) fn named(&self, id: OperationId) -> String {
        match self.operations.get(&id) {
            Some(known) => format!("{} {} ({id})", known.verb, known.summary),
            None => format!("operation {id}"),
        }
    }

    fn say_action(
        &mut self,
        record: &Record,
        act: OperationId,
        undone: OperationId,
        action: &CompensationAction,
    ) {
        let mut payload = json!(action);
        set(
            &mut payload,
            "rollback_id",
            json!(uuid_of("operation", &act.to_string())),
        );
        set(&mut payload, "operation", json!(undone.to_string()));
        let told = Told::of("rollback.action", "compensation_plan", payload);
        self.say(record, told);
    }

    /// An operation was taken back, or was to be, by a step of a rollback.
    pub(super) fn settled(
        &mut self,
        record: &Record,
        undone: OperationId,
        by: Option<OperationId>,
        outcomes: &[TargetOutcome],
    ) {
        let by_act = by.and_then(|by| self.operations.get(&by).and_then(|known: &Known| known.act));
        let act = by_act.or_else(|| self.open_act_of(undone));
        let Some(act) = act else {
            return;
        };
        let left: Vec<String> = outcomes
            .iter()
            .filter(|outcome| !outcome.kind.is_taken_back())
            .map(|outcome| format!("{}: {}", outcome.target, outcome.kind))
            .collect();
        let is_done = by.is_some() && left.is_empty();
        self.come_to(record, act, undone, is_done, left.join("; "));
    }

    /// A step of a rollback did not come to pass.
    pub(super) fn stopped(&mut self, record: &Record, step: OperationId, why: &str) {
        let Some(act) = self.operations.get(&step).and_then(|known| known.act) else {
            return;
        };
        let of_step = |action: &CompensationAction| {
            let id = format!("({step})");
            action.compensation_action.ends_with(&id)
        };
        let found = self.acts.get(&act).and_then(|act| {
            let mut all = act.actions.iter();
            all.find(|(_, action)| of_step(action)).map(|(id, _)| *id)
        });
        if let Some(undone) = found {
            self.come_to(record, act, undone, false, why.to_owned());
        }
    }

    fn open_act_of(&self, undone: OperationId) -> Option<OperationId> {
        let mut acts = self.acts.iter().rev();
        let found = acts.find(|(_, act)| !act.is_over && act.actions.contains_key(&undone));
        found.map(|(id, _)| *id)
    }

    fn come_to(
        &mut self,
        record: &Record,
        act: OperationId,
        undone: OperationId,
        is_done: bool,
        error: String,
    ) {
        let Some(action) = self
            .acts
            .get_mut(&act)
            .and_then(|act| act.actions.get_mut(&undone))
        else {
            return;
        };
        action.status = if is_done {
            CompensationStatus::Completed
        } else {
            CompensationStatus::Failed
        };
        action.error = (!is_done).then_some(error);
        let action = action.clone();
        self.say_action(record, act, undone, &action);
        let is_settled = self.acts.get(&act).is_some_and(|act| {
            let mut all = act.actions.values();
            all.all(|action| action.status != CompensationStatus::Pending)
        });
        if is_settled {
            self.complete(record, act);
        }
    }

    /// A task was rolled back: what began for it is over, whatever was left out.
    pub(super) fn task_rolled_back(&mut self, record: &Record, task: &TaskId) {
        let is_its = |act: &Act| !act.is_over && act.task.as_ref() == Some(task);
        let found: Vec<OperationId> = self
            .acts
            .iter()
            .filter(|(_, act)| is_its(act))
            .map(|(id, _)| *id)
            .collect();
        for act in found {
            self.complete(record, act);
        }
    }

    fn complete(&mut self, record: &Record, id: OperationId) {
        let Some(act) = self.acts.get_mut(&id) else {
            return;
        };
        if act.is_over {
            return;
        }
        act.is_over = true;
        let count = |status: CompensationStatus| {
            let all = act.actions.values();
            all.filter(|action| action.status == status).count()
        };
        let (done, failed) = (
            count(CompensationStatus::Completed),
            count(CompensationStatus::Failed),
        );
        let pending = count(CompensationStatus::Pending);
        let result = match (done, failed + pending) {
            (_, 0) => "completed",
            (0, _) => "failed",
            _ => "partial",
        };
        let payload = json!({
            "rollback_id": uuid_of("operation", &id.to_string()),
            "act": id.to_string(),
            "result": result,
            "completed": done,
            "failed": failed,
            "pending": pending,
            "trigger": act.trigger.kind.as_str(),
            "actions": act.actions.values().collect::<Vec<_>>(),
        });
        let segment = act.segment.clone();
        self.tell_as(record, "rollback.completed", "compensation_plan", payload);
        let status = if result == "completed" {
            "completed"
        } else {
            "failed"
        };
        self.segments.ended(&segment, status, record.at);
    }
}
