//! What follows from a record: the tables that answer questions, updated in the record's own transaction.
//!
//! Every change of status goes through the status machine; a record that would break it is refused, so
//! the journal never holds a history that cannot have happened. A replay of stored records refuses nothing: records
//! may be missing after a repair, and then the later one is believed.

use backout_model::{
    AgentId, Asked, Captured, Checkpoint, Completion, Dependency, Digest, Escalated, Event, Intent,
    Lsn, Operation, OperationId, Prompt, PromptId, Proposal, Recipe, Refusal, Repair, Status,
    Target, TaskId, TaskStatus, Timestamp,
};
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::rows::{contradiction, from_json, id_to_sql, lsn_to_sql, reach_word, to_json, word};
use super::standing::all_taken_back;
use crate::{StorageError, Store, contents};

/// Whether an event is new or is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It is being appended: it must fit, and its contents must be there.
    Append,
    /// It is a stored record: what it says is taken as it is.
    Replay,
}

/// Applies one event to the tables.
pub(crate) fn project(
    store: &Store,
    transaction: &Transaction<'_>,
    (lsn, now): (Lsn, Timestamp),
    event: &Event,
    mode: Mode,
) -> Result<(), StorageError> {
    let projection = Projection {
        store,
        transaction,
        now,
        mode,
    };
    match event {
        Event::Intent(intent) => projection.intent(lsn, intent),
        Event::Proposed(proposal) => projection.proposed(lsn, proposal),
        Event::Refused(refusal) => projection.refused(lsn, refusal),
        Event::Captured(captured) => projection.captured(lsn, captured),
        Event::Applied { id, completion } => {
            projection.complete(*id, completion)?;
            projection.status(*id, Status::Applied)?;
            projection.release(*id)
        }
        Event::Interrupted { id, completion } => {
            projection.complete(*id, completion)?;
            projection.status(*id, Status::Interrupted)?;
            projection.release(*id)
        }
        Event::Commit { id } => projection.status(*id, Status::Committed),
        Event::Abort { id, outcomes, .. } => {
            let next = if all_taken_back(outcomes) {
                Status::Aborted
            } else {
                Status::InDoubt
            };
            projection.status(*id, next)?;
            projection.release(*id)
        }
        Event::Undone {
            id,
            by,
            outcomes,
            is_partial,
        } => projection.undone(*id, *by, outcomes, *is_partial),
        Event::Redone { id, by, targets } => projection.redone(lsn, *id, *by, targets.as_deref()),
        Event::UndoFailed { id, .. } => projection.status(*id, Status::Failed),
        Event::Escalated(escalated) => projection.escalated(lsn, escalated),
        Event::TaskBegin { task, agent, owner } => {
            let owner = owner.as_ref().map(to_json).transpose()?;
            let agent = agent.as_ref().map(ToString::to_string);
            projection.execute(
                "INSERT OR REPLACE INTO task (id, status, began, agent, owner)
                 VALUES (?1, 'open', ?2, ?3, ?4)",
                params![task.as_str(), now.0, agent, owner],
            )
        }
        Event::TaskCommit { task } => projection.finish_task(task.as_str(), TaskStatus::Committed),
        Event::TaskRollback { task, .. } => {
            projection.finish_task(task.as_str(), TaskStatus::RolledBack)
        }
        Event::Checkpoint(checkpoint) => projection.checkpoint(lsn, checkpoint),
        Event::Prompt(prompt) => projection.prompt(lsn, prompt),
        Event::Noted(note) => projection.noted(lsn, note),
        Event::Expired { ids, .. } => projection.expired(ids),
        Event::Cut { up_to, anchor } => {
            let set = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
            projection.execute(set, params!["cut-lsn", lsn_to_sql(*up_to)])?;
            projection.execute(set, params!["cut-hash", anchor.as_bytes().as_slice()])?;
            projection.forget_notes(*up_to)?;
            projection.forget_rollouts(*up_to)
        }
        Event::Lost { ids, why } => projection.lost(ids, why),
        Event::Repaired(repair) => projection.repaired(repair),
        Event::RolloutBegun(plan) => projection.rollout_begun(lsn, plan),
        Event::RolloutAt { .. } => Ok(()),
        Event::RolloutEnded { id, .. } => projection.rollout_ended(*id),
    }
}

