//! Which checkpoint to go on from: the newest one that is whole and of the same work.

use std::fmt;

use backout_model::ports::{Durability, Entry};
use backout_model::{
    AgentId, BadCheckpoint, Checkpoint, CheckpointName, Event, Lsn, Note, NoteFilter, Operation,
    TaskId, Timestamp, Topic,
};
use backout_storage::Filter;
use serde::{Deserialize, Serialize};

use super::{ResumeError, Resumed, SkippedCheckpoint};
use crate::lifecycle::with_causes;
use crate::{Engine, EngineError};

/// How many checkpoints are looked at, from the newest on.
const LOOKED_AT_MAX: usize = 64;

/// Whose work it is: a task's, or an agent's outside of any.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) task: Option<TaskId>,
    pub(crate) agent: Option<AgentId>,
}

impl Scope {
    /// Tells whether nobody said whose work it is.
    pub(crate) const fn is_nobodys(&self) -> bool {
        self.task.is_none() && self.agent.is_none()
    }

    /// Selects the work; whoever did it, if it is a task's.
    pub(crate) fn filter(&self) -> Filter {
        Filter {
            task: self.task.clone(),
            agent: self.agent.clone().filter(|_| self.task.is_none()),
            ..Filter::default()
        }
    }

    /// Tells whether an operation belongs to it.
    pub(crate) fn has(&self, operation: &Operation) -> bool {
        match &self.task {
            Some(task) => operation.task.as_ref() == Some(task),
            None => operation.agent == self.agent && operation.task.is_none(),
        }
    }

    fn is_of(&self, checkpoint: &Checkpoint) -> bool {
        match &self.task {
            Some(task) => checkpoint.task.as_ref() == Some(task),
            None => checkpoint.task.is_none() && checkpoint.agent == self.agent,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.task, &self.agent) {
            (Some(task), _) => write!(f, "the task {task}"),
            (None, Some(agent)) => write!(f, "the agent {agent}"),
            (None, None) => f.write_str("nobody in particular"),
        }
    }
}

/// The checkpoint that was chosen.
pub(super) struct Choice {
    pub(super) checkpoint: Checkpoint,
    pub(super) skipped: Vec<SkippedCheckpoint>,
    /// How many there are.
    pub(super) number: usize,
}

/// Where a checkpoint is.
struct MarkAt {
    name: Option<CheckpointName>,
    lsn: Lsn,
}

/// What the list of a scope's checkpoints says of one.
#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    checkpoint: CheckpointName,
    bytes: u64,
}

impl Scope {
    /// Gives the name under which its checkpoints are listed; none for nobody's.
    fn subject(&self) -> Option<String> {
        match (&self.task, &self.agent) {
            (Some(task), _) => Some(format!("task {task}")),
            (None, Some(agent)) => Some(format!("agent {agent}")),
            (None, None) => None,
        }
    }

    /// Says that there is a checkpoint, right before this record.
    pub(super) fn listed(&self, checkpoint: &Checkpoint) -> Option<Event> {
        let listed = Listed {
            checkpoint: checkpoint.name.clone(),
            bytes: checkpoint.resume.as_ref()?.bytes,
        };
        Some(self.noted(self.subject()?, serde_json::to_value(listed).ok()?))
    }

    /// Says that an agent went on.
    pub(super) fn went_on(&self, resumed: &Resumed) -> Option<Event> {
        let body = serde_json::json!({
            "checkpoint": resumed.checkpoint.name,
            "lsn": resumed.checkpoint.lsn,
            "next_step": resumed.next_step,
            "action": resumed.action,
            "reverted": super::ids(&resumed.reverted),
            "act": resumed.act,
            "skipped": resumed.skipped,
        });
        Some(self.noted(format!("resumed {}", self.subject()?), body))
    }

    fn noted(&self, subject: String, body: serde_json::Value) -> Event {
        Event::Noted(Box::new(Note {
            topic: Topic::State,
            subject,
            lsn: Lsn(0),
            at: Timestamp(0),
            agent: self.agent.clone(),
            task: self.task.clone(),
            body,
        }))
    }
}

