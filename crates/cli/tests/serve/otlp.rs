//! `serve --otlp`: what a collector gets, by the official definitions, and that nobody waits for one that is away or slow.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use backout_testkit::python_with;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::world::{PATIENCE, Server, World};

/// The official definitions, with the version that was measured.
const PACKAGE: &str = "opentelemetry-proto==1.44.0";

/// The parent that callers name.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

/// What a collector got: the path, the head and the body.
type Got = (String, String, Value);

/// A collector on loopback.
struct Collector {
    address: String,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Collector {
    /// Answers each request after a while, with a status.
    fn begin(listener: TcpListener, delay: Duration, status: &'static str) -> Self {
        let address = listener.local_addr().unwrap().to_string();
        let got: Arc<Mutex<Vec<Got>>> = Arc::default();
        let kept = Arc::clone(&got);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || take(&stream, &kept, delay, status));
            }
        });
        Self { address, got }
    }

    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::begin(listener, Duration::ZERO, "200 OK")
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn bodies(&self, path: &str) -> Vec<Value> {
        let got = self.got.lock().unwrap();
        let of = got.iter().filter(|(at, ..)| at == path);
        of.map(|(.., body)| body.clone()).collect()
    }

    fn spans(&self) -> Vec<Value> {
        let all = self.bodies("/v1/traces").into_iter();
        all.flat_map(|body| {
            let spans = body.pointer("/resourceSpans/0/scopeSpans/0/spans");
            spans.unwrap().as_array().unwrap().clone()
        })
        .collect()
    }

    /// Waits for a span.
    #[track_caller]
    fn wait_for(&self, is_meant: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            if let Some(span) = self.spans().into_iter().find(&is_meant) {
                return span;
            }
            assert!(begun.elapsed() < PATIENCE, "{:#?}", self.spans());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Reads requests of one connection.
fn take(stream: &TcpStream, kept: &Mutex<Vec<Got>>, delay: Duration, status: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut head, mut size) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if !matches!(reader.read_line(&mut line), Ok(1..)) {
                return;
            }
            if let Some(text) = line.to_lowercase().strip_prefix("content-length: ") {
                size = text.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; size];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let body = serde_json::from_slice(&body).unwrap();
        kept.lock().unwrap().push((path, head, body));
        std::thread::sleep(delay);
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        let mut out = stream;
        if out.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Starts a server that sends quickly, with these variables.
fn serve(world: &World, more: &[&str], variables: &[(&str, &str)]) -> Server {
    let words = [&["--json", "serve", "--listen", "127.0.0.1:0"], more].concat();
    let mut command = world.command(&words);
    command
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
        .env("OTEL_METRIC_EXPORT_INTERVAL", "200")
        .envs(variables.iter().copied());
    Server::start(command)
}

fn text<'s>(span: &'s Value, name: &str) -> &'s str {
    let attributes = span["attributes"].as_array().unwrap().iter();
    let found = attributes.filter(|it| it["key"] == name);
    let found = found.map(|it| &it["value"]).next();
    let Some(value) = found else { return "" };
    let text = value["stringValue"].as_str();
    text.or_else(|| value["intValue"].as_str()).unwrap()
}

