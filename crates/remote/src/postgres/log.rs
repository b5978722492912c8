//! What the log says a transaction changed, all in all.
//!
//! Every change of a row is two texts: what it was, and what it is. Taken together, with what stands on both sides struck out,
//! they are the rows that the transaction took away and those that it brought; in whatever order triggers ran, and also if a
//! row has no key or got another one. A row that went and one that came with the same key are one row that was changed.

use super::connection::Connection;
use crate::rows::{Changed, ROWS_MAX, RowsError, Table, TableChange};

const TABLE: &str = "
    SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname),
      coalesce((SELECT array_agg(quote_ident(a.attname) ORDER BY k.i)
        FROM pg_index x, unnest(x.indkey) WITH ORDINALITY AS k(attnum, i), pg_attribute a
        WHERE x.indrelid = c.oid AND x.indisprimary AND a.attrelid = c.oid AND a.attnum = k.attnum), '{}'),
      (SELECT coalesce(array_agg(quote_ident(attname) ORDER BY attnum), '{}') FROM pg_attribute
        WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''),
      (SELECT coalesce(array_agg(quote_ident(attname) ORDER BY attnum), '{}') FROM pg_attribute
        WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity <> 'a'),
      -- A column that went and came back has another number, and is the same one if it stands where it stood.
      NOT EXISTS (SELECT FROM backout.shape s,
          (SELECT regexp_replace(backout.columns_of(c.oid), '(^|, )[0-9]+ ', '\\1', 'g') AS columns OFFSET 0) now
        WHERE s.relation = c.oid AND regexp_replace(s.columns, '(^|, )[0-9]+ ', '\\1', 'g') <> now.columns
          AND s.id IN (SELECT l.shape FROM backout.log l WHERE l.xact = $2::text::xid8 AND l.relation = c.oid))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1";

/// The rows that a transaction took from a table (`n` above zero) and brought to it (below). `$1` is it, `$2` the table.
const NET: &str = "
    SELECT row, sum(n)::bigint AS n FROM (
      SELECT before AS row, 1 AS n FROM backout.log
        WHERE xact = $1::text::xid8 AND relation = $2 AND before IS NOT NULL
      UNION ALL
      SELECT after, -1 FROM backout.log
        WHERE xact = $1::text::xid8 AND relation = $2 AND after IS NOT NULL
    ) each GROUP BY row HAVING sum(n) <> 0";

/// Writes what names a row without a key.
pub(super) fn digest(row: &str) -> String {
    format!("left(encode(sha256(convert_to({row}, 'UTF8')), 'hex'), 16)")
}

impl Connection {
    /// Lists the tables that a transaction changed, the first one first.
    pub(super) fn logged_tables(&mut self, xact: &str) -> Result<Vec<Table>, RowsError> {
        let sql = "SELECT relation FROM backout.log WHERE xact = $1::text::xid8 GROUP BY relation ORDER BY min(place)";
        let relations = self.client.query(sql, &[&xact])?;
        let each = relations.iter().map(|row| row.get(0));
        let each: Vec<u32> = each.collect();
        each.into_iter()
            .map(|relation| self.table(relation, xact))
            .collect()
    }

    fn table(&mut self, relation: u32, xact: &str) -> Result<Table, RowsError> {
        let Some(row) = self.client.query_opt(TABLE, &[&relation, &xact])? else {
            return Ok(Table::gone(relation));
        };
        let is_same: bool = row.get(6);
        Ok(Table {
            relation,
            names: (row.get(0), row.get(1)),
            sql: row.get(2),
            key: row.get(3),
            columns: row.get(4),
            settable: row.get(5),
            changed: (!is_same).then(|| "the columns of the table changed since".to_owned()),
            values: Vec::new(),
        })
    }

    /// Says what a transaction changed, table by table.
    pub(super) fn logged_changes(&mut self, xact: &str) -> Result<Vec<Changed>, RowsError> {
        let mut changes = Vec::new();
        for table in self.logged_tables(xact)? {
            let change = self.change_of(&table, xact)?;
            if change.total() > 0 {
                let relation = table.relation;
                changes.push(Changed { relation, change });
            }
        }
        Ok(changes)
    }

    fn change_of(&mut self, table: &Table, xact: &str) -> Result<TableChange, RowsError> {
        let (schema, name) = table.names.clone();
        let net = net_by_key(table);
        let sql = format!(
            "WITH net AS MATERIALIZED ({net}) SELECT
               coalesce(sum(n) FILTER (WHERE went IS NULL), 0)::bigint, coalesce(sum(n) FILTER (WHERE went IS NOT NULL AND came IS NOT NULL), 0)::bigint,
               coalesce(sum(n) FILTER (WHERE came IS NULL), 0)::bigint, (SELECT array_agg(key) FROM (SELECT key FROM net ORDER BY key LIMIT {}) few) FROM net",
            ROWS_MAX + 1
        );
        let row = self.client.query_one(&sql, &[&xact, &table.relation])?;
        let count = |index: usize| u64::try_from(row.get::<_, i64>(index)).unwrap_or_default();
        let rows: Option<Vec<String>> = row.get(3);
        Ok(TableChange {
            schema,
            table: name,
            counts: [count(0), count(1), count(2)],
            rows: Some(rows.unwrap_or_default()).filter(|rows| rows.len() <= ROWS_MAX),
        })
    }
}

/// Writes the query for what a transaction did to each row of a table: `key`, `went`, `came`, `n`.
pub(super) fn net_by_key(table: &Table) -> String {
    if table.key.is_empty() || table.changed.is_some() {
        let digest = digest("row");
        return format!(
            "SELECT {digest} AS key, CASE WHEN n > 0 THEN row END AS went, CASE WHEN n < 0 THEN row END AS came, abs(n) AS n
             FROM ({NET}) net"
        );
    }
    let columns = table.key.iter().map(|column| format!("(r).{column}"));
    let columns: Vec<String> = columns.collect();
    let keyed = format!(
        "SELECT row, n, ROW({})::text AS key FROM (SELECT row, n, row::{} AS r FROM ({NET}) net OFFSET 0) parsed",
        columns.join(", "),
        table.sql
    );
    // A row of one column is `(7)`: the brackets say nothing.
    format!(
        "SELECT substr(key, 2, length(key) - 2) AS key, max(row) FILTER (WHERE n > 0) AS went,
                max(row) FILTER (WHERE n < 0) AS came, 1::bigint AS n FROM ({keyed}) keyed GROUP BY key"
    )
}
