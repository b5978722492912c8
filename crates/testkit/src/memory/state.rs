//! What a store in memory knows: the records, and what follows from them by a fold.
//!
//! Every change of status goes through the status machine of the model; a record that would break it is refused, and with it
//! its whole entry. A replay of stored records refuses nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use backout_model::ports::StorageError;
use backout_model::reversal::Made;
use backout_model::{
    Asked, Assumed, CallKey, Captured, Checkpoint, CheckpointName, Completion, Dependency, Digest,
    Escalated, Event, GENESIS, Intent, Lsn, Note, Operation, OperationId, Owner, Prompt, PromptId,
    Proposal, Recipe, Record, RolloutPlan, Slot, Standing, Status, Target, TargetOutcome, Task,
    TaskId, TaskStatus, Timestamp,
};

use super::change::Change;

pub(super) type Answer<T> = Result<T, StorageError>;

/// Whether an event is new or is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It must fit, and its contents must be there.
    Append,
    /// What it says is taken as it is.
    Replay,
}

/// Where and when an event is.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) lsn: Lsn,
    pub(super) now: Timestamp,
    pub(super) mode: Mode,
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) lsn: Lsn,
    pub(super) at: Timestamp,
    pub(super) body: Vec<u8>,
    pub(super) hash: Digest,
}

/// A target of an operation, and the record that told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) standing: Standing,
    pub(super) lsn: Lsn,
}

/// An operation with what only the store knows of it. Its targets stand beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) operation: Operation,
    pub(super) targets: Vec<Placed>,
    pub(super) completion: Option<Completion>,
    pub(super) undone_by: Option<OperationId>,
    pub(super) redone_by: Option<OperationId>,
    pub(super) finished: Timestamp,
    /// Whether taking it back failed, and nobody solved that.
    pub(super) undo_failed: bool,
}

impl Row {
    pub(super) fn has_targets_in_effect(&self) -> bool {
        let mut targets = self.targets.iter();
        targets.any(|placed| placed.standing.is_in_effect())
    }

    /// Gives the operation as others see it.
    pub(super) fn told(&self) -> Operation {
        let mut targets = self.targets.clone();
        targets.sort_by_key(|it| {
            let target = &it.standing.target;
            (target.key().to_bytes(), it.lsn, target.reach())
        });
        Operation {
            targets: targets.into_iter().map(|placed| placed.standing).collect(),
            ..self.operation.clone()
        }
    }
}

/// A task, and what it was before it was rolled back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskRow {
    pub(super) task: Task,
    pub(super) was: Option<TaskStatus>,
}

/// Everything that such a store knows.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) records: Vec<Arc<Stored>>,
    /// Where the chain begins.
    pub(super) anchor: (Lsn, Digest),
    pub(super) operations: BTreeMap<OperationId, Arc<Row>>,
    pub(super) tasks: BTreeMap<TaskId, TaskRow>,
    pub(super) checkpoints: BTreeMap<CheckpointName, Checkpoint>,
    pub(super) prompts: BTreeMap<PromptId, Prompt>,
    /// In the order of the journal.
    pub(super) notes: Vec<Arc<Note>>,
    pub(super) leases: BTreeMap<OperationId, Vec<(Target, Owner)>>,
    pub(super) references: BTreeSet<(OperationId, Digest)>,
    pub(super) slots: BTreeMap<Slot, OperationId>,
    pub(super) contents: BTreeMap<Digest, Arc<[u8]>>,
    /// Contents that are told as changes: of what, of how many bytes, and their pieces.
    pub(super) changes: BTreeMap<Digest, (Digest, u64, Arc<[u8]>)>,
    /// Which operation answered a call.
    pub(super) calls: BTreeMap<CallKey, OperationId>,
    /// Acts that have begun, whose they are, and whether somebody was told that they were left.
    pub(super) acts: BTreeMap<OperationId, (Owner, bool)>,
    /// Rollouts, with the places of the plans of those that are open.
    pub(super) rollouts: BTreeMap<OperationId, Option<Lsn>>,
    /// Who said when that they are at work.
    pub(super) beats: HashMap<Owner, Timestamp>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            anchor: (Lsn(0), GENESIS),
            operations: BTreeMap::new(),
            tasks: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            prompts: BTreeMap::new(),
            notes: Vec::new(),
            leases: BTreeMap::new(),
            references: BTreeSet::new(),
            slots: BTreeMap::new(),
            contents: BTreeMap::new(),
            changes: BTreeMap::new(),
            calls: BTreeMap::new(),
            acts: BTreeMap::new(),
            rollouts: BTreeMap::new(),
            beats: HashMap::new(),
        }
    }
}