/// Asks with a parent, and gives the operation that was made.
fn write(server: &Server, token: &str, world: &World, name: &str, flags: &str) -> String {
    let headers = format!(
        "Authorization: Bearer {token}\r\ntraceparent: 00-{TRACE}-{SPAN}-{flags}\r\ntracestate: vendor=1\r\n"
    );
    let answer = server.send(
        "POST",
        "/v1/command",
        &headers,
        Some(&world.write(name, name)),
    );
    answer.is(200);
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// Stops a server and gives what it said on stderr.
fn stop(mut server: Server) -> String {
    server.signal(Signal::TERM);
    assert!(server.child.wait().unwrap().success());
    let mut said = String::new();
    let mut pipe = server.child.stderr.take().unwrap();
    pipe.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn a_request_and_what_it_made_are_spans_below_the_callers() {
    let (world, collector) = (World::new(), Collector::new());
    let server = serve(&world, &["--otlp", &collector.url()], &[]);
    let token = world.token(&["agent", "--agent", "reviewer"]);
    let id = write(&server, &token, &world, "a", "01");
    let write = collector.wait_for(|span| span["spanId"] == id.as_str());
    let request = collector.wait_for(|span| span["name"] == "POST /v1/command");
    assert_eq!(request["traceId"], TRACE);
    assert_eq!(request["parentSpanId"], SPAN);
    assert_eq!(request["traceState"], "vendor=1");
    assert_eq!(
        (&request["kind"], &request["flags"]),
        (&json!(2), &json!(0x301))
    );
    assert_eq!(text(&request, "http.route"), "/v1/command");
    assert_eq!(text(&request, "http.response.status_code"), "200");
    assert_eq!(text(&request, "backout.role"), "agent");
    assert_eq!(text(&request, "backout.agent"), "reviewer");
    assert_eq!(
        (&write["traceId"], &write["parentSpanId"]),
        (&json!(TRACE), &request["spanId"])
    );
    assert_eq!(write["name"], "write");
    assert_eq!(text(&write, "backout.operation"), id);
    assert_eq!(text(&write, "backout.status"), "committed");
    assert_eq!(text(&write, "backout.agent"), "reviewer");
    assert_eq!(text(&write, "backout.targets"), "1");
    let all = collector.got.lock().unwrap();
    let sent = format!("{all:?}");
    assert!(!sent.contains(&token), "a token is not sent");
    assert!(
        !sent.contains(&*world.path("a").to_string_lossy()),
        "no path is sent"
    );
}

#[test]
fn a_rollback_is_a_span_with_its_undos_below() {
    let (world, collector) = (World::new(), Collector::new());
    let server = serve(&world, &["--otlp", &collector.url()], &[]);
    // By other processes: what they do is seen in the journal.
    world.succeeds(&["task", "begin", "deploy"]);
    for name in ["a", "b"] {
        world.succeeds(&["--task", "deploy", "write", name, "--text", "x"]);
    }
    let token = world.token(&["operator"]);
    let what = json!({"what": {"task": "deploy"}});
    server.post(&token, "/v1/undo", &what).is(200);
    let rollback = collector.wait_for(|span| span["name"] == "rollback");
    assert_eq!(text(&rollback, "backout.task"), "deploy");
    assert_eq!(text(&rollback, "backout.operations.done"), "2");
    let request = collector.wait_for(|span| span["name"] == "POST /v1/undo");
    assert_eq!(rollback["parentSpanId"], request["spanId"]);
    let undos: Vec<Value> = collector
        .spans()
        .into_iter()
        .filter(|span| span["name"] == "undo")
        .collect();
    assert_eq!(undos.len(), 2, "{undos:#?}");
    for undo in &undos {
        assert_eq!(undo["parentSpanId"], rollback["spanId"], "{undo}");
        assert_eq!(undo["traceId"], request["traceId"]);
        assert!(!text(undo, "backout.undoes").is_empty());
    }
    let write = collector.wait_for(|span| text(span, "backout.verb") == "write");
    assert_eq!(
        write["parentSpanId"],
        Value::Null,
        "nobody here asked for it"
    );
    assert_eq!(text(&write, "backout.task"), "deploy");
}

#[test]
fn who_does_not_want_to_be_traced_is_not() {
    let (world, collector) = (World::new(), Collector::new());
    let server = serve(&world, &["--otlp", &collector.url()], &[]);
    let token = world.token(&["agent", "--agent", "reviewer"]);
    let quiet = write(&server, &token, &world, "a", "00");
    let loud = write(&server, &token, &world, "b", "01");
    collector.wait_for(|span| span["spanId"] == loud.as_str());
    stop(server);
    let spans = collector.spans();
    assert!(
        spans.iter().all(|span| span["spanId"] != quiet.as_str()),
        "{spans:#?}"
    );
    let requests = spans
        .iter()
        .filter(|span| span["name"] == "POST /v1/command");
    assert_eq!(requests.count(), 1);
}

#[test]
fn all_that_is_sent_is_what_the_official_definitions_say() {
    let (world, collector) = (World::new(), Collector::new());
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "x-key=secret, x-other=1".to_owned(),
        ),
        ("OTEL_SERVICE_NAME", "agents".to_owned()),
    ];
    let variables = variables
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let server = serve(&world, &[], &variables);
    let token = world.token(&["operator"]);
    let id = write(&server, &token, &world, "a", "01");
    server
        .post(&token, &format!("/v1/operations/{id}/undo"), &json!({}))
        .is(200);
    server
        .get(&token, "/v1/operations/ffffffffffffffff")
        .is(404);
    collector.wait_for(|span| span["name"] == "undo");
    let numbers = server.get(&token, "/metrics");
    assert!(
        numbers
            .text()
            .contains("backout_otlp_spans_total{outcome=\"dropped\"} 0")
    );
    stop(server);
    let got = collector.got.lock().unwrap();
    assert!(
        got.iter()
            .all(|(_, head, _)| head.contains("x-key: secret") && head.contains("x-other: 1"))
    );
    assert!(got.iter().any(|(path, ..)| path == "/v1/metrics"));
    let sent: Vec<Value> = got
        .iter()
        .map(|(path, _, body)| json!([path, body]))
        .collect();
    let read = by_definitions(&json!(sent));
    assert_eq!(read["services"], json!(["agents"]));
    let told = |of: &str| {
        let names = read[of].as_array().unwrap().iter();
        let names: Vec<&str> = names.filter_map(Value::as_str).collect();
        names
    };
    let (metrics, spans) = (told("metrics"), told("spans"));
    for name in [
        "backout_arm_seconds",
        "backout_operations_total",
        "backout_otlp_spans_total",
    ] {
        assert!(metrics.contains(&name), "{metrics:?}");
    }
    for name in [
        "write",
        "undo",
        "POST /v1/command",
        "GET /v1/operations/{id}",
    ] {
        assert!(spans.contains(&name), "{spans:?}");
    }
}

