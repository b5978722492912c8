//! `backout task`

use backout_engine::{Command, TaskCommand, UndoWhat};
use backout_model::TaskId;
use clap::{Args, Subcommand};

use super::commit::{CommitArgs, cmd_commit};
use super::rollback::rollback;
use super::undo::{HowArgs, PartArgs};
use crate::failure::Failure;
use crate::session::Session;

/// Group operations that are kept or taken back together.
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    #[command(subcommand)]
    command: TaskSubcommand,
}

#[derive(Debug, Subcommand)]
enum TaskSubcommand {
    /// Begin a task; write into it with `--task NAME`.
    Begin {
        /// Its name; by default a new one.
        #[arg(value_name = "NAME")]
        name: Option<TaskId>,

        /// The process whose death rolls the task back.
        #[arg(long, value_name = "PID")]
        owner_pid: Option<u32>,
    },
    /// Keep the operations of a task.
    Commit(CommitArgs),
    /// Take a task back.
    Rollback {
        /// The task.
        #[arg(value_name = "NAME")]
        name: TaskId,

        #[command(flatten)]
        part: PartArgs,
        #[command(flatten)]
        how: HowArgs,
    },
    /// List tasks, newest first.
    List,
}

impl TaskArgs {
    /// Tells whether it only lists tasks.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self.command, TaskSubcommand::List)
    }
}

/// Begins, commits, rolls back or lists tasks.
pub(crate) fn cmd_task(session: &mut Session, args: TaskArgs) -> Result<(), Failure> {
    match args.command {
        TaskSubcommand::Begin { name, owner_pid } => {
            session.run(Command::Task(TaskCommand::Begin {
                id: name,
                owner_pid,
            }))
        }
        TaskSubcommand::Commit(args) => cmd_commit(session, args),
        TaskSubcommand::Rollback { name, part, how } => {
            rollback(session, UndoWhat::Task(name), &[], (&part, &how))
        }
        TaskSubcommand::List => session.run(Command::Task(TaskCommand::List)),
    }
}
