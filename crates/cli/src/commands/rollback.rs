//! `backout rollback`

use backout_engine::{Call, Command, Report, Typed, UndoWhat};
use backout_model::{CheckpointName, TaskId};
use clap::Args;

use super::undo::{HowArgs, PartArgs};
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
    part: PartArgs,

    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// Rolls back.
pub(crate) fn cmd_rollback(session: &mut Session, args: RollbackArgs) -> Result<(), Failure> {
    let what = match (args.to, args.name.or_else(|| session.task.clone())) {
        (Some(checkpoint), _) => UndoWhat::ToCheckpoint(checkpoint),
        (None, Some(task)) => UndoWhat::Task(task),
        (None, None) => {
            return Err(Report::usage("it is not clear what to roll back")
                .next_call("name a task; see them with {}", [Call::of("task list")])
                .next_call(
                    "or a checkpoint with `--to`; see them with {}",
                    [Call::of("checkpoint").option("list")],
                )
                .into());
        }
    };
    rollback(session, what, &args.part, &args.how)
}

/// Rolls back a task or to a checkpoint.
pub(super) fn rollback(
    session: &mut Session,
    what: UndoWhat,
    part: &PartArgs,
    how: &HowArgs,
) -> Result<(), Failure> {
    let name = match &what {
        UndoWhat::Task(task) => Some(Typed::default().and(&[task.as_str()])),
        UndoWhat::ToCheckpoint(checkpoint) => {
            Some(Typed::default().and(&["--to", checkpoint.as_str()]))
        }
        UndoWhat::Newest { .. } | UndoWhat::Operations(_) | UndoWhat::Paths { .. } => None,
    };
    let asked = Asked {
        words: Words::Rollback,
        chosen: None,
        part: part.typed()?,
        flags: how.typed(),
        name,
    };
    let command = Command::Undo {
        what,
        options: how.options(part, session.agent.as_ref())?,
        is_dry_run: how.dry_run,
    };
    let engine = session.engine()?;
    session.take_back(&engine, command, &asked)
}
