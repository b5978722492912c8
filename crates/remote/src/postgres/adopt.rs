//! What other clients did in an enrolled database: transactions in the log that no operation stands for yet.

use super::connection::Connection;
use crate::rows::{Foreign, RowsError, Server as _};

/// How many transactions are taken up at once.
const MANY: i64 = 1000;

impl Connection {
    /// Lists the transactions that no operation stands for, the oldest first.
    pub(super) fn foreign_it(&mut self) -> Result<Vec<Foreign>, RowsError> {
        self.set_exact()?;
        let sql = "SELECT t.xact::text, t.operation, coalesce(t.agent, t.application, t.role), t.ddl
                   FROM backout.transaction t
                   JOIN LATERAL (SELECT max(place) AS last FROM backout.log l WHERE l.xact = t.xact) l ON l.last IS NOT NULL
                   WHERE NOT EXISTS (SELECT FROM backout.marker m WHERE m.xact = t.xact)
                   ORDER BY l.last LIMIT $1";
        let rows = self.client.query(sql, &[&MANY])?;
        let mut found = Vec::new();
        for row in rows {
            let xact: String = row.get(0);
            let changes = self.changes(&xact)?;
            found.extend(Foreign::of(
                xact,
                row.get(2),
                &changes,
                row.get(1),
                row.get(3),
            ));
        }
        Ok(found)
    }

    /// Lists the operations that the log holds something for.
    pub(super) fn marked_it(&mut self) -> Result<Vec<String>, RowsError> {
        let sql = "SELECT operation FROM backout.marker ORDER BY at";
        let rows = self.client.query(sql, &[])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Lets go of what the log holds for operations that cannot be undone any more.
    pub(super) fn prune_it(&mut self, operations: &[String]) -> Result<u64, RowsError> {
        self.run("BEGIN; SELECT set_config('backout.covering', 'on', true)")?;
        let sql = "DELETE FROM backout.log WHERE xact IN (SELECT xact FROM backout.marker WHERE operation = ANY($1))";
        let rows = self.client.execute(sql, &[&operations])?;
        // Values of columns that went are kept under the number of the transaction.
        let sql = "SELECT relname::text FROM pg_class c, backout.marker m WHERE c.relnamespace = 'backout'::regnamespace AND c.relkind = 'r'
                     AND starts_with(c.relname, 'kept_' || m.xact || '_') AND m.operation = ANY($1)";
        for row in self.client.query(sql, &[&operations])? {
            let kept: String = row.get(0);
            self.run(&format!("DROP TABLE backout.{kept}"))?;
        }
        let sql = "DELETE FROM backout.transaction WHERE xact IN (SELECT xact FROM backout.marker WHERE operation = ANY($1))";
        self.client.execute(sql, &[&operations])?;
        let sql = "DELETE FROM backout.marker WHERE operation = ANY($1)";
        self.client.execute(sql, &[&operations])?;
        self.run("COMMIT")?;
        Ok(rows)
    }
}
