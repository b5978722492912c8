//! SQL in a database that a server holds. The scheme of its URL tells which kind of server.

use backout_engine::{Command, Engine, Finished, Reply, Report};
use backout_remote::postgres::{self, Answer, PostgresRequest};
use serde::Serialize;

use crate::commands::db::known;
use crate::databases::driver;
use crate::failure::Failure;
use crate::session::Session;
use crate::show;
use crate::ui::printable;

/// What statements answered and what became of them, in JSON.
#[derive(Serialize)]
struct Rows<'a> {
    reply: &'static str,
    answers: &'a [Answer],
    finished: &'a Finished,
}

/// Runs statements in the database behind a URL.
pub(super) fn run_at(session: &mut Session, url: &str, statements: String) -> Result<(), Failure> {
    if postgres::is_url(url) {
        return in_postgres(session, url, statements);
    }
    Err(Report::refused("nothing was run").into())
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

fn in_postgres(session: &mut Session, url: &str, text: String) -> Result<(), Failure> {
    let mut connection = postgres::Connection::open(url, postgres::PATIENCE).map_err(driver)?;
    let place = connection.identity().map_err(driver)?;
    drop(connection);
    // What others did before comes before it in the journal.
    if session
        .database(&place.name)?
        .is_none_or(|it| it.id != place.id)
    {
        session.remember(&place)?;
    }
    session.sync_databases();
    let agent = session.agent.as_ref().map(ToString::to_string);
    let act = postgres::Act::Run { text, agent };
    let request = PostgresRequest::new(place, Some(url.to_owned()), act);
    let answers = request.answers.clone();
    let engine = session.engine()?;
    let request = request.into();
    let reply = session.execute(&engine, Command::Write { request })?;
    let answers = answers.lock().map(|it| it.clone()).unwrap_or_default();
    shown(session, &engine, &answers, &reply)
}

/// Shows the rows that came and what became of the rest.
fn shown(
    session: &mut Session,
    engine: &Engine,
    answers: &[Answer],
    reply: &Reply,
) -> Result<(), Failure> {
    let Reply::Finished(finished) = reply else {
        return session.show(engine, reply);
    };
    let with_rows = || answers.iter().filter(|it| !it.columns.is_empty());
    if session.ui.is_json() {
        if with_rows().next().is_none() {
            return session.show(engine, reply);
        }
        let reply = "rows";
        session.ui.print_json(&Rows {
            reply,
            answers,
            finished,
        });
        return Ok(());
    }
    for answer in with_rows() {
        let mut text = answer.columns.join("\t");
        text.push('\n');
        for row in &answer.rows {
            let values = row.iter().map(|it| match it {
                Some(value) => printable(value),
                None => "NULL".to_owned(),
            });
            text.push_str(&values.collect::<Vec<_>>().join("\t"));
            text.push('\n');
        }
        session.ui.print(&text);
    }
    // Who only asked has the answer already.
    if finished.id.is_some() || with_rows().next().is_none() {
        show::write::finished(session, finished, &finished.summary);
    }
    Ok(())
}
