//! What statements gave and what became of them, told the same way whichever database it was.

use backout_engine::{Command, Finished, Reply, WriteRequest};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::session::Session;
use crate::show;

/// What one statement gave: at most the first thousand rows.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
    pub(crate) has_more: bool,
}

/// The reply `rows`.
#[derive(Serialize)]
struct Rows<'a> {
    reply: &'static str,
    results: &'a [Table],
    #[serde(skip_serializing_if = "Option::is_none")]
    finished: Option<&'a Finished>,
}

/// Has statements carried out, and tells what they gave and what became of them.
pub(super) fn carry_out(
    session: &mut Session,
    request: WriteRequest,
    said: Option<&str>,
    given: impl FnOnce() -> Vec<Table>,
) -> Result<(), Failure> {
    let engine = session.engine()?;
    let reply = session.execute(&engine, Command::Write { request })?;
    let tables = given();
    let Reply::Finished(finished) = &reply else {
        return session.show(&engine, &reply);
    };
    if tables.is_empty() && session.ui.is_json() {
        return session.show(&engine, &reply);
    }
    // Who only asked has the answer already.
    let is_read = finished.id.is_none() && !tables.is_empty();
    tell(session, &tables, (!is_read).then_some(finished));
    if !is_read && !session.ui.is_json() {
        show::write::finished(session, finished, said.unwrap_or(&finished.summary));
    }
    Ok(())
}

/// Tells what statements gave, in one reply.
pub(super) fn tell(session: &mut Session, results: &[Table], finished: Option<&Finished>) {
    if session.ui.is_json() {
        session.ui.print_json(&Rows {
            reply: "rows",
            results,
            finished,
        });
        return;
    }
    for table in results {
        session.ui.print(&show::sql::table(table));
    }
}
