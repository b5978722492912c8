//! Running statements in a transaction that stays open until the way back is durable.
//!
//! What the statements did is asked of the server, not read out of their text: whether the transaction is still the same one,
//! which tables were opened for writing and have no triggers of ours, and whether the schema changed.

use std::io::Write as _;

use backout_model::OperationId;
use postgres::SimpleQueryMessage;

use super::connection::Connection;
use super::schema::kind_of;
use crate::rows::{
    Answer, Answers, Dialect, RowsError, SchemaChange, SchemaKind, Server as _, Statement, split,
};

/// How many rows of an answer are kept to be shown.
const ROWS_SHOWN_MAX: usize = 10_000;

/// What was written without a trigger of ours: the transaction holds the lock of a writer there.
const UNCOVERED: &str = "
    SELECT DISTINCT l.relation::regclass::text FROM pg_locks l
    JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND c.relkind IN ('r', 'f') AND c.relpersistence <> 't'
      AND n.nspname NOT SIMILAR TO 'backout(\\_[0-9]+)?' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
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

/// The server's own tables in which it keeps a schema.
const OF_SCHEMA: [&str; 17] = [
    "pg_attribute",
    "pg_attrdef",
    "pg_class",
    "pg_constraint",
    "pg_depend",
    "pg_description",
    "pg_index",
    "pg_init_privs",
    "pg_namespace",
    "pg_rewrite",
    "pg_sequence",
    "pg_shdepend",
    "pg_statistic",
    "pg_statistic_ext",
    "pg_trigger",
    "pg_type",
    "pg_inherits",
];

/// Why the schema stays as it is.
const UNTOLD: &str = "it changes the schema, and only where a superuser enrolled the database does the server tell all of that: nothing would bring the schema back";

/// Whether event triggers of ours tell of changes of the schema.
const IS_TOLD: &str = "SELECT count(*) = 2 FROM pg_event_trigger
    WHERE evtname IN ('backout_schema_changed', 'backout_schema_dropped') AND evtenabled = 'A'";

impl Connection {
    /// Begins the transaction of an operation, and gives its number.
    pub(super) fn begin_it(
        &mut self,
        id: OperationId,
        agent: Option<&str>,
    ) -> Result<String, RowsError> {
        self.run("BEGIN")?;
        let sql = "SELECT set_config('backout.operation', $1, true), set_config('backout.agent', $2, true),
                          pg_current_xact_id()::text";
        let row = self
            .client
            .query_one(sql, &[&id.to_string(), &agent.unwrap_or_default()])?;
        Ok(row.get(2))
    }

    /// Runs statements in the transaction that was begun, and makes sure that all they did is in the log.
    pub(super) fn run_statements(
        &mut self,
        text: &str,
        xact: &str,
        answers: &Answers,
    ) -> Result<(), RowsError> {
        let statements = split(text, Dialect::Postgres);
        if let Some(why) = statements.iter().find_map(Statement::refused) {
            return Err(RowsError::NotUndoable(why));
        }
        let is_told: bool = self.client.query_one(IS_TOLD, &[])?.get(0);
        for statement in statements {
            if let Some(kind) = kind_of(&statement) {
                if !is_told {
                    return Err(RowsError::NotUndoable(UNTOLD.to_owned()));
                }
                let changes = self.run_schema(&statement, kind, xact)?;
                for change in changes {
                    self.note_change(change)?;
                }
                self.is_still(xact)?;
                continue;
            }
            let answer = match statement.data {
                Some(data) => self.copy_in(statement.text, data)?,
                None => read(&self.client.simple_query(statement.text)?),
            };
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
            return Err(RowsError::Overtaken);
        }
        Ok(())
    }

    /// Makes sure that the transaction was not ended.
    fn is_still(&mut self, xact: &str) -> Result<(), RowsError> {
        let sql = "SELECT pg_current_xact_id_if_assigned()::text";
        let now: Option<String> = self.client.query_one(sql, &[])?.get(0);
        if now.as_deref() == Some(xact) {
            return Ok(());
        }
        let why = "a statement ended the transaction: what came before it stays, and may not be recorded yet; see `backout db sync`";
        Err(RowsError::NotUndoable(why.to_owned()))
    }

