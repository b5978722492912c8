//! `backout checkpoint`

use std::collections::BTreeMap;
use std::path::PathBuf;

use backout_engine::{CheckpointCommand, Command, MarkRequest, Report};
use backout_model::{CheckpointName, MarkReason, StepAt};
use clap::Args;

use crate::failure::Failure;
use crate::input::read_file_or_stdin;
use crate::paths::directories;
use crate::session::Session;

/// Mark this point, to return to it or to go on from it.
///
/// `backout rollback --to` returns to it, and `backout resume` goes on from it.
///
/// With `--agent` or `--task` the mark is for their work only, and keeps what `backout resume` needs: how far the agent is, what it decided, where it
/// worked, which variables it had changed, what it could take back, and its state. A state is data, at most 4 MiB of it.
///
/// With `--roots` everything in these directories is kept, whoever writes there: git-ignored and untracked files, modes,
/// owners, attributes, links, empty directories. `backout rollback --to` then makes the directories what they were, and
/// `backout undo` takes that back. Only files that changed since the last checkpoint are read and stored.
#[derive(Debug, Args)]
pub(crate) struct CheckpointArgs {
    /// Its name; by default a new one. A later checkpoint of the same name takes it over.
    #[arg(value_name = "NAME", conflicts_with = "list")]
    name: Option<CheckpointName>,

    /// What the agent wants to find again: JSON, or @FILE, or @- for standard input.
    #[arg(long, value_name = "JSON", conflicts_with = "list")]
    state: Option<String>,

    /// How many steps of the plan are done, and of how many: 3/7.
    #[arg(long, value_name = "N/M", conflicts_with = "list")]
    step: Option<StepAt>,

    /// What was decided on the way; once for each decision, the first first.
    #[arg(long, value_name = "TEXT", conflicts_with = "list")]
    decision: Vec<String>,

    /// What the agent has to know when it goes on, in words.
    #[arg(long, value_name = "TEXT", conflicts_with = "list")]
    summary: Option<String>,

    /// A variable that the agent has changed: NAME=VALUE, NAME for its value here, NAME= for one that it emptied, or -NAME for one
    /// that it took away.
    #[arg(
        long,
        value_name = "VARIABLE",
        conflicts_with = "list",
        allow_hyphen_values = true
    )]
    env: Vec<String>,

    /// Why now: asked, before-decision, after-commit, interval or signal.
    #[arg(long, value_name = "REASON", conflicts_with = "list")]
    reason: Option<MarkReason>,

    /// The agent's process: nobody else goes on from here while it is alive.
    #[arg(long, value_name = "PID", conflicts_with = "list")]
    pid: Option<u32>,

    /// Only if so many operations were done since the last checkpoint as `backout.toml` says: 10 unless somebody wrote another
    /// number.
    #[arg(long, conflicts_with_all = ["list", "roots"])]
    if_due: bool,

    /// Only if so many operations were done since the last checkpoint.
    #[arg(long, value_name = "N", conflicts_with_all = ["list", "roots"], value_parser = clap::value_parser!(u32).range(1..))]
    every: Option<u32>,

    /// Keep everything in these directories.
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with = "list")]
    roots: Vec<PathBuf>,

    /// Let go of the files that the checkpoint keeps; the mark stays.
    #[arg(long, conflicts_with_all = ["list", "roots", "state"], requires = "name")]
    drop: bool,

    /// List checkpoints, newest first.
    #[arg(long)]
    pub(crate) list: bool,
}

/// Marks a point, or lists the marks.
pub(crate) fn cmd_checkpoint(session: &mut Session, args: CheckpointArgs) -> Result<(), Failure> {
    if args.list {
        return session.run(Command::Checkpoint(CheckpointCommand::List));
    }
    if let (true, Some(name)) = (args.drop, &args.name) {
        let name = name.clone();
        return session.run(Command::Checkpoint(CheckpointCommand::Drop { name }));
    }
    let is_somebodys = session.agent.is_some() || session.task.is_some();
    let resume = if is_somebodys || says_something(&args) {
        Some(Box::new(request(&args)?))
    } else {
        None
    };
    let state = match args.state {
        Some(text) => read_state(session, &text)?,
        None => serde_json::Value::Null,
    };
    let name = args.name;
    session.run(Command::Checkpoint(if args.roots.is_empty() {
        CheckpointCommand::Mark {
            name,
            state,
            resume,
        }
    } else {
        let roots = directories(&args.roots)?;
        CheckpointCommand::Keep {
            name,
            state,
            roots,
            resume,
        }
    }))
}

/// Tells whether the agent says something of itself.
const fn says_something(args: &CheckpointArgs) -> bool {
    args.step.is_some()
        || !args.decision.is_empty()
        || args.summary.is_some()
        || !args.env.is_empty()
        || args.reason.is_some()
        || args.pid.is_some()
        || args.if_due
        || args.every.is_some()
}

/// Gathers what the agent says of itself.
fn request(args: &CheckpointArgs) -> Result<MarkRequest, Report> {
    let mut environment = BTreeMap::new();
    for given in &args.env {
        let (name, value) = variable(given)?;
        environment.insert(name, value);
    }
    Ok(MarkRequest {
        reason: args.reason.unwrap_or_default(),
        step: args.step,
        decisions: args.decision.clone(),
        summary: args.summary.clone(),
        directory: std::env::current_dir().ok(),
        environment,
        pid: args.pid,
        if_due: args.if_due || args.every.is_some(),
        every: args.every,
    })
}

/// Reads a variable that the agent has changed.
fn variable(given: &str) -> Result<(String, Option<String>), Report> {
    let wrong = |why: &str| {
        Report::usage(format!("`{given}` is no variable"))
            .because(why.to_owned())
            .next("give NAME=VALUE, NAME, or -NAME for one that was taken away")
    };
    let (name, value) = match (given.strip_prefix('-'), given.split_once('=')) {
        (Some(name), _) => (name, None),
        (None, Some((name, value))) => (name, Some(value.to_owned())),
        (None, None) => match std::env::var(given) {
            Ok(value) => (given, Some(value)),
            Err(std::env::VarError::NotPresent) => (given, None),
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(wrong("its value is no text"));
            }
        },
    };
    if name.is_empty() || name.contains('=') {
        return Err(wrong("it has no name"));
    }
    Ok((name.to_owned(), value))
}

fn read_state(session: &Session, text: &str) -> Result<serde_json::Value, Report> {
    let json = match text.strip_prefix('@') {
        Some(path) => read_file_or_stdin(
            path.as_ref(),
            session.bar(),
            "give the state as `--state JSON`",
        )?,
        None => text.as_bytes().to_vec(),
    };
    serde_json::from_slice(&json).map_err(|error| {
        Report::usage("the state is not JSON")
            .because(error)
            .next("give JSON, like '{\"step\": 3}', or the name of a file as @FILE")
    })
}