impl State {
    /// Makes a change, whole or not at all.
    pub(super) fn apply(&mut self, change: &Change) -> Answer<()> {
        match change {
            Change::Append {
                at,
                events,
                contents,
                changes,
            } => {
                let mut next = self.clone();
                for bytes in contents {
                    next.keep(bytes);
                }
                for change in changes {
                    next.keep_change(change);
                }
                for event in events {
                    next.append(*at, event)?;
                }
                *self = next;
            }
            Change::Keep { by, bytes } => {
                let digest = self.keep(bytes);
                self.references.insert((*by, digest));
            }
            Change::Lease {
                operation,
                targets,
                owner,
            } => {
                let leased = targets.iter().map(|it| (it.clone(), owner.clone()));
                self.leases.entry(*operation).or_default().extend(leased);
            }
            Change::Release { operations } => {
                for operation in operations {
                    self.leases.remove(operation);
                }
            }
            Change::Claim { operation, owner } => {
                if let Some(row) = self.row(*operation) {
                    row.operation.owner = owner.clone();
                }
                for (_, holder) in self.leases.entry(*operation).or_default() {
                    *holder = owner.clone();
                }
            }
            Change::Told { act } => {
                if let Some((_, is_told)) = self.acts.get_mut(act) {
                    *is_told = true;
                }
            }
            Change::Ended { act } => drop(self.acts.remove(act)),
            Change::Beat { owner, at } => drop(self.beats.insert(owner.clone(), *at)),
            Change::Forget { operations } => {
                self.references.retain(|(by, _)| !operations.contains(by));
            }
            Change::Drop { contents } => {
                self.contents.retain(|digest, _| !contents.contains(digest));
                self.changes.retain(|digest, _| !contents.contains(digest));
            }
            Change::Hurt { content } => {
                if let Some(bytes) = self.contents.get_mut(content) {
                    *bytes = bytes.iter().map(|byte| !byte).collect();
                }
                if let Some((_, _, pieces)) = self.changes.get_mut(content) {
                    *pieces = pieces.iter().map(|byte| !byte).collect();
                }
            }
        }
        Ok(())
    }

