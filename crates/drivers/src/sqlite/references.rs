//! Which rows of an undo leave references that lead nowhere.

use std::io::Read;

use backout_changeset::rusqlite::{self, Connection, params_from_iter};
use backout_changeset::{Change, ChangesetError, Op, Value, each};

use super::back::Row;
use super::name::{quoted, row_name};
use super::row_states::Tables;
use super::vague::rowid_of;

/// A reference that leads nowhere.
#[derive(Debug)]
struct Dangling {
    child: String,
    parent: String,
    from: Vec<String>,
    to: Vec<String>,
    values: Vec<Value>,
}

/// Finds the rows of `changes`, by table and name, that cannot go back for a reference, with the reason. The undo is in the world.
pub(super) fn hindered(
    connection: &Connection,
    changes: &mut dyn Read,
) -> Result<Vec<(Row, String)>, ChangesetError> {
    let dangling = dangling(connection)?;
    let mut tables = Tables::default();
    let mut found = Vec::new();
    each(changes, false, |change| {
        let Some(table) = tables.get(connection, &change.table)? else {
            return Ok(());
        };
        let columns = table.columns.clone();
        for it in &dangling {
            let has = |row: &[Option<Value>], names: &[String]| {
                std::iter::zip(names, &it.values).all(|(name, value)| {
                    let at = columns.iter().position(|it| it.eq_ignore_ascii_case(name));
                    let there = at.and_then(|at| row.get(at)).and_then(Option::as_ref);
                    there == Some(value)
                })
            };
            let is = |name: &str| change.table.eq_ignore_ascii_case(name);
            // What goes with the undo, and what comes.
            let goes = change.op != Op::Delete && is(&it.parent) && has(&change.new, &it.to);
            let comes = change.op != Op::Insert && is(&it.child) && has(&change.old, &it.from);
            let why = if goes {
                format!("a row of `{}` refers to it", it.child)
            } else if comes {
                format!("it refers to a row of `{}` that is not there", it.parent)
            } else {
                continue;
            };
            found.push(((change.table.clone(), name(&change)), why));
            break;
        }
        Ok(())
    })?;
    Ok(found)
}

fn name(change: &Change) -> String {
    row_name(&change.key_values())
}

/// Lists the references that lead nowhere.
fn dangling(connection: &Connection) -> rusqlite::Result<Vec<Dangling>> {
    let mut check = connection.prepare("PRAGMA main.foreign_key_check")?;
    let found = check.query_map([], |row| {
        let row: (String, Option<i64>, String, i64) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(row)
    })?;
    let found: Vec<_> = found.collect::<Result<_, _>>()?;
    let mut dangling = Vec::new();
    for (child, rowid, parent, number) in found {
        let sql = "SELECT \"from\", \"to\" FROM pragma_foreign_key_list(?1, 'main') WHERE id = ?2 ORDER BY seq";
        let mut list = connection.prepare(sql)?;
        let pairs = list.query_map((&child, number), |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?))
        })?;
        let pairs: Vec<_> = pairs.collect::<Result<_, _>>()?;
        let (from, to): (Vec<String>, Vec<Option<String>>) = pairs.into_iter().unzip();
        let to: Vec<String> = match to.into_iter().collect() {
            Some(to) => to,
            None => key_of(connection, &parent)?,
        };
        let (Some(rowid), Some(by)) = (rowid, rowid_of(connection, &child)?) else {
            continue;
        };
        let columns: Vec<String> = from.iter().map(|name| quoted(name)).collect();
        let sql = format!(
            "SELECT {} FROM main.{} WHERE {by} = ?1",
            columns.join(", "),
            quoted(&child)
        );
        let width = from.len();
        let values = connection.query_row(&sql, params_from_iter([rowid]), |row| {
            (0..width)
                .map(|at| Ok(Value::from(row.get_ref(at)?)))
                .collect()
        })?;
        dangling.push(Dangling {
            child,
            parent,
            from,
            to,
            values,
        });
    }
    Ok(dangling)
}

fn key_of(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM pragma_table_xinfo(?1, 'main') WHERE pk > 0 ORDER BY pk";
    let mut statement = connection.prepare(sql)?;
    let names = statement.query_map([table], |row| row.get(0))?;
    names.collect()
}
