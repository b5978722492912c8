//! Taking a checkpoint of an agent: what it says of itself, and what the journal knows of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use backout_crashpoint::crash_point;
use backout_model::ports::{Durability, Entry};
use backout_model::{
    Checkpoint, CheckpointFiles, CheckpointName, Event, Lsn, MarkReason, Operation, RESUME_FORMAT,
    ResumePoint, STATE_BYTES_MAX, Status, StepAt, Timestamp, UNDO_STACK_MAX, any_path, settled,
};
use backout_storage::Filter;
use serde::{Deserialize, Serialize};

use super::ResumeError;
use super::choose::Scope;
use super::redact::without_secrets;
use crate::{Engine, EngineError};

/// After how many operations another checkpoint is due unless somebody says otherwise.
const CHECKPOINT_EVERY: u32 = 10;

/// What an agent says of itself, beside its own state.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MarkRequest {
    /// Why now.
    pub reason: MarkReason,
    /// How far the plan is.
    pub step: Option<StepAt>,
    /// What was decided on the way.
    pub decisions: Vec<String>,
    /// What the agent has to know, in words.
    pub summary: Option<String>,
    /// Where it works.
    #[serde(with = "any_path::some")]
    pub directory: Option<PathBuf>,
    /// The variables that it has changed; none for one that it took away.
    pub environment: BTreeMap<String, Option<String>>,
    /// Its process: nobody else goes on from here while that is alive.
    pub pid: Option<u32>,
    /// Only if so many operations were done since the last checkpoint as are due.
    pub if_due: bool,
    /// How many are due; none asks `backout.toml`, which says ten unless somebody wrote another number.
    pub every: Option<u32>,
}

/// Says that there are too few operations since the last checkpoint for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotDue {
    /// How many there are.
    pub operations: usize,
    /// How many are due.
    pub every: u32,
}

/// What became of a checkpoint that was asked for.
#[derive(Debug, Clone)]
pub enum Marked {
    /// It can be gone back to.
    Taken(Checkpoint),
    /// It is not due yet.
    NotDue(NotDue),
}

impl Engine {
    /// Marks this point of the journal with an agent's state, if it is due.
    pub fn mark_state(
        &self,
        name: Option<CheckpointName>,
        state: serde_json::Value,
        request: &MarkRequest,
    ) -> Result<Marked, EngineError> {
        if request.if_due
            && let Some(early) = self.not_due(request)?
        {
            return Ok(Marked::NotDue(early));
        }
        let name = self.name_of_mark(name)?;
        self.mark_with(name, state, None, Some(request))
            .map(Marked::Taken)
    }

    /// Marks this point of the journal under a name that is free, with directories that were kept.
    pub(crate) fn mark_with(
        &self,
        name: CheckpointName,
        state: serde_json::Value,
        files: Option<CheckpointFiles>,
        request: Option<&MarkRequest>,
    ) -> Result<Checkpoint, EngineError> {
        let scope = self.own_scope();
        self.check_open(scope.task.as_ref())?;
        let is_anybodys = request.is_none() && scope.is_nobodys();
        let resume = if is_anybodys {
            None
        } else {
            let usual = MarkRequest::default();
            let point = self.point(&scope, request.unwrap_or(&usual))?;
            Some(Box::new(point))
        };
        let mut checkpoint = Checkpoint {
            name,
            lsn: Lsn(0),
            at: Timestamp(0),
            agent: scope.agent.clone(),
            task: scope.task.clone(),
            state: settled(state),
            files,
            resume,
        };
        let (digest, bytes) = checkpoint.said();
        if bytes > STATE_BYTES_MAX {
            let max = STATE_BYTES_MAX;
            return Err(ResumeError::TooLarge { bytes, max }.into());
        }
        if let Some(point) = &mut checkpoint.resume {
            point.bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            point.digest = Some(digest);
        }
        crash_point("checkpoint.before");
        let mut events = vec![Event::Checkpoint(checkpoint.clone())];
        events.extend(scope.listed(&checkpoint));
        // The checkpoint comes first, and its place is the last of the entry.
        let others = u64::try_from(events.len().saturating_sub(1)).unwrap_or(0);
        let last = self.store.append(&Entry::of(events), Durability::Power)?;
        crash_point("checkpoint.taken");
        Ok(Checkpoint {
            lsn: Lsn(last.0.saturating_sub(others)),
            at: self.now(),
            ..checkpoint
        })
    }

