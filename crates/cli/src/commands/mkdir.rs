//! `backout mkdir`

use std::path::PathBuf;

use backout_drivers::file::FileRequest;
use clap::{Args, ValueHint};

use super::{all_or_nothing, parse_mode};
use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;

/// Make directories.
#[derive(Debug, Args)]
pub(crate) struct MkdirArgs {
    /// The directories to make.
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::DirPath)]
    paths: Vec<PathBuf>,

    /// Make missing parent directories too; it is no error if a directory exists.
    #[arg(long, short)]
    parents: bool,

    /// The permission bits.
    #[arg(long, short, value_name = "OCTAL", value_parser = parse_mode)]
    mode: Option<u32>,
}

/// Makes directories.
pub(crate) fn cmd_mkdir(session: &mut Session, args: &MkdirArgs) -> Result<(), Failure> {
    let mut requests = Vec::with_capacity(args.paths.len());
    for path in &args.paths {
        let path = absolute(path)?;
        requests.push(FileRequest::Mkdir {
            path,
            parents: args.parents,
            mode: args.mode,
        });
    }
    session.write(all_or_nothing(requests))
}
