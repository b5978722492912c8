//! Lists: tasks, prompts, checkpoints, what waits, what failed.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use backout_engine::{
    CheckpointCommand, Command, Context, FailedCommand, PromptFilter, ProposalCommand,
    StageCommand, TaskCommand,
};

use crate::answer::{Failed, json};
use crate::app::App;
use crate::ask::{Named, Who, Words};
use crate::caller::Caller;

/// How many prompts one answer may hold.
pub(super) const LIMIT_MAX: usize = 1_000;

const LIMIT: usize = 100;

async fn plain(
    app: Arc<App>,
    caller: Caller,
    uri: &Uri,
    command: Command,
) -> Result<Response, Failed> {
    Words::of(uri)?.end()?;
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}

pub(super) async fn tasks(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    plain(app, caller, &uri, Command::Task(TaskCommand::List)).await
}

pub(super) async fn prompts(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    let mut words = Words::of(&uri)?;
    let limit = Some(words.limit(LIMIT, LIMIT_MAX)?);
    words.end()?;
    let command = Command::Prompts(PromptFilter { below: None, limit });
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}

pub(super) async fn checkpoints(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    plain(
        app,
        caller,
        &uri,
        Command::Checkpoint(CheckpointCommand::List),
    )
    .await
}

pub(super) async fn stages(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    plain(app, caller, &uri, Command::Stage(StageCommand::List)).await
}

pub(super) async fn pending(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    plain(app, caller, &uri, Command::Proposal(ProposalCommand::List)).await
}

pub(super) async fn proposal(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    Named(proposal): Named,
    uri: Uri,
) -> Result<Response, Failed> {
    plain(
        app,
        caller,
        &uri,
        Command::Proposal(ProposalCommand::Show(proposal)),
    )
    .await
}

pub(super) async fn failed(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    plain(app, caller, &uri, Command::Failed(FailedCommand::List)).await
}