/// Reads what was sent by the official definitions, and gives what is in it.
fn by_definitions(sent: &Value) -> Value {
    let mut child = Command::new(python())
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serve/otlp.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(sent.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Installs the definitions once, below the target directory.
fn python() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("otlp");
    python_with(&home, &[PACKAGE]).join("python")
}

#[test]
fn sigterm_sends_what_waits() {
    let (world, collector) = (World::new(), Collector::new());
    let url = collector.url();
    // Only the end sends anything.
    let variables = [
        ("OTEL_BSP_SCHEDULE_DELAY", "600000"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "600000"),
    ];
    let server = serve(&world, &["--otlp", &url], &variables);
    let token = world.token(&["operator"]);
    let ids: Vec<String> = (0..20)
        .map(|number| write(&server, &token, &world, &number.to_string(), "01"))
        .collect();
    assert_eq!(collector.got.lock().unwrap().len(), 0);
    let said = stop(server);
    assert_eq!(said, "");
    let spans = collector.spans();
    for id in ids {
        assert!(
            spans.iter().any(|span| span["spanId"] == id.as_str()),
            "{id}"
        );
    }
    assert_eq!(collector.bodies("/v1/metrics").len(), 1);
}

#[test]
fn a_collector_that_is_away_is_said_once_and_gets_all_when_it_is_back() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let server = serve(&world, &["--otlp", &format!("http://{address}")], &[]);
    let token = world.token(&["operator"]);
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(write(&server, &token, &world, &number.to_string(), "01"));
        std::thread::sleep(Duration::from_millis(200));
    }
    let collector = Collector::begin(
        TcpListener::bind(address).unwrap(),
        Duration::ZERO,
        "200 OK",
    );
    for id in &ids {
        collector.wait_for(|span| span["spanId"] == id.as_str());
    }
    let said = stop(server);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(
        lines[0].starts_with(&format!(
            "note: the collector at http://{address} takes nothing: "
        )),
        "{said}"
    );
    assert!(
        lines[0].ends_with("2048 spans wait for it, more are dropped"),
        "{said}"
    );
    assert_eq!(
        lines[1],
        format!("note: the collector at http://{address} takes what it is sent again")
    );
}

