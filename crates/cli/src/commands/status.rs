//! `backout status`

use backout_engine::Command;
use clap::Args;

use crate::failure::Failure;
use crate::session::Session;

/// Show what is at work, what waits for you, and the store.
///
/// It lists open tasks, unfinished work, what waits for a decision with what to type, and the newest operations.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {}

/// Shows where things stand.
pub(crate) fn cmd_status(session: &mut Session, _args: &StatusArgs) -> Result<(), Failure> {
    session.sync_databases();
    session.run(Command::Status)
}
