//! `backout verify`

use backout_engine::Command;
use clap::Args;

use crate::failure::Failure;
use crate::session::Session;

/// Check the whole store: every record against its hash, every image against its digest.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {}

/// Verifies.
pub(crate) fn cmd_verify(session: &mut Session, _args: &VerifyArgs) -> Result<(), Failure> {
    session.run(Command::Verify)
}
