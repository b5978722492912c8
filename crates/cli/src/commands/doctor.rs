//! `backout doctor`

use std::path::PathBuf;

use backout_engine::Command;
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::session::Session;

/// Check that the store is healthy and what the file system here can do.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// A directory of the file system to check.
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    directory: PathBuf,

    /// Put right what can be put right.
    #[arg(long)]
    repair: bool,
}

/// Checks.
pub(crate) fn cmd_doctor(session: &mut Session, args: DoctorArgs) -> Result<(), Failure> {
    session.run(Command::Doctor {
        directory: args.directory,
        repair: args.repair,
    })
}
