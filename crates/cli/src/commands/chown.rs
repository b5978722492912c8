//! `backout chown`

use std::path::PathBuf;

use backout_drivers::file::FileRequest;
use clap::{Args, ValueHint};

use super::all_or_nothing;
use crate::accounts::ownership;
use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;

/// Change the owner.
///
/// Several paths change together or not at all.
#[derive(Debug, Args)]
pub(crate) struct ChownArgs {
    /// The new owner: USER, USER:GROUP or :GROUP, by name or number; USER: takes the user's own group.
    #[arg(value_name = "OWNER")]
    owner: String,

    /// What to change.
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,

    /// Change all that is below directories as well.
    #[arg(long, short = 'R')]
    recursive: bool,
}

/// Changes the owner.
pub(crate) fn cmd_chown(session: &mut Session, args: &ChownArgs) -> Result<(), Failure> {
    let owner = ownership(&args.owner)?;
    let mut requests = Vec::with_capacity(args.paths.len());
    for path in &args.paths {
        requests.push(FileRequest::Chown {
            path: absolute(path)?,
            uid: owner.uid,
            gid: owner.gid,
            recursive: args.recursive,
        });
    }
    session.write(all_or_nothing(requests))
}
