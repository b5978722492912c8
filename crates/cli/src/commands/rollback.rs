//! `backout rollback`

use backout_engine::{Command, Report, UndoWhat};
use backout_model::{CheckpointName, TaskId};
use clap::Args;

use super::undo::HowArgs;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::undo::{Asked, Words};

/// Take a whole task back, or everything since a checkpoint.
#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// The task; by default the one of `--task`.
    #[arg(value_name = "TASK", conflicts_with = "to")]
    name: Option<TaskId>,

    /// Go back to this checkpoint.
    #[arg(long, value_name = "CHECKPOINT")]
    to: Option<CheckpointName>,

    #[command(flatten)]
    how: HowArgs,
}

/// Rolls back.
pub(crate) fn cmd_rollback(session: &mut Session, args: RollbackArgs) -> Result<(), Failure> {
    let what = match (args.to, args.name.or_else(|| session.task.clone())) {
        (Some(checkpoint), _) => UndoWhat::ToCheckpoint(checkpoint),
        (None, Some(task)) => UndoWhat::Task(task),
        (None, None) => {
            return Err(Report::usage("it is not clear what to roll back")
                .next("name a task; see them with `backout task list`")
                .next("or a checkpoint with `--to`; see them with `backout checkpoint --list`")
                .into());
        }
    };
    rollback(session, what, &args.how)
}

/// Rolls back a task or to a checkpoint.
pub(super) fn rollback(
    session: &mut Session,
    what: UndoWhat,
    how: &HowArgs,
) -> Result<(), Failure> {
    let name = match &what {
        UndoWhat::Task(task) => format!(" {task}"),
        UndoWhat::ToCheckpoint(checkpoint) => format!(" --to {checkpoint}"),
        UndoWhat::Newest | UndoWhat::Operations(_) => String::new(),
    };
    let asked = Asked {
        words: Words::Rollback,
        typed: format!("rollback{name}{}", how.typed()),
    };
    let command = Command::Undo {
        what,
        options: how.options(false),
        is_dry_run: how.dry_run,
    };
    session.take_back(command, &asked)
}
