//! References between rows. While the server is kept from checking them, nobody else does: so this does.

use super::error::RowsError;
use super::server::{Server, Table};

/// A row that cannot go back, with its table and why.
pub(super) type InTheWay = (u32, String, String);

/// Finds rows of a table that were set back and refer to something that is gone, or that are gone and referred to.
pub(super) fn dangling<S: Server>(
    server: &mut S,
    table: &Table,
) -> Result<Vec<InTheWay>, RowsError> {
    let mut found = Vec::new();
    for reference in server.references(table)? {
        let (from, to) = (&reference.from, &reference.to);
        let join = |write: &dyn Fn(&str, &str) -> String| {
            let each = reference.pairs.iter().map(|(from, to)| write(from, to));
            each.collect::<Vec<_>>().join(" AND ")
        };
        let field = |column: &str| S::field(table, "x.r", column);
        if reference.is_from {
            let not_null = join(&|from, _| format!("{} IS NOT NULL", field(from)));
            let same = join(&|from, to| format!("p.{to} = {}", field(from)));
            let condition = format!(
                "{not_null} AND NOT EXISTS (SELECT 1 FROM {to} p WHERE {same}{})",
                S::SHARE
            );
            let why = format!("what it refers to in {to} is gone");
            find(server, table, "went", &condition, &why, &mut found)?;
        }
        if !reference.is_from || from == to {
            let gone = join(&|_, to| format!("p.{to} = {}", field(to)));
            let held = join(&|from, to| format!("c.{from} = {}", field(to)));
            let condition = format!(
                "NOT EXISTS (SELECT 1 FROM {to} p WHERE {gone}) AND EXISTS (SELECT 1 FROM {from} c WHERE {held})"
            );
            let why = format!("a row of {from} refers to it");
            find(server, table, "came", &condition, &why, &mut found)?;
        }
    }
    Ok(found)
}

fn find<S: Server>(
    server: &mut S,
    table: &Table,
    side: &str,
    condition: &str,
    why: &str,
    found: &mut Vec<InTheWay>,
) -> Result<(), RowsError> {
    let relation = table.relation;
    let rows = server.ask(&format!(
        "SELECT k FROM (SELECT k, {} AS r FROM backout_net
           WHERE relation = {relation} AND take AND {side} IS NOT NULL{}) x WHERE {condition}",
        S::parsed(table, side),
        S::FENCE
    ))?;
    let keys = rows.into_iter().filter_map(|row| row.into_iter().next()?);
    found.extend(keys.map(|key| (relation, key, why.to_owned())));
    Ok(())
}

/// Puts tables in an order in which each comes after those that it refers to, as far as there is one.
pub(super) fn in_order<'t, S: Server>(
    server: &mut S,
    tables: &[&'t Table],
) -> Result<Vec<&'t Table>, RowsError> {
    let mut needs: Vec<(String, String)> = Vec::new();
    for table in tables {
        let references = server.references(table)?.into_iter();
        let made = references.filter(|it| it.is_from && it.from != it.to);
        needs.extend(made.map(|it| (it.from, it.to)));
    }
    let mut left = tables.to_vec();
    let mut ordered: Vec<&Table> = Vec::new();
    while !left.is_empty() {
        let waits = |table: &&Table| {
            let mut needs = needs.iter().filter(|(from, _)| *from == table.sql);
            needs.any(|(_, to)| left.iter().any(|it| it.sql == *to))
        };
        // Of a ring any one is the first.
        let next = left.iter().position(|it| !waits(it)).unwrap_or_default();
        ordered.push(left.remove(next));
    }
    Ok(ordered)
}
