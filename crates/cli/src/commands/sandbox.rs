//! `backout sandbox`

use std::ffi::OsString;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use backout_engine::{
    Command, Engine, EngineError, Glob, OnFailure, Reply, Report, SandboxCommand, SandboxRan,
    SandboxStart, SandboxTask, SandboxVerdict, Selection,
};
use backout_model::TargetPath;
use clap::{Args, Subcommand, ValueEnum};

use crate::commands::diff::StyleArgs;
use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;
use crate::show;
use crate::show::diff::Style;

/// Let commands run above the real files, with a checkpoint after each, until you apply or drop it all
///
/// A sandbox sees the machine as it is. Each command writes into a layer of its own; if it fails,
/// its layer is dropped and all is as before it. The real files stay untouched until `apply`,
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
    },
    Exec(ExecArgs),
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

/// Run a command in the sandbox; the exit code is the command's
///
/// A shell line (`-c`) carries its directory and exported variables on to the next command. Processes that
/// outlive the command are ended. The names of what it changed are told, and whether that was reverted.
#[derive(Debug, Args)]
struct ExecArgs {
    /// The sandbox; by default the only one.
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// A line for a shell.
    #[arg(
        short = 'c',
        long = "line",
        value_name = "LINE",
        conflicts_with = "command"
    )]
    line: Option<OsString>,

    /// End it after this time, like 90s or 5m.
    #[arg(long, value_name = "TIME", value_parser = super::run::parse_time)]
    timeout: Option<Duration>,

    /// What becomes of what it did if it fails: rollback, keep or ask.
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "rollback",
        hide_possible_values = true
    )]
    on_failure: OnFailureArg,

    /// The command and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What becomes of what a failing command did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnFailureArg {
    /// It is dropped.
    Rollback,
    /// It stays, as a checkpoint.
    Keep,
    /// You are asked; where nobody can be asked it stays.
    Ask,
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
        } => SandboxCommand::Start(SandboxStart {
            name,
            directory: absolute(&PathBuf::from("."))?,
            roots: roots(&root)?,
            has_no_network: no_network,
        }),
        SandboxSubcommand::Exec(args) => return exec(session, args),
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
        SandboxSubcommand::End { name, discard } => SandboxCommand::End {
            name,
            is_discarding: discard,
        },
        SandboxSubcommand::List => SandboxCommand::List,
    };
    session.run(Command::Sandbox(command))
}

fn roots(roots: &[PathBuf]) -> Result<Vec<TargetPath>, Failure> {
    let mut found = Vec::new();
    for root in roots {
        let real = root.canonicalize().ok().filter(|real| real.is_dir());
        let target = real.and_then(|real| TargetPath::new(real).ok());
        let no_directory = || Report::refused(format!("`{}` is not a directory", root.display()));
        found.push(target.ok_or_else(no_directory)?);
    }
    Ok(found)
}

fn exec(session: &mut Session, args: ExecArgs) -> Result<(), Failure> {
    let is_line = args.line.is_some();
    let command: Vec<OsString> = args.line.into_iter().chain(args.command).collect();
    if command.is_empty() {
        return Err(Report::usage("there is nothing to run")
            .next("put two dashes before the command, or a shell line after `-c`")
            .into());
    }
    let task = SandboxTask {
        command,
        is_line,
        time_max: args.timeout,
        on_failure: match args.on_failure {
            OnFailureArg::Rollback => OnFailure::Rollback,
            OnFailureArg::Keep | OnFailureArg::Ask => OnFailure::Keep,
        },
        keeps_output: session.ui.is_json(),
    };
    let engine = session.engine()?;
    let name = args.name;
    let command = Command::Sandbox(SandboxCommand::Exec { name, task });
    let ran = match session.execute(&engine, command) {
        Ok(Reply::SandboxRan(ran)) => ran,
        Ok(_) => return Err(Report::refused("the engine gave no trial").into()),
        Err(Failure::Engine(error @ EngineError::Trial(_))) => {
            return Err(super::try_::not_started_or(session, error));
        }
        Err(failure) => return Err(failure),
    };
    session.show(&engine, &Reply::SandboxRan(ran.clone()))?;
    if args.on_failure == OnFailureArg::Ask && ran.verdict != SandboxVerdict::Succeeded {
        ask(session, &engine, &ran)?;
    }
    match (ran.verdict, ran.exit_code) {
        (SandboxVerdict::Succeeded, _) => Ok(()),
        (_, 0) => Err(Failure::Shown(1)),
        (_, code) => Err(Failure::Shown(code)),
    }
}

/// Asks whether what a failing command did shall stay. No answer keeps it.
fn ask(session: &mut Session, engine: &Engine, ran: &SandboxRan) -> Result<(), Failure> {
    let is_watched = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !is_watched || session.ui.is_json() {
        return Ok(());
    }
    session.ui.tell("Take back what it did? [y/N] ");
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    if read.is_err() || !matches!(answer.trim(), "y" | "yes") {
        return Ok(());
    }
    let command = Command::Sandbox(SandboxCommand::Rollback {
        name: Some(ran.sandbox.clone()),
        checkpoint: ran.before.to_string(),
    });
    let reply = session.execute(engine, command)?;
    session.show(engine, &reply)
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
