//! `backout merge`

use std::path::PathBuf;

use backout_drivers::config::{ConfigEdit, ConfigRequest};
use backout_engine::Report;
use clap::{Args, ValueHint};

use super::set::{FormatArg, json};
use crate::failure::Failure;
use crate::input::read_file_or_stdin;
use crate::paths::absolute;
use crate::session::Session;

/// Change several keys of a config file at once.
///
/// The patch is JSON in the manner of RFC 7396, for a file of any format: tables are merged, `null` takes a key out, anything
/// else replaces. Each key can be taken back by itself: `backout undo ID --only 'FILE:KEY'`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The file.
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// The patch: JSON, like `{"server": {"port": 8080}}`, or `@FILE`, or `-` for standard input.
    #[arg(allow_hyphen_values = true)]
    patch: String,

    #[command(flatten)]
    format: FormatArg,
}

/// Merges a patch.
pub(crate) fn cmd_merge(session: &mut Session, args: MergeArgs) -> Result<(), Failure> {
    let from = match args.patch.as_str() {
        "-" => Some("-"),
        patch => patch.strip_prefix('@'),
    };
    let patch = match from {
        Some(file) => {
            let advice = "name a file with `@FILE`, or give the patch itself";
            let bytes = read_file_or_stdin(file.as_ref(), session.bar(), advice)?;
            String::from_utf8(bytes).map_err(|_| Report::usage("the patch is not UTF-8"))?
        }
        None => args.patch,
    };
    session.write_keys(ConfigRequest {
        path: absolute(&args.file)?,
        format: args.format.format,
        edit: ConfigEdit::Merge {
            patch: json(&patch)?,
        },
    })
}
