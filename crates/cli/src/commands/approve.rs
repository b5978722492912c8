//! `backout approve`

use backout_engine::{Command, ProposalCommand, Reply};
use backout_model::Decided;
use clap::Args;

use crate::accounts::user_name;
use crate::failure::Failure;
use crate::session::{Session, reference};
use crate::show;

/// Let a proposal happen.
///
/// What happens is exactly what was proposed. If a target changed since, nothing is written. Who proposed it cannot approve it.
#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// The proposal.
    #[arg(value_name = "REF")]
    proposal: String,

    #[command(flatten)]
    why: WhyArg,
}

/// The words of whoever decides.
#[derive(Debug, Args)]
pub(crate) struct WhyArg {
    /// Why, for the journal.
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

impl WhyArg {
    /// Says who decides, and why.
    pub(crate) fn decided(self, session: &mut Session) -> Decided {
        session.look_up_forebears();
        let by = match &session.agent {
            Some(agent) => format!("{} for agent {agent}", user_name()),
            None => user_name(),
        };
        Decided { by, why: self.why }
    }
}

/// Approves a proposal.
pub(crate) fn cmd_approve(session: &mut Session, args: ApproveArgs) -> Result<(), Failure> {
    let proposal = reference(&args.proposal)?;
    let decided = args.why.decided(session);
    let what = ProposalCommand::Approve { proposal, decided };
    let engine = session.engine()?;
    match session.execute(&engine, Command::Proposal(what))? {
        Reply::Finished(finished) if !session.ui.is_json() => {
            let said = format!("approved: {}", finished.summary);
            show::write::finished(session, &finished, &said);
            Ok(())
        }
        reply => session.show(&engine, &reply),
    }
}
