//! Questions to the journal. Every answer is one moment's truth.

use std::collections::BTreeSet;

use backout_model::{
    Below, Completion, Digest, DriverName, Effect, Event, Intent, JsonText, Key, Lsn, OnFailure,
    Operation, OperationId, Owner, Recipe, Record, RecordError, Slot, Target, TargetOutcome, Task,
    TaskId, Timestamp,
};
use rusqlite::types::Value;
use rusqlite::{OptionalExtension as _, Params, Transaction, params};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::append::anchor;
use super::gaps::Gaps;
use super::rows::{
    OPERATION_COLUMNS, OperationRow, completion, contradiction, digest, from_json, id_from_sql,
    id_to_sql, lsn_from_sql, lsn_to_sql, operation, word,
};
use crate::{Filter, StorageError, Store};

/// The part of an `Event::Intent` or `Event::Captured` that an undo needs. The body stays text: read as an event it would be a tree of values
/// first, which for many files is very large.
#[derive(Deserialize)]
struct StoredIntent {
    event: String,
    id: OperationId,
    recipe: StoredRecipe,
}

/// Who armed an operation.
#[derive(Deserialize)]
struct StoredOwner {
    owner: Owner,
}

/// A recipe as it is stored; see [`Recipe`].
#[derive(Deserialize)]
struct StoredRecipe {
    driver: DriverName,
    version: u16,
    #[serde(default)]
    contents: Vec<Digest>,
    #[serde(default)]
    slots: Vec<Slot>,
    body: Box<RawValue>,
}

impl StoredRecipe {
    fn into_recipe(self) -> Recipe {
        Recipe {
            driver: self.driver,
            version: self.version,
            contents: self.contents,
            slots: self.slots,
            body: JsonText::of_raw(&self.body),
        }
    }
}

impl Store {
    /// Finds an operation.
    pub fn operation(&self, id: OperationId) -> Result<Option<Operation>, StorageError> {
        let found = self.operations_where("id = ?1", [id_to_sql(id)])?;
        Ok(found.into_iter().next())
    }

    /// Lists operations, newest first.
    pub fn operations(&self, filter: &Filter) -> Result<Vec<Operation>, StorageError> {
        let (condition, values) = condition_of(filter);
        self.operations_where(&condition, rusqlite::params_from_iter(values))
    }

    /// Lists operations that are armed and not finished, newest first.
    pub fn armed(&self) -> Result<Vec<Operation>, StorageError> {
        // The status list repeats the partial index, so that only unfinished rows are visited.
        self.operations_where(
            "status IN ('armed', 'in-doubt', 'failed', 'interrupted') AND status = 'armed'
             ORDER BY lsn DESC",
            [],
        )
    }

    /// Lists operations that somebody has to look at, newest first.
    pub fn stuck(&self) -> Result<Vec<Operation>, StorageError> {
        self.operations_where(
            "status IN ('armed', 'in-doubt', 'failed', 'interrupted') AND status <> 'armed'
             ORDER BY lsn DESC",
            [],
        )
    }

    /// Lists operations whose undo failed, and of which no record says that this was solved or accepted since, newest first.
    pub fn failed(&self) -> Result<Vec<Operation>, StorageError> {
        self.operations_where("undo_failed IS NOT NULL ORDER BY lsn DESC", [])
    }

    /// Gathers what is connected with `ids` by dependencies, in both directions.
    pub fn connected(&self, ids: &[OperationId]) -> Result<Vec<Operation>, StorageError> {
        self.read(|transaction| {
            let named = |error| self.named(error);
            let mut neighbours = transaction
                .prepare_cached(
                    "SELECT dependency FROM edge WHERE dependent = ?1
                     UNION SELECT dependent FROM edge WHERE dependency = ?1
                     UNION SELECT held_by FROM target WHERE operation = ?1 AND held_by IS NOT NULL",
                )
                .map_err(named)?;
            let mut found: BTreeSet<OperationId> = ids.iter().copied().collect();
            let mut queue: Vec<OperationId> = ids.to_vec();
            while let Some(id) = queue.pop() {
                let rows = neighbours
                    .query_map([id_to_sql(id)], |row| row.get::<_, i64>(0))
                    .map_err(named)?;
                for row in rows {
                    let next = id_from_sql(row.map_err(named)?);
                    if found.insert(next) {
                        queue.push(next);
                    }
                }
            }
            let mut operations = Vec::with_capacity(found.len());
            for id in found {
                operations.extend(self.select(transaction, "id = ?1", [id_to_sql(id)])?);
            }
            Ok(operations)
        })
    }