    fn is_all_logged(&mut self, xact: &str) -> Result<(), RowsError> {
        let self_schema_is_empty = self.schema.is_empty();
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
            return Err(RowsError::NotUndoable(format!(
                "it changes the schema ({what}), and what is kept here is rows: nothing would bring the schema back"
            )));
        }
        self.are_no_rows_of_new_columns(xact)?;
        let is_of_schema =
            |table: &String| !self_schema_is_empty && OF_SCHEMA.contains(&table.as_str());
        let own = self.client.query(OWN, &[])?;
        let mut own = own.iter().map(|row| row.get::<_, String>(0));
        if let Some(table) = own.find(|it| !is_of_schema(it)) {
            return Err(RowsError::NotUndoable(format!(
                "it changes `{table}`, a table of the server itself, and what is kept here is rows of yours: nothing would bring that back"
            )));
        }
        let uncovered = self.client.query(UNCOVERED, &[])?;
        if let Some(row) = uncovered.first() {
            let table: String = row.get(0);
            return Err(RowsError::NotUndoable(format!(
                "`{table}` has no triggers of Backout, so what was written there is not known; `backout db enroll` covers new tables"
            )));
        }
        Ok(())
    }
}

impl Connection {
    /// Notes what a statement changed in the schema. What came and went again is nothing.
    fn note_change(&mut self, change: SchemaChange) -> Result<(), RowsError> {
        let is_named = |it: &SchemaChange| {
            it.kind != SchemaKind::Column
                && (&it.schema, &it.name) == (&change.schema, &change.name)
        };
        let Some(earlier) = self.schema.iter().position(is_named) else {
            self.schema.push(change);
            return Ok(());
        };
        let is_same = |it: &SchemaChange| {
            it.kind == change.kind && it.relation == change.relation && it.came && !change.came
        };
        let is_of_table = |it: &SchemaChange| it.kind == SchemaKind::Table && it.came;
        let is_altered =
            change.kind == SchemaKind::Altered && self.schema.get(earlier).is_some_and(is_of_table);
        if change.kind == SchemaKind::Column || is_altered {
            // It is a part of the table that came.
            let sql = "SELECT backout.columns_of($1)";
            let columns = self.client.query_one(sql, &[&change.relation])?.get(0);
            if let Some(table) = self.schema.get_mut(earlier) {
                table.text = columns;
                if let (true, Some(name)) = (is_altered, change.names.first()) {
                    table.name.clone_from(name);
                }
            }
        } else if self.schema.get(earlier).is_some_and(is_same) {
            self.schema.remove(earlier);
            if change.kind == SchemaKind::Table {
                self.run(&format!("DROP SCHEMA backout_{} CASCADE", change.relation))?;
            }
        } else {
            let why = "a name goes and comes at once: do that in two operations, so that each can be taken back";
            return Err(RowsError::NotUndoable(why.to_owned()));
        }
        Ok(())
    }

    /// Copies rows into a table.
    fn copy_in(&mut self, sql: &str, data: &str) -> Result<Answer, RowsError> {
        let mut into = self.client.copy_in(sql)?;
        // What the server has against the rows it says at the end.
        let _sent = into.write_all(data.as_bytes());
        let count = into.finish()?;
        Ok(Answer {
            columns: Vec::new(),
            rows: Vec::new(),
            count,
        })
    }

    /// Makes sure that no row of a table changed that also got a column: its rows are told with the columns that it had.
    fn are_no_rows_of_new_columns(&mut self, xact: &str) -> Result<(), RowsError> {
        let of_columns = self
            .schema
            .iter()
            .filter(|it| matches!(it.kind, SchemaKind::Column | SchemaKind::Altered));
        let tables: Vec<u32> = of_columns.map(|it| it.relation).collect();
        let sql = "SELECT EXISTS (SELECT FROM backout.log WHERE xact = $1::text::xid8 AND relation = ANY($2))";
        if !tables.is_empty() && self.client.query_one(sql, &[&xact, &tables])?.get(0) {
            let why = "a table gets another column, or another definition, and other rows at once: do that in two operations, so that each can be taken back";
            return Err(RowsError::NotUndoable(why.to_owned()));
        }
        // To bring a table again locks it, and those that it refers to, while their rows have to be looked at.
        let is_gone = |it: &SchemaChange| it.kind == SchemaKind::Table && !it.came;
        let sql = "SELECT EXISTS (SELECT FROM backout.log WHERE xact = $1::text::xid8)";
        if self.schema.iter().any(is_gone) && self.client.query_one(sql, &[&xact])?.get(0) {
            let why = "a table goes and rows change at once: do that in two operations, so that each can be taken back";
            return Err(RowsError::NotUndoable(why.to_owned()));
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
