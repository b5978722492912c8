//! `backout recover`

use backout_engine::Command;
use backout_model::Lsn;
use clap::Args;

use crate::failure::Failure;
use crate::session::Session;

/// Finish what dead processes left behind: half-done writes are taken back, half-done undos completed.
///
/// Every write does this first; it is here to see what was left, and to do it without writing anything.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// Look only at operations after this record of the journal.
    #[arg(long, value_name = "LSN")]
    from: Option<u64>,
}

/// Recovers.
pub(crate) fn cmd_recover(session: &mut Session, args: &RecoverArgs) -> Result<(), Failure> {
    session.run(Command::Recover {
        from: args.from.map(Lsn),
    })
}