    /// Gives the recipe of an operation and what its effect told.
    pub fn effect(&self, id: OperationId) -> Result<Effect, StorageError> {
        let (intent, completion) = self.intent(id)?;
        Ok(Effect {
            recipe: intent.recipe.into_recipe(),
            completion,
        })
    }

    /// Gives the process that armed an operation, whoever answers for it now.
    pub fn first_owner(&self, id: OperationId) -> Result<Owner, StorageError> {
        self.read(|transaction| {
            let at = format!("operation {id}");
            let lsn: i64 = transaction
                .prepare_cached("SELECT lsn FROM record WHERE operation = ?1 AND kind = 'intent'")
                .and_then(|mut statement| {
                    statement
                        .query_row([id_to_sql(id)], |row| row.get(0))
                        .optional()
                })
                .map_err(|error| self.named(error))?
                .ok_or_else(|| contradiction(&at, &"its record is gone"))?;
            let body = self.checked_body(transaction, lsn)?;
            let body = body.ok_or_else(|| contradiction(&at, &"its record is gone"))?;
            let stored: StoredOwner =
                serde_json::from_slice(&body).map_err(|cause| contradiction(&at, &cause))?;
            Ok(stored.owner)
        })
    }

    /// Tells what becomes of what a command did if it is left alone.
    pub fn on_failure(&self, id: OperationId) -> Result<OnFailure, StorageError> {
        let started = self.first_intent(id)?.and_then(|intent| intent.command);
        Ok(started.map(|start| start.on_failure).unwrap_or_default())
    }

    pub(super) fn first_intent(
        &self,
        id: OperationId,
    ) -> Result<Option<Box<Intent>>, StorageError> {
        let found = self.records_where(
            "operation = ?1 AND kind = 'intent' ORDER BY lsn LIMIT 1",
            [id_to_sql(id)],
        )?;
        Ok(found.into_iter().find_map(|record| {
            if let Event::Intent(intent) = record.event {
                Some(intent)
            } else {
                None
            }
        }))
    }

    /// Names the operation whose recipe an undo or a redo carried out, if that was not the one that it took back.
    pub fn undone_with(&self, undo: OperationId) -> Result<Option<OperationId>, StorageError> {
        Ok(self.first_intent(undo)?.and_then(|intent| intent.with))
    }

    /// Gives what became of each target of an operation when an undo took it back.
    pub fn outcomes_of(
        &self,
        id: OperationId,
        undo: OperationId,
    ) -> Result<Vec<TargetOutcome>, StorageError> {
        let found = self.records_where(
            "operation = ?1 AND kind = 'undone' ORDER BY lsn DESC",
            [id_to_sql(id)],
        )?;
        let outcomes = found.into_iter().find_map(|record| {
            if let Event::Undone { by, outcomes, .. } = record.event
                && by == undo
            {
                Some(outcomes)
            } else {
                None
            }
        });
        Ok(outcomes.unwrap_or_default())
    }

