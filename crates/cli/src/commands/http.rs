//! `backout http`

use std::collections::BTreeMap;
use std::path::Path;

use backout_engine::{Command, EngineError, Finished, Reply, Report};
use backout_gates::Paths;
use backout_model::compensation::Compensation;
use backout_remote::http::{
    Address, Answer, Heard, HttpError, HttpRequest, TIMEOUT_MS, hidden, is_secret_header,
};
use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::input::read_file_or_stdin;
use crate::paths::absolute;
use crate::session::Session;
use crate::show;
use crate::state_dir::{home, own_rules};

/// How much of an answer is shown.
const SHOWN_BYTES_MAX: usize = 64 * 1024;

/// Call a web service, with a call that takes it back.
///
/// GET, HEAD and OPTIONS are sent and recorded nowhere. Anything else needs a way back: a `[[compensation]]` in backout.toml says
/// which call answers it, or that the thing is looked at before and put back as it was. Without one the call is refused; with
/// `--irreversible` it waits until somebody approves it, or until its task is committed.
///
/// Write secrets as `${env:NAME}`, in the URL, in headers and in the body: they are looked up when the call is sent, and kept nowhere.
#[derive(Debug, Args)]
pub(crate) struct HttpArgs {
    /// The method: GET, POST, PUT, PATCH, DELETE.
    method: String,

    /// Where to.
    url: String,

    /// A header, like `Accept: text/plain`.
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    headers: Vec<String>,

    /// What is sent: a text, `@FILE`, or `@-` for standard input.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    data: Option<String>,

    /// What is sent is JSON: it is checked, and the service is told so.
    #[arg(long, requires = "data")]
    json_body: bool,

    /// How many seconds one try may take.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: Option<u64>,

    /// Send it although nothing takes it back: when somebody approves it, or when the task is committed.
    #[arg(long)]
    irreversible: bool,
}

/// The reply, for programs.
#[derive(Debug, Serialize)]
struct Called<'a> {
    reply: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    headers: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Whether there is more of the body than is shown.
    is_cut: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'a Finished>,
}

/// Calls a service.
pub(crate) fn cmd_http(session: &mut Session, args: HttpArgs) -> Result<(), Failure> {
    let request = request(session, args)?;
    if request.only_looks() {
        let answer = request.look().map_err(|error| report(&error))?;
        show_answer(session, Some(&answer), None);
        return match answer.status {
            400.. => Err(Failure::Shown(1)),
            _ => Ok(()),
        };
    }
    let (said, heard) = (format!("sent {}", request.call()), request.heard.clone());
    let engine = session.engine()?;
    let request = request.into();
    let result = session.execute(&engine, Command::Write { request });
    let answer = heard.take();
    match result {
        Ok(Reply::Finished(finished)) => {
            show_answer(session, answer.as_ref(), Some(&finished));
            if !session.ui.is_json() {
                show::write::finished(session, &finished, &said);
            }
            Ok(())
        }
        Ok(reply) => session.show(&engine, &reply),
        Err(Failure::Engine(EngineError::Driver(error))) => Err(match error.as_a() {
            Some(known) => report(known).into(),
            None => Failure::Engine(EngineError::Driver(error)),
        }),
        Err(error) => Err(error),
    }
}

