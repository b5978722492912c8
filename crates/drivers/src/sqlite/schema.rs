//! The schema of a database, and whole tables: what a change of the schema touches is kept whole and put back whole.
//!
//! - An index, a view or a trigger is its text. It goes and comes by that.
//! - A table is its text, its rows with their rowids, its place in the sequence, and its indexes and triggers: an [`Image`].

use std::collections::{BTreeMap, BTreeSet};

use backout_changeset::Value;
use backout_changeset::rusqlite::{self, Connection, params_from_iter};
use backout_model::Digest;
use serde::{Deserialize, Serialize};

use super::database::MARKS;
use super::name::quoted;
use super::rows::{Reader, write_value};
use super::vague::rowid_of;

/// How many bytes a table may have that is kept whole.
pub(super) const IMAGE_MIB_MAX: u64 = 256;

/// Something of the schema that is no table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Object {
    /// `index`, `view` or `trigger`.
    pub(super) kind: String,
    /// As the schema has it.
    pub(super) name: String,
    /// What it belongs to.
    pub(super) table: String,
    /// The statement that makes it.
    pub(super) sql: String,
}

/// A table as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Image {
    /// The statement that makes it.
    pub(super) sql: String,
    /// Its indexes and triggers.
    pub(super) rest: Vec<Object>,
    /// What all its rows hash to.
    pub(super) rows: Digest,
    /// How many they are.
    pub(super) count: u64,
    /// The last number of its sequence, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sequence: Option<i64>,
    /// Whether its rows are in the store. Without rows nothing is.
    #[serde(default)]
    pub(super) is_kept: bool,
}

impl Image {
    /// Tells whether two are the same table with the same rows. A sequence may have gone on.
    pub(super) fn is(&self, other: &Self) -> bool {
        (&self.sql, &self.rest, &self.rows) == (&other.sql, &other.rest, &other.rows)
    }
}

/// What something was and becomes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Turn<T> {
    /// None if it was not there.
    pub(super) before: Option<T>,
    /// None if it goes.
    pub(super) after: Option<T>,
}

/// The schema of a database.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Schema {
    /// The statements of its tables, by name.
    pub(super) tables: BTreeMap<String, String>,
    /// All else, by name.
    pub(super) objects: BTreeMap<String, Object>,
}

impl Schema {
    /// Reads it. `SQLite`'s own tables and ours are not part of it, nor what `SQLite` makes by itself.
    pub(super) fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT type, name, tbl_name, sql FROM main.sqlite_schema \
                   WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND tbl_name <> ?1 ORDER BY rowid";
        let mut statement = connection.prepare(sql)?;
        let found = statement.query_map([MARKS], |row| {
            Ok(Object {
                kind: row.get(0)?,
                name: row.get(1)?,
                table: row.get(2)?,
                sql: row.get(3)?,
            })
        })?;
        let mut schema = Self::default();
        for object in found {
            let object = object?;
            if object.kind == "table" {
                schema.tables.insert(object.name, object.sql);
            } else {
                schema.objects.insert(object.name.clone(), object);
            }
        }
        Ok(schema)
    }

    /// Names the tables that are not the same in another.
    pub(super) fn tables_unlike(&self, other: &Self) -> BTreeSet<String> {
        let names = self.tables.keys().chain(other.tables.keys());
        let unlike = names.filter(|name| self.tables.get(*name) != other.tables.get(*name));
        unlike.cloned().collect()
    }

    /// Lists what became of all that is no table, apart from what belongs to `tables`.
    pub(super) fn turns(
        &self,
        after: &Self,
        tables: &BTreeSet<String>,
    ) -> BTreeMap<String, Turn<Object>> {
        let names: BTreeSet<&String> = self.objects.keys().chain(after.objects.keys()).collect();
        let turn = |name: &String| Turn {
            before: self.objects.get(name).cloned(),
            after: after.objects.get(name).cloned(),
        };
        let turns = names.into_iter().map(|name| (name.clone(), turn(name)));
        let is_of_them = |it: &Option<Object>| {
            it.as_ref()
                .is_none_or(|it| it.kind != "view" && tables.contains(&it.table))
        };
        turns
            .filter(|(_, turn)| turn.before != turn.after)
            .filter(|(_, turn)| !(is_of_them(&turn.before) && is_of_them(&turn.after)))
            .collect()
    }
}

