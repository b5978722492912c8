//! `backout config`

use std::path::{Path, PathBuf};

use backout_drivers::file::{Expect, FileRequest, Source};
use backout_engine::Report;
use backout_gates::{CheckedFile, Holds, Paths, STARTER, schema};
use backout_model::TargetPath;
use clap::{Args, Subcommand, ValueHint};
use serde::Serialize;

use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;
use crate::show;
use crate::state_dir::{home, own_rules};

/// Look at the rules in backout.toml, or write a first file.
///
/// A backout.toml says what a good write looks like, who must approve what, and what happens when it goes wrong. It counts for
/// everything in its directory and below; the files of all directories above count too, and the user's own in
/// `$XDG_CONFIG_HOME/backout`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Tell every mistake in the files that count here, or in those you name
    Check {
        /// Files to look through.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
    },
    /// Show what holds for a path, and which file says so
    Show {
        /// The path; this directory, if none is given.
        #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
        path: Option<PathBuf>,
    },
    /// Write a first backout.toml here; it can be undone like any write
    Init,
    /// Print the JSON Schema of backout.toml
    Schema,
}

/// The reply of `check`, for programs.
#[derive(Debug, Serialize)]
struct Checked<'a> {
    reply: &'static str,
    files: &'a [CheckedFile],
}

/// The reply of `show`, for programs.
#[derive(Debug, Serialize)]
struct Held<'a> {
    reply: &'static str,
    path: TargetPath,
    files: Vec<TargetPath>,
    holds: &'a [Holds],
}

/// Does what was asked about rules.
pub(crate) fn cmd_config(session: &mut Session, args: ConfigArgs) -> Result<(), Failure> {
    let paths = Paths::new(own_rules(), home());
    match args.what {
        What::Check { files } => check(session, &paths, &files),
        What::Show { path } => holds(session, &paths, path),
        What::Init => init(session),
        What::Schema => {
            session.ui.print_json(&schema());
            Ok(())
        }
    }
}

fn check(session: &mut Session, paths: &Paths, named: &[PathBuf]) -> Result<(), Failure> {
    let files = if named.is_empty() {
        paths.files_for(&absolute(".".as_ref())?)
    } else {
        let named = named.iter().map(|file| absolute(file));
        named.collect::<Result<_, _>>()?
    };
    let checked: Vec<CheckedFile> = files.iter().map(|file| paths.checked(file)).collect();
    if session.ui.is_json() {
        let reply = "config-checked";
        session.ui.print_json(&Checked {
            reply,
            files: &checked,
        });
    } else {
        show::config::checked(session, &checked);
    }
    let is_wrong = |file: &CheckedFile| !file.is_there || !file.mistakes.is_empty();
    if checked.iter().any(is_wrong) {
        return Err(Failure::Shown(1));
    }
    Ok(())
}

fn holds(session: &mut Session, paths: &Paths, path: Option<PathBuf>) -> Result<(), Failure> {
    let path = absolute(&path.unwrap_or_else(|| ".".into()))?;
    let directory = if path.is_dir() {
        path.as_path()
    } else {
        path.parent().unwrap_or(&path)
    };
    let files = paths.files_for(directory);
    let holds = paths.holds(&path);
    if session.ui.is_json() {
        session.ui.print_json(&Held {
            reply: "config-shown",
            path: in_json(&path)?,
            files: files
                .iter()
                .map(|it| in_json(it))
                .collect::<Result<_, _>>()?,
            holds: &holds,
        });
    } else {
        let checked: Vec<CheckedFile> = files.iter().map(|file| paths.understood(file)).collect();
        show::config::holds(session, &path, &checked, &holds);
    }
    Ok(())
}

fn in_json(path: &Path) -> Result<TargetPath, Failure> {
    let path = TargetPath::new(path);
    path.map_err(|error| {
        Report::refused("nothing was looked at")
            .because(error)
            .into()
    })
}

fn init(session: &mut Session) -> Result<(), Failure> {
    let path = absolute("backout.toml".as_ref())?;
    if path.symlink_metadata().is_ok() {
        let report = Report::refused("nothing was written");
        return Err(report
            .because("there is a `backout.toml` here already")
            .next("see what it says with `backout config show`")
            .into());
    }
    session.write(FileRequest::Write {
        path,
        source: Source::Bytes(STARTER.into()),
        expect: Expect::New,
        mode: None,
        parents: false,
    })
}
