//! `backout drift`

use std::path::PathBuf;

use backout_engine::{Command, DriftCommand, Engine, Glob, Report};
use backout_model::Key;
use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::named_targets::named_target;
use crate::session::Session;

/// List what is not as it was recorded, and decide about it.
///
/// Drift is a target that Backout wrote, or took back, and that is something else now: somebody else changed it. What is listed was noticed
/// by a command that read or planned something, or by `backout watch`; it is looked at once more, and what is right again is gone from the list.
///
/// An agent may list drift. Only a person decides about it.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DriftArgs {
    #[command(subcommand)]
    act: Option<Act>,

    /// Only at or below these.
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,

    /// Also what was noted before, newest first.
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// The world is right: record what is there, so that later undos compare with it.
    ///
    /// Of files that is an operation of its own, which keeps what is accepted: `backout undo` takes it back, where what was recorded is kept.
    Accept(Meant),
    /// The record is right: make the targets what was recorded. What that overwrites is kept, and `backout undo` brings it back.
    Restore(Meant),
    /// Both are right: bring the lines that others changed together with those that were recorded.
    Merge(Meant),
    /// Leave alone what a pattern matches, such as `target/**` or `*.log`.
    Ignore(Pattern),
}

#[derive(Debug, Args)]
struct Meant {
    /// What has drifted, with all that is in it.
    #[arg(value_name = "TARGET", required = true)]
    targets: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct Pattern {
    /// The pattern, from this directory; without a `/` it matches a name anywhere below.
    #[arg(value_name = "PATTERN")]
    pattern: String,

    /// Look at it again from now on.
    #[arg(long)]
    off: bool,
}

impl DriftArgs {
    /// Tells whether it only lists.
    pub(crate) const fn only_looks(&self) -> bool {
        self.act.is_none()
    }
}

/// Lists drift, or decides about it.
pub(crate) fn cmd_drift(session: &mut Session, args: DriftArgs) -> Result<(), Failure> {
    if !args.only_looks() {
        session.look_up_forebears();
    }
    let engine = session.engine()?;
    let command = match args.act {
        None => DriftCommand::List {
            below: named(&engine, &args.targets)?,
            all: args.all,
        },
        Some(Act::Accept(meant)) => DriftCommand::Accept {
            targets: named(&engine, &meant.targets)?,
        },
        Some(Act::Restore(meant)) => DriftCommand::Restore {
            targets: named(&engine, &meant.targets)?,
        },
        Some(Act::Merge(meant)) => DriftCommand::Merge {
            targets: named(&engine, &meant.targets)?,
        },
        Some(Act::Ignore(it)) => {
            let pattern = from_root(session, &it.pattern)?;
            if it.off {
                DriftCommand::Heed { pattern }
            } else {
                DriftCommand::Ignore { pattern }
            }
        }
    };
    if command.only_looks() {
        session.ui.page();
    }
    let reply = session.execute(&engine, Command::Drift(command))?;
    session.show(&engine, &reply)
}

pub(super) fn named(engine: &Engine, targets: &[PathBuf]) -> Result<Vec<Key>, Failure> {
    let named = targets.iter().map(|it| named_target(engine, it));
    named.collect()
}

/// Gives a pattern that means the same from every directory.
fn from_root(session: &Session, pattern: &str) -> Result<String, Failure> {
    let unfit = |why: String| {
        let report = Report::usage(format!("`{pattern}` cannot be ignored"));
        report
            .because(why)
            .next("give a pattern such as `target/**` or `*.log`")
    };
    let read = Glob::read(pattern, session.here.directory());
    let read = read.map_err(|error| unfit(error.to_string()))?;
    let text = read.from_root().into_string();
    Ok(text.map_err(|_| unfit("it is no text".to_owned()))?)
}