#[test]
fn a_collector_that_never_comes_is_not_waited_for_at_the_end() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let server = serve(&world, &["--otlp", &format!("http://{address}")], &[]);
    let token = world.token(&["operator"]);
    write(&server, &token, &world, "a", "01");
    let said = stop(server);
    assert!(
        said.contains("spans did not reach the collector at http://"),
        "{said}"
    );
}

#[test]
fn nobody_waits_for_a_collector_that_is_slow() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let collector = Collector::begin(listener, Duration::from_mins(10), "200 OK");
    let server = serve(
        &world,
        &["--otlp", &collector.url()],
        &[("OTEL_EXPORTER_OTLP_TIMEOUT", "2000")],
    );
    let token = world.token(&["operator"]);
    write(&server, &token, &world, "first", "01");
    collector.wait_for(|_| true);
    // It holds on to the first batch; the queue has room for 2048, and these are more.
    let begun = Instant::now();
    let mut stream = BufReader::new(server.connect());
    let asked = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    for _ in 0..2200 {
        stream.get_mut().write_all(asked.as_bytes()).unwrap();
        let mut size = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            if let Some(text) = line.to_lowercase().strip_prefix("content-length: ") {
                size = text.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        stream.read_exact(&mut vec![0; size]).unwrap();
    }
    let took = begun.elapsed();
    let numbers = server.get(&token, "/metrics").text();
    let dropped = numbers
        .lines()
        .find_map(|line| line.strip_prefix("backout_otlp_spans_total{outcome=\"dropped\"} "));
    let dropped: u64 = dropped.unwrap().parse().unwrap();
    assert!(dropped > 0, "after {took:?}: {numbers}");
    let begun = Instant::now();
    let said = stop(server);
    assert!(
        begun.elapsed() < Duration::from_mins(1),
        "the end waits for two seconds, not for the collector"
    );
    assert!(said.contains("takes nothing: no answer in time."), "{said}");
}

#[test]
fn a_collector_that_refuses_is_said_and_what_it_refused_is_counted() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let collector = Collector::begin(listener, Duration::ZERO, "401 Unauthorized");
    let server = serve(&world, &["--otlp", &collector.url()], &[]);
    let token = world.token(&["operator"]);
    write(&server, &token, &world, "a", "01");
    collector.wait_for(|span| span["name"] == "write");
    let begun = Instant::now();
    loop {
        let numbers = server.get(&token, "/metrics").text();
        if !numbers.contains("backout_otlp_spans_total{outcome=\"dropped\"} 0") {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{numbers}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let said = stop(server);
    assert!(said.contains("takes nothing: it answers 401."), "{said}");
    assert_eq!(
        said.lines()
            .filter(|line| line.contains("takes nothing"))
            .count(),
        1,
        "{said}"
    );
}

#[test]
fn a_wrong_address_is_refused_before_anything_is_served() {
    let world = World::new();
    for (url, why) in [
        ("nonsense", "it does not begin with"),
        ("ftp://127.0.0.1", "it does not begin with"),
        ("http://", "it cannot be read as a URL"),
    ] {
        let output = world.run(&["serve", "--listen", "127.0.0.1:0", "--otlp", url]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("this is no address of a collector") && said.contains(why),
            "{said}"
        );
    }
    let mut command = world.command(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--otlp",
        "http://127.0.0.1:1",
    ]);
    let output = command
        .env("OTEL_EXPORTER_OTLP_HEADERS", "nothing")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("the headers for the collector cannot be read"),
        "{said}"
    );
    assert!(
        said.contains("`OTEL_EXPORTER_OTLP_HEADERS` is not of the form `name=value,name=value`"),
        "{said}"
    );
}