    /// What is there as it is stays so.
    fn keep_change(&mut self, (digest, base, size, pieces): &(Digest, Digest, u64, Vec<u8>)) {
        if !matches!(self.made(digest, None), Ok(Made::Whole)) {
            let change = (*base, *size, pieces.as_slice().into());
            self.changes.insert(*digest, change);
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        self.changes.remove(&digest);
        let kept = self.contents.entry(digest);
        kept.or_insert_with(|| bytes.into());
        digest
    }

    /// Finds the last record's place and hash.
    pub(super) fn head(&self) -> (Lsn, Digest) {
        let last = self.records.last();
        last.map_or(self.anchor, |last| (last.lsn, last.hash))
    }

    fn append(&mut self, now: Timestamp, event: &Event) -> Answer<()> {
        let (last, previous) = self.head();
        let lsn = last.next();
        let body = serde_json::to_vec(event)
            .map_err(|cause| StorageError::inconsistent("a record to be stored", &cause))?;
        let hash = Record::chain(&previous, lsn, now, &body);
        self.records.push(Arc::new(Stored {
            lsn,
            at: now,
            body,
            hash,
        }));
        let mode = Mode::Append;
        self.take(At { lsn, now, mode }, event)?;
        if let Event::Cut { up_to, anchor } = event {
            self.cut(*up_to, *anchor);
        }
        Ok(())
    }

    fn cut(&mut self, up_to: Lsn, anchor: Digest) {
        self.anchor = (up_to, anchor);
        self.records.retain(|record| record.lsn > up_to);
        self.forget_notes(up_to);
        let gone: Vec<OperationId> = self
            .operations
            .values()
            .filter(|row| row.operation.lsn <= up_to)
            .map(|row| row.operation.id)
            .collect();
        self.operations.retain(|id, _| !gone.contains(id));
        self.slots.retain(|_, by| !gone.contains(by));
    }

    pub(super) fn row(&mut self, id: OperationId) -> Option<&mut Row> {
        self.operations.get_mut(&id).map(Arc::make_mut)
    }

    /// Applies one event to what follows from the records.
    pub(super) fn take(&mut self, at: At, event: &Event) -> Answer<()> {
        match event {
            Event::Intent(intent) => self.intent(at, intent)?,
            Event::Proposed(proposal) => self.proposed(at, proposal)?,
            Event::Refused(refusal) => {
                self.forget_proposal(refusal.id);
                self.insert(at, Operation::refused(refusal, at.lsn, at.now))?;
                self.call(refusal.id, refusal.call.as_ref())?;
                self.leases.remove(&refusal.id);
            }
            Event::Captured(captured) => self.captured(at, captured)?,
            Event::Applied { id, completion } => {
                self.finish(at, *id, completion, Status::Applied)?;
            }
            Event::Interrupted { id, completion } => {
                self.finish(at, *id, completion, Status::Interrupted)?;
            }
            Event::Commit { id } => self.status(at, *id, Status::Committed)?,
            Event::Abort { id, outcomes, .. } => {
                let is_clean = all_taken_back(outcomes);
                let next = if is_clean {
                    Status::Aborted
                } else {
                    Status::InDoubt
                };
                self.status(at, *id, next)?;
                self.leases.remove(id);
            }
            Event::Undone {
                id,
                by,
                outcomes,
                is_partial,
            } => self.undone(at, (*id, *by), outcomes, *is_partial)?,
            Event::Redone { id, by, targets } => self.redone(at, *id, *by, targets.as_deref())?,
            Event::UndoFailed { id, .. } => self.status(at, *id, Status::Failed)?,
            Event::Escalated(escalated) => self.escalated(at, escalated),
            Event::TaskBegin { task, agent, owner } => self.begin_task(Task {
                id: task.clone(),
                status: TaskStatus::Open,
                began: at.now,
                agent: agent.clone(),
                owner: owner.clone(),
            }),
            Event::TaskCommit { task } => self.finish_task(task, TaskStatus::Committed),
            Event::TaskRollback { task, .. } => self.finish_task(task, TaskStatus::RolledBack),
            Event::Checkpoint(checkpoint) => {
                let placed = Checkpoint {
                    lsn: at.lsn,
                    at: at.now,
                    ..checkpoint.clone()
                };
                self.checkpoints.insert(placed.name.clone(), placed);
            }
            Event::Prompt(prompt) => self.prompt(at, prompt),
            Event::Noted(note) => self.noted(at, note),
            Event::Expired { ids, .. } => self.expired(at, ids),
            Event::Lost { ids, why } => self.lost(at, ids, why),
            Event::Repaired(repair) => repair.assumed.iter().for_each(|it| self.assume(it)),
            Event::RolloutBegun(plan) => self.rollout_begun(at, plan)?,
            Event::RolloutEnded { id, .. } => {
                self.rollouts.insert(*id, None);
                self.references.retain(|(by, _)| by != id);
            }
            Event::Cut { .. } | Event::RolloutAt { .. } => {}
        }
        Ok(())
    }

    /// Notes a prompt. One that was told before stays what it was.
    fn prompt(&mut self, at: At, prompt: &Prompt) {
        let placed = Prompt {
            lsn: at.lsn,
            at: at.now,
            ..prompt.clone()
        };
        self.prompts.entry(placed.id.clone()).or_insert(placed);
    }

    fn begin_task(&mut self, task: Task) {
        let row = TaskRow {
            task: task.clone(),
            was: None,
        };
        self.tasks.insert(task.id, row);
    }

    /// Notes that taking an operation back failed, or that this is solved.
    fn escalated(&mut self, at: At, escalated: &Escalated) {
        if let Some(row) = self.row(escalated.id) {
            row.undo_failed = escalated.is_open();
            row.finished = at.now;
        }
    }

    /// Notes a rollout, with what its requests need.
    fn rollout_begun(&mut self, at: At, plan: &RolloutPlan) -> Answer<()> {
        for digest in plan.contents() {
            if at.mode == Mode::Append && !self.has(digest) {
                return Err(StorageError::ContentGone { digest: *digest });
            }
            self.references.insert((plan.id, *digest));
        }
        self.rollouts.insert(plan.id, Some(at.lsn));
        Ok(())
    }

    fn intent(&mut self, at: At, intent: &Intent) -> Answer<()> {
        let operation = Operation::armed(intent, at.lsn, at.now);
        self.forget_proposal(intent.id);
        self.insert(at, operation)?;
        self.call(intent.id, intent.call.as_ref())?;
        if intent.plan.is_some() && at.mode == Mode::Append {
            self.acts.insert(intent.id, (intent.owner.clone(), false));
        }
        self.needs(at, intent.id, &intent.recipe)
    }

    /// Notes a write that waits for a decision, with what it needs to be asked again.
    fn proposed(&mut self, at: At, proposal: &Proposal) -> Answer<()> {
        self.insert(at, Operation::proposed(proposal, at.lsn, at.now))?;
        self.call(proposal.id, proposal.call.as_ref())?;
        let contents = proposal.request.contents.iter();
        for digest in contents {
            if at.mode == Mode::Append && !self.has(digest) {
                return Err(StorageError::ContentGone { digest: *digest });
            }
            self.references.insert((proposal.id, *digest));
        }
        self.leases.remove(&proposal.id);
        Ok(())
    }

    /// Makes room for what a proposal has become.
    fn forget_proposal(&mut self, id: OperationId) {
        let row = self.operations.get(&id);
        if row.is_some_and(|row| row.operation.status == Status::Proposed) {
            self.operations.remove(&id);
            self.references.retain(|(by, _)| *by != id);
            self.calls.retain(|_, by| *by != id);
        }
    }

    /// Notes the key of the call that an operation answers. It moves on from one that did not come to pass.
    fn call(&mut self, id: OperationId, call: Option<&Asked>) -> Answer<()> {
        let Some(call) = call else {
            return Ok(());
        };
        match self.calls.insert(call.key.clone(), id) {
            Some(other) if other != id && !self.is_over(other) => {
                let at = format!("the key {}", call.key);
                Err(StorageError::inconsistent(at, &"it is taken"))
            }
            _ => Ok(()),
        }
    }

    fn is_over(&self, id: OperationId) -> bool {
        let status = self.operations.get(&id).map(|row| row.operation.status);
        matches!(status, Some(Status::Aborted | Status::Undone))
    }

    /// A command's place is where it ended: what was written meanwhile came before its end.
    fn captured(&mut self, at: At, captured: &Captured) -> Answer<()> {
        if let Some(row) = self.row(captured.id) {
            row.operation.lsn = at.lsn;
            row.operation.place = at.lsn;
            row.operation.notes.clone_from(&captured.notes);
            place(row, at.lsn, standing(&captured.targets));
            link(&mut row.operation.depends_on, &captured.depends_on);
        }
        self.needs(at, captured.id, &captured.recipe)
    }

    /// Notes what a recipe needs, which must be there: an undo without it would be none.
    fn needs(&mut self, at: At, id: OperationId, recipe: &Recipe) -> Answer<()> {
        for digest in &recipe.contents {
            if at.mode == Mode::Append && !self.has(digest) {
                return Err(StorageError::ContentGone { digest: *digest });
            }
            self.references.insert((id, *digest));
        }
        for slot in &recipe.slots {
            self.slots.entry(slot.clone()).or_insert(id);
        }
        Ok(())
    }

    fn insert(&mut self, at: At, mut operation: Operation) -> Answer<()> {
        let id = operation.id;
        if self.operations.contains_key(&id) {
            return Err(StorageError::DuplicateId { id });
        }
        let edges = std::mem::take(&mut operation.depends_on);
        link(&mut operation.depends_on, &edges);
        let targets = std::mem::take(&mut operation.targets);
        let mut row = Row {
            operation,
            targets: Vec::new(),
            completion: None,
            undone_by: None,
            redone_by: None,
            finished: at.now,
            undo_failed: false,
        };
        place(&mut row, at.lsn, targets);
        self.operations.insert(id, Arc::new(row));
        Ok(())
    }

    /// Notes how the effect ended, and what only it could tell.
    fn finish(
        &mut self,
        at: At,
        id: OperationId,
        completion: &Completion,
        next: Status,
    ) -> Answer<()> {
        if let Some(row) = self.row(id) {
            row.completion = Some(completion.clone());
        }
        self.status(at, id, next)?;
        self.leases.remove(&id);
        Ok(())
    }

    /// Takes the next status, if the status machine allows it.
    pub(super) fn status(&mut self, at: At, id: OperationId, next: Status) -> Answer<()> {
        let wrong = |detail: &dyn std::fmt::Display| {
            StorageError::inconsistent(format!("operation {id}"), detail)
        };
        let Some(row) = self.row(id) else {
            return match at.mode {
                Mode::Append => Err(wrong(&"it was never armed")),
                Mode::Replay => Ok(()),
            };
        };
        if at.mode == Mode::Append {
            let allowed = row.operation.status.becomes(next);
            allowed.map_err(|cause| wrong(&cause))?;
        }
        row.operation.status = next;
        row.finished = at.now;
        Ok(())
    }

    fn expired(&mut self, at: At, ids: &[OperationId]) {
        for id in ids {
            if let Some(row) = self.row(*id) {
                row.operation.retained = false;
                row.finished = at.now;
            }
            self.references.retain(|(by, _)| by != id);
            self.slots.retain(|_, by| by != id);
        }
    }

    /// What is left of their images stays until their records are cut: a part is better than nothing.
    fn lost(&mut self, at: At, ids: &[OperationId], why: &str) {
        for id in ids {
            if let Some(row) = self.row(*id) {
                row.operation.retained = false;
                row.finished = at.now;
                let note = format!("it can no longer be undone: {why}");
                row.operation.notes.push(note);
            }
        }
    }

    fn assume(&mut self, assumed: &Assumed) {
        let Some(row) = self.row(assumed.id) else {
            return;
        };
        row.operation.status = assumed.status;
        row.undone_by = assumed.undone_by;
        row.redone_by = assumed.redone_by;
        if row.completion.is_none() {
            row.completion.clone_from(&assumed.completion);
        }
        for placed in &mut row.targets {
            placed.standing.undone_by = assumed.undone_by;
            placed.standing.held_by = assumed.redone_by;
        }
    }
}

pub(super) fn all_taken_back(outcomes: &[TargetOutcome]) -> bool {
    outcomes.iter().all(|outcome| outcome.kind.is_taken_back())
}

fn standing(targets: &[Target]) -> Vec<Standing> {
    targets.iter().cloned().map(Standing::new).collect()
}

/// Adds targets, each once.
fn place(row: &mut Row, lsn: Lsn, targets: Vec<Standing>) {
    for standing in targets {
        let is_same = |it: &Placed| it.lsn == lsn && it.standing.target == standing.target;
        if !row.targets.iter().any(is_same) {
            row.targets.push(Placed { standing, lsn });
        }
    }
}

/// Adds edges, each once, in their order.
fn link(edges: &mut Vec<Dependency>, more: &[Dependency]) {
    let mut all: BTreeSet<Dependency> = edges.drain(..).collect();
    all.extend(more.iter().cloned());
    edges.extend(all);
}
