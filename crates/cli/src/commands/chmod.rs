//! `backout chmod`

use std::path::PathBuf;

use backout_drivers::file::{FileRequest, ModeChange};
use clap::{Args, ValueHint};

use super::all_or_nothing;
use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;

/// Change permissions.
///
/// Several paths change together or not at all.
#[derive(Debug, Args)]
pub(crate) struct ChmodArgs {
    /// The new mode: 644, u+x, go-w, a=rX.
    #[arg(allow_hyphen_values = true)]
    mode: ModeChange,

    /// What to change.
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,

    /// Change all that is below directories as well.
    #[arg(long, short = 'R')]
    recursive: bool,
}

/// Changes permissions.
pub(crate) fn cmd_chmod(session: &mut Session, args: &ChmodArgs) -> Result<(), Failure> {
    let mut requests = Vec::with_capacity(args.paths.len());
    for path in &args.paths {
        let (path, mode) = (absolute(path)?, args.mode.clone());
        requests.push(FileRequest::Chmod {
            path,
            mode,
            recursive: args.recursive,
        });
    }
    session.write(all_or_nothing(requests))
}