    fn intent(&self, id: OperationId) -> Result<(StoredIntent, Option<Completion>), StorageError> {
        self.read(|transaction| {
            let at = format!("operation {id}");
            let (lsn, bytes) = transaction
                .prepare_cached("SELECT lsn, completion FROM operation WHERE id = ?1")
                .and_then(|mut statement| {
                    statement
                        .query_row([id_to_sql(id)], |row| {
                            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<Vec<u8>>>(1)?))
                        })
                        .optional()
                })
                .map_err(|error| self.named(error))?
                .ok_or_else(|| contradiction(&at, &"it is not in the journal"))?;
            // A recipe is what the chain says it is, and of the operation that was asked for, or it is not used.
            let body = self.checked_body(transaction, lsn)?;
            let body = body.ok_or_else(|| contradiction(&at, &"its record is gone"))?;
            let intent: StoredIntent =
                serde_json::from_slice(&body).map_err(|cause| no_write(&at, &cause.to_string()))?;
            if !matches!(intent.event.as_str(), "intent" | "captured") {
                return Err(no_write(&at, &intent.event));
            }
            if intent.id != id {
                return Err(contradiction(&at, &"its record is another operation's"));
            }
            // Recovery completes an operation without knowing what the effect would have told.
            let completion = bytes.map(|bytes| completion(&at, &bytes)).transpose()?;
            let completion = completion.filter(|completion| !completion.0.is_null());
            Ok((intent, completion))
        })
    }

    /// Gives every record that speaks of an operation, oldest first.
    pub fn records_of(&self, id: OperationId) -> Result<Vec<Record>, StorageError> {
        self.records_where("operation = ?1 ORDER BY lsn", [id_to_sql(id)])
    }

    /// Gives the records after `lsn`, oldest first, at most `limit` of them.
    pub fn records_after(&self, lsn: Lsn, limit: usize) -> Result<Vec<Record>, StorageError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.records_where(
            "lsn > ?1 ORDER BY lsn LIMIT ?2",
            params![lsn_to_sql(lsn), limit],
        )
    }

    /// Finds another operation in effect that did something to a key, or to what holds it, after a place in the
    /// journal.
    pub fn done_since(
        &self,
        key: &Key,
        place: Lsn,
        except: OperationId,
    ) -> Result<Option<OperationId>, StorageError> {
        self.read(|transaction| {
            let named = |error| self.named(error);
            let mut statement = transaction
                .prepare_cached(
                    "SELECT operation.id FROM target JOIN operation ON operation.id = target.operation
                     WHERE target.path = ?1 AND target.undone_by IS NULL AND operation.id <> ?3
                       AND (?4 OR target.reach = 'tree')
                       AND operation.undoes IS NULL AND operation.place > ?2
                       AND operation.status IN ('applied', 'committed', 'interrupted')
                     ORDER BY operation.place DESC LIMIT 1",
                )
                .map_err(named)?;
            for above in std::iter::once(key.clone()).chain(key.ancestors()) {
                let is_whole = above == *key || key.below(&above) == Some(Below::Part);
                let values = params![
                    above.to_bytes(),
                    lsn_to_sql(place),
                    id_to_sql(except),
                    is_whole
                ];
                let found = statement.query_row(values, |row| row.get(0)).optional();
                if let Some(found) = found.map_err(named)? {
                    return Ok(Some(id_from_sql(found)));
                }
            }
            Ok(None)
        })
    }

    /// Tells when a record was written; the beginning of time if it is not in the journal any more.
    pub fn moment_of(&self, lsn: Lsn) -> Result<Timestamp, StorageError> {
        self.read(|transaction| {
            let at = transaction
                .prepare_cached("SELECT at FROM record WHERE lsn = ?1")
                .and_then(|mut statement| {
                    statement
                        .query_row([lsn_to_sql(lsn)], |row| row.get(0))
                        .optional()
                })
                .map_err(|error| self.named(error))?;
            Ok(Timestamp(at.unwrap_or(i64::MIN)))
        })
    }

    /// Gives the last place in the journal that was written at a moment or before it.
    pub fn place_at(&self, moment: Timestamp) -> Result<Lsn, StorageError> {
        self.read(|transaction| {
            let last: Option<i64> = transaction
                .prepare_cached("SELECT max(lsn) FROM record WHERE at <= ?1")
                .and_then(|mut statement| statement.query_row([moment.0], |row| row.get(0)))
                .map_err(|error| self.named(error))?;
            Ok(last.map_or(Lsn(0), lsn_from_sql))
        })
    }

    /// Counts how often the busiest of these targets was written since a moment, up to `limit`.
    pub fn writes_since(
        &self,
        targets: &[Target],
        since: Timestamp,
        limit: u32,
    ) -> Result<u32, StorageError> {
        self.read(|transaction| {
            let mut most = 0;
            for target in targets {
                // Newest first, and no more than are asked for: a file may have very many versions.
                let count: u32 = transaction
                    .prepare_cached(
                        "SELECT count(*) FROM (
                             SELECT operation.at FROM target
                             JOIN operation ON operation.id = target.operation
                             WHERE target.path = ?1 ORDER BY target.lsn DESC LIMIT ?3)
                         WHERE at >= ?2",
                    )
                    .and_then(|mut statement| {
                        statement
                            .query_row(params![target.key().to_bytes(), since.0, limit], |row| {
                                row.get(0)
                            })
                    })
                    .map_err(|error| self.named(error))?;
                most = most.max(count);
            }
            Ok(most)
        })
    }

    /// Finds a task.
    pub fn task(&self, id: &TaskId) -> Result<Option<Task>, StorageError> {
        Ok(self.tasks()?.into_iter().find(|task| task.id == *id))
    }

    /// Lists tasks, newest first.
    pub fn tasks(&self) -> Result<Vec<Task>, StorageError> {
        self.read(|transaction| {
            let named = |error| self.named(error);
            let mut statement = transaction
                .prepare_cached(
                    "SELECT id, status, began, agent, owner FROM task ORDER BY began DESC, id",
                )
                .map_err(named)?;
            let rows = statement
                .query_map([], |row| {
                    let texts: [String; 2] = [row.get(0)?, row.get(1)?];
                    let options: [Option<String>; 2] = [row.get(3)?, row.get(4)?];
                    Ok((texts, row.get::<_, i64>(2)?, options))
                })
                .map_err(named)?;
            rows.map(|row| {
                let ([id, status], began, [agent, owner]) = row.map_err(named)?;
                let at = format!("task {id}");
                Ok(Task {
                    id: word(&at, &id)?,
                    status: word(&at, &status)?,
                    began: Timestamp(began),
                    agent: agent.map(|agent| word(&at, &agent)).transpose()?,
                    owner: owner.map(|owner| from_json(&at, &owner)).transpose()?,
                })
            })
            .collect()
        })
    }

    fn operations_where(
        &self,
        condition: &str,
        values: impl Params,
    ) -> Result<Vec<Operation>, StorageError> {
        self.read(|transaction| self.select(transaction, condition, values))
    }

    fn select(
        &self,
        transaction: &Transaction<'_>,
        condition: &str,
        values: impl Params,
    ) -> Result<Vec<Operation>, StorageError> {
        let named = |error| self.named(error);
        let sql = format!("SELECT {OPERATION_COLUMNS} FROM operation WHERE {condition}");
        let mut statement = transaction.prepare_cached(&sql).map_err(named)?;
        let rows = statement
            .query_map(values, OperationRow::read)
            .map_err(named)?;
        rows.map(|row| operation(transaction, row.map_err(named)?, &named))
            .collect()
    }

    pub(super) fn records_where(
        &self,
        condition: &str,
        values: impl Params,
    ) -> Result<Vec<Record>, StorageError> {
        self.read(|transaction| self.records_in(transaction, condition, values))
    }

    /// Gives the bytes of one record if its link holds, without reading what they say.
    fn checked_body(
        &self,
        transaction: &Transaction<'_>,
        lsn: i64,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        let named = |error| self.named(error);
        let found = transaction
            .prepare_cached(
                "SELECT at, body, hash,
                        (SELECT hash FROM record AS earlier WHERE earlier.lsn = record.lsn - 1)
                 FROM record WHERE lsn = ?1",
            )
            .and_then(|mut statement| {
                statement
                    .query_row([lsn], |row| {
                        let (at, body): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
                        let hash: Vec<u8> = row.get(2)?;
                        Ok((at, body, hash, row.get::<_, Option<Vec<u8>>>(3)?))
                    })
                    .optional()
            })
            .map_err(named)?;
        let Some((at, body, hash, previous)) = found else {
            return Ok(None);
        };
        let (place, at) = (lsn_from_sql(lsn), Timestamp(at));
        let hash = digest(&format!("record {lsn}"), &hash)?;
        let beginning = anchor(transaction).map_err(named)??;
        let previous = match previous {
            Some(previous) => digest(&format!("record {}", lsn - 1), &previous)?,
            None if place == beginning.0.next() => beginning.1,
            None => {
                // Behind a gap: only a repair's own word says how the chain goes on.
                Gaps::declared(self, transaction)?.read_after(place, at, &body, &hash)?;
                return Ok(Some(body));
            }
        };
        if Record::chain(&previous, place, at, &body) == hash {
            Ok(Some(body))
        } else {
            Err(RecordError::BrokenLink { lsn: place }.into())
        }
    }

    fn records_in(
        &self,
        transaction: &Transaction<'_>,
        condition: &str,
        values: impl Params,
    ) -> Result<Vec<Record>, StorageError> {
        let named = |error| self.named(error);
        let sql = format!(
            "SELECT lsn, at, body, hash,
                    (SELECT hash FROM record AS earlier WHERE earlier.lsn = record.lsn - 1)
             FROM record WHERE {condition}"
        );
        let beginning = anchor(transaction).map_err(named)??;
        let mut statement = transaction.prepare_cached(&sql).map_err(named)?;
        let rows = statement
            .query_map(values, |row| {
                let place: (i64, i64) = (row.get(0)?, row.get(1)?);
                let bytes: (Vec<u8>, Vec<u8>) = (row.get(2)?, row.get(3)?);
                Ok((place, bytes, row.get::<_, Option<Vec<u8>>>(4)?))
            })
            .map_err(named)?;
        rows.map(|row| {
            let ((lsn, at), (body, hash), previous) = row.map_err(named)?;
            let place = lsn_from_sql(lsn);
            if let Some(previous) = previous {
                let previous = digest(&format!("record {}", lsn - 1), &previous)?;
                return read_record(lsn, at, &body, &hash, &previous);
            }
            if place == beginning.0.next() {
                return read_record(lsn, at, &body, &hash, &beginning.1);
            }
            // Behind a gap: only a repair's own word says how the chain goes on.
            let gaps = Gaps::declared(self, transaction)?;
            gaps.read_after(place, Timestamp(at), &body, &digest("a record", &hash)?)
        })
        .collect()
    }
}

