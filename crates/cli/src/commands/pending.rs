//! `backout pending`

use backout_engine::{Command, ProposalCommand};
use clap::Args;

use crate::failure::Failure;
use crate::session::{Session, reference};

/// List what waits for a decision, or show one of them.
///
/// A gate may ask for a decision before a write happens, by a rule in `backout.toml` for example. Such a write is a
/// proposal: nothing is changed until somebody approves it. Trials that wait are listed too.
#[derive(Debug, Args)]
pub(crate) struct PendingArgs {
    /// The proposal to show, with what it would change.
    #[arg(value_name = "REF")]
    proposal: Option<String>,
}

/// Shows what waits.
pub(crate) fn cmd_pending(session: &mut Session, args: &PendingArgs) -> Result<(), Failure> {
    session.ui.page();
    let what = match &args.proposal {
        Some(name) => ProposalCommand::Show(reference(name)?),
        None => ProposalCommand::List,
    };
    session.run(Command::Proposal(what))
}
