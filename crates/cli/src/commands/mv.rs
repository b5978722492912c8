//! `backout mv`

use std::path::PathBuf;

use backout_drivers::file::FileRequest;
use clap::{Args, ValueHint};

use super::{all_or_nothing, destinations};
use crate::failure::Failure;
use crate::session::Session;
use crate::words::Words;

/// Move or rename files and directories.
///
/// If DEST is a directory, everything is moved into it. Several sources move together or not at all.
#[derive(Debug, Args)]
pub(crate) struct MvArgs {
    /// What to move.
    #[arg(value_name = "SOURCE", required = true, value_hint = ValueHint::AnyPath)]
    sources: Vec<PathBuf>,

    /// The new name, or the directory to move into.
    #[arg(value_name = "DEST", value_hint = ValueHint::AnyPath)]
    destination: PathBuf,

    /// Replace a file that has the new name; it is kept for the undo.
    #[arg(long, short = 'f', visible_alias = "force")]
    replace: bool,
}

/// Moves.
pub(crate) fn cmd_mv(session: &mut Session, args: &MvArgs) -> Result<(), Failure> {
    let words = Words::of("mv")
        .option("-f", args.replace)
        .paths(args.sources.iter().map(PathBuf::as_path))
        .paths([args.destination.as_path()]);
    if session.is_answered(&words)? {
        return Ok(());
    }
    let places = destinations(&args.sources, &args.destination)?;
    let moved = places.into_iter().map(|(from, to)| FileRequest::Move {
        from,
        to,
        replace: args.replace,
    });
    session.write(all_or_nothing(moved.collect()))
}
