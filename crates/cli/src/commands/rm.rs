//! `backout rm`

use std::path::PathBuf;

use backout_drivers::file::FileRequest;
use clap::{Args, ValueHint};

use super::all_or_nothing;
use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;
use crate::words::Words;

/// Remove files, links and directories.
///
/// Several paths go together or not at all. A symbolic link is removed itself, never what it points to.
#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// What to remove.
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,

    /// Remove directories with all that is in them.
    #[arg(long, short)]
    recursive: bool,

    /// Ignore paths that do not exist.
    #[arg(long, short)]
    force: bool,
}

/// Removes.
pub(crate) fn cmd_rm(session: &mut Session, args: &RmArgs) -> Result<(), Failure> {
    let words = Words::of("rm")
        .option("-r", args.recursive)
        .option("-f", args.force)
        .paths(args.paths.iter().map(PathBuf::as_path));
    if session.is_answered(&words)? {
        return Ok(());
    }
    let mut requests = Vec::with_capacity(args.paths.len());
    for path in &args.paths {
        let path = absolute(path)?;
        let is_missing = path
            .symlink_metadata()
            .is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound);
        if !(args.force && is_missing) {
            requests.push(FileRequest::Remove {
                path,
                recursive: args.recursive,
            });
        }
    }
    session.write(all_or_nothing(requests))
}
