//! The service over HTTP: who asks is what somebody granted, and nothing else counts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::sync::Arc;

use backout_engine::{Engine, Report, Settings};
use backout_mcp::{Caller, Granted, Host, HttpService, Program, serve_http};
use backout_model::ports::Progress;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

/// A program without gates: what is checked here is the server.
#[derive(Debug)]
struct Bare(std::path::PathBuf);

impl Host for Bare {
    fn engine(&self, _caller: &Caller, progress: Arc<dyn Progress>) -> Result<Engine, Report> {
        let mut settings = Settings::new(&self.0);
        settings.progress = Some(progress);
        Engine::open(settings, backout_drivers::local).map_err(Report::from)
    }

    fn program(&self, _caller: &Caller) -> Program {
        Program {
            path: "/nonexistent".into(),
            words: Vec::new(),
            variables: Vec::new(),
        }
    }
}

struct Answer {
    status: u16,
    session: Option<String>,
    body: String,
}

impl Answer {
    /// The message in it, whether it comes alone or as an event.
    fn message(&self) -> Value {
        let mut lines = self
            .body
            .lines()
            .map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let found = lines.find(|line| line.starts_with('{'));
        serde_json::from_str(found.unwrap_or("null")).unwrap()
    }
}

async fn send(
    service: &HttpService,
    message: &Value,
    granted: Option<Granted>,
    (host, session): (&str, Option<&str>),
) -> Answer {
    let mut request = http::Request::post("/mcp")
        .header("host", host)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let body = Full::new(bytes::Bytes::from(message.to_string()));
    let mut request = request.body(body).unwrap();
    if let Some(granted) = granted {
        request.extensions_mut().insert(granted);
    }
    let response = service.handle(request).await;
    let status = response.status().as_u16();
    let session = response.headers().get("mcp-session-id");
    let session = session.map(|it| it.to_str().unwrap().to_owned());
    let mut body = response.into_body();
    let mut text = String::new();
    // A stream of events may stay open: its first message is what was asked for.
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data() {
            text.push_str(&String::from_utf8_lossy(&data));
        }
        if text.contains("\"id\":") {
            break;
        }
    }
    Answer {
        status,
        session,
        body: text,
    }
}

fn granted(agent: &str, root: &Path) -> Granted {
    Granted {
        agent: agent.parse().unwrap(),
        roots: vec![root.to_path_buf()],
    }
}

fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "operator", "version": "1"}}})
}

fn write(id: i64, path: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params":
        {"name": "write", "arguments": {"path": path, "content": "x"}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_is_what_somebody_granted() {
    let world = tempfile::tempdir().unwrap();
    let root = world.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let service = serve_http(Arc::new(Bare(world.path().join("state"))), Vec::new());
    let here = "localhost";
    let answer = send(
        &service,
        &hello(),
        Some(granted("token", &root)),
        (here, None),
    )
    .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.message()["result"]["serverInfo"]["name"], "backout");
    let session = answer.session.unwrap();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    send(
        &service,
        &ready,
        Some(granted("token", &root)),
        (here, Some(&session)),
    )
    .await;

    let answer = send(
        &service,
        &write(2, "a"),
        Some(granted("token", &root)),
        (here, Some(&session)),
    )
    .await;
    let reply = answer.message();
    assert_eq!(reply["result"]["isError"], false, "{reply}");
    assert!(root.join("a").exists());

    let nobody = send(&service, &write(3, "b"), None, (here, Some(&session)))
        .await
        .message();
    assert_eq!(nobody["result"]["isError"], true, "{nobody}");
    assert!(!root.join("b").exists());

    let outside = world.path().join("c");
    let left = write(4, outside.to_str().unwrap());
    let left = send(
        &service,
        &left,
        Some(granted("token", &root)),
        (here, Some(&session)),
    )
    .await
    .message();
    assert_eq!(left["result"]["isError"], true, "{left}");
    assert!(!outside.exists());

    let log = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "log", "arguments": {}}});
    let log = send(
        &service,
        &log,
        Some(granted("token", &root)),
        (here, Some(&session)),
    )
    .await
    .message();
    let operations = &log["result"]["structuredContent"]["operations"];
    assert_eq!(
        operations[0]["agent"], "token",
        "not what the client calls itself: {log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_host_is_turned_away() {
    let world = tempfile::tempdir().unwrap();
    let service = serve_http(Arc::new(Bare(world.path().join("state"))), Vec::new());
    let answer = send(
        &service,
        &hello(),
        Some(granted("token", world.path())),
        ("evil.example", None),
    )
    .await;
    assert_eq!(answer.status, 403, "{}", answer.body);
}