pub(super) struct Projection<'s, 't> {
    pub(super) store: &'s Store,
    pub(super) transaction: &'s Transaction<'t>,
    pub(super) now: Timestamp,
    mode: Mode,
}

impl Projection<'_, '_> {
    pub(super) fn execute(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> Result<(), StorageError> {
        self.store.run(self.transaction, sql, values)
    }

    pub(super) fn release(&self, id: OperationId) -> Result<(), StorageError> {
        self.store.release_in(self.transaction, id)
    }

    /// Notes a write that waits for a decision, with what it needs to be asked again.
    fn proposed(&self, lsn: Lsn, proposal: &Proposal) -> Result<(), StorageError> {
        self.insert(lsn, &Operation::proposed(proposal, lsn, self.now))?;
        self.call(proposal.id, proposal.call.as_ref())?;
        for digest in &proposal.request.contents {
            self.refer(id_to_sql(proposal.id), digest)?;
        }
        self.release(proposal.id)
    }

    /// Notes a write that was turned away, at once or after it had waited for a decision.
    fn refused(&self, lsn: Lsn, refusal: &Refusal) -> Result<(), StorageError> {
        self.forget_proposal(refusal.id)?;
        self.insert(lsn, &Operation::refused(refusal, lsn, self.now))?;
        self.call(refusal.id, refusal.call.as_ref())?;
        self.release(refusal.id)
    }

    /// Notes the key of the call that an operation answers, so that the same call finds it. The key moves on from one that
    /// did not come to pass; from any other it does not.
    fn call(&self, id: OperationId, call: Option<&Asked>) -> Result<(), StorageError> {
        let Some(call) = call else {
            return Ok(());
        };
        self.execute(
            "UPDATE operation SET call_key = NULL
             WHERE call_key = ?2 AND id <> ?1 AND status IN ('aborted', 'undone')",
            params![id_to_sql(id), call.key.as_str()],
        )?;
        self.execute(
            "UPDATE operation SET call_key = ?2 WHERE id = ?1",
            params![id_to_sql(id), call.key.as_str()],
        )
    }

    /// Makes room for what a proposal has become: the operation that it was to be, or a refusal.
    fn forget_proposal(&self, id: OperationId) -> Result<(), StorageError> {
        if self.status_found(id)? != Some(Status::Proposed) {
            return Ok(());
        }
        for sql in [
            "DELETE FROM reference WHERE operation = ?1",
            "DELETE FROM target WHERE operation = ?1",
            "DELETE FROM edge WHERE dependent = ?1",
            "DELETE FROM operation WHERE id = ?1",
        ] {
            self.execute(sql, [id_to_sql(id)])?;
        }
        Ok(())
    }

    /// Notes what only the effect could tell.
    fn complete(&self, id: OperationId, completion: &Completion) -> Result<(), StorageError> {
        let bytes = serde_json::to_vec(completion)
            .map_err(|cause| contradiction("a completion", &cause))?;
        self.execute(
            "UPDATE operation SET completion = ?2 WHERE id = ?1",
            params![id_to_sql(id), bytes],
        )
    }

    fn intent(&self, lsn: Lsn, intent: &Intent) -> Result<(), StorageError> {
        let operation = Operation::armed(intent, lsn, self.now);
        self.forget_proposal(intent.id)?;
        self.insert(lsn, &operation)?;
        self.call(intent.id, intent.call.as_ref())?;
        // Whoever reads old records again finds no act under way.
        if intent.plan.is_some() && self.mode == Mode::Append {
            self.store
                .begin_act(self.transaction, intent.id, &intent.owner)?;
        }
        self.needs(intent.id, &intent.recipe)
    }

    /// Notes what a recipe needs.
    fn needs(&self, id: OperationId, recipe: &Recipe) -> Result<(), StorageError> {
        for digest in &recipe.contents {
            self.refer(id_to_sql(id), digest)?;
        }
        contents::put_slots(self.store, self.transaction, id, &recipe.slots)
    }

    /// A command's place is where it ended: what was written meanwhile came before its end.
    fn captured(&self, lsn: Lsn, captured: &Captured) -> Result<(), StorageError> {
        self.execute(
            "UPDATE operation SET lsn = ?2, place = ?2, notes = ?3 WHERE id = ?1",
            params![
                id_to_sql(captured.id),
                lsn_to_sql(lsn),
                to_json(&captured.notes)?
            ],
        )?;
        self.targets(lsn, captured.id, &captured.targets)?;
        self.edges(captured.id, &captured.depends_on)?;
        self.needs(captured.id, &captured.recipe)
    }

    /// Notes that an operation needs a content, which must be there: an undo without it would be none.
    pub(super) fn refer(&self, id: i64, digest: &Digest) -> Result<(), StorageError> {
        let bytes = digest.as_bytes().as_slice();
        let is_there: bool = self
            .transaction
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM content WHERE digest = ?1)")
            .and_then(|mut statement| statement.query_row([bytes], |row| row.get(0)))
            .map_err(|error| self.store.named(error))?;
        if !is_there && self.mode == Mode::Append {
            return Err(StorageError::ContentGone { digest: *digest });
        }
        self.execute(
            "INSERT OR IGNORE INTO reference (operation, digest) VALUES (?1, ?2)",
            params![id, bytes],
        )
    }

