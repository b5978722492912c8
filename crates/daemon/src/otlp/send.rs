//! Sending: batches of spans, and numbers from time to time. A collector that is away is tried again, ever more rarely, and said once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use ureq::{Agent, Error};

use super::span::{Span, now_ns};
use super::{Collector, QUEUE_MAX, Telemetry, json};
use crate::app::App;

/// How long is waited before a second try, and at most before a later one.
const AGAIN_MIN: Duration = Duration::from_millis(500);
const AGAIN_MAX: Duration = Duration::from_secs(30);

/// How long the server's end waits for the collector.
const LAST_MAX: Duration = Duration::from_secs(5);

/// How much of an answer is read.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Sends until it is over, and then what is left.
pub(super) fn send(app: &Arc<App>, collector: &Collector, telemetry: &Telemetry) {
    let mut sender = Sender {
        collector,
        agent: agent(),
        is_away: false,
    };
    let begun_ns = now_ns();
    let mut numbers_due = Instant::now() + collector.metrics_every;
    let (mut failed, mut again, mut not_before) = (Vec::new(), AGAIN_MIN, Instant::now());
    loop {
        let until = (Instant::now() + collector.spans_every).max(not_before);
        let until = until.min(numbers_due);
        let may_send = Instant::now() >= not_before;
        if telemetry.wait(until, may_send && failed.is_empty()) {
            break;
        }
        if Instant::now() >= numbers_due {
            numbers_due = Instant::now() + collector.metrics_every;
            // They are counts since the beginning: the next ones say it all.
            let _sent = sender.numbers(app, begun_ns, collector.patience);
        }
        if Instant::now() < not_before {
            continue;
        }
        if failed.is_empty() {
            failed = telemetry.take();
        }
        while !failed.is_empty() {
            if sender.spans(telemetry, &failed, collector.patience) {
                again = AGAIN_MIN;
                failed = telemetry.take();
            } else {
                not_before = Instant::now() + again;
                again = (again * 2).min(AGAIN_MAX);
                break;
            }
        }
    }
    sender.last(app, telemetry, failed, begun_ns);
}

fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("backout/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// What the collector made of something.
enum Answer {
    /// It has it, but for so many.
    Taken { rejected: u64 },
    /// It will never take it.
    Refused(String),
    /// It is away, or wants it later.
    Later(String),
}

struct Sender<'c> {
    collector: &'c Collector,
    agent: Agent,
    is_away: bool,
}

impl Sender<'_> {
    /// Sends a batch; false if it is to be sent again.
    fn spans(&mut self, telemetry: &Telemetry, spans: &[Span], patience: Duration) -> bool {
        let count = spans.len() as u64;
        let body = json::spans(self.collector, spans);
        let answer = self.post("traces", &body, patience);
        let (sent, dropped) = match &answer {
            Answer::Taken { rejected } => (count.saturating_sub(*rejected), count.min(*rejected)),
            Answer::Refused(_) => (0, count),
            Answer::Later(_) => (0, 0),
        };
        telemetry.sent.fetch_add(sent, Ordering::Relaxed);
        telemetry.dropped.fetch_add(dropped, Ordering::Relaxed);
        self.told(&answer);
        !matches!(answer, Answer::Later(_))
    }

    fn numbers(&mut self, app: &Arc<App>, begun_ns: u64, patience: Duration) -> bool {
        let connections = app.connections.load(Ordering::Relaxed);
        let exported = app.telemetry.as_deref().map(Telemetry::counts);
        let families = app.metrics.families(&app.engine, connections, exported);
        let Ok(families) = families else {
            return false;
        };
        let body = json::numbers(self.collector, &families, (begun_ns, now_ns()));
        let answer = self.post("metrics", &body, patience);
        self.told(&answer);
        matches!(answer, Answer::Taken { .. })
    }

    /// Sends what is left, as long as the end may wait.
    fn last(mut self, app: &Arc<App>, telemetry: &Telemetry, failed: Vec<Span>, begun_ns: u64) {
        let until = Instant::now() + LAST_MAX.min(self.collector.patience);
        let left = || until.saturating_duration_since(Instant::now());
        let mut batch = failed;
        if batch.is_empty() {
            batch = telemetry.take();
        }
        while !batch.is_empty() && !left().is_zero() && self.spans(telemetry, &batch, left()) {
            batch = telemetry.take();
        }
        let mut lost = batch.len();
        loop {
            let more = telemetry.take().len();
            if more == 0 {
                break;
            }
            lost += more;
        }
        telemetry.dropped.fetch_add(lost as u64, Ordering::Relaxed);
        if lost > 0 {
            (self.collector.say)(&format!(
                "{lost} spans did not reach the collector at {}",
                self.collector.name()
            ));
            return;
        }
        if !left().is_zero() {
            let _sent = self.numbers(app, begun_ns, left());
        }
    }

    fn post(&self, signal: &str, body: &Json, patience: Duration) -> Answer {
        let mut request = self
            .agent
            .post(self.collector.address(signal))
            .config()
            .timeout_global(Some(patience))
            .build()
            .content_type("application/json");
        for (name, value) in &self.collector.headers {
            request = request.header(name, value);
        }
        let mut response = match request.send(body.to_string()) {
            Ok(response) => response,
            Err(error) => return Answer::Later(why(&error)),
        };
        let status = response.status().as_u16();
        match status {
            200..=299 => {
                let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX);
                let body = body.read_to_string().unwrap_or_default();
                let rejected = rejected(&body);
                Answer::Taken { rejected }
            }
            429 | 502 | 503 | 504 => Answer::Later(format!("it answers {status}")),
            _ => Answer::Refused(format!("it answers {status}")),
        }
    }

    /// Says it when the collector goes away or comes back, and not each time.
    fn told(&mut self, answer: &Answer) {
        let (was_away, at) = (self.is_away, self.collector.name());
        match answer {
            Answer::Taken { .. } => {
                self.is_away = false;
                if was_away {
                    (self.collector.say)(&format!(
                        "the collector at {at} takes what it is sent again"
                    ));
                }
            }
            Answer::Refused(why) | Answer::Later(why) => {
                self.is_away = true;
                if !was_away {
                    (self.collector.say)(&format!(
                        "the collector at {at} takes nothing: {why}. {QUEUE_MAX} spans wait for it, more are dropped"
                    ));
                }
            }
        }
    }
}

/// Reads how many the collector did not want.
fn rejected(body: &str) -> u64 {
    let body: Json = serde_json::from_str(body).unwrap_or_default();
    let count = body.pointer("/partialSuccess/rejectedSpans");
    let text = count.and_then(Json::as_str).and_then(|it| it.parse().ok());
    text.or_else(|| count.and_then(Json::as_u64))
        .unwrap_or_default()
}

/// Tells why there is no answer. Its words never hold the URL.
fn why(error: &Error) -> String {
    match error {
        Error::HostNotFound => "there is no such host".to_owned(),
        Error::ConnectionFailed => "no connection".to_owned(),
        Error::Timeout(_) => "no answer in time".to_owned(),
        Error::Io(error) => error.to_string(),
        Error::BadUri(_) | Error::Http(_) | Error::InvalidProxyUrl => {
            "the URL or a header is not well-formed".to_owned()
        }
        _ => "it cannot be spoken with".to_owned(),
    }
}