impl Engine {
    /// Finds the newest checkpoint that is good, or of that name.
    pub(super) fn choose(
        &self,
        scope: &Scope,
        from: Option<&CheckpointName>,
    ) -> Result<Choice, EngineError> {
        let marks = self.marks(scope)?;
        let number = marks.len();
        let meant = |mark: &&MarkAt| from.is_none_or(|from| mark.name.as_ref() == Some(from));
        let mut skipped = Vec::new();
        for mark in marks.iter().filter(meant).take(LOOKED_AT_MAX) {
            let good = self.marked_at(mark)?.and_then(|checkpoint| {
                let agent = scope.agent.as_ref();
                checkpoint.good_for(scope.task.as_ref(), agent)?;
                Ok(checkpoint)
            });
            match good {
                Ok(checkpoint) => {
                    return Ok(Choice {
                        checkpoint,
                        skipped,
                        number,
                    });
                }
                Err(why) => skipped.push(SkippedCheckpoint {
                    name: mark.name.clone(),
                    lsn: mark.lsn,
                    why,
                }),
            }
        }
        if let Some(name) = from {
            let found = self.store.checkpoint(name)?;
            let other = found.filter(|other| !scope.is_of(other));
            let Some(other) = other else {
                if skipped.is_empty() {
                    return Err(EngineError::NoCheckpoint { name: name.clone() });
                }
                return Err(none_good(scope, &skipped).into());
            };
            let (task, agent) = (other.task, other.agent);
            skipped.push(SkippedCheckpoint {
                name: Some(other.name),
                lsn: other.lsn,
                why: BadCheckpoint::Other { task, agent },
            });
        }
        Err(none_good(scope, &skipped).into())
    }

    /// Tells whether there is a checkpoint at all.
    pub(super) fn has_marks(&self, scope: &Scope) -> Result<bool, EngineError> {
        Ok(!self.marks(scope)?.is_empty())
    }

    /// Gives the place of the newest checkpoint.
    pub(super) fn last_mark(&self, scope: &Scope) -> Result<Option<Lsn>, EngineError> {
        Ok(self.marks(scope)?.first().map(|mark| mark.lsn))
    }

    /// Writes down that an agent went on.
    pub(super) fn note_resumed(&self, scope: &Scope, resumed: &Resumed) -> Result<(), EngineError> {
        let events: Vec<Event> = scope.went_on(resumed).into_iter().collect();
        if !events.is_empty() {
            self.store.append(&Entry::of(events), Durability::Power)?;
        }
        Ok(())
    }

    /// Lists the checkpoints of some work, newest first: the place in the journal decides, whatever the clock said.
    fn marks(&self, scope: &Scope) -> Result<Vec<MarkAt>, EngineError> {
        let Some(subject) = scope.subject() else {
            return Ok(Vec::new());
        };
        let notes = self
            .store
            .notes(&NoteFilter::about(Topic::State, subject))?;
        if !notes.is_empty() {
            let marks = notes.into_iter().map(|note| MarkAt {
                lsn: Lsn(note.lsn.0.saturating_sub(1)),
                name: serde_json::from_value(note.body)
                    .ok()
                    .map(|it: Listed| it.checkpoint),
            });
            return Ok(marks.collect());
        }
        // Older programs kept no list.
        let mut all = self.store.checkpoints()?;
        all.retain(|it| scope.is_of(it));
        let marks = all.into_iter().map(|it| MarkAt {
            lsn: it.lsn,
            name: Some(it.name),
        });
        Ok(marks.collect())
    }

    /// Reads a checkpoint where it was written. The record is the truth; what is kept beside it may have been taken over by
    /// a later one of the same name.
    fn marked_at(&self, mark: &MarkAt) -> Result<Result<Checkpoint, BadCheckpoint>, EngineError> {
        let before = Lsn(mark.lsn.0.saturating_sub(1));
        let mut records = match self.store.records_after(before, 1) {
            Ok(records) => records.into_iter(),
            Err(error) => {
                let why = with_causes(&error);
                return Ok(Err(BadCheckpoint::Unreadable { why }));
            }
        };
        let record = records.next().filter(|record| record.lsn == mark.lsn);
        Ok(match record.map(|record| (record.at, record.event)) {
            Some((at, Event::Checkpoint(checkpoint))) => Ok(Checkpoint {
                lsn: mark.lsn,
                at,
                ..checkpoint
            }),
            Some(_) => Err(BadCheckpoint::Unreadable {
                why: "another record is in its place".to_owned(),
            }),
            None => {
                let kept = match &mark.name {
                    Some(name) => self.store.checkpoint(name)?,
                    None => None,
                };
                kept.filter(|it| it.lsn == mark.lsn)
                    .ok_or(BadCheckpoint::Gone)
            }
        })
    }
}

fn none_good(scope: &Scope, skipped: &[SkippedCheckpoint]) -> ResumeError {
    let said = |it: &SkippedCheckpoint| match &it.name {
        Some(name) => format!("{name}: {}", it.why),
        None => format!("record {}: {}", it.lsn, it.why),
    };
    ResumeError::NoCheckpoint {
        whose: scope.to_string(),
        task: scope.task.clone(),
        skipped: skipped.iter().map(said).collect(),
    }
}
