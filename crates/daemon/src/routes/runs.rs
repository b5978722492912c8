//! `POST /v1/runs`: a command, in a process of its own. The server is neither its parent in the journal nor its watcher: it starts the same
//! program as a person would, passes on what it says, and ends it if nobody listens any more.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use backout_engine::{ErrorCode, Report};
use backout_model::{AgentId, TaskId, any_path};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json as object};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use crate::answer::Failed;
use crate::app::{App, stopping};
use crate::ask::{Who, body, unreadable};
use crate::caller::{Caller, forbidden};
use crate::limits::OUTPUT_BYTES_MAX;
use crate::roles::{Need, permit};
use crate::stream::{Events, stream};

/// How long a command has to end once it was asked to.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// How long the line may be that tells what became of it.
const REPLY_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    words: Vec<String>,
    #[serde(with = "any_path")]
    directory: PathBuf,
    #[serde(default)]
    timeout_seconds: Option<u64>,
    #[serde(default)]
    task: Option<TaskId>,
    #[serde(default)]
    agent: Option<AgentId>,
    #[serde(default, rename = "try")]
    is_trial: bool,
}

pub(super) async fn run(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    sent: Body,
) -> Result<Response, Failed> {
    let asked: Asked = body(&app, sent).await?;
    permit(&caller, Need::Request)?;
    if *app.stop.borrow() {
        return Err(stopping());
    }
    let mut command = command_of(&app, &caller, &asked)?;
    let slot = App::slot(&app.runs, "too many commands run already")?;
    let child = command.spawn().map_err(|error| {
        let report = Report::refused("the command was not started").code(ErrorCode::NotStarted);
        report
            .because(error)
            .next("see whether the directory is there")
    })?;
    let (events, response) = stream(slot, app.patience.reader);
    tokio::spawn(async move { attend(&app, child, &events).await });
    Ok(response)
}

fn command_of(app: &App, caller: &Caller, asked: &Asked) -> Result<Command, Failed> {
    if asked.words.is_empty() {
        return Err(unreadable("`words`", "there is no command"));
    }
    if !asked.directory.is_absolute() {
        return Err(unreadable("`directory`", "it is no absolute path"));
    }
    let agent = match (caller.only_of(), &asked.agent) {
        (Some(own), Some(other)) if own != other => {
            return Err(forbidden("the token is for another agent").into());
        }
        (Some(own), _) => Some(own.clone()),
        (None, named) => named.clone(),
    };
    let mut command = Command::new(&app.program.path);
    command.args(&app.program.words).arg("--json");
    if let Some(agent) = agent {
        command.arg(format!("--agent={agent}"));
    }
    if let Some(task) = &asked.task {
        command.arg(format!("--task={task}"));
    }
    command.arg(if asked.is_trial { "try" } else { "run" });
    if let Some(seconds) = asked.timeout_seconds.filter(|_| !asked.is_trial) {
        command.arg(format!("--timeout={seconds}s"));
    }
    command.arg("--").args(&asked.words);
    command
        .current_dir(&asked.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    Ok(command)
}

/// Passes on what a command says until it has ended; ends it if nobody listens any more, or the server stops.
async fn attend(app: &Arc<App>, mut child: Child, events: &Events) {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let pid = child
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(Pid::from_raw);
    let passing = async {
        let out = pass_on(events, "stdout", stdout, false);
        let err = pass_on(events, "stderr", stderr, true);
        let (out, said) = tokio::join!(out, err);
        // A trial says it where a person would read it.
        if said.is_empty() { out } else { said }
    };
    let mut stop = app.stop.clone();
    let ended = async {
        let grace = app.patience.grace;
        tokio::select! {
            () = events.closed() => {}
            () = async {
                let _told = stop.wait_for(|stop| *stop).await.is_ok();
                tokio::time::sleep(grace).await;
            } => {}
        }
    };
    tokio::pin!(passing);
    let said = tokio::select! {
        said = &mut passing => said,
        () = ended => {
            signal(pid, Signal::TERM);
            if let Ok(said) = tokio::time::timeout(ENDS_WITHIN, &mut passing).await { said } else {
                signal(pid, Signal::KILL);
                Vec::new()
            }
        }
    };
    let _reaped = child.wait().await;
    let last: Option<Value> = serde_json::from_slice(&said).ok();
    let _gone = match last {
        Some(value) if value.get("reply").is_some() => events.send(None, "end", &value).await,
        Some(value) if value.get("code").is_some() => events.send(None, "error", &value).await,
        _ => {
            let report = Report::refused("it is not known what became of the command")
                .because("it ended without saying so")
                .next("see what it did in the log");
            let report = serde_json::to_value(report).unwrap_or_default();
            events.send(None, "error", &report).await
        }
    };
}

fn signal(pid: Option<Pid>, signal: Signal) {
    if let Some(pid) = pid {
        let _sent = kill_process(pid, signal);
    }
}

/// Passes a stream on, up to a limit, and gives its last line. The line that tells what became of the command is not passed on.
async fn pass_on(
    events: &Events,
    name: &'static str,
    from: Option<impl AsyncRead + Unpin>,
    holds_last: bool,
) -> Vec<u8> {
    let Some(mut from) = from else {
        return Vec::new();
    };
    let (mut line, mut chunk) = (Vec::new(), vec![0; 16 * 1024]);
    let mut left = OUTPUT_BYTES_MAX;
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        let read = chunk.get(..count).unwrap_or_default();
        line.extend_from_slice(read);
        // All but the last line is the command's own. That one may be ours; it is held until the end.
        let body = line.strip_suffix(b"\n").unwrap_or(&line);
        let end = body
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let passed: Vec<u8> = line.drain(..end).collect();
        send_up_to(events, name, &passed, &mut left).await;
        if line.len() > REPLY_BYTES_MAX {
            send_up_to(events, name, &std::mem::take(&mut line), &mut left).await;
        }
    }
    let is_ours = serde_json::from_slice::<Value>(&line)
        .is_ok_and(|it| it.get("reply").is_some() || it.get("code").is_some());
    if !is_ours || !holds_last {
        send_up_to(events, name, &line, &mut left).await;
    }
    line
}

async fn send_up_to(events: &Events, name: &str, bytes: &[u8], left: &mut usize) {
    if bytes.is_empty() || *left == 0 {
        return;
    }
    let passed = bytes.get(..bytes.len().min(*left)).unwrap_or_default();
    *left -= passed.len();
    let data = match std::str::from_utf8(passed) {
        Ok(text) => object!({"stream": name, "text": text}),
        Err(_) => object!({"stream": name, "base64": STANDARD.encode(passed)}),
    };
    let _gone = events.send(None, "output", &data).await;
    if *left == 0 {
        let data = object!({"stream": name, "bytes": OUTPUT_BYTES_MAX});
        let _gone = events.send(None, "cut", &data).await;
    }
}
