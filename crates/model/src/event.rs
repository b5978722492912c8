//! What readers of the journal ask of an event, whatever kind it is, so that nobody else has to know all kinds.

use crate::{AgentId, Asked, Event, OperationId, Recipe, Status, Target, TaskId, Verb};

/// What every write that somebody asked for begins with: armed, proposed or refused.
#[derive(Debug, Clone, Copy)]
pub struct Begun<'e> {
    /// Its own for ever.
    pub id: OperationId,
    /// What kind of write it is.
    pub verb: Verb,
    /// Who asked for it.
    pub agent: Option<&'e AgentId>,
    /// What it writes, as far as that is known. Of a command nothing is.
    pub targets: &'e [Target],
    /// The call that it answers, if that has a key.
    pub call: Option<&'e Asked>,
}

impl Event {
    /// Names the kind of record, as `log` and SQL queries know it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Intent(_) => "intent",
            Self::Proposed(_) => "proposed",
            Self::Refused(_) => "refused",
            Self::Captured(_) => "captured",
            Self::Interrupted { .. } => "interrupted",
            Self::Applied { .. } => "applied",
            Self::Commit { .. } => "commit",
            Self::Abort { .. } => "abort",
            Self::Undone { .. } => "undone",
            Self::Redone { .. } => "redone",
            Self::UndoFailed { .. } => "undo-failed",
            Self::Escalated(_) => "escalated",
            Self::TaskBegin { .. } => "task-begin",
            Self::TaskCommit { .. } => "task-commit",
            Self::TaskRollback { .. } => "task-rollback",
            Self::Checkpoint(_) => "checkpoint",
            Self::Prompt(_) => "prompt",
            Self::Noted(_) => "noted",
            Self::Expired { .. } => "expired",
            Self::Cut { .. } => "cut",
            Self::Lost { .. } => "lost",
            Self::Repaired(_) => "repaired",
            Self::RolloutBegun(_) => "rollout-begun",
            Self::RolloutAt { .. } => "rollout-at",
            Self::RolloutEnded { .. } => "rollout-ended",
        }
    }

    /// Gives the operation the record speaks of, if it is one, or the rollout.
    pub fn operation(&self) -> Option<OperationId> {
        match self {
            Self::Intent(intent) => Some(intent.id),
            Self::Proposed(proposal) => Some(proposal.id),
            Self::Refused(refusal) => Some(refusal.id),
            Self::Captured(captured) => Some(captured.id),
            Self::Escalated(escalated) => Some(escalated.id),
            Self::RolloutBegun(plan) => Some(plan.id),
            Self::Applied { id, .. }
            | Self::Interrupted { id, .. }
            | Self::Commit { id }
            | Self::Abort { id, .. }
            | Self::Undone { id, .. }
            | Self::Redone { id, .. }
            | Self::UndoFailed { id, .. }
            | Self::RolloutAt { id, .. }
            | Self::RolloutEnded { id, .. } => Some(*id),
            Self::TaskBegin { .. }
            | Self::TaskCommit { .. }
            | Self::TaskRollback { .. }
            | Self::Checkpoint(_)
            | Self::Prompt(_)
            | Self::Noted(_)
            | Self::Expired { .. }
            | Self::Cut { .. }
            | Self::Lost { .. }
            | Self::Repaired(_) => None,
        }
    }

    /// Tells whether a rollout is spoken of, and no operation.
    pub const fn is_of_rollout(&self) -> bool {
        matches!(
            self,
            Self::RolloutBegun(_) | Self::RolloutAt { .. } | Self::RolloutEnded { .. }
        )
    }

    /// Gives the recipe that is durable with this record, and whose it is. No other kinds of record bring one.
    pub fn armed(&self) -> Option<(OperationId, &Recipe)> {
        if let Self::Intent(intent) = self {
            Some((intent.id, &intent.recipe))
        } else if let Self::Captured(captured) = self {
            Some((captured.id, &captured.recipe))
        } else {
            None
        }
    }

    /// Gives what begins with this record. A proposal that is decided begins again, as what it has become.
    pub fn begins(&self) -> Option<Begun<'_>> {
        let (id, verb, agent, targets, call) = if let Self::Intent(it) = self {
            (it.id, it.verb, &it.agent, &it.targets, &it.call)
        } else if let Self::Proposed(it) = self {
            (it.id, it.verb, &it.agent, &it.targets, &it.call)
        } else if let Self::Refused(it) = self {
            (it.id, it.verb, &it.agent, &it.targets, &it.call)
        } else {
            return None;
        };
        Some(Begun {
            id,
            verb,
            agent: agent.as_ref(),
            targets,
            call: call.as_ref(),
        })
    }

    /// Gives the call that is answered by this record.
    pub fn answers(&self) -> Option<(OperationId, &Asked)> {
        let begun = self.begins()?;
        Some((begun.id, begun.call?))
    }

    /// Tells where this record by itself brings its operation. What is given up counts as aborted, whatever became of its
    /// targets; what an undo or a redo makes of the operation that it takes back hangs on more than its record.
    pub fn brings_to(&self) -> Option<(OperationId, Status)> {
        let status = match self {
            Self::Intent(_) => Status::Armed,
            Self::Proposed(_) => Status::Proposed,
            Self::Refused(_) => Status::Refused,
            Self::Interrupted { .. } => Status::Interrupted,
            Self::Applied { .. } => Status::Applied,
            Self::Commit { .. } => Status::Committed,
            Self::Abort { .. } => Status::Aborted,
            Self::Captured(_)
            | Self::Undone { .. }
            | Self::Redone { .. }
            | Self::UndoFailed { .. }
            | Self::Escalated(_)
            | Self::TaskBegin { .. }
            | Self::TaskCommit { .. }
            | Self::TaskRollback { .. }
            | Self::Checkpoint(_)
            | Self::Prompt(_)
            | Self::Noted(_)
            | Self::Expired { .. }
            | Self::Cut { .. }
            | Self::Lost { .. }
            | Self::Repaired(_)
            | Self::RolloutBegun(_)
            | Self::RolloutAt { .. }
            | Self::RolloutEnded { .. } => return None,
        };
        Some((self.operation()?, status))
    }

    /// Gives the task the record speaks of, if it is one. That an operation belongs to a task is the operation's to say.
    pub const fn task(&self) -> Option<&TaskId> {
        if let Self::TaskBegin { task, .. }
        | Self::TaskCommit { task }
        | Self::TaskRollback { task, .. } = self
        {
            Some(task)
        } else {
            None
        }
    }

    /// Gives the operations that can no longer be undone from this record on, if it says so of some.
    pub fn lets_go(&self) -> Option<&[OperationId]> {
        if let Self::Expired { ids, .. } | Self::Lost { ids, .. } = self {
            Some(ids)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OutcomeKind, TargetOutcome, TargetPath};

    fn read(json: serde_json::Value) -> Event {
        serde_json::from_value(json).unwrap()
    }

    fn id() -> OperationId {
        OperationId::from_bits(7)
    }

    #[test]
    fn a_record_says_where_it_brings_its_operation() {
        let commit = Event::Commit { id: id() };
        assert_eq!(commit.brings_to(), Some((id(), Status::Committed)));
        assert!(commit.begins().is_none() && commit.task().is_none() && commit.lets_go().is_none());
        let target = Target::node(TargetPath::new("/a").unwrap());
        let why = "nobody can tell".to_owned();
        let abort = Event::Abort {
            id: id(),
            why: "no".to_owned(),
            outcomes: vec![TargetOutcome::new(target, OutcomeKind::InDoubt { why })],
            trigger: None,
        };
        assert_eq!(abort.brings_to(), Some((id(), Status::Aborted)));
        let failed = read(serde_json::json!({"event": "undo-failed", "id": id(), "outcomes": []}));
        assert_eq!((failed.operation(), failed.brings_to()), (Some(id()), None));
    }

    #[test]
    fn a_record_names_its_task_and_what_it_lets_go() {
        let over = read(serde_json::json!({"event": "task-commit", "task": "t"}));
        assert_eq!(over.task().map(TaskId::as_str), Some("t"));
        for kind in ["expired", "lost"] {
            let gone = read(serde_json::json!({"event": kind, "ids": [id()], "why": "old"}));
            assert_eq!(gone.lets_go(), Some([id()].as_slice()), "{kind}");
            assert_eq!(gone.brings_to(), None);
        }
    }
}
