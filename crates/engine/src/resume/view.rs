//! What an agent is told that goes on: where, with what, and what became of what it had begun.

use backout_model::{
    AgentId, BadCheckpoint, Checkpoint, CheckpointName, LeftAlone, Lsn, OperationId, Target,
    TargetOutcome, TaskId, TriggerAction,
};
use serde::{Deserialize, Serialize};

use super::choose::Scope;
use super::differs::Differs;
use crate::PlannedStep;

/// Where an agent goes on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else")]
pub struct Resumed {
    /// The task; none for an agent outside of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The agent, if it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The checkpoint, with the state and all that it says of the agent.
    pub checkpoint: Checkpoint,
    /// The number of the step to go on with; none if the checkpoint does not tell, or all are done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_step: Option<u32>,
    /// What was done with what was in flight.
    pub action: TriggerAction,
    /// Whether nothing was done, but said what would be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dry_run: bool,
    /// Whether it would be refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_refused: bool,
    /// What stands in the way, if it would be refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_the_way: Vec<InTheWay>,
    /// Whether somebody has to say first what becomes of what was in flight.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// What was taken back.
    pub reverted: Vec<Reverted>,
    /// The undo that took it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<OperationId>,
    /// What others had changed and that overwrote; a redo of `act` brings it back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overwritten: Vec<TargetOutcome>,
    /// What was done since and stays.
    pub stays: Vec<Stays>,
    /// What stood at the checkpoint and was undone since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone_since: Vec<LeftAlone>,
    /// What the work had left at the checkpoint and a look now did not find so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<Differs>,
    /// Whether the work had left more than was looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_more: bool,
    /// Newer checkpoints that could not be used.
    pub skipped: Vec<SkippedCheckpoint>,
    /// How many checkpoints there are.
    pub checkpoints: usize,
    /// How many operations were looked at after the checkpoint's place.
    pub replayed: usize,
    /// How long all of it took.
    pub replay_ms: i64,
}

impl Resumed {
    pub(super) fn of(
        scope: &Scope,
        checkpoint: Checkpoint,
        skipped: Vec<SkippedCheckpoint>,
    ) -> Self {
        let step = checkpoint.resume.as_ref().and_then(|point| point.step);
        Self {
            task: scope.task.clone(),
            agent: scope.agent.clone(),
            next_step: step.and_then(backout_model::StepAt::next),
            checkpoint,
            action: TriggerAction::default(),
            is_dry_run: false,
            is_refused: false,
            in_the_way: Vec::new(),
            waits: false,
            reverted: Vec::new(),
            act: None,
            overwritten: Vec::new(),
            stays: Vec::new(),
            undone_since: Vec::new(),
            differs: Vec::new(),
            is_more: false,
            skipped,
            checkpoints: 0,
            replayed: 0,
            replay_ms: 0,
        }
    }
}

/// A target that keeps work from being taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InTheWay {
    /// The operation that would go.
    pub id: OperationId,
    /// It stays as it is.
    pub target: Target,
    /// What differs.
    pub why: String,
}

impl InTheWay {
    pub(super) fn of(step: &PlannedStep) -> impl Iterator<Item = Self> {
        let each = step.targets.iter();
        each.filter_map(|it| {
            Some(Self {
                id: step.id,
                target: it.target.clone(),
                why: it.state.hindrance()?.clone(),
            })
        })
    }
}

/// An operation that was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reverted {
    /// `redo` brings it back.
    pub id: OperationId,
    /// Its line for people.
    pub summary: String,
    /// Why it had to go.
    pub why: RevertedWhy,
    /// Whose it was, if it was no part of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
}

impl Reverted {
    pub(super) const fn died(id: OperationId, summary: String) -> Self {
        Self {
            id,
            summary,
            why: RevertedWhy::Died,
            agent: None,
        }
    }
}

/// Why an operation had to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RevertedWhy {
    /// It was done after the checkpoint, and nobody had committed it.
    AfterCheckpoint,
    /// It is no part of the work, and was built on what goes.
    BuiltOn,
    /// It was under way when the checkpoint was taken.
    UnderWay,
    /// Its process died before it was finished.
    Died,
}

impl RevertedWhy {
    /// Says it in words.
    pub const fn as_words(self) -> &'static str {
        match self {
            Self::AfterCheckpoint => "it was done after the checkpoint, and not committed",
            Self::BuiltOn => "it is other work, built on what goes",
            Self::UnderWay => "it was under way when the checkpoint was taken",
            Self::Died => "its process died before it was finished",
        }
    }
}

/// An operation that stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stays {
    /// It can still be taken back by its name.
    pub id: OperationId,
    /// Its line for people.
    pub summary: String,
    /// Whether somebody decided so, or has to decide.
    pub why: StaysWhy,
}

/// Why an operation stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StaysWhy {
    /// Only who names it takes it back.
    Committed,
    /// It stood at the checkpoint; since then it was undone and redone.
    StoodThen,
    /// Somebody said so, or `backout.toml` does.
    Kept,
    /// Somebody has to decide.
    Waits,
}

impl StaysWhy {
    /// Says it in words.
    pub const fn as_words(self) -> &'static str {
        match self {
            Self::Committed => "it is committed",
            Self::StoodThen => "it stood at the checkpoint, and was undone and redone since",
            Self::Kept => "work in flight is kept here",
            Self::Waits => "it waits for a decision",
        }
    }
}

/// A checkpoint that could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedCheckpoint {
    /// Its name, if it can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<CheckpointName>,
    /// Its place in the journal.
    pub lsn: Lsn,
    /// Why not.
    #[serde(flatten)]
    pub why: BadCheckpoint,
}
