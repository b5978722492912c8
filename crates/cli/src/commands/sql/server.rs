//! SQL in a database that a server holds.

use backout_engine::Report;

use crate::failure::Failure;
use crate::session::Session;

/// Runs statements in the database behind a URL.
pub(super) fn run_at(_: &mut Session, _url: &str, _statements: String) -> Result<(), Failure> {
    Err(Report::refused("nothing was run").into())
}

/// Runs statements in an enrolled database.
pub(super) fn run_by_name(_: &mut Session, name: &str, _statements: String) -> Result<(), Failure> {
    Err(Report::refused(format!("no database is enrolled as `{name}`")).into())
}
