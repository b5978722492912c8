//! Rows of `MariaDB` tables, by the protocol of `MySQL`.
//!
//! - Three triggers for each table write every row that changes into a log, in the same transaction. The log knows the
//!   transaction by the server's own number for it: its table is *system versioned* by transactions.
//! - The server fires no trigger for what a foreign key does to other rows. So the triggers of the table that is referred to
//!   write those rows down before it happens.
//! - It cannot bring back: changes of the schema, which commit what is open; `TRUNCATE`; tables without transactions. They are
//!   refused, or told as not covered.
//!
//! What it has in common with other servers is in `rows`.

mod catalog;
mod columns;
mod connection;
mod enroll;
mod install;
mod log;
mod login;
mod refused;
mod run;
mod server;
mod triggers;
mod undo;
mod wire;

pub use self::connection::Connection;
use crate::rows::RowsDriver;

/// The driver of all enrolled databases of this kind.
pub type MysqlDriver = RowsDriver<Connection>;