    fn insert(&self, lsn: Lsn, operation: &Operation) -> Result<(), StorageError> {
        let id = id_to_sql(operation.id);
        let values = params![
            id,
            lsn_to_sql(lsn),
            operation.at.0,
            operation.verb.as_str(),
            operation.summary,
            operation.status.as_str(),
            operation.agent.as_ref().map(AgentId::as_str),
            operation.task.as_ref().map(TaskId::as_str),
            to_json(&operation.owner)?,
            to_json(&operation.decision)?,
            to_json(&operation.notes)?,
            operation.undoes.map(id_to_sql),
            operation.group.map(id_to_sql),
            operation.retained,
            self.now.0,
            operation.asked.map(backout_model::Verb::as_str),
            operation.trigger.as_ref().map(to_json).transpose()?,
            operation.prompt.as_ref().map(PromptId::as_str),
        ];
        let inserted = self
            .transaction
            .prepare_cached(
                "INSERT INTO operation (id, lsn, at, verb, summary, status, agent, task, owner, decision,
                     notes, undoes, undo_group, retained, finished, place, asked, set_off, prompt)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?2, ?16, ?17, ?18)",
            )
            .and_then(|mut statement| statement.execute(values));
        match inserted {
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) =>
            {
                return Err(StorageError::DuplicateId { id: operation.id });
            }
            result => result.map_err(|error| self.store.named(error))?,
        };
        let targets = operation.targets.iter().map(|standing| &standing.target);
        self.targets(lsn, operation.id, targets)?;
        self.edges(operation.id, &operation.depends_on)
    }

    fn targets<'t>(
        &self,
        lsn: Lsn,
        id: OperationId,
        targets: impl IntoIterator<Item = &'t Target>,
    ) -> Result<(), StorageError> {
        let id = id_to_sql(id);
        for target in targets {
            self.execute(
                "INSERT OR IGNORE INTO target (operation, path, reach, lsn) VALUES (?1, ?2, ?3, ?4)",
                params![id, target.key().to_bytes(), reach_word(target.reach()), lsn_to_sql(lsn)],
            )?;
        }
        Ok(())
    }

    fn edges(&self, id: OperationId, depends_on: &[Dependency]) -> Result<(), StorageError> {
        let id = id_to_sql(id);
        for edge in depends_on {
            let reason = serde_json::to_value(edge.reason)
                .map_err(|cause| contradiction("a dependency", &cause))?;
            self.execute(
                "INSERT OR IGNORE INTO edge (dependent, dependency, reason) VALUES (?1, ?2, ?3)",
                params![id, id_to_sql(edge.on), reason.as_str()],
            )?;
        }
        Ok(())
    }

    /// Takes the next status, if the status machine allows it.
    pub(super) fn status(&self, id: OperationId, next: Status) -> Result<(), StorageError> {
        if self.mode == Mode::Append {
            let current = self.status_of(id)?;
            current
                .becomes(next)
                .map_err(|cause| contradiction(&format!("operation {id}"), &cause))?;
        }
        self.execute(
            "UPDATE operation SET status = ?2, finished = ?3 WHERE id = ?1",
            params![id_to_sql(id), next.as_str(), self.now.0],
        )
    }

    fn status_of(&self, id: OperationId) -> Result<Status, StorageError> {
        let found = self.status_found(id)?;
        found.ok_or_else(|| contradiction(&format!("operation {id}"), &"it was never armed"))
    }

    pub(super) fn status_found(&self, id: OperationId) -> Result<Option<Status>, StorageError> {
        let at = format!("operation {id}");
        let found = self
            .transaction
            .prepare_cached("SELECT status FROM operation WHERE id = ?1")
            .and_then(|mut statement| {
                statement
                    .query_row([id_to_sql(id)], |row| row.get::<_, String>(0))
                    .optional()
            })
            .map_err(|error| self.store.named(error))?;
        found.map(|status| word(&at, &status)).transpose()
    }

    /// Notes that taking an operation back failed, or that this is solved.
    fn escalated(&self, lsn: Lsn, escalated: &Escalated) -> Result<(), StorageError> {
        let open = escalated.is_open().then(|| lsn_to_sql(lsn));
        self.execute(
            "UPDATE operation SET undo_failed = ?2, finished = ?3 WHERE id = ?1",
            params![id_to_sql(escalated.id), open, self.now.0],
        )
    }

    fn checkpoint(&self, lsn: Lsn, checkpoint: &Checkpoint) -> Result<(), StorageError> {
        let placed = Checkpoint {
            lsn,
            at: self.now,
            ..checkpoint.clone()
        };
        self.execute(
            "INSERT OR REPLACE INTO checkpoint (name, lsn, body) VALUES (?1, ?2, ?3)",
            params![placed.name.as_str(), lsn_to_sql(lsn), to_json(&placed)?],
        )
    }

    /// A prompt that was told before stays what it was.
    fn prompt(&self, lsn: Lsn, prompt: &Prompt) -> Result<(), StorageError> {
        let placed = Prompt {
            lsn,
            at: self.now,
            ..prompt.clone()
        };
        self.execute(
            "INSERT OR IGNORE INTO prompt (id, lsn, agent, session, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                placed.id.as_str(),
                lsn_to_sql(lsn),
                placed.agent.as_str(),
                placed.session,
                to_json(&placed)?
            ],
        )
    }

    fn expired(&self, ids: &[OperationId]) -> Result<(), StorageError> {
        for id in ids {
            let id = id_to_sql(*id);
            self.execute(
                "UPDATE operation SET retained = 0, finished = ?2 WHERE id = ?1",
                params![id, self.now.0],
            )?;
            self.execute("DELETE FROM reference WHERE operation = ?1", [id])?;
            contents::drop_slots(self.store, self.transaction, id)?;
        }
        Ok(())
    }

    /// What is left of their images stays until their records are cut: a part is better than nothing.
    fn lost(&self, ids: &[OperationId], why: &str) -> Result<(), StorageError> {
        for id in ids {
            let at = format!("operation {id}");
            let notes: Option<String> = self
                .transaction
                .prepare_cached("SELECT notes FROM operation WHERE id = ?1")
                .and_then(|mut statement| {
                    statement
                        .query_row([id_to_sql(*id)], |row| row.get(0))
                        .optional()
                })
                .map_err(|error| self.store.named(error))?;
            let mut notes: Vec<String> = notes
                .map(|notes| from_json(&at, &notes))
                .transpose()?
                .unwrap_or_default();
            notes.push(format!("it can no longer be undone: {why}"));
            self.execute(
                "UPDATE operation SET retained = 0, finished = ?2, notes = ?3 WHERE id = ?1",
                params![id_to_sql(*id), self.now.0, to_json(&notes)?],
            )?;
        }
        Ok(())
    }

    fn repaired(&self, repair: &Repair) -> Result<(), StorageError> {
        for assumed in &repair.assumed {
            let completion = assumed.completion.as_ref().map(serde_json::to_vec);
            let completion = completion
                .transpose()
                .map_err(|cause| contradiction("a completion", &cause))?;
            self.execute(
                "UPDATE operation SET status = ?2, undone_by = ?3, redone_by = ?4,
                     completion = coalesce(completion, ?5) WHERE id = ?1",
                params![
                    id_to_sql(assumed.id),
                    assumed.status.as_str(),
                    assumed.undone_by.map(id_to_sql),
                    assumed.redone_by.map(id_to_sql),
                    completion
                ],
            )?;
            self.execute(
                "UPDATE target SET undone_by = ?2, held_by = ?3 WHERE operation = ?1",
                params![
                    id_to_sql(assumed.id),
                    assumed.undone_by.map(id_to_sql),
                    assumed.redone_by.map(id_to_sql)
                ],
            )?;
        }
        Ok(())
    }
}
