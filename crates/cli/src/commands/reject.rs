//! `backout reject`

use backout_engine::{Command, ProposalCommand};
use clap::Args;

use super::approve::WhyArg;
use crate::failure::Failure;
use crate::session::{Session, reference};

/// Refuse a proposal; nothing is written.
///
/// The journal says who refused it, and why.
#[derive(Debug, Args)]
pub(crate) struct RejectArgs {
    /// The proposal.
    #[arg(value_name = "REF")]
    proposal: String,

    #[command(flatten)]
    why: WhyArg,
}

/// Rejects a proposal.
pub(crate) fn cmd_reject(session: &mut Session, args: RejectArgs) -> Result<(), Failure> {
    let proposal = reference(&args.proposal)?;
    let decided = args.why.decided(session);
    let what = ProposalCommand::Reject { proposal, decided };
    session.run(Command::Proposal(what))
}