    /// Says how many operations there are since the last checkpoint, if another one is not due.
    fn not_due(&self, request: &MarkRequest) -> Result<Option<NotDue>, EngineError> {
        let rules = self.settings.triggers.as_ref();
        let every = match (request.every, rules, request.directory.as_deref()) {
            (None, Some(rules), Some(directory)) => rules
                .checkpoint_every(directory)
                .map_err(ResumeError::Rules)?,
            (every, ..) => every,
        };
        let every = every.unwrap_or(CHECKPOINT_EVERY).max(1);
        let scope = self.own_scope();
        let last = self.last_mark(&scope)?;
        let filter = Filter {
            after: last,
            ..scope.filter()
        };
        let done = self.store.operations(&filter)?.into_iter();
        let operations = done.filter(|it| !it.verb.is_reversal() && it.status.is_in_effect());
        let operations = operations.count();
        let is_due = u32::try_from(operations).is_ok_and(|it| it >= every);
        Ok((!is_due).then_some(NotDue { operations, every }))
    }

    /// Says what is known of an agent at this moment.
    pub(crate) fn point(
        &self,
        scope: &Scope,
        request: &MarkRequest,
    ) -> Result<ResumePoint, EngineError> {
        let process = match request.pid {
            Some(pid) => Some(
                self.store
                    .process(pid)
                    .ok_or(EngineError::NoProcess { pid })?,
            ),
            None => None,
        };
        let newest = self.store.operations(&Filter {
            limit: Some(UNDO_STACK_MAX),
            ..scope.filter()
        })?;
        let in_flight: Vec<Operation> = self
            .store
            .armed()?
            .into_iter()
            .filter(|it| scope.has(it) && self.store.is_alive(&it.owner))
            .filter(|it| Some(it.id) != self.context.within)
            .collect();
        let is_in_flight = |it: &Operation| in_flight.iter().any(|flying| flying.id == it.id);
        let settled = newest.iter().filter(|it| !is_in_flight(it));
        let seen = settled.map(|it| it.lsn.max(it.place)).max();
        let seen = seen.unwrap_or_default();
        let oldest = in_flight.iter().map(|it| Lsn(it.lsn.0.saturating_sub(1)));
        let position = oldest.min().map_or(seen, |oldest| oldest.min(seen));
        let known = if position < seen {
            let filter = Filter {
                placed_after: Some(position),
                ..scope.filter()
            };
            let mut known = self.store.operations(&filter)?;
            known.retain(|it| it.status.is_in_effect() && it.lsn <= seen && !is_in_flight(it));
            known
        } else {
            Vec::new()
        };
        let is_undoable = |it: &&Operation| {
            !it.verb.is_reversal() && it.status.is_in_effect() && it.status != Status::Committed
        };
        let (environment, secrets) = without_secrets(&request.environment);
        Ok(ResumePoint {
            format: RESUME_FORMAT,
            reason: request.reason,
            step: request.step,
            decisions: request.decisions.clone(),
            summary: request.summary.clone(),
            directory: request.directory.clone(),
            environment,
            secrets,
            undo_stack: newest.iter().filter(is_undoable).map(|it| it.id).collect(),
            position,
            known: known.iter().map(|it| it.id).collect(),
            in_flight: in_flight.iter().map(|it| it.id).collect(),
            process,
            bytes: 0,
            digest: None,
        })
    }

    /// Names whose work the caller's is.
    pub(crate) fn own_scope(&self) -> Scope {
        Scope {
            task: self.context.task.clone(),
            agent: self.context.agent.clone(),
        }
    }
}
