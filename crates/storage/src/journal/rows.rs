//! How model types become columns and come back.

use backout_model::{
    Completion, Dependency, DependencyReason, Digest, Key, Lsn, Operation, OperationId, Reach,
    Standing, Status, Target, Timestamp,
};
use rusqlite::{Row, Transaction};

use crate::StorageError;

/// An id as SQLite keeps integers. The sign is only a matter of reading the same 64 bits.
pub(crate) const fn id_to_sql(id: OperationId) -> i64 {
    id.bits().cast_signed()
}

/// The id behind a stored integer.
pub(crate) const fn id_from_sql(value: i64) -> OperationId {
    OperationId::from_bits(value.cast_unsigned())
}

pub(super) const fn lsn_to_sql(lsn: Lsn) -> i64 {
    lsn.0.cast_signed()
}

pub(crate) const fn lsn_from_sql(value: i64) -> Lsn {
    Lsn(value.cast_unsigned())
}

/// Writes a model type as the JSON that a text column holds.
pub(super) fn to_json<T: serde::Serialize>(value: &T) -> Result<String, StorageError> {
    serde_json::to_string(value).map_err(|cause| contradiction("a value to be stored", &cause))
}

/// Reads a model type from the JSON of a text column.
pub(super) fn from_json<T: serde::de::DeserializeOwned>(
    at: &str,
    text: &str,
) -> Result<T, StorageError> {
    serde_json::from_str(text).map_err(|cause| contradiction(at, &cause))
}

pub(super) fn contradiction(at: &str, detail: &dyn std::fmt::Display) -> StorageError {
    StorageError::Inconsistent {
        at: at.to_owned(),
        detail: detail.to_string(),
    }
}

/// Reads a word of one of our closed sets.
pub(super) fn word<T: serde::de::DeserializeOwned>(
    at: &str,
    text: &str,
) -> Result<T, StorageError> {
    serde_json::from_value(serde_json::Value::String(text.to_owned()))
        .map_err(|cause| contradiction(at, &cause))
}

pub(super) const fn reach_word(reach: Reach) -> &'static str {
    match reach {
        Reach::Node => "node",
        Reach::Tree => "tree",
    }
}

/// Reads where a target is. Its column is called `path`, since the bytes of a plain file are its path.
pub(crate) fn key_from_sql(at: &str, bytes: &[u8]) -> Result<Key, StorageError> {
    Key::from_bytes(bytes).map_err(|cause| contradiction(at, &cause))
}

pub(super) fn digest(at: &str, bytes: &[u8]) -> Result<Digest, StorageError> {
    Digest::from_slice(bytes).map_err(|cause| contradiction(at, &cause))
}

/// The columns that [`operation`] reads, in its order.
pub(super) const OPERATION_COLUMNS: &str = "id, lsn, at, verb, summary, status, agent, task, owner, \
     decision, notes, undoes, undo_group, retained, place, asked, set_off, prompt";

/// The columns of an operation, before its targets and edges are added.
pub(super) struct OperationRow {
    id: i64,
    lsn: i64,
    at: i64,
    texts: [String; 6],
    agent: Option<String>,
    task: Option<String>,
    links: [Option<i64>; 2],
    retained: bool,
    place: i64,
    asked: Option<String>,
    set_off: Option<String>,
    prompt: Option<String>,
}

impl OperationRow {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            lsn: row.get(1)?,
            at: row.get(2)?,
            texts: [
                row.get(3)?,
                row.get(4)?,
                row.get(5)?,
                row.get(8)?,
                row.get(9)?,
                row.get(10)?,
            ],
            agent: row.get(6)?,
            task: row.get(7)?,
            links: [row.get(11)?, row.get(12)?],
            retained: row.get(13)?,
            place: row.get(14)?,
            asked: row.get(15)?,
            set_off: row.get(16)?,
            prompt: row.get(17)?,
        })
    }
}

/// Completes a row with its targets and edges.
pub(super) fn operation(
    transaction: &Transaction<'_>,
    row: OperationRow,
    named: &dyn Fn(rusqlite::Error) -> StorageError,
) -> Result<Operation, StorageError> {
    let id = id_from_sql(row.id);
    let at = format!("operation {id}");
    let [verb, summary, status, owner, decision, notes] = row.texts;
    let [undoes, group] = row.links.map(|link| link.map(id_from_sql));
    let parsed = |name: Option<String>| name.map(|name| word(&at, &name)).transpose();
    let task = row.task.map(|name| word(&at, &name)).transpose()?;
    Ok(Operation {
        id,
        lsn: lsn_from_sql(row.lsn),
        place: lsn_from_sql(row.place),
        at: Timestamp(row.at),
        verb: word(&at, &verb)?,
        summary,
        status: word::<Status>(&at, &status)?,
        agent: parsed(row.agent)?,
        task,
        prompt: row.prompt.map(|name| word(&at, &name)).transpose()?,
        owner: from_json(&at, &owner)?,
        decision: from_json(&at, &decision)?,
        targets: targets_of(transaction, id, named)?,
        depends_on: edges_of(transaction, id, named)?,
        undoes,
        group,
        asked: row.asked.map(|asked| word(&at, &asked)).transpose()?,
        trigger: row.set_off.map(|text| from_json(&at, &text)).transpose()?,
        retained: row.retained,
        notes: from_json(&at, &notes)?,
    })
}

fn targets_of(
    transaction: &Transaction<'_>,
    id: OperationId,
    named: &dyn Fn(rusqlite::Error) -> StorageError,
) -> Result<Vec<Standing>, StorageError> {
    let mut statement = transaction
        .prepare_cached(
            "SELECT path, reach, undone_by, held_by FROM target WHERE operation = ?1 ORDER BY path",
        )
        .map_err(named)?;
    let rows = statement
        .query_map([id_to_sql(id)], |row| {
            let links: [Option<i64>; 2] = [row.get(2)?, row.get(3)?];
            Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, String>(1)?, links))
        })
        .map_err(named)?;
    rows.map(|row| {
        let (path, reach, links) = row.map_err(named)?;
        let [undone_by, held_by] = links.map(|link| link.map(id_from_sql));
        let at = format!("a target of operation {id}");
        Ok(Standing {
            target: Target::new(key_from_sql(&at, &path)?, word(&at, &reach)?),
            undone_by,
            held_by,
        })
    })
    .collect()
}

fn edges_of(
    transaction: &Transaction<'_>,
    id: OperationId,
    named: &dyn Fn(rusqlite::Error) -> StorageError,
) -> Result<Vec<Dependency>, StorageError> {
    let mut statement = transaction
        .prepare_cached("SELECT dependency, reason FROM edge WHERE dependent = ?1")
        .map_err(named)?;
    let rows = statement
        .query_map([id_to_sql(id)], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        })
        .map_err(named)?;
    rows.map(|row| {
        let (on, reason) = row.map_err(named)?;
        let reason = word::<DependencyReason>(&format!("an edge of operation {id}"), &reason)?;
        Ok(Dependency {
            on: id_from_sql(on),
            reason,
        })
    })
    .collect()
}

/// Reads a completion column.
pub(super) fn completion(at: &str, bytes: &[u8]) -> Result<Completion, StorageError> {
    serde_json::from_slice(bytes).map_err(|cause| contradiction(at, &cause))
}
