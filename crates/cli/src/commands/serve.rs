//! `backout serve`

use std::ffi::OsString;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use backout_daemon::{
    Caller, Collector, Options, Patience, Place, Program, Role, Router, Serving, Tls, Token,
    Tokens, mounted,
};
use backout_engine::{Context, ErrorCode, Report};
use backout_mcp::{Granted, serve_http};
use clap::{Args, Subcommand, ValueHint};
use serde_json::json;

use super::mcp::{Served, root_of};
use super::run::parse_time;
use crate::accounts::user_name;
use crate::failure::Failure;
use crate::lineage;
use crate::paths::absolute;
use crate::session::{Session, now};
use crate::state_dir::state_dir;

/// Where browsers and programs find the server when nobody says.
const LISTEN: &str = "127.0.0.1:7627";

/// Serve the store over HTTP, with events and a page.
///
/// Every command is there as JSON, the page shows what goes on and takes it back. `backout ui` opens it. The unix socket in the
/// state directory is for you alone; over TCP everybody needs a token, and no other address than loopback is taken without TLS.
/// The API describes itself at `/openapi.json`.
///
/// Ctrl-C or SIGTERM ends it: what is under way is finished first.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    what: Option<What>,

    /// The address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN, conflicts_with = "no_tcp")]
    listen: SocketAddr,

    /// Listen only on the unix socket.
    #[arg(long)]
    no_tcp: bool,

    /// A name by which clients know this machine; others are refused. May be repeated.
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,

    /// The certificate, as a PEM file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Its key, as a PEM file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Serve agents over MCP too, at `/mcp`: an agent with a token of its own writes in this directory. May be repeated.
    #[arg(long = "mcp-root", value_name = "DIR", value_hint = ValueHint::DirPath)]
    mcp_roots: Vec<PathBuf>,

    /// Look for drift too, as `backout watch` does.
    #[arg(long)]
    watch: bool,

    /// Send spans and numbers to a collector of OpenTelemetry at this address, over HTTP in JSON. Without it: where
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` says, if that is set.
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,

    /// How long a request may take.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "60s")]
    request_timeout: Duration,

    /// How long a reader of events may take nothing.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "30s")]
    reader_timeout: Duration,

    /// How long commands may go on when the server ends.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10s")]
    grace: Duration,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make, list and take back tokens: who may ask what over TCP.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Print the OpenAPI document.
    Openapi,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token and print it. It is not shown again.
    ///
    /// A token for an agent needs its name, by `--agent NAME`: what is written with it bears this name.
    Add {
        /// What it allows: viewer looks; agent writes, and sees and takes back its own; operator does everything.
        #[arg(long, value_name = "ROLE")]
        role: Role,
    },
    /// List the tokens, without their secrets.
    List,
    /// Take a token back.
    Revoke {
        /// Its name, as the list shows it.
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Serves, or looks after tokens.
pub(crate) fn cmd_serve(session: &mut Session, args: ServeArgs) -> Result<(), Failure> {
    match args.what {
        None => serve(session, args),
        Some(What::Openapi) => {
            session.ui.print(&backout_daemon::openapi());
            Ok(())
        }
        Some(What::Token(command)) => token(session, command),
    }
}

fn serve(session: &mut Session, args: ServeArgs) -> Result<(), Failure> {
    // A server is nowhere: what a request leaves relative must not depend on where it was started.
    let state = state_dir(session.global.state_dir.as_deref())?;
    session.global.state_dir = Some(absolute(&state)?);
    let file = |file: Option<PathBuf>| file.map(|file| absolute(&file)).transpose();
    let (certificate, key) = (file(args.tls_cert)?, file(args.tls_key)?);
    let collector = collector(args.otlp)?;
    let mounts = mcp_at(session, &args.mcp_roots, &args.hosts)?;
    let engine = session.engine()?;
    std::env::set_current_dir("/")
        .map_err(|error| Report::refused("the server could not be started").because(error))?;
    if args.watch {
        super::watch::watch_aside(engine.for_caller(Context::default()));
    }
    let options = Options {
        listen: Some(args.listen).filter(|_| !args.no_tcp),
        hosts: args.hosts,
        tls: Option::zip(certificate, key).map(|(certificate, key)| Tls { certificate, key }),
        patience: Patience {
            answer: args.request_timeout,
            reader: args.reader_timeout,
            grace: args.grace,
            ..Patience::default()
        },
        program: program(session)?,
        user: user_name(),
        lineage: lineage::of_process,
        mounts,
        collector,
    };
    let tell = |serving: &Serving| tell(session, serving);
    Ok(backout_daemon::serve(engine, options, tell)?)
}

/// Serves agents over MCP, in the directories that were named; nothing without one.
fn mcp_at(
    session: &Session,
    roots: &[PathBuf],
    hosts: &[String],
) -> Result<Vec<(String, Router)>, Failure> {
    if roots.is_empty() {
        return Ok(Vec::new());
    }
    let roots: Result<Vec<PathBuf>, Report> = roots.iter().map(|root| root_of(root)).collect();
    let roots = roots?;
    let grant = move |caller: &Caller| {
        let agent = caller.agent.clone().filter(|_| caller.role == Role::Agent);
        let roots = roots.clone();
        let no_agent = || {
            Report::refused("only an agent is served here")
                .code(ErrorCode::Forbidden)
                .next("make a token for it: `backout --agent NAME serve token add --role agent`")
        };
        agent
            .map(|agent| Granted { agent, roots })
            .ok_or_else(no_agent)
    };
    // Without more names, those of this machine's loopback hold.
    let mut names: Vec<String> = hosts.to_vec();
    if !names.is_empty() {
        names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    }
    let service = serve_http(Arc::new(Served::new(&session.global)?), names);
    Ok(vec![("/mcp".to_owned(), mounted(service, grant))])
}

/// Reads where spans go, and how, from the options and from the variables that OpenTelemetry names.
fn collector(url: Option<String>) -> Result<Option<Collector>, Report> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let Some(url) = url.or_else(|| set("OTEL_EXPORTER_OTLP_ENDPOINT")) else {
        return Ok(None);
    };
    let mut collector = Collector::at(&url, say)?;
    let millis = |name: &str| set(name)?.parse().ok().map(Duration::from_millis);
    if let Some(time) = millis("OTEL_BSP_SCHEDULE_DELAY") {
        collector.spans_every = time;
    }
    if let Some(time) = millis("OTEL_METRIC_EXPORT_INTERVAL") {
        collector.metrics_every = time;
    }
    if let Some(time) = millis("OTEL_EXPORTER_OTLP_TIMEOUT") {
        collector.patience = time;
    }
    if let Some(name) = set("OTEL_SERVICE_NAME") {
        collector.service = name;
    }
    let headers = set("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    for pair in headers.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Report::usage("the headers for the collector cannot be read")
                .because("`OTEL_EXPORTER_OTLP_HEADERS` is not of the form `name=value,name=value`")
        })?;
        let header = (name.trim().to_owned(), value.trim().to_owned());
        collector.headers.push(header);
    }
    Ok(Some(collector))
}

/// Says something of the collector beside what the server says. Nobody to hear it is no reason to stop.
fn say(text: &str) {
    let _said = std::io::stderr().write_all(format!("note: {text}\n").as_bytes());
}

/// Says how to start this program again, for the same store.
pub(super) fn program(session: &Session) -> Result<Program, Failure> {
    let path = std::env::current_exe()
        .map_err(|error| Report::refused("the program does not know where it is").because(error))?;
    let state = absolute(&state_dir(session.global.state_dir.as_deref())?)?;
    let words = vec![OsString::from("--state-dir"), state.into_os_string()];
    Ok(Program { path, words })
}

fn tell(session: &mut Session, serving: &Serving) {
    if session.ui.is_json() {
        let told = json!({"reply": "serving", "pid": serving.pid, "socket": serving.socket, "url": serving.url});
        session.ui.print_json(&told);
    } else {
        let socket = serving.socket.display();
        let at = serving.url.as_ref().map(|url| format!("{url}\n"));
        let at = at.unwrap_or_default();
        session
            .ui
            .print(&format!("serving at {at}unix socket {socket}\n"));
        session.ui.hint("open the page with `backout ui`");
    }
    session.ui.flush();
}

fn token(session: &mut Session, command: TokenCommand) -> Result<(), Failure> {
    // The store is made if it is not there: tokens belong to one.
    let engine = session.engine()?;
    let tokens = Tokens::of(Place::of(&engine.settings().state_dir));
    match command {
        TokenCommand::Add { role } => {
            let agent = session.global.agent.clone();
            if (role == Role::Agent) != agent.is_some() {
                let report = Report::usage("no token was made");
                let report = if role == Role::Agent {
                    report
                        .because("a token for an agent needs its name")
                        .next("name it with `--agent NAME`")
                } else {
                    report
                        .because("only a token for an agent has a name")
                        .next("leave the name out, or take `--role agent`")
                };
                return Err(report.into());
            }
            let (secret, token) = tokens.add(role, agent, now())?;
            if session.ui.is_json() {
                let told = json!({"reply": "token", "id": token.id, "role": token.role, "agent": token.agent, "token": secret});
                session.ui.print_json(&told);
            } else {
                session.ui.print(&format!("{secret}\n"));
                session.ui.hint(&format!(
                    "keep it: it is not shown again. `backout serve token revoke {}` takes it back",
                    token.id
                ));
            }
        }
        TokenCommand::List => {
            let all = tokens.list()?;
            if session.ui.is_json() {
                let all: Vec<_> = all.iter().map(as_json).collect();
                session
                    .ui
                    .print_json(&json!({"reply": "tokens", "tokens": all}));
            } else {
                let lines: String = all.iter().map(line).collect();
                session.ui.print(&lines);
            }
        }
        TokenCommand::Revoke { id } => {
            let token = tokens.revoke(&id)?;
            if session.ui.is_json() {
                session
                    .ui
                    .print_json(&json!({"reply": "token-revoked", "id": token.id}));
            } else {
                session.ui.print(&format!("took back token {}\n", token.id));
            }
        }
    }
    Ok(())
}

fn as_json(token: &Token) -> serde_json::Value {
    json!({"id": token.id, "role": token.role, "agent": token.agent, "made": token.made})
}

fn line(token: &Token) -> String {
    let agent = token.agent.as_ref().map(|agent| format!("  {agent}"));
    format!(
        "{}  {}{}\n",
        token.id,
        token.role,
        agent.unwrap_or_default()
    )
}
