//! `backout drift`

use std::path::{Path, PathBuf};

use backout_engine::{Command, DriftCommand, DriftError, Engine, EngineError, Glob, Reply, Report};
use backout_model::{Key, TargetPath};
use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::named_targets::named_target;
use crate::paths::absolute;
use crate::session::Session;
use crate::show::drift;

/// List what is not as it was recorded, and decide about it.
///
/// Drift is a target that Backout wrote, or took back, and that is something else now: somebody else changed it. What is listed was noticed
/// by a command that read or planned something, or by `backout watch`; it is looked at once more, and what is right again is gone from the list.
/// Targets that are named are looked at in any case.
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
    match session.execute(&engine, Command::Drift(command)) {
        Ok(Reply::Drift(report)) if !session.ui.is_json() => {
            drift::list(session, &report, true);
            Ok(())
        }
        Ok(reply) => session.show(&engine, &reply),
        Err(failure) => {
            // What was done in part is a reply as well.
            if let Failure::Engine(EngineError::Drift(DriftError::Partly { done, .. })) = &failure {
                session.show(&engine, &Reply::DriftDecided((**done).clone()))?;
            }
            Err(failure)
        }
    }
}

pub(super) fn named(engine: &Engine, targets: &[PathBuf]) -> Result<Vec<Key>, Failure> {
    let named = targets.iter().map(|it| match listed(engine, it)? {
        Some(key) => Ok(key),
        None => named_target(engine, it),
    });
    named.collect()
}

/// Gives what is listed under just this name: what was recorded may lie behind a link by now.
fn listed(engine: &Engine, name: &Path) -> Result<Option<Key>, Failure> {
    let Ok(path) = TargetPath::new(absolute(name)?) else {
        return Ok(None);
    };
    let key = Key::from(path);
    Ok(engine.is_open_drift(&key)?.then_some(key))
}

/// Gives a pattern that means the same from every directory.
fn from_root(session: &Session, pattern: &str) -> Result<String, Failure> {
    let unfit = |why: String| {
        let report = Report::usage(format!("`{pattern}` cannot be ignored"));
        report
            .because(why)
            .next("give a pattern such as `target/**` or `*.log`")
    };
    let (directory, below) = without_dots(session.here.directory(), pattern);
    let read = if pattern.is_empty() || pattern.contains('/') {
        Glob::read(&below, &directory)
    } else {
        Glob::read(format!("**/{below}"), &directory)
    };
    let read = read.map_err(|error| unfit(error.to_string()))?;
    let text = read.from_root().into_string();
    Ok(text.map_err(|_| unfit("it is no text".to_owned()))?)
}

/// Takes the `..` out of a pattern, as far as they follow plain names.
fn without_dots(directory: &Path, pattern: &str) -> (PathBuf, String) {
    let mut directory = directory.to_owned();
    let mut names: Vec<&str> = Vec::new();
    for name in pattern.split('/') {
        let is_plain = |name: &&str| !name.is_empty() && *name != ".." && *name != "**";
        match name {
            ".." if names.is_empty() => {
                directory.pop();
            }
            ".." if names.last().is_some_and(is_plain) => {
                names.pop();
            }
            "." => {}
            name => names.push(name),
        }
    }
    (directory, names.join("/"))
}
