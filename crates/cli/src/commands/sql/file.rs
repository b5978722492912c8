//! SQL in an `SQLite` file.

use std::path::Path;

use backout_engine::Report;

use crate::failure::Failure;
use crate::session::Session;

/// Runs statements in a file.
pub(super) fn run(_: &mut Session, path: &Path, _statements: String) -> Result<(), Failure> {
    Err(Report::refused(format!("nothing was run in `{}`", path.display())).into())
}
