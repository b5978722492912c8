//! Where things stand: status, storage, checks, numbers, and who the server takes somebody for.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use backout_engine::{Command, Context};
use serde_json::json as object;

use crate::answer::{Failed, json, typed};
use crate::app::App;
use crate::ask::{Who, Words};
use crate::caller::Role;
use crate::openapi;
use crate::roles::{Need, permit};

pub(super) async fn status(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    Words::of(&uri)?.end()?;
    let reply = app
        .command(&caller, Context::default(), Command::Status)
        .await?;
    Ok(json(&reply))
}

pub(super) async fn verify(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    Words::of(&uri)?.end()?;
    let reply = app
        .command(&caller, Context::default(), Command::Verify)
        .await?;
    Ok(json(&reply))
}

pub(super) async fn storage(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    let mut words = Words::of(&uri)?;
    let with_holders = words.flag("holders")?;
    words.end()?;
    permit(&caller, Need::LookAtAll)?;
    let context = caller.context(Context::default())?;
    app.work(&caller, context, move |engine, _| {
        let store = engine.store();
        let told = backout_engine::EngineError::from;
        let (summary, stored) = (
            store.summary().map_err(told)?,
            store.stored_bytes().map_err(told)?,
        );
        let statuses: serde_json::Map<_, _> = summary
            .operations
            .iter()
            .map(|(status, count)| (status.as_str().to_owned(), object!(count)))
            .collect();
        let holders = with_holders.then(|| store.stored_by());
        let holders = holders.transpose().map_err(told)?;
        let mut answer = object!({
            "stored": stored,
            "journal_bytes": store.journal_bytes(),
            "cap_bytes": engine.settings().retention.store_bytes_max,
            "statuses": statuses,
            "records": summary.records,
            "last_lsn": summary.last_lsn,
        });
        if let (Some(answer), Some(holders)) = (answer.as_object_mut(), holders) {
            answer.insert("holders".to_owned(), object!(holders));
        }
        Ok(json(&answer))
    })
    .await
}

pub(super) async fn me(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    Words::of(&uri)?.end()?;
    let mut me = object!({
        "role": caller.role,
        "version": env!("CARGO_PKG_VERSION"),
        "state_dir": app.engine.settings().state_dir.to_string_lossy(),
        "read_only": caller.role == Role::Viewer,
    });
    if let (Some(me), Some(agent)) = (me.as_object_mut(), &caller.agent) {
        me.insert("agent".to_owned(), object!(agent));
    }
    Ok(json(&me))
}

pub(super) async fn metrics(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    Words::of(&uri)?.end()?;
    permit(&caller, Need::LookAtAll)?;
    let context = caller.context(Context::default())?;
    let shared = Arc::clone(&app);
    app.work(&caller, context, move |engine, _| {
        let connections = shared.connections.load(Ordering::Relaxed);
        let exported = shared.telemetry.as_ref().map(|it| it.counts());
        let text = shared.metrics.text(engine, connections, exported)?;
        Ok(typed("text/plain; version=0.0.4; charset=utf-8", text))
    })
    .await
}

pub(super) async fn health() -> Response {
    json(&object!({"ok": true}))
}

pub(super) async fn document() -> Response {
    typed("application/json", openapi::text())
}
