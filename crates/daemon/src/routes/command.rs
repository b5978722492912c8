//! `POST /v1/command`: any command of the engine, as the command line would build it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use backout_engine::{Command, Context, FailedCommand, ProposalCommand};
use serde::Deserialize;

use super::deciding::decided;
use crate::answer::{Failed, json};
use crate::app::App;
use crate::ask::{Who, body};
use crate::caller::Caller;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    context: Context,
    command: Command,
}

pub(super) async fn command(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    sent: Body,
) -> Result<Response, Failed> {
    let Asked {
        context,
        mut command,
    } = body(&app, sent).await?;
    sign(&app, &caller, &mut command);
    let reply = app.command(&caller, context, command).await?;
    Ok(json(&reply))
}

/// Who decides is what the server knows of the caller, not what the request says.
fn sign(app: &App, caller: &Caller, command: &mut Command) {
    let (Command::Proposal(
        ProposalCommand::Approve {
            decided: theirs, ..
        }
        | ProposalCommand::Reject {
            decided: theirs, ..
        },
    )
    | Command::Failed(FailedCommand::Accept {
        decided: theirs, ..
    })) = command
    else {
        return;
    };
    *theirs = decided(app, caller, theirs.why.take());
}
