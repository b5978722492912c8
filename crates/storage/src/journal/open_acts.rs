//! Acts under way: an undo or a redo of several operations is marked as begun when its first step is armed, in the same
//! transaction, and the mark goes when the act ends in whatever way its caller is told of.
//!
//! So a mark whose process is dead says that an act may have stopped between two steps. What it was to do stands in the record
//! of its first step; what it has done, in the records of its steps. Like a lease a mark follows from no record: after a repair
//! it is gone.

use backout_model::ports::{Durability, OpenAct};
use backout_model::{ActPlan, OperationId, Owner};
use rusqlite::{OptionalExtension as _, Transaction, params};
use serde::{Deserialize, Serialize};

use super::rows::{from_json, to_json};
use crate::{StorageError, Store};

/// How the keys of the marks begin, in `meta`, and the first key after them.
const KEYS: [&str; 2] = ["act-", "act."];

#[derive(Serialize, Deserialize)]
struct Mark {
    owner: Owner,
    #[serde(default)]
    is_told: bool,
}

impl Store {
    /// Lists the acts that have begun, and of which nobody has told the end.
    pub fn open_acts(&self) -> Result<Vec<OpenAct>, StorageError> {
        self.read(|transaction| {
            let named = |error| self.named(error);
            let mut statement = transaction
                .prepare_cached("SELECT key, value FROM meta WHERE key >= ?1 AND key < ?2")
                .map_err(named)?;
            let rows = statement
                .query_map(KEYS, |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
                })
                .map_err(named)?;
            let mut acts = Vec::new();
            for row in rows {
                let (key, value) = row.map_err(named)?;
                let id = key.strip_prefix(KEYS[0]).and_then(|id| id.parse().ok());
                // A mark that cannot be read says nothing.
                if let (Some(id), Ok(mark)) = (id, from_json::<Mark>("an act", &value)) {
                    acts.push(OpenAct {
                        id,
                        owner: mark.owner,
                        is_told: mark.is_told,
                    });
                }
            }
            Ok(acts)
        })
    }

    /// Gives what an act was to do; none if its first step does not say.
    pub fn plan_of(&self, act: OperationId) -> Result<Option<ActPlan>, StorageError> {
        Ok(self.first_intent(act)?.and_then(|intent| intent.plan))
    }

    /// Notes that somebody is told of an act that was left. Says no if somebody else was.
    pub fn tell_act(&self, act: OperationId) -> Result<bool, StorageError> {
        self.write(Durability::Process, |transaction| {
            let found: Option<String> = transaction
                .prepare_cached("SELECT value FROM meta WHERE key = ?1")
                .and_then(|mut statement| {
                    let found = statement.query_row([key(act)], |row| row.get(0));
                    found.optional()
                })
                .map_err(|error| self.named(error))?;
            let Some(mut mark) = found.and_then(|value| from_json::<Mark>("an act", &value).ok())
            else {
                return Ok(false);
            };
            let is_news = !mark.is_told;
            mark.is_told = true;
            self.mark(transaction, act, &mark)?;
            Ok(is_news)
        })
    }

    /// Takes the mark of an act away: it is over, and whoever asked for it knows how it ended.
    pub fn end_act(&self, act: OperationId) -> Result<(), StorageError> {
        self.write(Durability::Process, |transaction| {
            self.run(transaction, "DELETE FROM meta WHERE key = ?1", [key(act)])
        })
    }

    /// Marks an act as begun.
    pub(super) fn begin_act(
        &self,
        transaction: &Transaction<'_>,
        act: OperationId,
        owner: &Owner,
    ) -> Result<(), StorageError> {
        let mark = Mark {
            owner: owner.clone(),
            is_told: false,
        };
        self.mark(transaction, act, &mark)
    }

    fn mark(
        &self,
        transaction: &Transaction<'_>,
        act: OperationId,
        mark: &Mark,
    ) -> Result<(), StorageError> {
        let set = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
        self.run(transaction, set, params![key(act), to_json(mark)?])
    }
}

fn key(act: OperationId) -> String {
    format!("{}{act}", KEYS[0])
}
