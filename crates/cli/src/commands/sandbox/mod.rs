//! `backout sandbox`

mod exec;
mod export;

use std::ffi::OsString;
use std::path::PathBuf;

use backout_engine::{Command, Glob, Reply, SandboxCommand, SandboxKeep, SandboxStart, Selection};
use clap::{Args, Subcommand};

use crate::commands::diff::StyleArgs;
use crate::failure::Failure;
use crate::paths::{absolute, directories};
use crate::session::Session;
use crate::show;
use crate::show::diff::Style;

/// Run commands in layers, with a checkpoint after each
///
/// A sandbox sees the machine as it is. Each command writes into a layer of its own, above those of
/// the commands before it; if it fails, its layer is dropped and all is as before it. The real files
/// stay untouched until `apply`,
/// one operation that `backout undo` takes back:
///
///   backout sandbox start
///   backout sandbox exec -c 'cd src && export CC=clang && make'
///   backout sandbox checkpoints
///   backout sandbox rollback 1        go back; a later number goes forth again
///   backout sandbox apply
///   backout sandbox end
///
/// A sandbox lives until the machine restarts. It does not lock anything in: what other programs do on
/// behalf of a command (daemons, other machines) happens for real.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SandboxArgs {
    #[command(subcommand)]
    command: SandboxSubcommand,
}

#[derive(Debug, Subcommand)]
enum SandboxSubcommand {
    /// Begin a sandbox in this directory.
    Start {
        /// Its name; by default a free one.
        #[arg(value_name = "NAME")]
        name: Option<String>,

        /// Only below this directory anything can be written; may be repeated.
        #[arg(long, value_name = "DIR")]
        root: Vec<PathBuf>,

        /// Give the commands no network but their own loopback.
        #[arg(long)]
        no_network: bool,

        #[command(flatten)]
        keep: KeepArgs,
    },
    Exec(exec::ExecArgs),
    /// List what you can go back to, and what was done.
    Checkpoints {
        /// The sandbox; by default the only one.
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Go to another checkpoint; the ones after it are set aside until the sandbox ends.
    Rollback {
        /// The sandbox, by default the only one; then the number of the checkpoint.
        #[arg(value_name = "[NAME] CHECKPOINT", num_args = 1..=2, required = true)]
        words: Vec<String>,
    },
    /// Begin a sandbox that shares all up to a checkpoint with another.
    Fork {
        /// The other, as NAME or NAME@CHECKPOINT.
        #[arg(value_name = "NAME@CHECKPOINT")]
        from: String,

        /// The name of the new one.
        #[arg(value_name = "NEW")]
        new: String,
    },
    /// Show what applying it would change, line by line.
    Diff {
        /// The sandbox; by default the only one.
        #[arg(value_name = "NAME")]
        name: Option<String>,

        #[command(flatten)]
        part: PartArgs,
        #[command(flatten)]
        style: StyleArgs,
    },
    /// Make what the sandbox changed real, as one operation; the sandbox stays.
    Apply {
        /// The sandbox; by default the only one.
        #[arg(value_name = "NAME")]
        name: Option<String>,

        #[command(flatten)]
        part: PartArgs,
    },
    /// Let checkpoints go; the present state stays, and so does the beginning.
    Prune {
        /// The sandbox; by default the only one.
        #[arg(value_name = "NAME")]
        name: Option<String>,

        #[command(flatten)]
        keep: KeepArgs,

        /// Also let go of what was set aside and not applied.
        #[arg(long)]
        discard: bool,

        /// Show what would go and change nothing.
        #[arg(long, short = 'n')]
        dry_run: bool,
    },
    Export(export::ExportArgs),
    /// Let the sandbox go, with all its checkpoints.
    End {
        /// The sandbox; by default the only one.
        #[arg(value_name = "NAME")]
        name: Option<String>,

        /// Throw away what was not applied.
        #[arg(long)]
        discard: bool,
    },
    /// List the sandboxes.
    List,
}

/// Which checkpoints stay.
#[derive(Debug, Args)]
struct KeepArgs {
    /// Keep at most so many checkpoints.
    #[arg(long, value_name = "N")]
    keep: Option<u64>,

