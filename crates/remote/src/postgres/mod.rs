//! Rows of `PostgreSQL` tables.
//!
//! - Statements run in one database transaction while the write is staged. Triggers log every row they change, in the same
//!   transaction, so what changes is known and kept before the commit, and a marker tells afterwards whether that happened.
//! - What other clients commit in an enrolled database is logged likewise, and can be taken up as an operation.
//! - An undo compares every row with what it was before and after, under a lock, and takes back what nobody changed since.
//! - It cannot bring back: sequences, changes of the schema, what a trigger did outside of the database.
//!
//! It relies on the server to commit a transaction whole or not at all.

mod adopt;
mod connection;
mod driver;
mod enroll;
mod error;
mod log;
mod recipe;
mod references;
mod request;
mod run;
mod statements;
mod undo;

use backout_model::DriverName;

pub use self::adopt::Foreign;
pub use self::connection::{Connection, PATIENCE};
pub use self::driver::PostgresDriver;
pub use self::enroll::{Enrolled, Uncovered};
pub use self::error::PostgresError;
pub use self::request::{Act, Answer, Answers, PostgresRequest, SecretUrl};
use crate::rows::Place;

/// The name that its recipes bear.
pub const POSTGRES: DriverName = DriverName::literal("postgres");

/// Names the space of a database's targets.
fn space(place: &Place) -> String {
    format!("postgres:{}", place.name)
}

/// Tells whether a URL is for this driver.
pub fn is_url(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}