fn request(session: &mut Session, args: HttpArgs) -> Result<HttpRequest, Failure> {
    let mut headers = Vec::new();
    for header in &args.headers {
        let (name, value) = header.split_once(':').ok_or_else(|| {
            Report::usage(format!("`{header}` is no header"))
                .next("a header is a name, a colon and a value, like `Accept: text/plain`")
        })?;
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let body = args.data.map(|data| body(session, data)).transpose()?;
    if args.json_body {
        let text = body.as_deref().unwrap_or_default();
        if let Err(error) = serde_json::from_str::<serde_json::Value>(text) {
            let report = Report::usage(format!("what is to be sent is not JSON: {error}"));
            return Err(report
                .next("set it right, or leave `--json-body` out")
                .into());
        }
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    }
    let method = args.method.to_ascii_uppercase();
    let address = Address::of(&args.url).map_err(|error| report(&error))?;
    let mut request = HttpRequest {
        compensation: None,
        method,
        url: args.url,
        headers,
        body,
        timeout_ms: args.timeout.map_or(TIMEOUT_MS, |seconds| seconds * 1000),
        irreversible: args.irreversible,
        heard: Heard::default(),
    };
    if !request.only_looks() {
        request.compensation = rule(&request.method, &address.url())?;
    }
    Ok(request)
}

/// Takes what is sent: a text, or what a file or standard input holds.
fn body(session: &Session, data: String) -> Result<String, Failure> {
    let Some(file) = data.strip_prefix('@') else {
        return Ok(data);
    };
    let instead = "give it with `--data TEXT` or `--data @FILE`";
    let bytes = read_file_or_stdin(Path::new(file), session.bar(), instead)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Report::refused("what is to be sent is not UTF-8")
            .because("a body is kept as text, so that it can be sent again")
    })?;
    Ok(text)
}

/// Finds the rule that takes a call back.
fn rule(method: &str, url: &str) -> Result<Option<Compensation>, Failure> {
    let paths = Paths::new(own_rules(), home());
    let here = absolute(Path::new("."))?;
    paths
        .compensation(&here, method, url)
        .map_err(|(file, mistakes)| {
            let mut report = Report::refused("nothing was sent: the rules cannot be read");
            for mistake in mistakes {
                report = report.because(format!("{}, {mistake}", file.display()));
            }
            report
                .next("mend the file; `backout config check` shows every mistake")
                .into()
        })
}

/// Says what went wrong, and the way out.
fn report(error: &HttpError) -> Report {
    match error {
        HttpError::BadRequest(what) => Report::usage(what.clone()),
        HttpError::Secret { place } => Report::refused(format!("nothing was sent: {place} holds a secret"))
            .because("it would be kept in clear, for the call that takes it back")
            .next("write it as `${env:NAME}`: the variable is looked up when the call is sent"),
        HttpError::NoWayBack { call } => Report::refused(format!("`{call}` was not sent"))
            .because("nothing is known that takes it back")
            .next("say what does in a [[compensation]] of backout.toml")
            .next("give `--irreversible`: it is sent when somebody approves it, or when its task is committed"),
        error @ (HttpError::Template(_) | HttpError::NotSent { .. } | HttpError::Refused { .. } | HttpError::Unknown { .. } | HttpError::StillThere { .. } | HttpError::NoEffect { .. } | HttpError::Unheeded { .. } | HttpError::Stopped { .. } | HttpError::Interrupted { .. } | HttpError::NothingThere { .. } | HttpError::Changed { .. } | HttpError::TooLarge { .. } | HttpError::Contents(_)) => Report::refused(error.to_string()),
    }
}

fn show_answer(session: &mut Session, answer: Option<&Answer>, finished: Option<&Finished>) {
    let text = answer.map(|answer| {
        let all = String::from_utf8_lossy(&answer.body);
        let short: String = all.chars().take(SHOWN_BYTES_MAX).collect();
        let is_cut = answer.is_cut || short.len() < all.len();
        (short, is_cut)
    });
    if session.ui.is_json() {
        let headers = answer.iter().flat_map(|answer| &answer.headers);
        let headers = headers.filter(|(name, _)| !is_secret_header(name));
        let headers = headers.map(|(name, value)| (name.as_str(), hidden(value)));
        let called = Called {
            reply: "called",
            status: answer.map(|answer| answer.status),
            headers: headers.collect(),
            is_cut: text.as_ref().is_some_and(|(_, is_cut)| *is_cut),
            body: text.map(|(text, _)| text),
            operation: finished,
        };
        session.ui.print_json(&called);
        return;
    }
    if let (Some(answer), Some((text, is_cut))) = (answer, text) {
        session.ui.note(&format!("status {}", answer.status));
        if !text.is_empty() {
            session.ui.print(&text);
        }
        if is_cut {
            session.ui.note("there is more of the answer than is shown");
        }
    }
}
