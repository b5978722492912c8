//! Running statements in a transaction that stays open until the way back is durable.
//!
//! What the statements did is asked of the server, not read out of their text: whether the transaction is still the same one,
//! which tables were opened for writing and have no triggers of ours, and whether the schema changed.

use backout_model::OperationId;
use postgres::SimpleQueryMessage;

use super::connection::Connection;
use super::error::PostgresError;
use super::request::{Answer, Answers};
use super::statements::split;

/// How many rows of an answer are kept to be shown.
const ROWS_SHOWN_MAX: usize = 10_000;

/// What was written without a trigger of ours: the transaction holds the lock of a writer there.
const UNCOVERED: &str = "
    SELECT DISTINCT l.relation::regclass::text FROM pg_locks l
    JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND c.relkind IN ('r', 'f') AND c.relpersistence <> 't'
      AND n.nspname NOT IN ('backout', 'pg_catalog', 'information_schema')
      AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
      AND NOT EXISTS (SELECT FROM backout.coverage v WHERE v.relation = l.relation AND v.covered)";

/// What of the server's own tables was written: large objects, roles, the catalogs themselves. Emptying a table changes
/// `pg_class`.
const OWN: &str = "
    SELECT DISTINCT c.relname::text FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted
      AND l.database IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
      AND c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind = 'r' AND c.relname <> 'pg_class'
      AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    UNION SELECT l.classid::regclass::text FROM pg_locks l
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'object' AND l.granted AND l.mode = 'AccessExclusiveLock'";

/// What this transaction, or a part of it, made or altered in the catalogs, and what it locked to drop. For databases where
/// no event trigger tells. A later transaction of somebody else may be among it; then the statements are refused although
/// they did nothing of the kind, which a second try mends. `pg_class` is not asked: emptying a table changes it, too.
const CATALOGS: &str = "
    SELECT string_agg(DISTINCT what, ', ') FROM (
      SELECT 'columns of ' || attrelid::regclass::text AS what, xmin FROM pg_attribute
      UNION ALL SELECT 'function ' || proname, xmin FROM pg_proc
      UNION ALL SELECT 'type ' || typname, xmin FROM pg_type
      UNION ALL SELECT 'schema ' || nspname, xmin FROM pg_namespace
      UNION ALL SELECT 'trigger ' || tgname, xmin FROM pg_trigger
      UNION ALL SELECT 'constraint ' || conname, xmin FROM pg_constraint
      UNION ALL SELECT 'rule ' || rulename, xmin FROM pg_rewrite
      UNION ALL SELECT 'something that it dropped', ($1::text::bigint & 4294967295)::text::xid FROM pg_locks l
        WHERE l.pid = pg_backend_pid() AND l.mode = 'AccessExclusiveLock' AND (l.locktype = 'object'
          OR l.locktype = 'relation' AND l.relation >= 16384 AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = l.relation))
    ) each WHERE xmin::text::bigint >= 3
      AND (xmin::text::bigint - ($1::text::bigint & 4294967295)) BETWEEN 0 AND 1000000";

/// Whether this transaction was built on one that no operation stands for yet: it took a row as that one left it, or put one
/// back that it had taken.
const OVERTAKEN: &str = "
    SELECT EXISTS (SELECT FROM backout.transaction t
      JOIN backout.log theirs ON theirs.xact = t.xact
      JOIN backout.log ours ON ours.relation = theirs.relation AND ours.xact = $1::text::xid8
        AND (ours.before = theirs.after OR ours.after = theirs.before)
      WHERE t.xact <> $1::text::xid8 AND NOT EXISTS (SELECT FROM backout.marker m WHERE m.xact = t.xact))";

/// Whether event triggers of ours tell of changes of the schema.
const IS_TOLD: &str = "SELECT count(*) = 2 FROM pg_event_trigger
    WHERE evtname IN ('backout_schema_changed', 'backout_schema_dropped') AND evtenabled = 'A'";

