//! Rows of `SQLite` files: statements run in a transaction that stays open until the way back is durable.
//!
//! - It brings back every row that the statements changed, by whatever way: triggers and references too. It brings back the
//!   schema where they changed that, with the rows of every table that a change of the schema touched.
//! - It cannot bring back what is not in the main database: attached files, virtual tables, settings of the connection. Statements
//!   that reach there are refused, by what `SQLite` itself says of them. A sequence is not wound back.
//! - It relies on `SQLite`: a transaction is committed whole or not at all, and a mark in the same transaction tells which.
//!
//! The undo never holds a transaction while it waits to be armed: the engine may look at the same file meanwhile. It looks in one,
//! takes that back, and does exactly the same again when it is armed.

mod back;
mod carry;
mod database;
mod driver;
mod error;
mod name;
mod recipe;
mod references;
mod report;
mod request;
mod restore;
mod row_states;
mod rows;
mod run;
mod schema;
mod shape;
mod under_run;
mod vague;

pub use driver::SqliteDriver;
pub use error::SqliteFault;
pub use recipe::SQLITE;
pub use request::{ResultSet, SqlRequest, Told};
pub use run::read_only;
pub use under_run::{SQLITE_FILES, SqliteFilesDriver, database_of, is_beside, with_beside};

#[cfg(test)]
mod tests;
