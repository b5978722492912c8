//! From where an agent goes on: what a checkpoint says of the agent beside its own state, and how a bad one is known.
//!
//! - A state is data. Nothing in it is ever executed.
//! - The digest covers all that the checkpoint says; the format is compared first, so that a newer one is not called damaged.
//! - The place from which the journal is replayed lies before the oldest operation that was under way when the checkpoint was
//!   taken: what became of that the state does not know. What it does know after that place is listed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{AgentId, Checkpoint, Digest, Lsn, OperationId, Owner, TaskId, any_path};

/// The format of what is written today.
pub const RESUME_FORMAT: u32 = 1;

/// How many bytes an agent's state may have, written as JSON, with all that belongs to it.
pub const STATE_BYTES_MAX: usize = 4 << 20;

/// How many operations of the undo stack a checkpoint names, the newest first; the journal knows the others.
pub const UNDO_STACK_MAX: usize = 256;

/// Why a checkpoint was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkReason {
    /// Somebody asked for it.
    #[default]
    Asked,
    /// The agent is about to decide what to write.
    BeforeDecision,
    /// What was decided is written.
    AfterCommit,
    /// So many operations were done since the last one.
    Interval,
    /// The agent was told to end.
    Signal,
}

impl MarkReason {
    /// All reasons.
    pub const ALL: [Self; 5] = [
        Self::Asked,
        Self::BeforeDecision,
        Self::AfterCommit,
        Self::Interval,
        Self::Signal,
    ];

    /// Names the reason as the journal, JSON and the command line know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::BeforeDecision => "before-decision",
            Self::AfterCommit => "after-commit",
            Self::Interval => "interval",
            Self::Signal => "signal",
        }
    }
}

impl FromStr for MarkReason {
    type Err = crate::UnknownWord;

    fn from_str(word: &str) -> Result<Self, crate::UnknownWord> {
        crate::trigger::found(&Self::ALL, Self::as_str, word)
    }
}

/// How far an agent is with its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepAt {
    /// How many steps are done.
    pub done: u32,
    /// How many there are, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
}

impl StepAt {
    /// Numbers the step to go on with; none if all are done.
    pub const fn next(self) -> Option<u32> {
        match self.of {
            Some(of) if self.done >= of => None,
            _ => Some(self.done.saturating_add(1)),
        }
    }
}

impl fmt::Display for StepAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            Some(of) => write!(f, "{}/{of}", self.done),
            None => write!(f, "{}", self.done),
        }
    }
}

/// Says that a text tells no step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not N or N/M: how many steps are done, and of how many")]
pub struct NoStep {
    /// As it was written.
    pub text: String,
}

impl FromStr for StepAt {
    type Err = NoStep;

    fn from_str(text: &str) -> Result<Self, NoStep> {
        let no = || NoStep {
            text: text.to_owned(),
        };
        let (done, of) = match text.split_once('/') {
            Some((done, of)) => (done, Some(of.parse().map_err(|_| no())?)),
            None => (text, None),
        };
        let done = done.parse().map_err(|_| no())?;
        if of.is_some_and(|of| done > of) {
            return Err(no());
        }
        Ok(Self { done, of })
    }
}

/// What a checkpoint says of an agent, so that it can go on from there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResumePoint {
    /// The format that it is written in.
    pub format: u32,
    /// Why it was taken.
    pub reason: MarkReason,
    /// How far the plan is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepAt>,
    /// What was decided on the way, the first first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// What the agent has to know, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Where the agent worked.
    #[serde(with = "any_path::some", skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// The variables that the agent has changed; none for one that it took away.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, Option<String>>,
    /// Variables of which only the name is kept, since their values look like secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// What the agent had in effect and nobody had committed, the newest first: at most [`UNDO_STACK_MAX`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undo_stack: Vec<OperationId>,
    /// The place in the journal from which it is replayed.
    pub position: Lsn,
    /// Operations after that place that the state knows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<OperationId>,
    /// Operations that were under way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_flight: Vec<OperationId>,
    /// The agent's process, if it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Owner>,
    /// How many bytes it has, written as JSON.
    pub bytes: u64,
    /// The digest of all that the checkpoint says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