impl Connection {
    /// Begins the transaction of an operation, and gives its number.
    pub(super) fn begin(
        &mut self,
        id: OperationId,
        agent: Option<&str>,
    ) -> Result<String, PostgresError> {
        self.run("BEGIN")?;
        let sql = "SELECT set_config('backout.operation', $1, true), set_config('backout.agent', $2, true),
                          pg_current_xact_id()::text";
        let row = self
            .client
            .query_one(sql, &[&id.to_string(), &agent.unwrap_or_default()])?;
        Ok(row.get(2))
    }

    /// Runs statements in the transaction that was begun, and makes sure that all they did is in the log.
    pub(super) fn statements(
        &mut self,
        text: &str,
        xact: &str,
        answers: &Answers,
    ) -> Result<(), PostgresError> {
        let statements = split(text);
        if let Some(why) = statements
            .iter()
            .find_map(super::statements::Statement::refused)
        {
            return Err(PostgresError::NotUndoable(why));
        }
        for statement in statements {
            let answer = read(&self.client.simple_query(statement.text)?);
            if let Ok(mut answers) = answers.lock() {
                answers.push(answer);
            }
            self.is_still(xact)?;
        }
        // What is checked at the commit is checked now, while nothing is armed.
        self.run("SET CONSTRAINTS ALL IMMEDIATE")?;
        self.set_exact()?;
        self.is_all_logged(xact)?;
        // The rows are ours until the commit, so what others wrote in them before is there to be seen.
        let is_overtaken: bool = self.client.query_one(OVERTAKEN, &[&xact])?.get(0);
        if is_overtaken {
            return Err(PostgresError::Overtaken);
        }
        Ok(())
    }

    /// Makes sure that the transaction was not ended.
    fn is_still(&mut self, xact: &str) -> Result<(), PostgresError> {
        let sql = "SELECT pg_current_xact_id_if_assigned()::text";
        let now: Option<String> = self.client.query_one(sql, &[])?.get(0);
        if now.as_deref() == Some(xact) {
            return Ok(());
        }
        let why = "a statement ended the transaction: what came before it stays, and may not be recorded yet; see `backout db sync`";
        Err(PostgresError::NotUndoable(why.to_owned()))
    }

    fn is_all_logged(&mut self, xact: &str) -> Result<(), PostgresError> {
        let sql = "SELECT ddl FROM backout.transaction WHERE xact = $1::text::xid8";
        let noted = self.client.query_opt(sql, &[&xact])?;
        let noted: Option<String> = noted.and_then(|row| row.get(0));
        let is_told: bool = self.client.query_one(IS_TOLD, &[])?.get(0);
        let seen: Option<String> = if is_told {
            None
        } else {
            self.client.query_one(CATALOGS, &[&xact])?.get(0)
        };
        if let Some(what) = noted.or(seen) {
            return Err(PostgresError::NotUndoable(format!(
                "it changes the schema ({what}), and what is kept here is rows: nothing would bring the schema back"
            )));
        }
        if let Some(row) = self.client.query(OWN, &[])?.first() {
            let table: String = row.get(0);
            return Err(PostgresError::NotUndoable(format!(
                "it changes `{table}`, a table of the server itself, and what is kept here is rows of yours: nothing would bring that back"
            )));
        }
        let uncovered = self.client.query(UNCOVERED, &[])?;
        if let Some(row) = uncovered.first() {
            let table: String = row.get(0);
            return Err(PostgresError::NotUndoable(format!(
                "`{table}` has no triggers of Backout, so what was written there is not known; `backout db enroll` covers new tables"
            )));
        }
        Ok(())
    }
}

/// Reads what a statement answered.
fn read(messages: &[SimpleQueryMessage]) -> Answer {
    let mut answer = Answer {
        columns: Vec::new(),
        rows: Vec::new(),
        count: 0,
    };
    for message in messages {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                answer.columns = columns.iter().map(|it| it.name().to_owned()).collect();
            }
            SimpleQueryMessage::Row(row) if answer.rows.len() < ROWS_SHOWN_MAX => {
                let values = (0..row.len()).map(|index| row.get(index).map(str::to_owned));
                answer.rows.push(values.collect());
            }
            SimpleQueryMessage::CommandComplete(count) => answer.count = *count,
            _ => {}
        }
    }
    answer
}
