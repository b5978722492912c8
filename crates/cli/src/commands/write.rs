//! `backout write`

use std::path::{Path, PathBuf};

use backout_drivers::file::{Expect, FileRequest, Source};
use clap::{Args, ValueHint};

use super::parse_mode;
use crate::failure::Failure;
use crate::input::content_from_stdin;
use crate::paths::absolute;
use crate::session::Session;

/// Write a file's whole content, or add to its end.
///
/// The content comes from standard input, from another file or from the command line. The file is replaced in one
/// step: a reader sees the old content or the new, never half of it.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one per flag of the command line"
)]
pub(crate) struct WriteArgs {
    /// The file to write.
    #[arg(value_hint = ValueHint::FilePath)]
    path: PathBuf,

    /// Take the content from this file; `-` is standard input, which is also the default.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "text")]
    from: Option<PathBuf>,

    /// Take this as the content; no newline is added.
    #[arg(long, value_name = "STRING", allow_hyphen_values = true)]
    text: Option<String>,

    /// Only if there is no such file yet.
    #[arg(long, conflicts_with_all = ["existing", "append"])]
    create: bool,

    /// Only if the file is there already.
    #[arg(long)]
    existing: bool,

    /// Add to the end of the file instead of replacing it.
    #[arg(long, conflicts_with_all = ["existing", "parents", "mode"])]
    append: bool,

    /// Make missing directories too.
    #[arg(long, short)]
    parents: bool,

    /// The permission bits; by default those of the old file, or the usual ones.
    #[arg(long, value_name = "OCTAL", value_parser = parse_mode)]
    mode: Option<u32>,
}

/// Writes a file.
pub(crate) fn cmd_write(session: &mut Session, args: WriteArgs) -> Result<(), Failure> {
    let path = absolute(&args.path)?;
    let source = match (args.text, args.from) {
        (Some(text), _) => Source::Bytes(text.into_bytes()),
        (None, Some(from)) if from != Path::new("-") => Source::Path(absolute(&from)?),
        (None, _) => content_from_stdin(session.bar(), "give `--text STRING` or `--from FILE`")?,
    };
    let request = if args.append {
        FileRequest::Append { path, source }
    } else {
        let expect = match (args.create, args.existing) {
            (true, _) => Expect::New,
            (false, true) => Expect::Existing,
            (false, false) => Expect::Anything,
        };
        FileRequest::Write {
            path,
            source,
            expect,
            parents: args.parents,
            mode: args.mode,
        }
    };
    session.write(request)
}
