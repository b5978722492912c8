//! What the server tells of the tables of a database, asked once and then looked at.

use std::collections::BTreeMap;

use super::columns::Column;
use super::connection::{Connection, name};
use crate::rows::{RowsError, TextRow, ValueSql, quote};

#[derive(Debug, Clone, Default)]
pub(super) struct TableInfo {
    /// What it is: `BASE TABLE`, `VIEW`, `SEQUENCE`, `SYSTEM VERSIONED`.
    pub(super) kind: String,
    pub(super) engine: String,
    /// All its columns, in order.
    pub(super) columns: Vec<Column>,
    /// The names of the columns of its primary key.
    pub(super) key: Vec<String>,
    /// Whether something else must be unique, too.
    pub(super) has_unique: bool,
}

impl TableInfo {
    /// Lists the columns that can be written.
    pub(super) fn written(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|it| !it.is_made)
    }

    /// Says how their values are read and written; or which one cannot be.
    pub(super) fn values(&self) -> Result<Vec<ValueSql>, String> {
        let each = self.written().map(|column| {
            column
                .value()
                .ok_or_else(|| format!("its column `{}` is a {}", column.name, column.kind))
        });
        each.collect()
    }

    /// Says what its columns are.
    pub(super) fn shape(&self) -> String {
        let each: Vec<String> = self.columns.iter().map(Column::shape).collect();
        format!("{}; key {}", each.join(", "), self.key.join(", "))
    }
}

/// A reference between tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ForeignKey {
    /// Schema and name of the table that makes it.
    pub(super) from: (String, String),
    /// Schema and name of the table that it leads to.
    pub(super) to: (String, String),
    /// The columns on both sides.
    pub(super) pairs: Vec<(String, String)>,
    pub(super) on_delete: String,
    pub(super) on_update: String,
}

/// What is known of a database.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    pub(super) schema: String,
    pub(super) tables: BTreeMap<String, TableInfo>,
    pub(super) keys: Vec<ForeignKey>,
    /// The triggers of all tables: name, table and text.
    pub(super) triggers: Vec<(String, String, String)>,
}

impl Connection {
    /// Asks for the tables of the database.
    pub(super) fn catalog(&mut self) -> Result<Catalog, RowsError> {
        let schema = self.schema_text();
        let mut catalog = Catalog {
            schema: self.database.clone(),
            ..Catalog::default()
        };
        let sql = format!(
            "SELECT TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {schema}"
        );
        for row in self.question(&sql)? {
            let [table, kind, engine] = texts(row);
            let info = TableInfo {
                kind,
                engine,
                ..TableInfo::default()
            };
            catalog.tables.insert(table, info);
        }
        let sql = format!(
            "SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME,
                    IS_GENERATED = 'ALWAYS'
             FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {schema} ORDER BY TABLE_NAME, ORDINAL_POSITION"
        );
        for row in self.question(&sql)? {
            let [table, name, kind, full_kind, characters, collation, made] = texts(row);
            let column = Column {
                name,
                kind,
                full_kind,
                characters,
                collation,
                is_made: made == "1",
            };
            let table = catalog.tables.entry(table).or_default();
            table.columns.push(column);
        }
        let sql = format!(
            "SELECT TABLE_NAME, COLUMN_NAME, INDEX_NAME FROM information_schema.STATISTICS
             WHERE TABLE_SCHEMA = {schema} AND NON_UNIQUE = 0 ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
        );
        for row in self.question(&sql)? {
            let [table, column, index] = texts(row);
            let table = catalog.tables.entry(table).or_default();
            if index == "PRIMARY" {
                table.key.push(column);
            } else {
                table.has_unique = true;
            }
        }
        catalog.keys = self.foreign_keys(None)?;
        let sql = format!(
            "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = {schema}"
        );
        let rows = self.question(&sql)?.into_iter();
        catalog.triggers = rows
            .map(|row| {
                let [name, table, text] = texts(row);
                (name, table, text)
            })
            .collect();
        Ok(catalog)
    }

    /// Lists the references from and to the tables of the database, or one of them.
    pub(super) fn foreign_keys(
        &mut self,
        table: Option<&str>,
    ) -> Result<Vec<ForeignKey>, RowsError> {
        let schema = self.schema_text();
        let (from, to) = match table.map(quote) {
            Some(table) => (
                format!(" AND k.TABLE_NAME = {table}"),
                format!(" AND k.REFERENCED_TABLE_NAME = {table}"),
            ),
            None => (String::new(), String::new()),
        };
        let rows = self.question(&format!(
            "SELECT k.CONSTRAINT_NAME, k.TABLE_SCHEMA, k.TABLE_NAME, k.REFERENCED_TABLE_SCHEMA, k.REFERENCED_TABLE_NAME,
                    k.COLUMN_NAME, k.REFERENCED_COLUMN_NAME, r.DELETE_RULE, r.UPDATE_RULE
             FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.REFERENTIAL_CONSTRAINTS r
               ON r.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND r.TABLE_NAME = k.TABLE_NAME
             WHERE k.REFERENCED_TABLE_NAME IS NOT NULL
               AND (k.TABLE_SCHEMA = {schema}{from} OR k.REFERENCED_TABLE_SCHEMA = {schema}{to})
             ORDER BY k.TABLE_SCHEMA, k.TABLE_NAME, k.CONSTRAINT_NAME, k.ORDINAL_POSITION"
        ))?;
        let mut found: Vec<(String, ForeignKey)> = Vec::new();
        for row in rows {
            let [
                constraint,
                schema,
                table,
                to_schema,
                to_table,
                from,
                to,
                on_delete,
                on_update,
            ] = texts(row);
            let key = ForeignKey {
                from: (schema, table),
                to: (to_schema, to_table),
                pairs: Vec::new(),
                on_delete,
                on_update,
            };
            let is_same =
                |(name, last): &(String, ForeignKey)| *name == constraint && last.from == key.from;
            if !found.last().is_some_and(is_same) {
                found.push((constraint, key));
            }
            if let Some((_, key)) = found.last_mut() {
                key.pairs.push((from, to));
            }
        }
        Ok(found.into_iter().map(|(_, key)| key).collect())
    }
}

/// Takes the values of a row; NULL is empty.
pub(super) fn texts<const N: usize>(row: TextRow) -> [String; N] {
    let mut values = row.into_iter();
    std::array::from_fn(|_| values.next().flatten().unwrap_or_default())
}

/// Writes the name of a table in its database.
pub(super) fn in_schema(schema: &str, table: &str) -> String {
    format!("{}.{}", name(schema), name(table))
}
