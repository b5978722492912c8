//! Taking back and bringing back: a `GET` shows the plan, a `POST` carries it out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use backout_engine::{Command, Context, OperationRef, RedoWhat, UndoWhat};
use serde::Deserialize;

use crate::answer::{Failed, json};
use crate::app::App;
use crate::ask::{Named, UndoBody, Who, Words, body};

pub(super) async fn preview_undo(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    Named(operation): Named,
    uri: Uri,
) -> Result<Response, Failed> {
    let command = undo_of(operation, &of_query(&uri)?, true)?;
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}

pub(super) async fn undo(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    Named(operation): Named,
    sent: Body,
) -> Result<Response, Failed> {
    let how: UndoBody = body(&app, sent).await?;
    let command = undo_of(operation, &how, false)?;
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}

pub(super) async fn preview_redo(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    Named(operation): Named,
    uri: Uri,
) -> Result<Response, Failed> {
    let command = redo_of(operation, &of_query(&uri)?, true)?;
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}

pub(super) async fn redo(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    Named(operation): Named,
    sent: Body,
) -> Result<Response, Failed> {
    let how: UndoBody = body(&app, sent).await?;
    let command = redo_of(operation, &how, false)?;
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}

/// Many at once. The options stand beside what is meant, so they are written out here.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of its own for whoever asks"
)]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Many {
    what: UndoWhat,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    only: Vec<String>,
    #[serde(default)]
    exclude: Vec<String>,
    #[serde(default)]
    merge: bool,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    partial: bool,
    #[serde(default)]
    others: bool,
    #[serde(default)]
    committed: bool,
    #[serde(default)]
    with_dependencies: bool,
}

pub(super) async fn undo_many(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    sent: Body,
) -> Result<Response, Failed> {
    let many: Many = body(&app, sent).await?;
    let how = UndoBody {
        only: many.only,
        exclude: many.exclude,
        merge: many.merge,
        force: many.force,
        partial: many.partial,
        others: many.others,
        committed: many.committed,
        with_dependencies: many.with_dependencies,
    };
    let command = Command::Undo {
        what: many.what,
        options: how.options(many.dry_run)?,
        is_dry_run: many.dry_run,
    };
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}

fn of_query(uri: &Uri) -> Result<UndoBody, Failed> {
    let mut words = Words::of(uri)?;
    let how = UndoBody::of(&mut words)?;
    words.end()?;
    Ok(how)
}

fn undo_of(operation: OperationRef, how: &UndoBody, is_dry_run: bool) -> Result<Command, Failed> {
    Ok(Command::Undo {
        what: UndoWhat::Operations(vec![operation]),
        options: how.options(is_dry_run)?,
        is_dry_run,
    })
}

fn redo_of(operation: OperationRef, how: &UndoBody, is_dry_run: bool) -> Result<Command, Failed> {
    Ok(Command::Redo {
        what: RedoWhat::Operations(vec![operation]),
        options: how.options(is_dry_run)?,
        is_dry_run,
    })
}
