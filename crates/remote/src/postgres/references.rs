//! References between tables, as the server's catalogs have them.

use super::connection::Connection;
use crate::rows::{Reference, RowsError, Table};

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

impl Connection {
    /// Lists the references that a table makes, and those that lead to it.
    pub(super) fn references_of(&mut self, table: &Table) -> Result<Vec<Reference>, RowsError> {
        let rows = self.client.query(REFERENCES, &[&table.relation])?;
        let each = rows.iter().map(|row| {
            let (from, to): (Vec<String>, Vec<String>) = (row.get(4), row.get(5));
            Reference {
                is_from: row.get(1),
                from: row.get(2),
                to: row.get(3),
                pairs: from.into_iter().zip(to).collect(),
            }
        });
        Ok(each.collect())
    }
}
