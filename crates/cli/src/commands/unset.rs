//! `backout unset`

use std::path::PathBuf;

use backout_drivers::config::{ConfigEdit, ConfigRequest, KeyPath};
use clap::{Args, ValueHint};

use super::set::{FormatArg, parse_key};
use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;

/// Take one key out of a config file.
///
/// Everything else in the file stays as it is; a comment behind the key goes with it. The undo brings exactly this key back, with
/// that comment, to its place; if the place is not known any more, it says so.
#[derive(Debug, Args)]
pub(crate) struct UnsetArgs {
    /// The file.
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// The key, like `server.port` or `list[0]`.
    #[arg(value_parser = parse_key)]
    key: KeyPath,

    #[command(flatten)]
    format: FormatArg,
}

/// Takes a key out.
pub(crate) fn cmd_unset(session: &mut Session, args: UnsetArgs) -> Result<(), Failure> {
    session.write_keys(ConfigRequest {
        path: absolute(&args.file)?,
        format: args.format.format,
        edit: ConfigEdit::Unset { key: args.key },
    })
}
