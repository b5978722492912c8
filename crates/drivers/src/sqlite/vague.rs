//! Tables whose rows a session of `SQLite` takes for one another. They are kept whole.
//!
//! - Without a primary key a session goes by `_rowid_`. A column of that name hides it.
//! - A session compares keys by their bytes, the table by its collations: `a` and `A`, or 1 and 1.0, may be one key to one
//!   of them and two to the other.

use backout_changeset::rusqlite::{self, Connection};

use super::database::Database;
use super::error::SqliteFault;

/// The names of the number of a row, as long as no column has them.
const ROWIDS: [&str; 3] = ["_rowid_", "rowid", "oid"];

/// Tells whether a session could take a row of a table for another.
pub(super) fn is_vague(database: &Database, table: &str) -> Result<bool, SqliteFault> {
    let found = looked(&database.connection, table);
    found.map_err(|error| database.wrong(error))
}

fn looked(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT name, upper(type) FROM pragma_table_xinfo(?1, 'main') WHERE pk > 0";
    let mut statement = connection.prepare(sql)?;
    let keys = statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let keys: Vec<(String, String)> = keys.collect::<Result<_, _>>()?;
    if keys.is_empty() {
        return Ok(rowid_of(connection, table)? != Some("_rowid_"));
    }
    // The index of the key may have another collation than its columns.
    let sql = "SELECT EXISTS (SELECT 1 FROM pragma_index_list(?1, 'main') AS list, \
               pragma_index_xinfo(list.name, 'main') AS part \
               WHERE list.origin = 'pk' AND part.key = 1 AND upper(part.coll) <> 'BINARY')";
    if connection.query_row(sql, [table], |row| row.get(0))? {
        return Ok(true);
    }
    let sql =
        "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND name = ?1 AND strict";
    let is_strict = connection.query_row(sql, [table], |row| Ok(row.get::<_, i64>(0)? > 0))?;
    for (name, kind) in keys {
        let (_, collation, ..) = connection.column_metadata(Some("main"), table, name.as_str())?;
        let is_plain = collation.is_none_or(|it| it.to_bytes().eq_ignore_ascii_case(b"BINARY"));
        if !is_plain || keeps_numbers_apart(&kind, is_strict) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tells whether a column of a type, in upper case, holds 1 and 1.0 as they were given, though they are equal.
fn keeps_numbers_apart(kind: &str, is_strict: bool) -> bool {
    let has = |part: &str| kind.contains(part);
    if is_strict {
        return kind == "ANY";
    }
    let is_other = ["INT", "CHAR", "CLOB", "TEXT"].into_iter().any(has);
    kind.is_empty() || has("BLOB") && !is_other
}

/// Gives the name by which the number of a row can be had; none if columns took them all.
pub(super) fn rowid_of(
    connection: &Connection,
    table: &str,
) -> rusqlite::Result<Option<&'static str>> {
    let sql = "SELECT lower(name) FROM pragma_table_xinfo(?1, 'main')";
    let mut statement = connection.prepare(sql)?;
    let names = statement.query_map([table], |row| row.get(0))?;
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    let is_free = |rowid: &&str| !names.iter().any(|name| name == rowid);
    Ok(ROWIDS.into_iter().find(is_free))
}
