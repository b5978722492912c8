//! Many agents at one server, against as many that start the program for each write: 64 agents, 10 000 operations, none lost.
//!
//! `bench serve` measures both with the built program and rewrites the section `serve`; `bench serve COUNT` takes another number of
//! operations and only says what it found.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::backout;
use crate::{Failure, report};

const AGENTS: usize = 64;
const OPERATIONS: usize = 10_000;

/// Starting processes takes long: so many are enough to compare.
const ALONE_PART: usize = 10;

/// A server that ends with the measurement.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// How long each write took, and all of them together.
struct Times {
    each: Vec<Duration>,
    all: Duration,
}

impl Times {
    /// Gives the time that so many of a hundred did not exceed.
    fn percentile(&self, percent: usize) -> Duration {
        let at = (self.each.len() * percent / 100).min(self.each.len().saturating_sub(1));
        self.each.get(at).copied().unwrap_or_default()
    }

    fn row(&self, what: &str) -> String {
        let count = self.each.len();
        let rate = count as u128 * 1000 / self.all.as_millis().max(1);
        let millis = |time: Duration| {
            format!(
                "{}.{} ms",
                time.as_millis(),
                time.subsec_micros() / 100 % 10
            )
        };
        let (half, most) = (self.percentile(50), self.percentile(99));
        format!(
            "| {what} | {count} | {} | {} | {rate} |\n",
            millis(half),
            millis(most)
        )
    }
}

/// Measures, and writes the section if all of it was measured.
pub(crate) fn measure(place: &Path, rest: &[String]) -> Result<(), Failure> {
    let count = rest.first().map_or(Ok(OPERATIONS), |count| count.parse())?;
    let program = backout()?;
    let (served, metrics) = with_server(&program, &place.join("served"), count)?;
    let alone = without(&program, &place.join("alone"), count / ALONE_PART)?;
    let mut text = format!(
        "Written by `cargo xtask bench serve`: {AGENTS} agents at once, each writing its own files of some bytes.\n\n\
         | how | writes | p50 | p99 | writes per second |\n| --- | --- | --- | --- | --- |\n"
    );
    text.push_str(&served.row("`backout serve`, a request each"));
    text.push_str(&alone.row("`backout write`, a process each"));
    text.extend(["\nNone was lost. ", &metrics, "\n"]);
    if rest.is_empty() {
        report::write_section("serve", &text)?;
    }
    report::say(&text);
    Ok(())
}

fn with_server(program: &Path, place: &Path, count: usize) -> Result<(Times, String), Failure> {
    std::fs::create_dir_all(place)?;
    let state = place.join("state");
    let mut tokens = Vec::new();
    for agent in 0..AGENTS {
        let name = format!("agent-{agent}");
        let words = [
            "--json", "--agent", &name, "serve", "token", "add", "--role", "agent",
        ];
        let told = Command::new(program)
            .arg("--state-dir")
            .arg(&state)
            .args(words)
            .output()?;
        let told: Value = serde_json::from_slice(&told.stdout)?;
        tokens.push(text_of(&told, "token"));
    }
    let words = ["--json", "serve", "token", "add", "--role", "viewer"];
    let told = Command::new(program)
        .arg("--state-dir")
        .arg(&state)
        .args(words)
        .output()?;
    let viewer = text_of(&serde_json::from_slice(&told.stdout)?, "token");
    let server = start(program, &state)?;
    let each = count / AGENTS;
    let times = at_once(|agent| {
        let token = tokens.get(agent).map_or("", String::as_str);
        write_over_http(&server, token, &place.join(agent.to_string()), each)
    })?;
    let status = get(&server, &viewer, "/v1/storage")?;
    let kept = status
        .pointer("/statuses/committed")
        .and_then(Value::as_u64);
    if kept != Some((each * AGENTS) as u64) {
        return Err(format!("{kept:?} of {} writes are in the journal", each * AGENTS).into());
    }
    let metrics = get_text(&server, &viewer, "/metrics")?;
    let number = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.rsplit(' ').next())
            .unwrap_or("?")
            .to_owned()
    };
    let (arms, syncs) = (
        number("backout_arm_seconds_count"),
        number("backout_arm_syncs_total"),
    );
    Ok((
        times,
        format!("{arms} arms of the server shared {syncs} syncs of the journal."),
    ))
}