impl ResumePoint {
    /// Reads a point; of a newer one only what tells that it is newer.
    pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<Self>>, D::Error> {
        let Some(value) = Option::<serde_json::Value>::deserialize(from)? else {
            return Ok(None);
        };
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        let format = format.and_then(|it| u32::try_from(it).ok());
        if let Some(format) = format.filter(|it| *it > RESUME_FORMAT) {
            let newer = Self {
                format,
                ..Self::default()
            };
            return Ok(Some(Box::new(newer)));
        }
        serde_json::from_value(value)
            .map(Some)
            .map_err(serde::de::Error::custom)
    }
}

/// Why a checkpoint is none to go on from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "bad", rename_all = "kebab-case")]
pub enum BadCheckpoint {
    /// Its record is not what was written.
    #[error("its record cannot be read: {why}")]
    Unreadable {
        /// What was said.
        why: String,
    },
    /// Its record has left the journal.
    #[error("its record has left the journal")]
    Gone,
    /// A newer program wrote it.
    #[error(
        "a newer version of Backout wrote it: format {format}, and this one reads up to {RESUME_FORMAT}"
    )]
    Newer {
        /// Its format.
        format: u32,
    },
    /// It says something else than was written.
    #[error("it is damaged: what it says does not match its digest")]
    Damaged,
    /// It marks the work of somebody else.
    #[error("it belongs to {}", whose(task.as_ref(), agent.as_ref()))]
    Other {
        /// The task.
        task: Option<TaskId>,
        /// The agent.
        agent: Option<AgentId>,
    },
}

/// Names whose work a checkpoint marks.
fn whose(task: Option<&TaskId>, agent: Option<&AgentId>) -> String {
    match (task, agent) {
        (Some(task), _) => format!("the task {task}"),
        (None, Some(agent)) => format!("the agent {agent}, outside of a task"),
        (None, None) => "nobody in particular".to_owned(),
    }
}

impl Checkpoint {
    /// Gives the digest and the length of all that it says, but for its place and its time, which only the journal knows.
    pub fn said(&self) -> (Digest, usize) {
        /// All of it, in a fixed order.
        #[derive(Serialize)]
        struct Said<'c> {
            name: &'c crate::CheckpointName,
            agent: &'c Option<AgentId>,
            task: &'c Option<TaskId>,
            state: &'c serde_json::Value,
            files: &'c Option<crate::CheckpointFiles>,
            resume: Option<ResumePoint>,
        }
        let said = Said {
            name: &self.name,
            agent: &self.agent,
            task: &self.task,
            state: &self.state,
            files: &self.files,
            resume: self.resume.as_ref().map(|point| ResumePoint {
                bytes: 0,
                digest: None,
                ..(**point).clone()
            }),
        };
        let text = serde_json::to_vec(&said).unwrap_or_default();
        (Digest::of(&text), text.len())
    }

    /// Says why nobody can go on from it as the work of a task, or of an agent outside of any.
    pub fn good_for(
        &self,
        task: Option<&TaskId>,
        agent: Option<&AgentId>,
    ) -> Result<(), BadCheckpoint> {
        if let Some(point) = &self.resume {
            if point.format > RESUME_FORMAT {
                let format = point.format;
                return Err(BadCheckpoint::Newer { format });
            }
            if point.digest != Some(self.said().0) {
                return Err(BadCheckpoint::Damaged);
            }
        }
        let is_theirs =
            self.task.as_ref() == task && (task.is_some() || self.agent.as_ref() == agent);
        if is_theirs {
            Ok(())
        } else {
            Err(BadCheckpoint::Other {
                task: self.task.clone(),
                agent: self.agent.clone(),
            })
        }
    }
}

/// Makes a value what comes back if it is written as JSON and read: a fraction may change in its last digit.
pub fn settled(mut value: serde_json::Value) -> serde_json::Value {
    /// How often it may change: a fraction that was read once is written as it was.
    const ROUNDS_MAX: usize = 8;
    if !has_fraction(&value) {
        return value;
    }
    for _ in 0..ROUNDS_MAX {
        let again = serde_json::to_vec(&value)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok());
        match again {
            Some(again) if again != value => value = again,
            Some(_) | None => break,
        }
    }
    value
}

fn has_fraction(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Number(number) => number.is_f64(),
        serde_json::Value::Array(values) => values.iter().any(has_fraction),
        serde_json::Value::Object(fields) => fields.values().any(has_fraction),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::String(_) => {
            false
        }
    }
}

#[cfg(test)]
#[path = "resume_tests.rs"]
mod tests;
