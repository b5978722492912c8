//! `backout diff`

use backout_engine::Command;
use clap::Args;

use crate::failure::Failure;
use crate::session::{Session, reference};

/// Show what one operation changed, as a unified diff.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The operation.
    #[arg(value_name = "REF", default_value = "@")]
    operation: String,
}

/// Shows a difference.
pub(crate) fn cmd_diff(session: &mut Session, args: &DiffArgs) -> Result<(), Failure> {
    session.run(Command::Diff(reference(&args.operation)?))
}
