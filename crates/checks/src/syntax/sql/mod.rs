//! SQL of PostgreSQL, MySQL and SQLite: quotes, comments and brackets always; statements where a parser knows them.
//!
//! The text is cut into statements first (`split`). What everyone writes is given to a parser of several dialects, and
//! is good if one of them takes it. What depends on the database (functions, triggers, `DO`, grants, partitions) is let
//! pass: no parser here knows it well enough to refuse it.

mod lexer;
mod split;

use sqlparser::dialect::{Dialect, GenericDialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::{Parser, ParserError};

use super::fault::{Fault, quote};
use crate::Finding;
use split::Statement;

/// Longer statements are not parsed: they hold data.
const PARSED_BYTES_MAX: usize = 64 << 10;

/// The stack of the thread that parses: a long sum becomes a deep tree.
const STACK_BYTES: usize = 64 << 20;

/// Statements whose brackets nest deeper are not parsed: the work could double with each.
const PARSED_DEPTH_MAX: usize = 16;

/// Words that a statement may begin with, in any of the databases.
const BEGINNINGS: &str = "ABORT ALTER ANALYSE ANALYZE ATTACH BEGIN BINLOG CACHE CALL CHANGE CHECK CHECKPOINT CHECKSUM \
    CLONE CLOSE CLUSTER COMMENT COMMIT COPY CREATE DEALLOCATE DECLARE DELETE DELIMITER DESC \
    DESCRIBE DETACH DISCARD DO DROP END EXEC EXECUTE EXPLAIN FETCH FLUSH FROM GET GO GRANT \
    HANDLER HELP IF IMPORT INSERT INSTALL KILL LISTEN LOAD LOCK MERGE MOVE NOTIFY OPEN OPTIMIZE \
    PRAGMA PREPARE PRINT PURGE REASSIGN REFRESH REINDEX RELEASE RENAME REPAIR REPLACE RESET \
    RESIGNAL RESTART RETURN REVOKE ROLLBACK SAVEPOINT SECURITY SELECT SET SHOW SHUTDOWN SIGNAL \
    START STOP TABLE TRUNCATE UNINSTALL UNLISTEN UNLOCK UPDATE USE VACUUM VALUES WITH XA";

/// Words of a table's definition that the parser knows in part only.
const SPECIAL: &str = "COMPRESSION ENGINE EXCLUDE INHERITS OF PARTITION PARTITIONS RETURNING \
    SERVER STORAGE STORED SYSTEM TABLESPACE VIRTUAL";

pub(super) fn check(text: &str) -> Vec<Finding> {
    let (statements, fault) = split::statements(text);
    let mut findings = with_room(|| of_statements(text, &statements)).unwrap_or_else(|| {
        vec![Finding::new("cannot be checked: its parser failed").mended_by("check it by hand")]
    });
    findings.extend(fault.map(|fault| fault.finding(text)));
    findings
}

/// Runs the parser where it has room. Gives nothing if it failed.
fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("sql".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)
            .ok()?
            .join()
            .ok()
    })
}

fn of_statements(text: &str, statements: &[Statement<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for statement in statements {
        if let Err(fault) = check_statement(text, statement) {
            findings.push(fault.finding(text));
        }
        if findings.len() >= super::FINDINGS_MAX {
            break;
        }
    }
    findings
}

fn check_statement(text: &str, statement: &Statement<'_>) -> Result<(), Fault> {
    let first = statement
        .words
        .first()
        .map(String::as_str)
        .unwrap_or_default();
    let is_known = BEGINNINGS.split(' ').any(|word| word == first);
    if !is_known && !first.is_empty() && !statement.is_opaque {
        return Err(Fault::new(
            statement.at,
            format!("{} begins no statement of SQL", quote(first)),
        )
        .mended_by("check how it is written, and whether the `;` before it is right"));
    }
    statement.check_brackets(text)?;
    if is_parsed(statement) {
        return parse(statement);
    }
    Ok(())
}

fn is_parsed(statement: &Statement<'_>) -> bool {
    let word = |index: usize| {
        statement
            .words
            .get(index)
            .map(String::as_str)
            .unwrap_or_default()
    };
    let is_everyday = match (word(0), word(1)) {
        ("SELECT" | "INSERT" | "UPDATE" | "DELETE" | "WITH" | "VALUES", _)
        | ("DROP", "TABLE" | "VIEW" | "INDEX")
        | ("CREATE", "INDEX") => true,
        ("CREATE", "TABLE") => {
            let is_special = |word: &String| SPECIAL.split(' ').any(|special| special == word);
            !statement.words.iter().any(is_special)
        }
        _ => false,
    };
    is_everyday
        && !statement.is_opaque
        && statement.text.len() <= PARSED_BYTES_MAX
        && statement.depth <= PARSED_DEPTH_MAX
}

/// Parses a statement in each dialect, until one takes it.
fn parse(statement: &Statement<'_>) -> Result<(), Fault> {
    let dialects: [&dyn Dialect; 4] = [
        &GenericDialect {},
        &PostgreSqlDialect {},
        &MySqlDialect {},
        &SQLiteDialect {},
    ];
    let mut first: Option<String> = None;
    for dialect in dialects {
        match Parser::parse_sql(dialect, statement.text) {
            Ok(_) | Err(ParserError::RecursionLimitExceeded) => return Ok(()),
            Err(ParserError::TokenizerError(why) | ParserError::ParserError(why)) => {
                first.get_or_insert(why);
            }
        }
    }
    let why = first.unwrap_or_default();
    let (what, place) = why.rsplit_once(" at Line: ").unwrap_or((&why, ""));
    let at = offset_of(statement.text, place).unwrap_or(statement.text.trim_end().len());
    Err(Fault::new(statement.at + at, worded(what)))
}

/// What the parser says, in our words.
fn worded(what: &str) -> String {
    let parts = what
        .strip_prefix("Expected: ")
        .and_then(|rest| rest.rsplit_once(", found: "));
    match parts {
        Some((wanted, "EOF" | ";")) => format!("the statement ends too early: {wanted} is needed"),
        Some((wanted, found)) => format!("{wanted} is needed here, not {}", quote(found)),
        None => quote(what).trim_matches('`').to_owned(),
    }
}

/// The byte that `LINE, Column: COLUMN` means.
fn offset_of(text: &str, place: &str) -> Option<usize> {
    let (line, column) = place.split_once(", Column: ")?;
    let (line, column) = (line.parse::<usize>().ok()?, column.parse::<usize>().ok()?);
    let start: usize = text
        .split_inclusive('\n')
        .take(line.checked_sub(1)?)
        .map(str::len)
        .sum();
    let rest = text.get(start..)?;
    let within: usize = rest
        .chars()
        .take(column.checked_sub(1)?)
        .map(char::len_utf8)
        .sum();
    Some(start + within)
}