    /// Keep only checkpoints that are younger, like 12h or 7d.
    #[arg(long, value_name = "DURATION", value_parser = crate::commands::gc::parse_duration)]
    keep_age: Option<i64>,

    /// Keep as many as take no more than this together, like 2GiB.
    #[arg(long, value_name = "SIZE", value_parser = crate::commands::gc::parse_size)]
    keep_size: Option<u64>,
}

impl KeepArgs {
    const fn keep(&self) -> SandboxKeep {
        SandboxKeep {
            count: self.keep,
            age_ms: self.keep_age,
            bytes: self.keep_size,
        }
    }
}

/// Which part of it.
#[derive(Debug, Args)]
struct PartArgs {
    /// Only what matches, like `src/**` or `/etc/*.conf`; may be repeated.
    #[arg(long, value_name = "GLOB")]
    only: Vec<OsString>,

    /// Not what matches; may be repeated.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<OsString>,
}

impl PartArgs {
    fn selection(&self) -> Result<Selection, Failure> {
        let here = absolute(&PathBuf::from("."))?;
        let globs = |patterns: &[OsString]| {
            let glob = |pattern: &OsString| Glob::new(pattern, &here);
            patterns.iter().map(glob).collect()
        };
        Ok(Selection {
            only: globs(&self.only),
            exclude: globs(&self.exclude),
        })
    }
}

impl SandboxArgs {
    /// Tells whether it only looks.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(
            self.command,
            SandboxSubcommand::List | SandboxSubcommand::Checkpoints { .. }
        )
    }

    /// Tells whether it runs a command, to which signals go.
    pub(crate) const fn runs(&self) -> bool {
        matches!(self.command, SandboxSubcommand::Exec(_))
    }
}

/// Works in sandboxes.
pub(crate) fn cmd_sandbox(session: &mut Session, args: SandboxArgs) -> Result<(), Failure> {
    let command = match args.command {
        SandboxSubcommand::Start {
            name,
            root,
            no_network,
            keep,
        } => SandboxCommand::Start(SandboxStart {
            keep: keep.keep(),
            name,
            directory: absolute(&PathBuf::from("."))?,
            roots: directories(&root)?,
            has_no_network: no_network,
        }),
        SandboxSubcommand::Exec(args) => return exec::exec(session, args),
        SandboxSubcommand::Export(args) => return export::export(session, args),
        SandboxSubcommand::Checkpoints { name } => SandboxCommand::Show { name },
        SandboxSubcommand::Rollback { mut words } => SandboxCommand::Rollback {
            checkpoint: words.pop().unwrap_or_default(),
            name: words.pop(),
        },
        SandboxSubcommand::Fork { from, new } => {
            let (name, checkpoint) = match from.rsplit_once('@') {
                Some((name, checkpoint)) => (name, Some(checkpoint.to_owned())),
                None => (from.as_str(), None),
            };
            let name = Some(name.to_owned()).filter(|name| !name.is_empty());
            SandboxCommand::Fork {
                name,
                checkpoint,
                new,
            }
        }
        SandboxSubcommand::Diff { name, part, style } => {
            return diff(session, name, &part, style.style());
        }
        SandboxSubcommand::Apply { name, part } => SandboxCommand::Apply {
            name,
            selection: part.selection()?,
        },
        SandboxSubcommand::Prune {
            name,
            keep,
            discard,
            dry_run,
        } => SandboxCommand::Prune {
            name,
            keep: keep.keep(),
            is_discarding: discard,
            is_dry_run: dry_run,
        },
        SandboxSubcommand::End { name, discard } => SandboxCommand::End {
            name,
            is_discarding: discard,
        },
        SandboxSubcommand::List => SandboxCommand::List,
    };
    session.run(Command::Sandbox(command))
}

fn diff(
    session: &mut Session,
    name: Option<String>,
    part: &PartArgs,
    style: Style,
) -> Result<(), Failure> {
    let command = Command::Sandbox(SandboxCommand::Diff {
        name,
        selection: part.selection()?,
        is_brief: style == Style::Names,
    });
    let engine = session.engine()?;
    match session.execute(&engine, command)? {
        Reply::Diff(diff) if !session.ui.is_json() => {
            session.ui.page();
            show::diff::files(session, &diff.files, style);
            Ok(())
        }
        reply => session.show(&engine, &reply),
    }
}
