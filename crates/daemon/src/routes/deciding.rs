//! Deciding: proposals, and undos that failed. Who decided is in the journal: the user, and by which way he came.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use backout_engine::{Command, Context, FailedCommand, ProposalCommand};
use backout_model::Decided;
use serde::Deserialize;

use crate::answer::{Failed, json};
use crate::app::App;
use crate::ask::{Named, Who, body};
use crate::caller::{Caller, Way};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Why {
    #[serde(default)]
    why: Option<String>,
}

/// A body that says nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// Says who decides.
pub(super) fn decided(app: &App, caller: &Caller, why: Option<String>) -> Decided {
    let way = match caller.way {
        Way::Socket => "by the socket",
        Way::Token => "with a token",
        Way::Session => "on the page",
    };
    let by = format!("{} {way}", app.user);
    Decided { by, why }
}

pub(super) async fn approve(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    Named(proposal): Named,
    sent: Body,
) -> Result<Response, Failed> {
    let Why { why } = body(&app, sent).await?;
    let decided = decided(&app, &caller, why);
    let command = Command::Proposal(ProposalCommand::Approve { proposal, decided });
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}

pub(super) async fn reject(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    Named(proposal): Named,
    sent: Body,
) -> Result<Response, Failed> {
    let Why { why } = body(&app, sent).await?;
    let decided = decided(&app, &caller, why);
    let command = Command::Proposal(ProposalCommand::Reject { proposal, decided });
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}

pub(super) async fn retry(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    Named(operation): Named,
    sent: Body,
) -> Result<Response, Failed> {
    let Nothing {} = body(&app, sent).await?;
    let operations = vec![operation];
    let command = Command::Failed(FailedCommand::Retry { operations });
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}

pub(super) async fn accept(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    Named(operation): Named,
    sent: Body,
) -> Result<Response, Failed> {
    let Why { why } = body(&app, sent).await?;
    let decided = decided(&app, &caller, why);
    let command = Command::Failed(FailedCommand::Accept { operation, decided });
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}
