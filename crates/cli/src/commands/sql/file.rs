//! SQL in an `SQLite` file.

use std::path::Path;

use backout_drivers::file::{Expect, FileRequest, Source};
use backout_drivers::sqlite::{ResultSet, SqlRequest, read_only};
use backout_engine::{EngineError, Report};

use super::answer::{Table, carry_out, tell};
use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;

/// Runs statements in a file.
pub(super) fn run(
    session: &mut Session,
    path: &Path,
    statements: String,
    create: bool,
) -> Result<(), Failure> {
    let path = absolute(path)?;
    if create && !path.exists() {
        make(session, &path)?;
    }
    // Whoever only reads needs no lock, no record and no undo.
    let found = read_only(&path, &statements);
    let found = found.map_err(|error| EngineError::Driver(error.into()))?;
    if let Some(found) = found {
        tell(session, &tables(found), None);
        return Ok(());
    }
    let request = SqlRequest::new(path.clone(), statements);
    let told = request.told.clone();
    let said = format!("ran SQL in {}", session.here.show(&path));
    carry_out(session, request.into(), Some(&said), || tables(told.take()))
}

/// Makes an empty file, which is an empty database.
fn make(session: &mut Session, path: &Path) -> Result<(), Failure> {
    if session.global.once.is_some() {
        let report = Report::usage("`--once` does not go with `--create` here");
        let report = report.because("the key stands for one write, and these would be two");
        return Err(report
            .next("make the database first, without the key")
            .into());
    }
    session.write(FileRequest::Write {
        path: path.to_owned(),
        source: Source::Bytes(Vec::new()),
        expect: Expect::New,
        parents: false,
        mode: None,
    })
}

fn tables(found: Vec<ResultSet>) -> Vec<Table> {
    let table = |found: ResultSet| Table {
        rows: found.json_rows(),
        columns: found.columns,
        has_more: found.has_more,
    };
    found.into_iter().map(table).collect()
}
