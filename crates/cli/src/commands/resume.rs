//! `backout resume`

use backout_engine::{Command, ResumeWhat, Typed};
use backout_model::ports::OnConflict;
use backout_model::{CheckpointName, TaskId, TriggerAction};
use clap::Args;

use crate::failure::Failure;
use crate::session::Session;
use crate::show::undo::Asked;

/// Go on where an agent was when it died or was ended.
///
/// Finds the newest checkpoint of the task that is whole, takes back what was in flight (what the task did after the checkpoint and nobody committed), and
/// tells where to go on: step, state, directory, variables, what was taken back and why. `backout redo` brings it back.
///
/// A checkpoint that is damaged, that a newer Backout wrote or that belongs to another task is skipped and told, and the one before it is used.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub(crate) struct ResumeArgs {
    /// The task; by default the one of `--task`, or the only open one that has a checkpoint.
    #[arg(value_name = "TASK")]
    name: Option<TaskId>,

    /// Go on from this checkpoint; by default from the newest good one.
    #[arg(long, value_name = "CHECKPOINT")]
    from: Option<CheckpointName>,

    /// Leave what was in flight as it is.
    #[arg(long)]
    keep: bool,

    /// Take back what was in flight, whatever `backout.toml` says.
    #[arg(long, conflicts_with = "keep")]
    rollback: bool,

    /// Where a target changed since, take out only this change and keep the others.
    #[arg(long, conflicts_with_all = ["force", "keep"])]
    merge: bool,

    /// Where a target changed since, change it anyway; what is overwritten is kept, so this too can be undone.
    #[arg(long, conflicts_with = "keep")]
    force: bool,

    /// Also take back what other agents built on it.
    #[arg(long, conflicts_with = "keep")]
    others: bool,

    /// Go on although the process that took the checkpoint is alive.
    #[arg(long)]
    takeover: bool,

    /// Show what would happen and change nothing; the exit code is 1 where it would be refused.
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
}

/// Goes on.
pub(crate) fn cmd_resume(session: &mut Session, args: ResumeArgs) -> Result<(), Failure> {
    session.look_up_forebears();
    let in_flight = match (args.keep, args.rollback || args.merge || args.force) {
        (true, _) => Some(TriggerAction::Keep),
        (false, true) => Some(TriggerAction::Rollback),
        (false, false) => None,
    };
    let on_conflict = match (args.force, args.merge) {
        (true, _) => OnConflict::Force,
        (false, true) => OnConflict::Merge,
        (false, false) => OnConflict::Refuse,
    };
    let mut again = Typed::default();
    if let Some(task) = &args.name {
        again = again.and(&[task.as_str()]);
    }
    if let Some(from) = &args.from {
        again = again.and(&["--from", from.as_str()]);
    }
    let what = ResumeWhat {
        task: args.name,
        from: args.from,
        in_flight,
        on_conflict,
        takeover: args.takeover,
        own_only: false,
        others: args.others,
        is_dry_run: args.dry_run,
    };
    let engine = session.engine()?;
    let asked = Asked::of_command("resume", again);
    session.take_back(&engine, Command::Resume(what), &asked)
}
