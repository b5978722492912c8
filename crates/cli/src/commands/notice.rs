//! `backout notice`: tells people that something waits, for a process that has no time to wait until they are told.

use backout_engine::{Command, ProposalCommand, Reply};
use backout_storage::{Telling, note_untold};
use clap::Args;

use crate::failure::Failure;
use crate::session::{Session, rules};
use crate::state_dir::state_dir;

/// Tell everybody whom `[notify]` names that a proposal waits. Writes down what went wrong, for `pending` to tell.
#[derive(Debug, Args)]
pub(crate) struct NoticeArgs {
    /// The proposal.
    #[arg(value_name = "REF")]
    proposal: String,
}

/// Tells people. What went wrong is printed, a line each, for who may still wait.
pub(crate) fn cmd_notice(session: &mut Session, args: &NoticeArgs) -> Result<(), Failure> {
    let engine = session.engine()?;
    let list = Command::Proposal(ProposalCommand::List);
    let Reply::Pending { proposals, .. } = session.execute(&engine, list)? else {
        return Ok(());
    };
    let is_it = |id: &str| id == args.proposal;
    let Some(proposal) = proposals.iter().find(|it| is_it(&it.id.to_string())) else {
        return Ok(());
    };
    let directory = state_dir(session.global.state_dir.as_deref())?;
    // People are told without the mark, too.
    let telling = Telling::begin(&directory, proposal.id).ok().flatten();
    let wrong = rules().tell_of(proposal);
    let waits = |id| proposals.iter().any(|it| it.id == id);
    note_untold(&directory, proposal.id, &wrong, &waits)
        .map_err(backout_engine::EngineError::from)?;
    telling.into_iter().for_each(Telling::end);
    let mut lines = String::new();
    for said in &wrong {
        lines.push_str(&said.replace('\n', " "));
        lines.push('\n');
    }
    session.ui.print(&lines);
    Ok(())
}
