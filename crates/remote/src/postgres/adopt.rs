//! What other clients did in an enrolled database: transactions in the log that no operation stands for yet.

use serde::Serialize;

use super::connection::Connection;
use super::error::PostgresError;

/// How many transactions are taken up at once.
const MANY: i64 = 1000;

/// A transaction of another client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Foreign {
    /// The transaction.
    pub xact: String,
    /// The operation that it said it belongs to: the command that `backout run` ran.
    pub operation: Option<String>,
    /// Who made it: what it said itself, or the name of the program, or the role.
    pub actor: String,
    /// What it changed in the schema, which nothing takes back.
    pub ddl: Option<String>,
    /// What it did, in one line.
    pub summary: String,
}

impl Connection {
    /// Lists the transactions that no operation stands for, the oldest first.
    pub fn foreign(&mut self) -> Result<Vec<Foreign>, PostgresError> {
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
            let said: Vec<String> = changes.iter().take(3).map(|it| it.change.said()).collect();
            let actor: String = row.get(2);
            let more = if changes.len() > 3 { ", …" } else { "" };
            // What it did and undid itself is nothing that could be taken back.
            if changes.is_empty() {
                continue;
            }
            found.push(Foreign {
                summary: format!("{actor} wrote {}{more}", said.join(", ")),
                xact,
                operation: row.get(1),
                actor,
                ddl: row.get(3),
            });
        }
        Ok(found)
    }

    /// Lists the operations that the log holds something for.
    pub fn marked(&mut self) -> Result<Vec<String>, PostgresError> {
        let sql = "SELECT operation FROM backout.marker ORDER BY at";
        let rows = self.client.query(sql, &[])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Takes the mark of an operation away that took up a transaction and did not get to the end of it.
    pub(super) fn let_go(&mut self, operation: &str) -> Result<(), PostgresError> {
        self.run("BEGIN; SELECT set_config('backout.covering', 'on', true)")?;
        let sql = "DELETE FROM backout.marker WHERE operation = $1";
        self.client.execute(sql, &[&operation])?;
        self.run("COMMIT")
    }

    /// Lets go of what the log holds for operations that cannot be undone any more.
    pub fn prune(&mut self, operations: &[String]) -> Result<u64, PostgresError> {
        self.run("BEGIN; SELECT set_config('backout.covering', 'on', true)")?;
        let sql = "DELETE FROM backout.log WHERE xact IN (SELECT xact FROM backout.marker WHERE operation = ANY($1))";
        let rows = self.client.execute(sql, &[&operations])?;
        let sql = "DELETE FROM backout.transaction WHERE xact IN (SELECT xact FROM backout.marker WHERE operation = ANY($1))";
        self.client.execute(sql, &[&operations])?;
        let sql = "DELETE FROM backout.marker WHERE operation = ANY($1)";
        self.client.execute(sql, &[&operations])?;
        self.run("COMMIT")?;
        Ok(rows)
    }
}
