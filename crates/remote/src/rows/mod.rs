//! Rows of a server: what databases have in common.
//!
//! - `server.rs` is what each kind of server does its own way. The folders `postgres` and `mysql` do that.
//! - `driver.rs` is the driver of all of them: what is staged is an open transaction, and applying is its commit.
//! - `undo.rs` and `references.rs` take a transaction back, in a transaction of its own: before, after, now, row by row.

mod body;
mod driver;
mod error;
mod references;
mod request;
mod schema;
mod server;
mod statements;
mod undo;

use backout_model::ports::DriverError;
use backout_model::{DriverName, Key, Reach, Target};
use serde::{Deserialize, Serialize};

pub use self::body::{Body, Changed};
pub use self::driver::RowsDriver;
pub use self::error::RowsError;
pub use self::request::{Act, Answer, Answers, RowsRequest, SecretUrl};
pub use self::schema::{SchemaChange, SchemaKind};
pub use self::server::{
    Database, Enrolled, Foreign, Interrupt, Net, PATIENCE, Reference, Server, Stills, Table,
    TextRow, Uncovered, ValueSql, Way, connect,
};
pub(crate) use self::server::{on_key, quote};
pub(crate) use self::statements::{Dialect, Statement, split};

/// Above this many rows of one table the table is the target: a recipe of a million rows must not be a million targets.
pub const ROWS_MAX: usize = 200;

/// A database as recipes and requests name it: enough to find it again and to know that it is the same one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// What it was enrolled under. The database holds it, too.
    pub name: String,
    /// The number that the database gave itself when it was enrolled.
    pub id: String,
    /// Where it is, without a password.
    pub url: String,
}

impl Place {
    /// Names the space of its targets.
    pub fn space(&self) -> String {
        let kind = Kind::of(&self.url).unwrap_or(Kind::Postgres);
        format!("{}:{}", kind.driver(), self.name)
    }
}

/// A kind of server, told by the scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `PostgreSQL`.
    Postgres,
    /// `MySQL` and `MariaDB`.
    Mysql,
}

impl Kind {
    /// Tells of which kind the server behind a URL is; none if it is no URL of a database.
    pub fn of(url: &str) -> Option<Self> {
        match url.split_once("://")?.0 {
            "postgres" | "postgresql" => Some(Self::Postgres),
            "mysql" | "mariadb" => Some(Self::Mysql),
            _ => None,
        }
    }

    /// Names the driver, which is what spaces of targets begin with.
    pub const fn driver(self) -> DriverName {
        match self {
            Self::Postgres => DriverName::literal("postgres"),
            Self::Mysql => DriverName::literal("mysql"),
        }
    }
}

/// What happened to the rows of one table, all in all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableChange {
    /// The schema that the table is in.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// How many rows are new, were changed, and are gone.
    pub counts: [u64; 3],
    /// The rows, by key; none if they are too many.
    pub rows: Option<Vec<String>>,
}

impl TableChange {
    /// Counts all rows.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Names what was written: the rows, or the table if they are too many. `space` is that of the database.
    pub fn targets(&self, space: &str) -> Result<Vec<Target>, DriverError> {
        let table = Key::in_space(space, &[&self.schema, &self.table])?;
        let Some(rows) = &self.rows else {
            return Ok(vec![Target::new(table, Reach::Tree)]);
        };
        let row = |key: &String| Ok(Target::new(table.part(key)?, Reach::Node));
        rows.iter().map(row).collect()
    }

    /// Says it in a few words.
    pub fn said(&self) -> String {
        let words = ["new", "changed", "gone"];
        let each = self.counts.iter().zip(words);
        let each = each.filter(|(count, _)| **count > 0);
        let each: Vec<String> = each
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        format!("{} ({})", self.table, each.join(", "))
    }
}

/// Tells whether a text can name a database: it is a part of every target's name.
pub fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_are_the_table_and_a_row_lies_in_it() {
        let mut change = TableChange {
            schema: "public".to_owned(),
            table: "orders".to_owned(),
            counts: [1, 0, 1],
            rows: Some(vec!["7".to_owned(), "8".to_owned()]),
        };
        let rows = change.targets("postgres:shop").unwrap();
        assert_eq!(rows[0].to_string(), "postgres:shop/public/orders:7");
        assert_eq!(change.said(), "orders (1 new, 1 gone)");
        change.rows = None;
        let table = change.targets("postgres:shop").unwrap();
        assert_eq!(table[0].to_string(), "postgres:shop/public/orders");
        assert!(rows[0].overlap(&table[0]).is_some());
    }

    #[test]
    fn a_name_is_a_word() {
        assert!(is_name("shop-2_x") && !is_name("") && !is_name("a b") && !is_name("a/b"));
    }
}
