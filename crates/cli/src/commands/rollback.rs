//! `backout rollback`

use backout_engine::{
    Call, CheckpointCommand, Command, EngineError, PromptFilter, PromptView, Reply, Report, Typed,
    UndoWhat, WorkspaceReturn,
};
use backout_model::{CheckpointName, PromptId, TaskId};
use clap::Args;

use super::undo::{HowArgs, PartArgs, below_here};
use crate::failure::Failure;
use crate::session::Session;
use crate::show;
use crate::show::undo::{Asked, Words};

/// Take back a task, a prompt, or all since a checkpoint.
///
/// A checkpoint that keeps directories (`backout checkpoint --roots`) makes them what they were, whoever changed them;
/// operations elsewhere stay. What is overwritten is kept: `backout undo` brings it back.
#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// The task; by default the one of `--task`.
    #[arg(value_name = "TASK", conflicts_with = "to")]
    name: Option<TaskId>,

    /// Go back to this checkpoint.
    #[arg(long, value_name = "CHECKPOINT")]
    to: Option<CheckpointName>,

    /// Of a checkpoint that keeps directories, take back only the recorded operations since.
    #[arg(long, requires = "to")]
    operations: bool,

    /// Take back all that answered a prompt: -1 is the last one that did something below this directory, -2 the one before
    /// it; or the beginning of its id, or a part of its text.
    #[arg(long, value_name = "PROMPT", conflicts_with_all = ["to", "name"], allow_hyphen_values = true)]
    prompt: Option<String>,

    #[command(flatten)]
    part: PartArgs,

    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// Rolls back.
pub(crate) fn cmd_rollback(session: &mut Session, args: RollbackArgs) -> Result<(), Failure> {
    if let Some(name) = args.to.as_ref().filter(|_| !args.operations)
        && session
            .engine()?
            .store()
            .checkpoint(name)
            .map_err(EngineError::from)?
            .is_some_and(|it| it.files.is_some())
    {
        args.how.refuse_for_directories()?;
        let back = WorkspaceReturn {
            name: name.clone(),
            selection: args.part.selection()?,
            others: args.how.others(),
            is_dry_run: args.how.dry_run,
        };
        return return_to(session, back);
    }
    if let Some(meant) = &args.prompt {
        let what = UndoWhat::Prompt(prompt(session, meant)?);
        return rollback(session, what, &[], (&args.part, &args.how));
    }
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
    let words: &[&str] = if args.operations {
        &["--operations"]
    } else {
        &[]
    };
    rollback(session, what, words, (&args.part, &args.how))
}

/// Makes directories what they were.
fn return_to(session: &mut Session, back: WorkspaceReturn) -> Result<(), Failure> {
    let engine = session.engine()?;
    let command = Command::Checkpoint(CheckpointCommand::Return(back));
    match session.execute(&engine, command)? {
        Reply::Finished(finished) if !session.ui.is_json() => {
            let said = finished.summary.replacen("bring", "brought", 1);
            show::write::finished(session, &finished, &said);
            Ok(())
        }
        reply => session.show(&engine, &reply),
    }
}

/// Finds the prompt that was meant.
fn prompt(session: &mut Session, meant: &str) -> Result<PromptId, Failure> {
    if meant.is_empty() {
        return Err(
            Report::usage("a prompt is named by a number, its id or a part of its text").into(),
        );
    }
    let engine = session.engine()?;
    let see = |report: Report| {
        let list = Call::of("log").option("prompts");
        Failure::from(report.next_call("see them with {}", [list]))
    };
    let number = meant.parse::<i64>().ok().filter(|number| *number < 0);
    let below = below_here(number.is_none())?;
    let filter = PromptFilter { below, limit: None };
    let prompts = engine.prompts(&filter)?;
    let found: Vec<&PromptView> = prompts
        .iter()
        .filter(|view| {
            let id = view.prompt.id.as_str();
            let is_said = id.starts_with(meant) || view.prompt.text.contains(meant);
            number.map_or(is_said, |_| view.number == number)
        })
        .collect();
    match found.as_slice() {
        [only] => Ok(only.prompt.id.clone()),
        [] if number.is_some() => Err(see(Report::refused(format!(
            "there is no prompt {meant} that has something in effect below this directory"
        )))),
        [] => Err(see(Report::refused(format!(
            "no prompt is or says `{meant}`"
        )))),
        several => Err(see(Report::refused(format!(
            "{} prompts are or say `{meant}`",
            several.len()
        ))
        .because("it is not clear which one is meant"))),
    }
}

/// Rolls back a task or to a checkpoint; `words` are those that the same has to be asked for with.
pub(super) fn rollback(
    session: &mut Session,
    what: UndoWhat,
    words: &[&str],
    (part, how): (&PartArgs, &HowArgs),
) -> Result<(), Failure> {
    let name = match &what {
        UndoWhat::Task(task) => Some(Typed::default().and(&[task.as_str()])),
        UndoWhat::ToCheckpoint(checkpoint) => {
            let all = [&["--to", checkpoint.as_str()], words].concat();
            Some(Typed::default().and(&all))
        }
        UndoWhat::Prompt(prompt) => Some(Typed::default().and(&["--prompt", prompt.as_str()])),
        UndoWhat::Newest { .. }
        | UndoWhat::Operations(_)
        | UndoWhat::Paths { .. }
        | UndoWhat::ToPlace { .. } => None,
    };
    let asked = Asked {
        words: Words::Rollback,
        chosen: None,
        brought: None,
        part: part.typed()?,
        flags: how.typed(),
        name,
        command: None,
    };
    let command = Command::Undo {
        what,
        options: how.options(part, session.agent.as_ref())?,
        is_dry_run: how.dry_run,
    };
    let engine = session.engine()?;
    session.take_back(&engine, command, &asked)
}
