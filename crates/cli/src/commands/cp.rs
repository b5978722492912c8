//! `backout cp`

use std::path::PathBuf;

use backout_drivers::file::FileRequest;
use clap::{Args, ValueHint};

use super::{all_or_nothing, destinations};
use crate::failure::Failure;
use crate::session::Session;
use crate::words::Words;

/// Copy files and directories.
///
/// If DEST is a directory, everything is copied into it. Several sources are copied together or not at all.
#[derive(Debug, Args)]
pub(crate) struct CpArgs {
    /// What to copy.
    #[arg(value_name = "SOURCE", required = true, value_hint = ValueHint::AnyPath)]
    sources: Vec<PathBuf>,

    /// The new name, or the directory to copy into.
    #[arg(value_name = "DEST", value_hint = ValueHint::AnyPath)]
    destination: PathBuf,

    /// Copy directories with all that is in them.
    #[arg(long, short)]
    recursive: bool,

    /// Replace a file that has the new name; it is kept for the undo.
    #[arg(long, short = 'f', visible_alias = "force")]
    replace: bool,
}

/// Copies.
pub(crate) fn cmd_cp(session: &mut Session, args: &CpArgs) -> Result<(), Failure> {
    let words = Words::of("cp")
        .option("-r", args.recursive)
        .option("-f", args.replace)
        .paths(args.sources.iter().map(PathBuf::as_path))
        .paths([args.destination.as_path()]);
    if session.is_answered(&words)? {
        return Ok(());
    }
    let places = destinations(&args.sources, &args.destination)?;
    let copies = places.into_iter().map(|(from, to)| FileRequest::Copy {
        from,
        to,
        recursive: args.recursive,
        replace: args.replace,
    });
    session.write(all_or_nothing(copies.collect()))
}
