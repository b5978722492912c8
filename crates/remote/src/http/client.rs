//! Sending: one try of one call, with limits. Whether something was sent at all is told apart from all other failures.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use backout_model::ports::{Stopped, Watch};

use ureq::http::Request;
use ureq::{Agent, Error, Timeout};

/// How much of an answer is read.
pub(super) const BODY_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// How long somebody who wants to stop waits at most.
const SLICE: Duration = Duration::from_millis(50);

/// A call with everything filled in. It may hold secrets.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) timeout_ms: u64,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({})", self.method)
    }
}

/// What a service answered.
#[derive(Clone)]
pub struct Answer {
    /// Such as 200.
    pub status: u16,
    /// The headers, by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// As it came, up to a limit.
    pub body: Vec<u8>,
    /// Whether there was more of it.
    pub is_cut: bool,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({})", self.status)
    }
}

impl Answer {
    pub(super) const fn is_good(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    pub(super) const fn is_gone(&self) -> bool {
        matches!(self.status, 404 | 410)
    }

    /// How long the service wants us to wait, in seconds.
    pub(super) fn retry_after_ms(&self) -> Option<u64> {
        let seconds: u64 = self.headers.get("retry-after")?.trim().parse().ok()?;
        seconds.checked_mul(1000)
    }

    /// Gives the body as JSON; as text if it is none.
    pub(super) fn value(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| String::from_utf8_lossy(&self.body).into_owned().into())
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Silence {
    /// Nothing was sent.
    NotSent(String),
    /// It may have arrived.
    Lost(String),
    /// Somebody stopped it before it was sent.
    Stopped,
    /// Somebody stopped it, and it may have arrived.
    Interrupted,
}

impl Silence {
    /// Says it in words.
    pub(super) fn why(self) -> String {
        match self {
            Self::NotSent(why) | Self::Lost(why) => why,
            Self::Stopped | Self::Interrupted => Stopped.to_string(),
        }
    }
}

/// Sends a call once, and hears whoever wants to stop while the answer is not there.
pub(super) fn send(call: &Call, watch: &Watch) -> Result<Answer, Silence> {
    if watch.is_stopped() {
        return Err(Silence::Stopped);
    }
    let (tell, hear) = mpsc::channel();
    let sent = call.clone();
    // What is not waited for any more ends with its time, or with the process.
    let sender = std::thread::Builder::new().spawn(move || {
        let _nobody_hears = tell.send(send_once(&sent));
    });
    if sender.is_err() {
        return send_once(call);
    }
    loop {
        match hear.recv_timeout(SLICE) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Timeout) if watch.is_stopped() => {
                return Err(Silence::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Silence::Lost("the answer could not be read".to_owned()));
            }
        }
    }
}

/// Waits between two calls, unless somebody wants to stop.
pub(super) fn pause(ms: u64, watch: &Watch) -> Result<(), Stopped> {
    let mut left = Duration::from_millis(ms);
    while !left.is_zero() {
        watch.check()?;
        let slice = left.min(SLICE);
        std::thread::sleep(slice);
        left = left.saturating_sub(slice);
    }
    Ok(())
}

/// Redirects are not followed: they are answers.
fn send_once(call: &Call) -> Result<Answer, Silence> {
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(0)
        .allow_non_standard_methods(true)
        .user_agent(concat!("backout/", env!("CARGO_PKG_VERSION")))
        .timeout_global(Some(Duration::from_millis(call.timeout_ms)))
        .build()
        .into();
    let mut builder = Request::builder()
        .method(call.method.as_str())
        .uri(call.url.as_str());
    for (name, value) in &call.headers {
        builder = builder.header(name, value);
    }
    let unsent = |_| Silence::NotSent("the URL or a header is not well-formed".to_owned());
    let answered = match &call.body {
        Some(body) => agent.run(builder.body(body.clone()).map_err(unsent)?),
        None => agent.run(builder.body(()).map_err(unsent)?),
    };
    let mut response = answered.map_err(|error| silence(&error))?;
    let headers = response.headers().iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let headers = headers.collect();
    let mut body = Vec::new();
    let reader = response.body_mut().with_config().limit(u64::MAX).reader();
    reader
        .take(BODY_BYTES_MAX + 1)
        .read_to_end(&mut body)
        .map_err(|error| Silence::Lost(error.to_string()))?;
    let max = usize::try_from(BODY_BYTES_MAX).unwrap_or(usize::MAX);
    let is_cut = body.len() > max;
    body.truncate(max);
    Ok(Answer {
        status: response.status().as_u16(),
        headers,
        body,
        is_cut,
    })
}

/// Tells what a failure means. Its words never hold the URL.
fn silence(error: &Error) -> Silence {
    let why = match error {
        Error::HostNotFound => return Silence::NotSent("there is no such host".to_owned()),
        Error::ConnectionFailed => return Silence::NotSent("no connection".to_owned()),
        Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
            return Silence::NotSent("no connection in time".to_owned());
        }
        Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Silence::NotSent("the connection was refused".to_owned());
        }
        Error::BadUri(_) | Error::Http(_) | Error::InvalidProxyUrl => {
            return Silence::NotSent("the URL or a header is not well-formed".to_owned());
        }
        Error::Timeout(_) => "no answer in time".to_owned(),
        Error::Io(error) => format!("the connection was lost ({error})"),
        _ => "the answer could not be read".to_owned(),
    };
    Silence::Lost(why)
}
