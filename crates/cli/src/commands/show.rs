//! `backout show`

use backout_engine::Command;
use clap::Args;

use crate::failure::Failure;
use crate::session::{Session, reference};

/// Show one operation with all that is known of it.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The operation.
    #[arg(value_name = "REF", default_value = "@")]
    operation: String,
}

/// Shows an operation.
pub(crate) fn cmd_show(session: &mut Session, args: &ShowArgs) -> Result<(), Failure> {
    session.ui.page();
    session.run(Command::Show(reference(&args.operation)?))
}
