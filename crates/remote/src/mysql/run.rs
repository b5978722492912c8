//! Running statements in a transaction that stays open until the way back is durable.

use backout_model::OperationId;

use super::connection::{Connection, hexadecimal};
use super::log::number;
use super::refused::{only_read, refused};
use super::wire::{Given, IN_TRANSACTION, WireError};
use crate::rows::{Answer, Answers, Dialect, RowsError, Statement, quote, split};

/// How many rows of an answer are kept to be shown.
const ROWS_SHOWN_MAX: usize = 10_000;

/// The server's number for a savepoint that is not there.
const NO_SAVEPOINT: u16 = 1305;

/// The server's number for a write in a transaction that may only read.
const READ_ONLY: u16 = 1792;

impl Connection {
    /// Begins the transaction of an operation, and gives its number: that which the server wrote into the marker.
    pub(super) fn begin_it(
        &mut self,
        id: OperationId,
        agent: Option<&str>,
    ) -> Result<String, RowsError> {
        let id = quote(&id.to_string());
        let agent = agent.map_or_else(|| "NULL".to_owned(), quote);
        self.tell(&format!(
            "SET @backout_operation = {id}, @backout_agent = {agent}"
        ))?;
        self.tell("START TRANSACTION")?;
        let marker = self.own("marker");
        self.tell(&format!("INSERT INTO {marker} (operation) VALUES ({id})"))?;
        let xact = self.value(&format!(
            "SELECT started FROM {marker} WHERE operation = {id}"
        ))?;
        self.xact = xact.unwrap_or_default();
        Ok(self.xact.clone())
    }

    /// Runs statements in the transaction that was begun, and makes sure that all they did is in the log.
    pub(super) fn run_statements(
        &mut self,
        text: &str,
        xact: &str,
        answers: &Answers,
    ) -> Result<(), RowsError> {
        let statements = split(text, Dialect::Mysql);
        if let Some(why) = statements.iter().find_map(refused) {
            return Err(RowsError::NotUndoable(why));
        }
        let catalog = self.catalog()?;
        let unlogged = self.unlogged(&catalog)?;
        let named = statements.iter().find_map(|it| unlogged.named_in(it));
        if let Some(named) = &named {
            if !only_read(&statements) {
                return Err(not_known(named));
            }
            // The server itself sees to it that nothing is written.
            self.tell("ROLLBACK")?;
            self.tell("START TRANSACTION READ ONLY")?;
        }
        self.tell(
            "SET SESSION sql_mode = @@GLOBAL.sql_mode, SESSION time_zone = @@GLOBAL.time_zone",
        )?;
        self.tell("SET NAMES utf8mb4")?;
        for statement in &statements {
            match (self.run_one(statement, answers), &named) {
                (Ok(()), _) => {}
                (Err(RowsError::Refused { code, .. }), Some(named))
                    if code == READ_ONLY.to_string() =>
                {
                    return Err(not_known(named));
                }
                (Err(error), _) => return Err(error),
            }
        }
        self.set_modes()?;
        if named.is_none() && self.is_overtaken(xact)? {
            return Err(RowsError::Overtaken);
        }
        Ok(())
    }

    fn run_one(&mut self, statement: &Statement<'_>, answers: &Answers) -> Result<(), RowsError> {
        // Only a procedure can end a transaction by itself, and begin another.
        let is_call = statement.word(0) == "CALL";
        if is_call {
            self.tell("SAVEPOINT backout_call")?;
        }
        let given = self.wire.query(statement.text, ROWS_SHOWN_MAX)?;
        if let Ok(mut answers) = answers.lock() {
            answers.extend(given.into_iter().map(answer));
        }
        let is_over = self.wire.status & IN_TRANSACTION == 0
            || is_call
                && matches!(
                    self.wire.query("RELEASE SAVEPOINT backout_call", 0),
                    Err(WireError::Server {
                        code: NO_SAVEPOINT,
                        ..
                    })
                );
        if !is_over {
            return Ok(());
        }
        // What it did is an operation of nobody: whoever looks takes it up.
        self.tell("ROLLBACK")?;
        let marker = self.own("marker");
        self.tell(&format!(
            "DELETE FROM {marker} WHERE started = {}",
            number(&self.xact)
        ))?;
        let why = "a statement ended the transaction: what came before it stays, and may not be recorded yet; see `backout db sync`";
        Err(RowsError::NotUndoable(why.to_owned()))
    }

    /// Tells whether this transaction was built on one that no operation stands for yet.
    fn is_overtaken(&mut self, xact: &str) -> Result<bool, RowsError> {
        let (log, marker, xact) = (self.own("log"), self.own("marker"), number(xact));
        let found = self.value(&format!(
            "SELECT COUNT(*) FROM (SELECT l.xact FROM (SELECT DISTINCT xact FROM {log}) l WHERE l.xact <> {xact}
                 AND NOT EXISTS (SELECT 1 FROM {marker} m WHERE m.started = l.xact AND m.taken IS NULL)
                 AND NOT EXISTS (SELECT 1 FROM {marker} m WHERE m.taken = l.xact)) t
             JOIN {log} theirs ON theirs.xact = t.xact
             JOIN {log} ours ON ours.xact = {xact} AND ours.relation = theirs.relation
               AND (ours.went = theirs.came OR ours.came = theirs.went)"
        ))?;
        Ok(found.as_deref() != Some("0"))
    }
}

fn not_known(table: &str) -> RowsError {
    RowsError::NotUndoable(format!(
        "`{table}` has no triggers of Backout, so what was written there is not known; `backout db enroll` covers new tables"
    ))
}

/// Reads what a statement answered.
fn answer(given: Given) -> Answer {
    let value = |value: Option<Vec<u8>>| {
        value.map(|bytes| match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => hexadecimal(error.as_bytes()),
        })
    };
    let rows = given.rows.into_iter();
    Answer {
        columns: given.columns,
        rows: rows
            .map(|row| row.into_iter().map(value).collect())
            .collect(),
        count: given.count,
    }
}
