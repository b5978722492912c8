//! Asking a server over its unix socket: for `backout ui`, which needs a link to the page.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use backout_engine::{ErrorCode, Report};
use serde_json::Value;

use crate::place::Place;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// How large an answer may be.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;

/// Asks the server of a store for a one-time link to its page.
pub fn link(place: &Place) -> Result<String, Report> {
    let answer = ask(place).map_err(|error| {
        Report::refused("no server answers")
            .code(ErrorCode::NoServer)
            .because(error)
            .next("start one with `backout serve`")
    })?;
    match answer.get("url").and_then(Value::as_str) {
        Some(url) => Ok(url.to_owned()),
        None => Err(said(&answer)),
    }
}

fn ask(place: &Place) -> std::io::Result<Value> {
    let mut stream = place.connect()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(
        b"POST /v1/links HTTP/1.1\r\nHost: backout\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    )?;
    let mut text = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut text)?;
    let at = text.windows(4).position(|it| it == b"\r\n\r\n");
    let body = at.and_then(|at| text.get(at + 4..)).unwrap_or_default();
    Ok(serde_json::from_slice(body)?)
}

/// Says what the server said.
fn said(answer: &Value) -> Report {
    let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut report = Report::refused("the server gives no link").code(ErrorCode::NoServer);
    report = report.because(text("what").to_owned());
    for why in answer
        .get("why")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        report = report.because(why.as_str().unwrap_or_default().to_owned());
    }
    report
}
