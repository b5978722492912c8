//! The journal: the append-only record of everything, and the questions that it answers.
//!
//! Every answer is one moment's truth. A record is durable before the change it describes begins; an entry is all there or
//! not at all; a history that cannot have happened is refused.

use serde::{Deserialize, Serialize};

use super::{Append, OperationRef, RefError, StorageError};
use crate::{
    ActPlan, AgentId, Asked, CallKey, Checkpoint, CheckpointName, Dependency, Effect, Event,
    Intent, Key, Lsn, Note, NoteFilter, OnFailure, Operation, OperationId, Owner, Prompt, PromptId,
    Proposal, Record, Target, TargetOutcome, Task, TaskId, Timestamp,
};

/// Which operations to list, newest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// Only this agent's.
    pub agent: Option<AgentId>,
    /// Only this task's.
    pub task: Option<TaskId>,
    /// Only what answered this prompt.
    pub prompt: Option<PromptId>,
    /// Only those that wrote at this place or below it.
    pub at: Option<Key>,
    /// Only those that wrote a tree that this place is in.
    pub within: Option<Key>,
    /// Only the undos of one plan.
    pub group: Option<OperationId>,
    /// Only those that are in the journal after this place.
    pub after: Option<Lsn>,
    /// Only those that are in the journal before this place.
    pub before: Option<Lsn>,
    /// Only those that were done, or brought back, after this place.
    pub placed_after: Option<Lsn>,
    /// At most this many.
    pub limit: Option<usize>,
}

/// The append-only record of everything, with the questions that the engine asks.
pub trait Journal: Append {
    /// Finds an operation.
    fn operation(&self, id: OperationId) -> Result<Option<Operation>, StorageError>;

    /// Lists operations, newest first.
    fn operations(&self, filter: &Filter) -> Result<Vec<Operation>, StorageError>;

    /// Lists operations that are armed and not finished, newest first.
    fn armed(&self) -> Result<Vec<Operation>, StorageError>;

    /// Lists operations that somebody has to look at, newest first.
    fn stuck(&self) -> Result<Vec<Operation>, StorageError>;

    /// Lists operations whose undo failed, and of which no record says that this was solved or accepted since, newest first.
    fn failed(&self) -> Result<Vec<Operation>, StorageError>;

    /// Gathers what is connected with `ids` by dependencies, in both directions.
    fn connected(&self, ids: &[OperationId]) -> Result<Vec<Operation>, StorageError>;

    /// Gives the recipe of an operation and what its effect told.
    fn effect(&self, id: OperationId) -> Result<Effect, StorageError>;

    /// Gives every record that speaks of an operation, oldest first.
    fn records_of(&self, id: OperationId) -> Result<Vec<Record>, StorageError>;

    /// Gives the records after `lsn`, oldest first, at most `limit` of them.
    fn records_after(&self, lsn: Lsn, limit: usize) -> Result<Vec<Record>, StorageError>;

    /// Finds the operation that a person named.
    fn resolve(&self, reference: &OperationRef) -> Result<OperationId, RefError>;

    /// Finds what a write of `targets` depends on.
    fn dependencies(&self, targets: &[Target]) -> Result<Vec<Dependency>, StorageError>;

    /// Finds another operation in effect that did something to a key, or to what holds it, after a place in the journal.
    fn done_since(
        &self,
        key: &Key,
        place: Lsn,
        except: OperationId,
    ) -> Result<Option<OperationId>, StorageError>;

    /// Tells when a record was written; the beginning of time if it is not in the journal any more.
    fn moment_of(&self, lsn: Lsn) -> Result<Timestamp, StorageError>;

    /// Gives the last place in the journal that was written at a moment or before it.
    fn place_at(&self, moment: Timestamp) -> Result<Lsn, StorageError>;

    /// Counts how often the busiest of these targets was written since a moment, up to `limit`.
    fn writes_since(
        &self,
        targets: &[Target],
        since: Timestamp,
        limit: u32,
    ) -> Result<u32, StorageError>;

    /// Tells whether records after `lsn` were lost, so that what became of an operation may be among them.
    fn has_gap_after(&self, lsn: Lsn) -> Result<bool, StorageError>;

    /// Lists what waits for a decision, oldest first.
    fn proposals(&self) -> Result<Vec<Proposal>, StorageError>;

