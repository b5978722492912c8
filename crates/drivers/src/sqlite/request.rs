//! What somebody asks for: statements, and the file to run them in.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use backout_changeset::Value;
use backout_model::ports::{DriverError, Request};
use backout_model::{DriverName, JsonText, Verb};
use serde::{Deserialize, Serialize};

use super::name::value_json;
use super::recipe::SQLITE;

/// Asks for statements to be run in a database file, all of them or none.
#[derive(Clone, Serialize, Deserialize)]
pub struct SqlRequest {
    /// The file.
    pub path: PathBuf,
    /// In SQL, with semicolons between them.
    pub statements: String,
    /// Its line for people, if it makes rows what they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<String>,
    /// What the statements told, for whoever made the request.
    #[serde(skip)]
    pub told: Told,
}

impl std::fmt::Debug for SqlRequest {
    // Statements may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SqlRequest({})", self.path.display())
    }
}

/// What a statement that reads gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResultSet {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, the first 1000.
    pub rows: Vec<Vec<Value>>,
    /// Whether there were more.
    pub has_more: bool,
}

impl ResultSet {
    /// Gives the rows as JSON. Bytes are written as in SQL.
    pub fn json_rows(&self) -> Vec<Vec<serde_json::Value>> {
        let row = |row: &Vec<Value>| row.iter().map(value_json).collect();
        self.rows.iter().map(row).collect()
    }
}

/// How many rows of a table changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Rows that were not there.
    pub(super) inserted: u64,
    /// Rows that changed.
    pub(super) updated: u64,
    /// Rows that are gone.
    pub(super) deleted: u64,
}

/// What statements told: what they read.
#[derive(Debug, Clone, Default)]
pub struct Told(Arc<Mutex<Vec<ResultSet>>>);

impl Told {
    pub(super) fn tell(&self, results: Vec<ResultSet>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = results;
    }

    /// Gives what was read.
    pub fn take(&self) -> Vec<ResultSet> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl SqlRequest {
    /// Asks for statements to be run in a file.
    pub fn new(path: PathBuf, statements: String) -> Self {
        let told = Told::default();
        Self {
            path,
            statements,
            restores: None,
            told,
        }
    }
}

impl Request for SqlRequest {
    fn driver(&self) -> DriverName {
        SQLITE
    }

    fn verb(&self) -> Verb {
        match self.restores {
            Some(_) => Verb::Restore,
            None => Verb::Edit,
        }
    }

    fn summary(&self) -> String {
        if let Some(summary) = &self.restores {
            return summary.clone();
        }
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        let word = self.statements.split_whitespace().next();
        let word = word.filter(|word| word.chars().all(|it| it.is_ascii_alphabetic()));
        let word = word.map_or_else(|| "sql".to_owned(), str::to_ascii_lowercase);
        format!("{word} in {}", name.display())
    }

    fn as_text(&self) -> Result<JsonText, DriverError> {
        Ok(JsonText::of(self)?)
    }
}