/// Says a filter in SQL. Only what is asked for is said, so that an index can answer it: the operations of one path or
/// one task are found without looking at all others.
pub(super) fn condition_of(filter: &Filter) -> (String, Vec<Value>) {
    let mut conditions = vec!["TRUE".to_owned()];
    let mut values: Vec<Value> = Vec::new();
    let mut also = |condition: &str, value: &mut Vec<Value>| {
        conditions.push(condition.to_owned());
        values.append(value);
    };
    if let Some(key) = &filter.at {
        let below = "id IN (SELECT operation FROM target WHERE path = ?
            OR (path >= ? AND path < ?) OR (path >= ? AND path < ?))";
        let mut bounds = vec![key.to_bytes().into()];
        for (first, last) in key.ranges_below() {
            bounds.extend([first.into(), last.into()]);
        }
        also(below, &mut bounds);
    }
    if let Some(key) = &filter.within {
        let above = key.ancestors();
        let marks = vec!["?"; above.len()].join(", ");
        let holds = format!(
            "id IN (SELECT operation FROM target WHERE path IN ({marks}) AND reach = 'tree')"
        );
        let mut above = above.iter().map(|key| key.to_bytes().into()).collect();
        also(&holds, &mut above);
    }
    if let Some(agent) = &filter.agent {
        also("agent = ?", &mut vec![agent.as_str().to_owned().into()]);
    }
    if let Some(task) = &filter.task {
        also("task = ?", &mut vec![task.as_str().to_owned().into()]);
    }
    if let Some(prompt) = &filter.prompt {
        also("prompt = ?", &mut vec![prompt.as_str().to_owned().into()]);
    }
    if let Some(group) = filter.group {
        also("undo_group = ?", &mut vec![id_to_sql(group).into()]);
    }
    if let Some(after) = filter.after {
        also("lsn > ?", &mut vec![lsn_to_sql(after).into()]);
    }
    if let Some(before) = filter.before {
        also("lsn < ?", &mut vec![lsn_to_sql(before).into()]);
    }
    if let Some(after) = filter.placed_after {
        also("place > ?", &mut vec![lsn_to_sql(after).into()]);
    }
    let limit = filter
        .limit
        .map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    values.push(limit.into());
    (
        format!("{} ORDER BY lsn DESC LIMIT ?", conditions.join(" AND ")),
        values,
    )
}

/// Reads a stored record and checks its link to the one before it.
pub(super) fn read_record(
    lsn: i64,
    at: i64,
    body: &[u8],
    hash: &[u8],
    previous: &Digest,
) -> Result<Record, StorageError> {
    let hash = digest(&format!("record {lsn}"), hash)?;
    Ok(Record::read(
        previous,
        lsn_from_sql(lsn),
        Timestamp(at),
        body,
        hash,
    )?)
}

/// Says that the record of an operation is that of something else.
fn no_write(at: &str, what: &str) -> StorageError {
    contradiction(at, &format!("its record tells of no write: {what}"))
}