fn without(program: &Path, place: &Path, count: usize) -> Result<Times, Failure> {
    std::fs::create_dir_all(place)?;
    let state = place.join("state");
    let each = (count / AGENTS).max(1);
    at_once(|agent| {
        let mut times = Vec::with_capacity(each);
        let directory = place.join(agent.to_string());
        std::fs::create_dir_all(&directory)?;
        for number in 0..each {
            let begun = Instant::now();
            let status = Command::new(program)
                .current_dir(&directory)
                .arg("--state-dir")
                .arg(&state)
                .args(["--agent", &format!("agent-{agent}"), "write"])
                .arg(format!("{}", number % 10))
                .arg(format!("--text={agent} {number}"))
                .stdout(Stdio::null())
                .status()?;
            if !status.success() {
                return Err("a write failed".into());
            }
            times.push(begun.elapsed());
        }
        Ok(times)
    })
}

/// Has all agents work at the same time.
fn at_once(
    work: impl Fn(usize) -> Result<Vec<Duration>, Failure> + Sync,
) -> Result<Times, Failure> {
    let (found, begun) = (Mutex::new((Vec::new(), Vec::new())), Instant::now());
    std::thread::scope(|scope| {
        for agent in 0..AGENTS {
            let (found, work) = (&found, &work);
            scope.spawn(move || {
                let done = work(agent);
                let mut found = found
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                match done {
                    Ok(times) => found.0.extend(times),
                    Err(error) => found.1.push(error.to_string()),
                }
            });
        }
    });
    let all = begun.elapsed();
    let (mut each, failed) = found
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(failed) = failed.into_iter().next() {
        return Err(failed.into());
    }
    each.sort_unstable();
    Ok(Times { each, all })
}

fn start(program: &Path, state: &Path) -> Result<Server, Failure> {
    let mut child = Command::new(program)
        .arg("--state-dir")
        .arg(state)
        .args(["--json", "serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()?;
    let out = child.stdout.take().ok_or("it has no output")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    let url = text_of(&serde_json::from_str(&line)?, "url");
    let address = url.trim_start_matches("http://").to_owned();
    Ok(Server { child, address })
}

fn write_over_http(
    server: &Server,
    token: &str,
    directory: &Path,
    count: usize,
) -> Result<Vec<Duration>, Failure> {
    let mut stream = BufReader::new(TcpStream::connect(&server.address)?);
    let mut times = Vec::with_capacity(count);
    for number in 0..count {
        let path = directory.join((number % 10).to_string());
        let body = json!({"command": {"command": "write", "with": {"request": {"driver": "file", "request": {
            "write": {"path": path, "source": {"bytes": format!("{number}")}, "expect": "anything", "parents": true, "mode": null}
        }}}}})
        .to_string();
        let begun = Instant::now();
        let (length, host) = (body.len(), &server.address);
        let head = format!(
            "POST /v1/command HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream
            .get_mut()
            .write_all(format!("{head}{body}").as_bytes())?;
        let (status, answer) = read_answer(&mut stream)?;
        if status != 200 {
            return Err(format!("{status}: {answer}").into());
        }
        times.push(begun.elapsed());
    }
    Ok(times)
}

fn get(server: &Server, token: &str, path: &str) -> Result<Value, Failure> {
    Ok(serde_json::from_str(&get_text(server, token, path)?)?)
}

fn get_text(server: &Server, token: &str, path: &str) -> Result<String, Failure> {
    let mut stream = BufReader::new(TcpStream::connect(&server.address)?);
    let host = &server.address;
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.get_mut().write_all(head.as_bytes())?;
    Ok(read_answer(&mut stream)?.1)
}

/// Reads one answer of a connection that stays open.
fn read_answer(stream: &mut BufReader<TcpStream>) -> Result<(u16, String), Failure> {
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err("the server hung up".into());
        }
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if line.starts_with("http/") {
            status = line.split(' ').nth(1).unwrap_or_default().parse()?;
        }
        if let Some(count) = line.strip_prefix("content-length: ") {
            length = count.parse()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((status, String::from_utf8(body)?))
}

fn text_of(value: &Value, name: &str) -> String {
    value
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
