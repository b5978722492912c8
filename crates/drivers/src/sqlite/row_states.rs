//! Where each row of a changeset stands now: before, after, or something else.

use std::collections::HashMap;
use std::io::Read;

use backout_changeset::{Change, ChangesetError, Op, Value, each, rusqlite};
use backout_model::ports::State;
use rusqlite::Connection;

use super::name::quoted;

#[derive(Debug)]
pub(super) struct TableNow {
    /// Its columns in the order of a changeset: first the rowid, if there is no primary key.
    pub(super) columns: Vec<String>,
    /// Which of them are the key.
    pub(super) key: Vec<bool>,
    /// Finds a row by its key.
    select: String,
}

impl TableNow {
    /// Looks at a table; none if it is not there.
    pub(super) fn of(connection: &Connection, table: &str) -> rusqlite::Result<Option<Self>> {
        let sql =
            "SELECT name, pk FROM pragma_table_xinfo(?1, 'main') WHERE hidden = 0 ORDER BY cid";
        let mut statement = connection.prepare_cached(sql)?;
        let found = statement.query_map([table], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)? > 0))
        })?;
        let found: Vec<(String, bool)> = found.collect::<Result<_, _>>()?;
        if found.is_empty() {
            return Ok(None);
        }
        let has_key = found.iter().any(|(_, is_key)| *is_key);
        let rowid = (!has_key).then(|| ("_rowid_".to_owned(), true));
        let (columns, key): (Vec<_>, Vec<_>) = rowid.into_iter().chain(found).unzip();
        let names: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
        let keys = std::iter::zip(&names, &key).filter(|(_, is_key)| **is_key);
        let keys: Vec<String> = keys.map(|(name, _)| format!("{name} IS ?")).collect();
        let select = format!(
            "SELECT {} FROM main.{} WHERE {}",
            names.join(", "),
            quoted(table),
            keys.join(" AND ")
        );
        Ok(Some(Self {
            columns,
            key,
            select,
        }))
    }

    /// Tells whether a change speaks of the columns that the table has.
    fn fits(&self, change: &Change) -> bool {
        let rest = self.key.get(change.key.len()..);
        self.key.starts_with(&change.key) && rest.is_some_and(|rest| !rest.contains(&true))
    }

    /// Reads a row by its key.
    fn row(&self, connection: &Connection, key: &[&Value]) -> rusqlite::Result<Option<Vec<Value>>> {
        let mut statement = connection.prepare_cached(&self.select)?;
        let mut rows = statement.query(rusqlite::params_from_iter(key))?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        let values = (0..self.columns.len()).map(|at| Ok(Value::from(row.get_ref(at)?)));
        values.collect::<rusqlite::Result<_>>().map(Some)
    }
}

/// The tables that a changeset speaks of, as they are now.
#[derive(Debug, Default)]
pub(super) struct Tables(HashMap<String, Option<TableNow>>);

impl Tables {
    pub(super) fn get(
        &mut self,
        connection: &Connection,
        table: &str,
    ) -> rusqlite::Result<Option<&TableNow>> {
        if !self.0.contains_key(table) {
            let now = TableNow::of(connection, table)?;
            self.0.insert(table.to_owned(), now);
        }
        Ok(self.0.get(table).and_then(Option::as_ref))
    }
}

/// A row of a changeset, and what is there now.
#[derive(Debug)]
pub(super) struct Looked<'t> {
    pub(super) change: Change,
    pub(super) state: State,
    /// What is in its columns; none if it is not there.
    pub(super) now: Option<Vec<Value>>,
    /// The names of the columns, if the table is there.
    pub(super) columns: &'t [String],
}

/// Looks at every row that a changeset is about.
pub(super) fn look(
    connection: &Connection,
    changes: &mut dyn Read,
    mut with: impl FnMut(Looked<'_>) -> Result<(), ChangesetError>,
) -> Result<(), ChangesetError> {
    let mut tables = Tables::default();
    each(changes, false, |change| {
        let table = tables.get(connection, &change.table)?;
        let Some(table) = table else {
            let why = format!("the table `{}` is gone", change.table);
            return with(Looked {
                change,
                state: State::Other { why },
                now: None,
                columns: &[],
            });
        };
        let columns = table.columns.as_slice();
        if !table.fits(&change) {
            let why = format!("the table `{}` has other columns now", change.table);
            return with(Looked {
                change,
                state: State::Other { why },
                now: None,
                columns,
            });
        }
        let now = table.row(connection, &change.key_values())?;
        let state = state_of(&change, now.as_deref());
        with(Looked {
            change,
            state,
            now,
            columns,
        })
    })
}

/// Compares a row with what it was and what it became, as far as the change speaks of it.
pub(super) fn state_of(change: &Change, now: Option<&[Value]>) -> State {
    let is = |row: &[Option<Value>], now: &[Value]| {
        std::iter::zip(row, now).all(|(then, now)| then.as_ref().is_none_or(|then| then == now))
    };
    let other = |why: &str| State::Other {
        why: why.to_owned(),
    };
    match (change.op, now) {
        (Op::Insert, None) => State::Before,
        (Op::Insert, Some(now)) if is(&change.new, now) => State::After,
        (Op::Delete, None) => State::After,
        (Op::Delete, Some(now)) if is(&change.old, now) => State::Before,
        (Op::Update, Some(now)) if is(&change.new, now) => State::After,
        (Op::Update, Some(now)) if is(&change.old, now) => State::Before,
        (Op::Update, None) => other("somebody else deleted the row"),
        (Op::Delete, Some(_)) => other("somebody else made the row anew"),
        (Op::Insert | Op::Update, _) => other("somebody else changed the row"),
    }
}
