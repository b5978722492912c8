//! What cannot be run, told before it is: the server commits what is open for many statements, and writes tables that have no
//! triggers of ours without a word. Nobody can ask it afterwards which tables a transaction wrote, so this looks at names.

use std::collections::BTreeSet;

use super::catalog::{Catalog, texts};
use super::connection::Connection;
use super::enroll::is_ours;
use crate::rows::{Dialect, RowsError, Statement, split};

/// Statements that change rows, or only read.
const WRITES: [&str; 8] = [
    "INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "CALL", "DO", "SET",
];

/// Statements that only read, unless a function that they call writes.
const READS: [&str; 8] = [
    "SELECT", "WITH", "VALUES", "TABLE", "SHOW", "DESC", "DESCRIBE", "EXPLAIN",
];

/// Databases of the server that are only read.
const READ_ONLY: [&str; 3] = ["information_schema", "performance_schema", "sys"];

/// Says why a statement cannot be run here, if it cannot.
pub(super) fn refused(statement: &Statement<'_>) -> Option<String> {
    let first = statement.word(0);
    let has = |word: &str| {
        statement
            .names
            .iter()
            .any(|it| it.eq_ignore_ascii_case(word))
    };
    let why = match first.as_str() {
        "ROLLBACK" if has("to") => return None,
        "SAVEPOINT" | "RELEASE" => return None,
        "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "XA" => {
            "all statements run in one transaction, which Backout begins and ends"
        }
        "PREPARE" | "EXECUTE" => "what it does stands in a text that is not known yet",
        "LOAD" if has("local") => {
            "there is no stream to read from here; use the server's own client, whose rows are kept, too"
        }
        "SET"
            if [
                "global",
                "password",
                "autocommit",
                "persist",
                "statement",
                "role",
            ]
            .iter()
            .any(|it| has(it)) =>
        {
            "it changes more than a variable of this session"
        }
        _ if has("outfile") || has("dumpfile") => "it would write a file; use `SELECT`",
        _ if statement.has_living_comment => "it has a comment that the server carries out",
        word if WRITES.contains(&word) || READS.contains(&word) => return None,
        _ => {
            "the server commits what is open when it runs it, or works outside of the transaction: it could not be taken back"
        }
    };
    Some(format!("`{first}` cannot be run: {why}"))
}

/// Tells whether statements only read, as far as their words tell.
pub(super) fn only_read(statements: &[Statement<'_>]) -> bool {
    statements
        .iter()
        .all(|it| READS.contains(&it.word(0).as_str()))
}

/// The names whose use may write what nobody logs.
#[derive(Debug)]
pub(super) struct Unlogged {
    names: BTreeSet<String>,
    schemas: Vec<String>,
}

impl Unlogged {
    /// Finds the first such name in a statement.
    pub(super) fn named_in(&self, statement: &Statement<'_>) -> Option<String> {
        self.in_text(statement.text, &statement.names)
    }

    fn in_text(&self, text: &str, words: &[&str]) -> Option<String> {
        let is_it = |word: &&&str| self.names.contains(&word.to_lowercase());
        let named = words.iter().find(is_it).map(|it| (*it).to_owned());
        let lower = text.to_lowercase();
        named.or_else(|| {
            let mut schemas = self.schemas.iter();
            schemas.find(|it| names_schema(&lower, it)).cloned()
        })
    }
}

/// Tells whether a text names something of a database: its name, and a dot behind it.
fn names_schema(text: &str, schema: &str) -> bool {
    let is_in_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|it| it.find(schema)) {
        let begin = at + found;
        let before = text.get(..begin).unwrap_or_default();
        let after = text.get(begin + schema.len()..).unwrap_or_default();
        let after = after.strip_prefix('`').unwrap_or(after).trim_start();
        if !before.ends_with(is_in_name) && !before.ends_with('.') && after.starts_with('.') {
            return true;
        }
        at = begin + schema.len();
    }
    false
}

impl Connection {
    /// Finds out which names may write what nobody logs: tables that are not covered, other databases, and whatever names one
    /// of those: routines, views, and tables whose triggers do.
    pub(super) fn unlogged(&mut self, catalog: &Catalog) -> Result<Unlogged, RowsError> {
        let coverage = self.coverage(catalog)?;
        let uncovered = coverage.iter().filter(|it| !it.is_covered);
        let mut names: BTreeSet<String> = uncovered.map(|it| it.table.to_lowercase()).collect();
        let schemas = self.question("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")?;
        let own = self.database.to_lowercase();
        let schemas = schemas.into_iter().flatten().flatten();
        let schemas = schemas.map(|it| it.to_lowercase());
        let schemas = schemas.filter(|it| *it != own && !READ_ONLY.contains(&it.as_str()));
        let schemas: Vec<String> = schemas.collect();
        let schema = self.schema_text();
        let routines = self.question(&format!(
            "SELECT ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {schema}
             UNION ALL SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = {schema}"
        ))?;
        let mut texts_of: Vec<(String, String)> = routines
            .into_iter()
            .map(|row| {
                let [name, text] = texts(row);
                // One whose text may not be seen may do anything.
                let text = if text.is_empty() {
                    "EXECUTE".to_owned()
                } else {
                    text
                };
                // The server writes the name of the database before every name.
                (
                    name.to_lowercase(),
                    text.replace(&format!("`{}`.", self.database), ""),
                )
            })
            .collect();
        let triggers = catalog.triggers.iter().filter(|(name, ..)| !is_ours(name));
        texts_of.extend(triggers.map(|(_, table, text)| (table.to_lowercase(), text.clone())));
        loop {
            let known = Unlogged {
                names: names.clone(),
                schemas: schemas.clone(),
            };
            let is_unlogged = |text: &str| {
                let mut each = split(text, Dialect::Mysql).into_iter();
                each.any(|it| {
                    let runs_text = |word: &&str| {
                        word.eq_ignore_ascii_case("execute") || word.eq_ignore_ascii_case("prepare")
                    };
                    known.named_in(&it).is_some() || it.names.iter().any(runs_text)
                })
            };
            let found = texts_of.iter().filter(|(_, text)| is_unlogged(text));
            let found: Vec<String> = found.map(|(name, _)| name.clone()).collect();
            let before = names.len();
            names.extend(found);
            if names.len() == before {
                return Ok(known);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_named_by_its_name_and_a_dot() {
        for text in ["insert into other.t", "update `other` . t", "(other.t)"] {
            assert!(names_schema(text, "other"), "{text}");
        }
        for text in ["select other from t", "another.t", "t.other.x", "other_t.x"] {
            assert!(!names_schema(text, "other"), "{text}");
        }
    }

    #[test]
    fn what_commits_is_refused_and_what_writes_rows_is_not() {
        let first = |text| refused(&split(text, Dialect::Mysql)[0]);
        for text in [
            "create table t (i int)",
            "truncate t",
            "commit",
            "rename table a to b",
            "lock tables t write",
            "xa start 'a'",
            "set global max_connections = 1",
            "select 1 into outfile '/tmp/x'",
            "/*!50000 truncate t */",
            "load data local infile 'x' into table t",
            "analyze table t",
        ] {
            assert!(first(text).is_some(), "{text}");
        }
        for text in [
            "replace into t values (1)",
            "set @a = 1",
            "rollback to savepoint a",
            "call p()",
        ] {
            assert_eq!(first(text), None, "{text}");
        }
    }
}
