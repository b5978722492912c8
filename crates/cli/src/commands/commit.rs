//! `backout commit`

use backout_engine::{Command, TaskCommand};
use backout_model::TaskId;
use clap::Args;

use crate::failure::Failure;
use crate::session::Session;

/// Keep the operations of a task.
///
/// They can still be undone while their images are retained. An undo of other work takes them along only with
/// `--committed`.
#[derive(Debug, Args)]
pub(crate) struct CommitArgs {
    /// The task; by default the one of `--task`, or the only open one.
    #[arg(value_name = "TASK")]
    name: Option<TaskId>,
}

/// Commits a task.
pub(crate) fn cmd_commit(session: &mut Session, args: CommitArgs) -> Result<(), Failure> {
    let id = args.name.or_else(|| session.task.clone());
    session.run(Command::Task(TaskCommand::Commit { id }))
}
