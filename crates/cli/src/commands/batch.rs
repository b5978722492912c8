//! `backout batch`

use std::path::{Path, PathBuf};

use backout_drivers::file::FileRequest;
use backout_engine::Report;
use clap::{Args, ValueHint};

use crate::advice::Asked;
use crate::batch::parse;
use crate::failure::Failure;
use crate::input::read_file_or_stdin;
use crate::session::Session;

/// Make several changes as one operation: all or nothing
///
/// The changes come as JSON, from a file or from standard input:
///
///   {"changes": [
///     {"write":   {"path": "a", "text": "hello\n"}},
///     {"write":   {"path": "b", "base64": "AAEC", "create": true, "parents": true, "mode": "0644"}},
///     {"write":   {"path": "c", "from": "a", "existing": true}},
///     {"append":  {"path": "a", "text": "more\n"}},
///     {"edit":    {"path": "a", "search": "hello", "replace": "bye", "all": true}},
///     {"edit":    {"path": "a", "search": "bye", "replace": "hi", "nth": 1}},
///     {"patch":   {"patch": "--- a/f\n+++ b/f\n...", "base": "dir"}},
///     {"remove":  {"path": "d", "recursive": true}},
///     {"move":    {"from": "b", "to": "e", "replace": true}},
///     {"copy":    {"from": "e", "to": "f", "recursive": true, "replace": true}},
///     {"mkdir":   {"path": "g", "parents": true, "mode": "0755"}},
///     {"symlink": {"path": "h", "to": "a", "replace": true}},
///     {"link":    {"path": "i", "to": "a"}},
///     {"chmod":   {"path": "a", "mode": "u+x", "recursive": false}},
///     {"chown":   {"path": "a", "owner": "user:group", "recursive": false}}]}
///
/// Paths are relative to this directory and may not leave it. A later change sees what an earlier
/// one makes. What one change moved or removed, no other may touch.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct BatchArgs {
    /// The file with the changes; `-` is standard input.
    #[arg(default_value = "-", value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

/// Makes several changes.
pub(crate) fn cmd_batch(session: &mut Session, args: &BatchArgs) -> Result<(), Failure> {
    let json = read_file_or_stdin(&args.file, session.bar(), "name a file with the changes")?;
    let base = crate::paths::absolute(Path::new("."))?;
    let requests = parse(&json, &base).map_err(|report| named(report, &args.file))?;
    let kind = Asked::in_batch(&requests);
    session.write_as(FileRequest::Within { base, requests }, &kind)
}

/// Says in which file it is.
fn named(mut report: Report, file: &Path) -> Report {
    if file != Path::new("-") {
        report.what = format!("{} in `{}`", report.what, file.display());
    }
    report
}
