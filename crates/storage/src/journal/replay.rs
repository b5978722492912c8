//! The tables that follow from the records, made again and compared with those that are there.
//!
//! Everything that answers a question (`operation`, `target`, `edge`, …) can be made from the records alone. A
//! check does that in a temporary database of its own, and a difference means that a table is damaged or was changed by
//! somebody else. What the journal itself changes without a record is left out: owners of operations that were taken over,
//! sizes of kept inodes, leases.

use std::collections::{HashMap, HashSet};

use backout_model::{Completion, OperationId, Record};
use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::project::{Mode, project};
use super::rows::id_from_sql;
use crate::schema::CREATE;
use crate::{StorageError, Store, VerifyFinding};

/// What is compared of an operation; the first is its id.
const OPERATION_COLUMNS: [&str; 22] = [
    "id",
    "lsn",
    "at",
    "verb",
    "summary",
    "status",
    "agent",
    "task",
    "decision",
    "notes",
    "undoes",
    "undo_group",
    "undone_by",
    "redone_by",
    "retained",
    "finished",
    "completion",
    "place",
    "asked",
    "set_off",
    "undo_failed",
    "prompt",
];

/// The other tables: the name, the columns, which of them is an operation if one is, and whether a row that no record
/// gives is damage. (Contents are put aside before their operation is armed; tasks and marks outlive records that were cut.)
const OTHERS: [(&str, &str, bool, bool); 8] = [
    (
        "target",
        "operation, path, lsn, reach, undone_by, held_by",
        true,
        true,
    ),
    ("edge", "dependent, dependency, reason", true, true),
    ("reference", "operation, digest", true, false),
    ("slot", "operation, depot, name", true, false),
    ("task", "id, status, began, agent, owner, was", false, false),
    ("checkpoint", "name, lsn, body", false, false),
    ("prompt", "id, lsn, agent, session, body", false, false),
    ("note", "topic, subject, lsn, body", false, false),
];

/// Opens an empty temporary database with our tables. It lives in memory and, if it grows, in a file without a name.
pub(super) fn temporary(store: &Store) -> Result<Connection, StorageError> {
    let open = || {
        let connection = Connection::open("")?;
        connection.execute_batch(CREATE)?;
        Ok(connection)
    };
    open().map_err(|error| store.named(error))
}

/// What the records alone give.
pub(super) struct Replay<'c> {
    store: &'c Store,
    pub(super) transaction: Transaction<'c>,
}

