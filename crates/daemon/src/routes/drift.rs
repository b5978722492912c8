//! Drift: what is open, and what a person decides about it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use backout_engine::{Command, Context, DriftCommand};
use backout_model::Key;
use serde::Deserialize;

use crate::answer::{Failed, json};
use crate::app::App;
use crate::ask::{Who, Words, body, place};
use crate::caller::Caller;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Meant {
    targets: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pattern {
    pattern: String,
    #[serde(default)]
    off: bool,
}

async fn asked(app: Arc<App>, caller: Caller, command: DriftCommand) -> Result<Response, Failed> {
    let command = Command::Drift(command);
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}

fn named(texts: &[String]) -> Result<Vec<Key>, Failed> {
    texts.iter().map(|text| place(text)).collect()
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    let mut words = Words::of(&uri)?;
    let below = named(&words.all("at"))?;
    let all = words.flag("all")?;
    words.end()?;
    asked(app, caller, DriftCommand::List { below, all }).await
}

pub(super) async fn look(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    sent: Body,
) -> Result<Response, Failed> {
    let Meant { targets } = body(&app, sent).await?;
    let below = named(&targets)?;
    asked(app, caller, DriftCommand::Look { below }).await
}

pub(super) async fn accept(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    sent: Body,
) -> Result<Response, Failed> {
    let Meant { targets } = body(&app, sent).await?;
    let targets = named(&targets)?;
    asked(app, caller, DriftCommand::Accept { targets }).await
}

pub(super) async fn restore(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    sent: Body,
) -> Result<Response, Failed> {
    let Meant { targets } = body(&app, sent).await?;
    let targets = named(&targets)?;
    asked(app, caller, DriftCommand::Restore { targets }).await
}

pub(super) async fn merge(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    sent: Body,
) -> Result<Response, Failed> {
    let Meant { targets } = body(&app, sent).await?;
    let targets = named(&targets)?;
    asked(app, caller, DriftCommand::Merge { targets }).await
}

pub(super) async fn ignore(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    sent: Body,
) -> Result<Response, Failed> {
    let Pattern { pattern, off } = body(&app, sent).await?;
    let command = if off {
        DriftCommand::Heed { pattern }
    } else {
        DriftCommand::Ignore { pattern }
    };
    asked(app, caller, command).await
}
