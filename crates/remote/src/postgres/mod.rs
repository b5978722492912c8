//! Rows of `PostgreSQL` tables.
//!
//! - Statements run in one database transaction while the write is staged. Triggers log every row they change, in the same
//!   transaction, so what changes is known and kept before the commit, and a marker tells afterwards whether that happened.
//! - What other clients commit in an enrolled database is logged likewise, and can be taken up as an operation.
//! - An undo compares every row with what it was before and after, under a lock, and takes back what nobody changed since.
//! - It cannot bring back: sequences, some changes of the schema, what a trigger did outside of the database.
//!
//! It relies on the server to commit a transaction whole or not at all. What it has in common with other servers is in `rows`.

mod adopt;
mod alter;
mod connection;
mod definition;
mod enroll;
mod error;
mod log;
mod references;
mod run;
mod schema;
mod server;
mod undo;

pub use self::connection::Connection;
use crate::rows::RowsDriver;

/// The driver of all enrolled databases of this kind.
pub type PostgresDriver = RowsDriver<Connection>;

/// Tells whether a statement changes the schema in a way that can be taken back.
pub(crate) fn can_be_taken_back(statement: &crate::rows::Statement<'_>) -> bool {
    schema::kind_of(statement).is_some()
}
