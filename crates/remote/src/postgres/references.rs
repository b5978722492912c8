//! References between rows. While other triggers are kept from running, the server does not check them either: so this does.

use super::connection::Connection;
use super::error::PostgresError;
use super::log::Table;

/// The references that a table makes, and those that lead to it or to what it is a partition of.
const REFERENCES: &str = "
    SELECT c.conname, c.conrelid = $1, c.conrelid::regclass::text, c.confrelid::regclass::text,
      (SELECT array_agg(quote_ident(a.attname) ORDER BY k.i) FROM unnest(c.conkey) WITH ORDINALITY AS k(n, i)
         JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.n),
      (SELECT array_agg(quote_ident(a.attname) ORDER BY k.i) FROM unnest(c.confkey) WITH ORDINALITY AS k(n, i)
         JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.n)
    FROM pg_constraint c
    WHERE c.contype = 'f'
      AND (c.conrelid = $1 OR c.confrelid = $1 OR c.confrelid IN (SELECT relid FROM pg_partition_ancestors($1)))
      -- One to a partition stands beside the one to the whole table.
      AND NOT EXISTS (SELECT FROM pg_constraint p WHERE p.oid = c.conparentid AND p.conrelid = c.conrelid)";

/// A row that cannot go back, with its table and why.
type InTheWay = (u32, String, String);

impl Connection {
    /// Finds rows of a table that were set back and refer to something that is gone, or that are gone and referred to.
    pub(super) fn dangling(&mut self, table: &Table) -> Result<Vec<InTheWay>, PostgresError> {
        let mut found = Vec::new();
        for row in self.client.query(REFERENCES, &[&table.relation])? {
            let (is_from, from, to): (bool, String, String) = (row.get(1), row.get(2), row.get(3));
            let (from_columns, to_columns): (Vec<String>, Vec<String>) = (row.get(4), row.get(5));
            let pairs: Vec<(&String, &String)> = from_columns.iter().zip(&to_columns).collect();
            if is_from {
                let not_null = join(&pairs, |(from, _)| format!("(x.r).{from} IS NOT NULL"));
                let same = join(&pairs, |(from, to)| format!("p.{to} = (x.r).{from}"));
                let condition = format!(
                    "{not_null} AND NOT EXISTS (SELECT FROM {to} p WHERE {same} FOR KEY SHARE)"
                );
                let why = format!("what it refers to in {to} is gone");
                self.find(table, "went", &condition, &why, &mut found)?;
            }
            let is_self = from == to;
            if !is_from || is_self {
                let gone = join(&pairs, |(_, to)| format!("p.{to} = (x.r).{to}"));
                let held = join(&pairs, |(from, to)| format!("c.{from} = (x.r).{to}"));
                let condition = format!(
                    "NOT EXISTS (SELECT FROM {to} p WHERE {gone}) AND EXISTS (SELECT FROM {from} c WHERE {held})"
                );
                let why = format!("a row of {from} refers to it");
                self.find(table, "came", &condition, &why, &mut found)?;
            }
        }
        Ok(found)
    }

    /// Puts tables in an order in which each comes after those that it refers to, as far as there is one.
    pub(super) fn in_order<'t>(
        &mut self,
        tables: &[&'t Table],
    ) -> Result<Vec<&'t Table>, PostgresError> {
        let relations: Vec<u32> = tables.iter().map(|it| it.relation).collect();
        let sql = "SELECT conrelid, confrelid FROM pg_constraint WHERE contype = 'f' AND conrelid <> confrelid
                   AND conrelid = ANY($1) AND confrelid = ANY($1)";
        let rows = self.client.query(sql, &[&relations])?;
        let pairs: Vec<(u32, u32)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let mut left = tables.to_vec();
        let mut ordered: Vec<&Table> = Vec::new();
        while !left.is_empty() {
            let waits = |table: &&Table| {
                let mut needs = pairs.iter().filter(|(from, _)| *from == table.relation);
                needs.any(|(_, to)| left.iter().any(|it| it.relation == *to))
            };
            // Of a ring any one is the first.
            let next = left.iter().position(|it| !waits(it)).unwrap_or_default();
            ordered.push(left.remove(next));
        }
        Ok(ordered)
    }

    /// Says what was changed beside the rows that were to be set back: by a cascade, or by somebody's trigger.
    pub(super) fn beside(&mut self) -> Result<Option<String>, PostgresError> {
        let sql = "SELECT count(*), string_agg(DISTINCT l.relation::regclass::text, ', ') FROM backout.log l
                   WHERE l.xact = pg_current_xact_id()
                     AND NOT ((l.before IS NULL OR EXISTS (SELECT FROM backout_net n
                                 WHERE n.relation = l.relation AND n.take AND n.now = l.before))
                          AND (l.after IS NULL OR EXISTS (SELECT FROM backout_net n
                                 WHERE n.relation = l.relation AND n.take AND n.went = l.after)))";
        let row = self.client.query_one(sql, &[])?;
        let (count, tables): (i64, Option<String>) = (row.get(0), row.get(1));
        Ok(tables.map(|tables| format!("{count} rows of {tables}")))
    }

    fn find(
        &mut self,
        table: &Table,
        side: &str,
        condition: &str,
        why: &str,
        found: &mut Vec<InTheWay>,
    ) -> Result<(), PostgresError> {
        let (sql, relation) = (&table.sql, table.relation);
        let sql = format!(
            "SELECT key FROM (SELECT key, {side}::{sql} AS r FROM backout_net
               WHERE relation = {relation} AND take AND {side} IS NOT NULL OFFSET 0) x WHERE {condition}"
        );
        let rows = self.client.query(&sql, &[])?;
        found.extend(
            rows.iter()
                .map(|row| (relation, row.get(0), why.to_owned())),
        );
        Ok(())
    }
}

fn join(pairs: &[(&String, &String)], write: impl Fn(&(&String, &String)) -> String) -> String {
    pairs.iter().map(write).collect::<Vec<_>>().join(" AND ")
}
