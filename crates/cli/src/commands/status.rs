//! `backout status`

use backout_engine::Command;
use clap::Args;

use crate::failure::Failure;
use crate::session::Session;

/// Show where things stand: open tasks, unfinished work, the newest operations, the store.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {}

/// Shows where things stand.
pub(crate) fn cmd_status(session: &mut Session, _args: &StatusArgs) -> Result<(), Failure> {
    session.sync_databases();
    session.run(Command::Status)
}
