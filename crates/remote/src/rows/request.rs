//! What is asked of a database: to run statements, or to take up what another client did.

use std::sync::{Arc, Mutex};

use backout_model::ports::{DriverError, Request};
use backout_model::{DriverName, JsonText, Verb};
use serde::{Deserialize, Serialize};

use super::statements::{Dialect, split};
use super::{Kind, Place};

/// What statements answered, in order.
pub type Answers = Arc<Mutex<Vec<Answer>>>;

/// What one statement answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The names of the columns; empty if it gives no rows.
    pub columns: Vec<String>,
    /// The rows, as text; none is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// How many rows it was about.
    pub count: u64,
}

/// Asks for something in a database.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RowsRequest {
    /// Which database.
    pub place: Place,
    /// What to do there.
    pub act: Act,
    /// The URL as it was given, for this process only: it may hold a password.
    #[serde(skip)]
    pub url: Option<SecretUrl>,
    /// Where the answers go, in this process.
    #[serde(skip)]
    pub answers: Answers,
}

/// A URL that may hold a password.
#[derive(Clone)]
pub struct SecretUrl(pub String);

impl std::fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretUrl")
    }
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Run these statements.
    Run {
        /// The statements.
        text: String,
        /// Who asks.
        agent: Option<String>,
    },
    /// Take up a transaction that another client committed.
    Adopt {
        /// The transaction.
        xact: String,
        /// What it did, in one line.
        summary: String,
    },
}

impl RowsRequest {
    /// Asks for something in a database that is known.
    pub fn new(place: Place, url: Option<String>, act: Act) -> Self {
        Self {
            place,
            act,
            url: url.map(SecretUrl),
            answers: Answers::default(),
        }
    }
}

impl Request for RowsRequest {
    fn driver(&self) -> DriverName {
        Kind::of(&self.place.url).unwrap_or(Kind::Postgres).driver()
    }

    fn verb(&self) -> Verb {
        Verb::Write
    }

    fn summary(&self) -> String {
        let name = &self.place.name;
        match &self.act {
            Act::Run { text, .. } => {
                let statements = split(text, Dialect::of(Kind::of(&self.place.url)));
                let first = statements
                    .iter()
                    .take(3)
                    .map(super::statements::Statement::said);
                let first: Vec<String> = first.collect();
                let more = if statements.len() > 3 { ", …" } else { "" };
                format!("sql in {name}: {}{more}", first.join(", "))
            }
            Act::Adopt { summary, .. } => format!("in {name}: {summary}"),
        }
    }

    fn as_text(&self) -> Result<JsonText, DriverError> {
        Ok(JsonText::of(self)?)
    }
}
