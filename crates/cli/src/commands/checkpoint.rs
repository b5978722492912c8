//! `backout checkpoint`

use std::path::PathBuf;

use backout_engine::{CheckpointCommand, Command, Report};
use backout_model::CheckpointName;
use clap::Args;

use crate::failure::Failure;
use crate::input::read_file;
use crate::paths::directories;
use crate::session::Session;

/// Mark this point, to return to it with `backout rollback --to`.
///
/// With `--agent` or `--task` the mark is for their work only.
///
/// With `--roots` everything in these directories is kept, whoever writes there: git-ignored and untracked files, modes,
/// owners, attributes, links, empty directories. `backout rollback --to` then makes the directories what they were, and
/// `backout undo` takes that back. Only files that changed since the last checkpoint are read and stored.
#[derive(Debug, Args)]
pub(crate) struct CheckpointArgs {
    /// Its name; by default a new one. A later checkpoint of the same name takes it over.
    #[arg(value_name = "NAME", conflicts_with = "list")]
    name: Option<CheckpointName>,

    /// What the agent wants to find again: JSON, or @FILE.
    #[arg(long, value_name = "JSON", conflicts_with = "list")]
    state: Option<String>,

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
    let state = match args.state {
        Some(text) => read_state(&text)?,
        None => serde_json::Value::Null,
    };
    let name = args.name;
    session.run(Command::Checkpoint(if args.roots.is_empty() {
        CheckpointCommand::Mark { name, state }
    } else {
        let roots = directories(&args.roots)?;
        CheckpointCommand::Keep { name, state, roots }
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