    /// Finds the operation that answered a call, with what was asked.
    fn answer_to(&self, key: &CallKey) -> Result<Option<(OperationId, Asked)>, StorageError>;

    /// Gives what was proposed under an id, whatever became of it.
    fn proposal(&self, id: OperationId) -> Result<Option<Proposal>, StorageError> {
        let mut records = self.records_of(id)?.into_iter();
        Ok(records.find_map(|record| {
            if let Event::Proposed(proposal) = record.event {
                Some(*proposal)
            } else {
                None
            }
        }))
    }

    /// Gives what an act was to do; none if its first step does not say.
    fn plan_of(&self, act: OperationId) -> Result<Option<ActPlan>, StorageError> {
        Ok(intent_of(self.records_of(act)?).and_then(|intent| intent.plan))
    }

    /// Lists rollouts, newest first, with those that ended.
    fn rollouts(&self) -> Result<Vec<OperationId>, StorageError>;

    /// Lists tasks, newest first.
    fn tasks(&self) -> Result<Vec<Task>, StorageError>;

    /// Lists checkpoints, newest first.
    fn checkpoints(&self) -> Result<Vec<Checkpoint>, StorageError>;

    /// Lists prompts, newest first.
    fn prompts(&self) -> Result<Vec<Prompt>, StorageError>;

    /// Lists notes, newest first.
    fn notes(&self, filter: &NoteFilter) -> Result<Vec<Note>, StorageError>;

    /// Finds a prompt.
    fn prompt(&self, id: &PromptId) -> Result<Option<Prompt>, StorageError> {
        Ok(self.prompts()?.into_iter().find(|prompt| prompt.id == *id))
    }

    /// Finds what an agent was last asked in a session.
    fn newest_prompt(
        &self,
        agent: &AgentId,
        session: &str,
    ) -> Result<Option<Prompt>, StorageError> {
        let mut all = self.prompts()?.into_iter();
        Ok(all.find(|prompt| prompt.agent == *agent && prompt.session == session))
    }

    /// Finds a task.
    fn task(&self, id: &TaskId) -> Result<Option<Task>, StorageError> {
        Ok(self.tasks()?.into_iter().find(|task| task.id == *id))
    }

    /// Finds a checkpoint.
    fn checkpoint(&self, name: &CheckpointName) -> Result<Option<Checkpoint>, StorageError> {
        let mut all = self.checkpoints()?.into_iter();
        Ok(all.find(|checkpoint| checkpoint.name == *name))
    }

    /// Gives the process that armed an operation, whoever answers for it now.
    fn first_owner(&self, id: OperationId) -> Result<Owner, StorageError> {
        let gone = || StorageError::inconsistent(format!("operation {id}"), &"its record is gone");
        Ok(intent_of(self.records_of(id)?).ok_or_else(gone)?.owner)
    }

    /// Tells what becomes of what a command did if it is left alone.
    fn on_failure(&self, id: OperationId) -> Result<OnFailure, StorageError> {
        let started = intent_of(self.records_of(id)?).and_then(|intent| intent.command);
        Ok(started.map(|start| start.on_failure).unwrap_or_default())
    }

    /// Names the operation whose recipe an undo or a redo carried out, if that was not the one that it took back.
    fn undone_with(&self, undo: OperationId) -> Result<Option<OperationId>, StorageError> {
        Ok(intent_of(self.records_of(undo)?).and_then(|intent| intent.with))
    }

    /// Gives what became of each target of an operation when an undo took it back.
    fn outcomes_of(
        &self,
        id: OperationId,
        undo: OperationId,
    ) -> Result<Vec<TargetOutcome>, StorageError> {
        let newest_first = self.records_of(id)?.into_iter().rev();
        let mut told = newest_first.filter_map(|record| {
            if let Event::Undone { by, outcomes, .. } = record.event
                && by == undo
            {
                Some(outcomes)
            } else {
                None
            }
        });
        Ok(told.next().unwrap_or_default())
    }
}

fn intent_of(records: Vec<Record>) -> Option<Box<Intent>> {
    records.into_iter().find_map(|record| {
        if let Event::Intent(intent) = record.event {
            Some(intent)
        } else {
            None
        }
    })
}