impl<'c> Replay<'c> {
    pub(super) fn begin(
        store: &'c Store,
        connection: &'c Connection,
    ) -> Result<Self, StorageError> {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Deferred)
            .map_err(|error| store.named(error))?;
        Ok(Self { store, transaction })
    }

    /// Takes the next record.
    pub(super) fn take(&self, record: &Record) -> Result<(), StorageError> {
        let place = (record.lsn, record.at);
        project(
            self.store,
            &self.transaction,
            place,
            &record.event,
            Mode::Replay,
        )
    }

    /// Compares with the tables that `transaction` sees. One that cannot be read is a finding.
    pub(super) fn compare(&self, transaction: &Transaction<'_>, findings: &mut Vec<VerifyFinding>) {
        let unreadable = |table: &str, error: &StorageError| VerifyFinding::Database {
            detail: format!("the table `{table}` cannot be read: {}", cause(error)),
        };
        if let Err(error) = self.compare_operations(transaction, findings) {
            findings.push(unreadable("operation", &error));
        }
        for other in OTHERS {
            if let Err(error) = self.compare_other(transaction, other, findings) {
                findings.push(unreadable(other.0, &error));
            }
        }
    }

    fn compare_operations(
        &self,
        transaction: &Transaction<'_>,
        findings: &mut Vec<VerifyFinding>,
    ) -> Result<(), StorageError> {
        let sql = format!("SELECT {} FROM operation", OPERATION_COLUMNS.join(", "));
        let mut expected: HashMap<OperationId, Vec<Value>> = HashMap::new();
        self.each(&self.transaction, &sql, &mut |row| {
            expected.insert(operation_of(&row), row);
        })?;
        self.each(transaction, &sql, &mut |row| {
            let id = operation_of(&row);
            let detail = match expected.remove(&id) {
                None => Some("it is listed, but no record of it can be trusted".to_owned()),
                Some(expected) => difference(&row, &expected),
            };
            findings.extend(detail.map(|detail| VerifyFinding::Operation { id, detail }));
        })?;
        let mut missing: Vec<OperationId> = expected.into_keys().collect();
        missing.sort_unstable();
        findings.extend(missing.into_iter().map(|id| VerifyFinding::Operation {
            id,
            detail: "it has records, but is not listed".to_owned(),
        }));
        Ok(())
    }

    fn compare_other(
        &self,
        transaction: &Transaction<'_>,
        (table, columns, is_of_operation, is_exact): (&str, &str, bool, bool),
        findings: &mut Vec<VerifyFinding>,
    ) -> Result<(), StorageError> {
        let sql = format!("SELECT {columns} FROM {table}");
        let mut expected: HashSet<String> = HashSet::new();
        let mut subjects = HashMap::new();
        let text = |row: &[Value]| format!("{row:?}");
        self.each(&self.transaction, &sql, &mut |row| {
            subjects.insert(text(&row), operation_of(&row));
            expected.insert(text(&row));
        })?;
        let mut wrong = Vec::new();
        self.each(transaction, &sql, &mut |row| {
            let written = text(&row);
            if !expected.remove(&written) && is_exact {
                wrong.push((Some(operation_of(&row)), "has a row that no record gives"));
            }
        })?;
        let missing = expected
            .iter()
            .map(|row| (subjects.get(row).copied(), "lacks a row"));
        wrong.extend(missing);
        wrong.sort_unstable();
        wrong.dedup();
        findings.extend(
            wrong
                .into_iter()
                .map(|(id, what)| match id.filter(|_| is_of_operation) {
                    Some(id) => VerifyFinding::Operation {
                        id,
                        detail: format!("the table `{table}` {what} for it"),
                    },
                    None => VerifyFinding::Database {
                        detail: format!("the table `{table}` {what}"),
                    },
                }),
        );
        Ok(())
    }

    fn each(
        &self,
        transaction: &Transaction<'_>,
        sql: &str,
        take: &mut dyn FnMut(Vec<Value>),
    ) -> Result<(), StorageError> {
        let named = |error| self.store.named(error);
        let mut statement = transaction.prepare(sql).map_err(named)?;
        let columns = statement.column_count();
        let mut rows = statement.query([]).map_err(named)?;
        while let Some(row) = rows.next().map_err(named)? {
            let values: rusqlite::Result<Vec<Value>> =
                (0..columns).map(|index| row.get(index)).collect();
            take(values.map_err(named)?);
        }
        Ok(())
    }
}

/// Says what is behind an error, without our own words around it.
pub(super) fn cause(error: &StorageError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    source.unwrap_or_else(|| error.to_string())
}

fn operation_of(row: &[Value]) -> OperationId {
    match row.first() {
        Some(Value::Integer(id)) => id_from_sql(*id),
        _ => id_from_sql(0),
    }
}

/// A completion that an older program wrote is in other words.
fn means_the_same(found: &Value, expected: &Value) -> bool {
    let read = |value: &Value| match value {
        Value::Blob(bytes) => serde_json::from_slice::<Completion>(bytes).ok(),
        _ => None,
    };
    read(found).is_some_and(|found| read(expected) == Some(found))
}

fn difference(found: &[Value], expected: &[Value]) -> Option<String> {
    let mut columns = OPERATION_COLUMNS.iter().zip(found.iter().zip(expected));
    let differs = |(column, (found, expected)): &(&&str, (&Value, &Value))| {
        found != expected && !(**column == "completion" && means_the_same(found, expected))
    };
    let (column, (found, expected)) = columns.find(differs)?;
    Some(match (found, expected) {
        (Value::Text(found), Value::Text(expected)) if *column == "status" => {
            format!("it is listed as {found}, but its records make it {expected}")
        }
        _ => format!("its `{column}` is not what its records say"),
    })
}
