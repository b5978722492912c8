//! SQL in a database that a server holds, of whatever kind.

use backout_engine::EngineError;
use backout_remote::rows::{Act, Answer, PATIENCE, Place, RowsError, RowsRequest, connect};
use serde_json::Value;

use super::answer::{Table, carry_out};
use crate::commands::db::known;
use crate::databases::driver;
use crate::failure::Failure;
use crate::session::Session;

/// How often statements are run anew because other clients wrote the same rows at that moment.
const TRIES_MAX: u32 = 10;

/// How many rows of one answer are told.
const ROWS_MAX: usize = 1_000;

/// Runs statements in the database behind a URL.
pub(super) fn run_at(session: &mut Session, url: &str, text: String) -> Result<(), Failure> {
    let mut connection = connect(url, PATIENCE).map_err(driver)?;
    let place = connection.identity().map_err(driver)?;
    drop(connection);
    // What others did before comes before it in the journal.
    if session
        .database(&place.name)?
        .is_none_or(|it| it.id != place.id)
    {
        session.remember(&place)?;
    }
    let agent = session.agent.as_ref().map(ToString::to_string);
    let act = Act::Run { text, agent };
    for _ in 1..TRIES_MAX {
        let tried = try_once(session, &place, url, act.clone());
        match tried {
            Err(failure) if is_overtaken(&failure) => {}
            tried => return tried,
        }
    }
    try_once(session, &place, url, act)
}

/// Runs statements in an enrolled database.
pub(super) fn run_by_name(
    session: &mut Session,
    name: &str,
    statements: String,
) -> Result<(), Failure> {
    let url = known(session, name)?.url;
    run_at(session, &url, statements)
}

/// Takes up what others did, and runs statements.
fn try_once(session: &mut Session, place: &Place, url: &str, act: Act) -> Result<(), Failure> {
    session.sync_databases();
    let request = RowsRequest::new(place.clone(), Some(url.to_owned()), act);
    let answers = request.answers.clone();
    carry_out(session, request.into(), None, || {
        let answers = answers.lock().map(|it| it.clone()).unwrap_or_default();
        answers.into_iter().filter_map(table).collect()
    })
}

/// Tells whether somebody wrote the same rows after the log was looked at.
fn is_overtaken(failure: &Failure) -> bool {
    let Failure::Engine(EngineError::Driver(error)) = failure else {
        return false;
    };
    matches!(error.as_a(), Some(RowsError::Overtaken))
}

/// Gives the rows of an answer; none if it has none.
fn table(answer: Answer) -> Option<Table> {
    let Answer {
        columns, mut rows, ..
    } = answer;
    let has_more = rows.len() > ROWS_MAX;
    rows.truncate(ROWS_MAX);
    let row = |row: Vec<Option<String>>| row.into_iter().map(Value::from).collect();
    let rows = rows.into_iter().map(row).collect();
    (!columns.is_empty()).then_some(Table {
        columns,
        rows,
        has_more,
    })
}
