//! `backout verify`

use std::path::PathBuf;

use backout_engine::Command;
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;

/// Check every record and every image of the store.
///
/// A record is held against its hash and its neighbours, an image against its digest.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Check what `backout export --format mplp` wrote instead: its sums, its chain, whether its story follows from its records, and whether the journal still has every
    /// record of it.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    evidence: Option<PathBuf>,
}

pub(crate) fn cmd_verify(session: &mut Session, args: &VerifyArgs) -> Result<(), Failure> {
    session.run(match &args.evidence {
        Some(directory) => Command::VerifyEvidence {
            directory: absolute(directory)?,
        },
        None => Command::Verify,
    })
}
