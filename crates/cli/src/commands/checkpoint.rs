//! `backout checkpoint`

use backout_engine::{CheckpointCommand, Command, Report};
use backout_model::CheckpointName;
use clap::Args;

use crate::failure::Failure;
use crate::input::read_file;
use crate::session::Session;

/// Mark this point, to return to it with `backout rollback --to`.
///
/// With `--agent` or `--task` the mark is for their work only.
#[derive(Debug, Args)]
pub(crate) struct CheckpointArgs {
    /// Its name; by default a new one. A later checkpoint of the same name takes it over.
    #[arg(value_name = "NAME", conflicts_with = "list")]
    name: Option<CheckpointName>,

    /// What the agent wants to find again: JSON, or @FILE.
    #[arg(long, value_name = "JSON", conflicts_with = "list")]
    state: Option<String>,

    /// List checkpoints, newest first.
    #[arg(long)]
    pub(crate) list: bool,
}

/// Marks a point, or lists the marks.
pub(crate) fn cmd_checkpoint(session: &mut Session, args: CheckpointArgs) -> Result<(), Failure> {
    if args.list {
        return session.run(Command::Checkpoint(CheckpointCommand::List));
    }
    let state = match args.state {
        Some(text) => read_state(&text)?,
        None => serde_json::Value::Null,
    };
    session.run(Command::Checkpoint(CheckpointCommand::Mark {
        name: args.name,
        state,
    }))
}

fn read_state(text: &str) -> Result<serde_json::Value, Report> {
    let json = match text.strip_prefix('@') {
        Some(path) => read_file(path.as_ref())?,
        None => text.as_bytes().to_vec(),
    };
    serde_json::from_slice(&json).map_err(|error| {
        Report::usage("the state is not JSON")
            .because(error)
            .next("give JSON, like '{\"step\": 3}', or the name of a file as @FILE")
    })
}
