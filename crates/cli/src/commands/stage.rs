//! `backout stage`

use backout_engine::{Command, StageCommand, StageEnd, Typed};
use backout_model::ports::OnConflict;
use backout_model::{CheckpointName, TriggerAction, TriggerKind};
use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::session::Session;
use crate::show::undo::Asked;

/// Begin and end stages; one that fails goes back to its beginning.
///
/// A stage belongs to `--task`, or to `--agent`. Its snapshot is the place in the journal where it began. What becomes of a stage that fails is said when it
/// is ended or begun, else in `[triggers]` of `backout.toml`: it is rolled back unless somebody says otherwise.
#[derive(Debug, Args)]
pub(crate) struct StageArgs {
    #[command(subcommand)]
    act: StageAct,
}

#[derive(Debug, Subcommand)]
enum StageAct {
    /// Begin a stage.
    Begin(BeginArgs),
    /// End a stage.
    End(EndArgs),
    /// List stages, newest first.
    List,
}

#[derive(Debug, Args)]
struct BeginArgs {
    /// Its name.
    #[arg(value_name = "STAGE")]
    name: CheckpointName,

    /// What becomes of its work if it fails: rollback, keep or ask.
    #[arg(long, value_name = "ACTION")]
    on_failure: Option<TriggerAction>,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
struct EndArgs {
    /// Its name.
    #[arg(value_name = "STAGE")]
    name: CheckpointName,

    /// It failed.
    #[arg(long)]
    failed: bool,

    /// What made it fail: plan-failure, user-rejection, policy-violation, manual-abort, transaction-abort or user-request.
    #[arg(long, value_name = "KIND", requires = "failed")]
    trigger: Option<TriggerKind>,

    /// Why, in words.
    #[arg(long, value_name = "TEXT", requires = "failed")]
    why: Option<String>,

    /// Take its work back, whatever was said before.
    #[arg(long, requires = "failed")]
    rollback: bool,

    /// Keep its work, whatever was said before.
    #[arg(long, requires = "failed", conflicts_with = "rollback")]
    keep: bool,

    /// Where a target changed since, take out only this change and keep the others.
    #[arg(long, requires = "failed", conflicts_with = "force")]
    merge: bool,

    /// Where a target changed since, change it anyway; what is overwritten is kept, so this too can be undone.
    #[arg(long, requires = "failed")]
    force: bool,

    /// Also take back what other agents built on it.
    #[arg(long, requires = "failed")]
    others: bool,

    /// Show what would be taken back and change nothing.
    #[arg(long, short = 'n', requires = "failed")]
    dry_run: bool,
}

impl StageArgs {
    /// Tells whether nothing is changed.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self.act, StageAct::List)
    }
}

/// Begins, ends or lists stages.
pub(crate) fn cmd_stage(session: &mut Session, args: StageArgs) -> Result<(), Failure> {
    let args = match args.act {
        StageAct::Begin(BeginArgs { name, on_failure }) => {
            return session.run(Command::Stage(StageCommand::Begin { name, on_failure }));
        }
        StageAct::List => return session.run(Command::Stage(StageCommand::List)),
        StageAct::End(args) => args,
    };
    let again = Typed::default().and(&["end", args.name.as_str(), "--failed"]);
    let again = match (&session.task, &session.agent) {
        (Some(task), _) => again.and(&["--task", task.as_str()]),
        (None, Some(agent)) => again.and(&["--agent", agent.as_str()]),
        (None, None) => again,
    };
    let engine = session.engine()?;
    let asked = Asked::of_command("stage", again);
    session.take_back(&engine, Command::Stage(end(args)), &asked)
}

fn end(args: EndArgs) -> StageCommand {
    let action = match (args.rollback, args.keep) {
        (true, _) => Some(TriggerAction::Rollback),
        (false, true) => Some(TriggerAction::Keep),
        (false, false) => None,
    };
    let on_conflict = match (args.force, args.merge) {
        (true, _) => OnConflict::Force,
        (false, true) => OnConflict::Merge,
        (false, false) => OnConflict::Refuse,
    };
    let failed = args.failed.then(|| StageEnd {
        trigger: args.trigger.unwrap_or(TriggerKind::PlanFailure),
        why: args.why,
        action,
        on_conflict,
        own_only: false,
        others: args.others,
        is_dry_run: args.dry_run,
    });
    StageCommand::End {
        name: args.name,
        failed,
    }
}