/// Reads a table whole; none if it is not there. The bytes are its rows.
pub(super) fn image_of(
    connection: &Connection,
    table: &str,
) -> rusqlite::Result<Option<(Image, Vec<u8>)>> {
    let schema = Schema::of(connection)?;
    let Some(sql) = schema.tables.get(table) else {
        return Ok(None);
    };
    let mut rest: Vec<Object> = schema.objects.into_values().collect();
    rest.retain(|object| object.table == table && object.kind != "view");
    let columns = columns_of(connection, table)?;
    let names: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
    let select = format!(
        "SELECT {} FROM main.{} ORDER BY {}",
        names.join(", "),
        quoted(table),
        order_of(connection, table, &names)?
    );
    let mut bytes = Vec::new();
    let mut count = 0;
    let mut statement = connection.prepare(&select)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for at in 0..names.len() {
            write_value(&mut bytes, row.get_ref(at)?);
        }
        count += 1;
        if bytes.len() as u64 > IMAGE_MIB_MAX * 1024 * 1024 {
            return Err(rusqlite::Error::ToSqlConversionFailure(
                "too many rows".into(),
            ));
        }
    }
    let image = Image {
        sql: sql.clone(),
        rest,
        rows: Digest::of(&bytes),
        count,
        sequence: sequence_of(connection, table)?,
        is_kept: false,
    };
    Ok(Some((image, bytes)))
}

/// Makes a table what an image says, in place of what is there. `rows` are its rows, if it is to be there.
pub(super) fn put_image(
    connection: &Connection,
    table: &str,
    image: Option<(&Image, &[u8])>,
) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("DROP TABLE IF EXISTS main.{}", quoted(table)))?;
    let Some((image, bytes)) = image else {
        return Ok(());
    };
    connection.execute_batch(&image.sql)?;
    let columns = columns_of(connection, table)?;
    let names: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
    let places: Vec<String> = (1..=names.len()).map(|at| format!("?{at}")).collect();
    let insert = format!(
        "INSERT INTO main.{}({}) VALUES({})",
        quoted(table),
        names.join(", "),
        places.join(", ")
    );
    let mut statement = connection.prepare(&insert)?;
    let mut reader = Reader::new(bytes);
    while !reader.is_at_end() {
        let row: Option<Vec<Value>> = (0..names.len()).map(|_| reader.value()).collect();
        let row = row.ok_or(rusqlite::Error::InvalidQuery)?;
        statement.execute(params_from_iter(&row))?;
    }
    drop(statement);
    if let Some(sequence) = image.sequence {
        connection.execute("DELETE FROM main.sqlite_sequence WHERE name = ?1", [table])?;
        let sql = "INSERT INTO main.sqlite_sequence(name, seq) VALUES(?1, ?2)";
        connection.execute(sql, (table, sequence))?;
    }
    for object in &image.rest {
        connection.execute_batch(&object.sql)?;
    }
    Ok(())
}

/// Takes something away that is no table.
pub(super) fn drop_object(connection: &Connection, object: &Object) -> rusqlite::Result<()> {
    let kind = match object.kind.as_str() {
        "index" => "INDEX",
        "view" => "VIEW",
        _ => "TRIGGER",
    };
    connection.execute_batch(&format!(
        "DROP {kind} IF EXISTS main.{}",
        quoted(&object.name)
    ))
}

/// Lists what is read and written of a row: its rowid, if that is nowhere else, and its columns.
fn columns_of(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name, pk, upper(type) FROM pragma_table_xinfo(?1, 'main') WHERE hidden = 0 ORDER BY cid";
    let mut statement = connection.prepare(sql)?;
    let found = statement.query_map([table], |row| {
        let row: (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(row)
    })?;
    let found: Vec<_> = found.collect::<Result<_, _>>()?;
    let keys: Vec<_> = found.iter().filter(|(_, key, _)| *key > 0).collect();
    let is_number = matches!(keys.as_slice(), [(_, _, kind)] if kind == "INTEGER");
    let rowid = if has_rowid(connection, table)? && !is_number {
        rowid_of(connection, table)?.map(str::to_owned)
    } else {
        None
    };
    let names = found.into_iter().map(|(name, ..)| name);
    Ok(rowid.into_iter().chain(names).collect())
}

fn has_rowid(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?1";
    connection.query_row(sql, [table], |row| Ok(row.get::<_, i64>(0)? == 0))
}

fn order_of(connection: &Connection, table: &str, names: &[String]) -> rusqlite::Result<String> {
    if !has_rowid(connection, table)? {
        return Ok(names.join(", "));
    }
    if let Some(rowid) = rowid_of(connection, table)? {
        return Ok(rowid.to_owned());
    }
    // By bytes: rows that are equal to the table may differ.
    let each = names.iter();
    let each = each.map(|name| format!("typeof({name}), {name} COLLATE BINARY"));
    Ok(each.collect::<Vec<_>>().join(", "))
}

fn sequence_of(connection: &Connection, table: &str) -> rusqlite::Result<Option<i64>> {
    let there = "SELECT count(*) FROM main.sqlite_schema WHERE name = 'sqlite_sequence'";
    if connection.query_row(there, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let sql = "SELECT max(seq) FROM main.sqlite_sequence WHERE name = ?1";
    connection.query_row(sql, [table], |row| row.get(0))
}
