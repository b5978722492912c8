//! `backout graph`

use std::path::{Path, PathBuf};

use backout_engine::{Command, GraphCommand, GraphPlace, Reply, Report};
use backout_model::{CheckpointName, Lsn};
use backout_mplp::Expect;
use clap::{Args, Subcommand, ValueHint};
use serde_json::Value;

use crate::failure::Failure;
use crate::input::read_file_or_stdin;
use crate::session::Session;

/// Keep the project's state graph, in versions that are checked.
///
/// It holds contexts, plans, steps, roles and traces, and what leads from one to another.
///
/// Objects follow the MPLP v1.0.0 schemas. Each update is a new version in the journal; nothing is overwritten.
#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    #[command(subcommand)]
    command: GraphSubcommand,
}

#[derive(Debug, Subcommand)]
enum GraphSubcommand {
    /// Draw the graph.
    Show {
        #[command(flatten)]
        at: AtArgs,
    },
    /// Take objects into the graph.
    ///
    /// FILE is an object, a list of objects, or what `graph export` wrote, changed. All of it is taken, or nothing is. Whatever else is in the graph stays.
    Import {
        /// The file; `-` is standard input.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,

        /// The version of the node that you saw; 0 means that it was not there. A file of `graph export` says so itself.
        #[arg(long, value_name = "VERSION", conflicts_with = "force")]
        expect: Option<u64>,

        /// Follow whatever version is there.
        #[arg(long)]
        force: bool,

        /// Only say what would come of it.
        #[arg(long, short = 'n')]
        dry_run: bool,
    },
    /// Write the graph as one JSON document.
    Export {
        #[command(flatten)]
        at: AtArgs,
    },
    /// Check the graph, or objects and events in a file, against schemas and invariants.
    Check {
        /// A file with an object, a list of objects, or one object a line; by default the graph.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Make the graph what it was, as new versions.
    ///
    /// Traces, confirmations and dialogs stay: what happened is not undone by that.
    Restore {
        #[command(flatten)]
        to: ToArgs,

        /// Only say what would come of it.
        #[arg(long, short = 'n')]
        dry_run: bool,
    },
    /// Take nodes out of the graph. Their versions stay in the journal.
    Remove {
        /// Their ids.
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
}

/// As it was when.
#[derive(Debug, Args)]
struct AtArgs {
    /// As it was after this record of the journal.
    #[arg(long, value_name = "LSN")]
    at: Option<u64>,
}

/// Where to.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ToArgs {
    /// As it was at this checkpoint.
    #[arg(long, value_name = "CHECKPOINT")]
    to: Option<CheckpointName>,

    /// As it was after this record of the journal.
    #[arg(long, value_name = "LSN")]
    at: Option<u64>,
}

impl GraphArgs {
    /// Tells whether it changes nothing.
    pub(crate) const fn only_looks(&self) -> bool {
        match &self.command {
            GraphSubcommand::Show { .. }
            | GraphSubcommand::Export { .. }
            | GraphSubcommand::Check { .. } => true,
            // Also one that only says what would come of it keeps others off meanwhile, and that takes a store.
            GraphSubcommand::Import { .. }
            | GraphSubcommand::Restore { .. }
            | GraphSubcommand::Remove { .. } => false,
        }
    }

    /// Tells whether it brings an old state back.
    pub(crate) const fn restores(&self) -> bool {
        matches!(
            self.command,
            GraphSubcommand::Restore { .. } | GraphSubcommand::Remove { .. }
        )
    }
}

/// Shows, updates, checks or brings back the graph.
pub(crate) fn cmd_graph(session: &mut Session, args: GraphArgs) -> Result<(), Failure> {
    let at = |at: AtArgs| at.at.map(|lsn| GraphPlace::Lsn(Lsn(lsn)));
    let command = match args.command {
        GraphSubcommand::Show { at: place } => GraphCommand::Show { at: at(place) },
        GraphSubcommand::Export { at: place } => return export(session, at(place)),
        GraphSubcommand::Import {
            file,
            expect,
            force,
            dry_run,
        } => GraphCommand::Import {
            document: read(session, &file)?,
            expect: match (expect, force) {
                (Some(version), _) => Expect::Version(version),
                (None, true) => Expect::Any,
                (None, false) => Expect::Unsaid,
            },
            is_dry_run: dry_run,
        },
        GraphSubcommand::Check { file } => GraphCommand::Check {
            objects: file.map(|file| objects(session, &file)).transpose()?,
        },
        GraphSubcommand::Restore { to, dry_run } => GraphCommand::Restore {
            to: match (to.to, to.at) {
                (Some(name), _) => GraphPlace::Checkpoint(name),
                (None, lsn) => GraphPlace::Lsn(Lsn(lsn.unwrap_or_default())),
            },
            is_dry_run: dry_run,
        },
        GraphSubcommand::Remove { ids } => GraphCommand::Remove { ids },
    };
    session.run(Command::Graph(command))
}

/// Writes the document itself, so that it can be given back to `graph import`.
fn export(session: &mut Session, at: Option<GraphPlace>) -> Result<(), Failure> {
    let engine = session.engine()?;
    let reply = session.execute(&engine, Command::Graph(GraphCommand::Export { at }))?;
    if let Reply::GraphDocument(document) = &reply
        && !session.ui.is_json()
    {
        let text = serde_json::to_string_pretty(document).unwrap_or_default();
        session.ui.print(&format!("{text}\n"));
        return Ok(());
    }
    session.show(&engine, &reply)
}

fn read(session: &Session, file: &Path) -> Result<Value, Report> {
    let json = read_file_or_stdin(file, session.bar(), "name a file with objects")?;
    serde_json::from_slice(&json).map_err(|error| not_json(file, &error))
}

/// Reads one object, a list, or one object a line.
fn objects(session: &Session, file: &Path) -> Result<Vec<Value>, Report> {
    let json = read_file_or_stdin(file, session.bar(), "name a file with objects")?;
    let stream = serde_json::Deserializer::from_slice(&json).into_iter::<Value>();
    let read: Vec<Value> = stream
        .collect::<Result<_, _>>()
        .map_err(|error| not_json(file, &error))?;
    let flat = read.into_iter().flat_map(|value| match value {
        Value::Array(objects) => objects,
        object => vec![object],
    });
    Ok(flat.collect())
}

fn not_json(file: &Path, error: &serde_json::Error) -> Report {
    Report::usage(format!("`{}` is not JSON", file.display()))
        .because(error)
        .next("give JSON: an object, a list of objects, or what `graph export` writes")
}
