//! OpenTelemetry: spans and numbers for a collector, over OTLP/HTTP in JSON.
//!
//! - A span for each request of the API (`request`), and for each operation, undo and rollback in the journal, by whichever process it
//!   was made (`journal`). What a request made is a child of its span.
//! - Nobody waits for a collector: spans go into a queue with a limit, and a thread of its own sends them (`send`). What does not fit
//!   is dropped and counted.
//! - What is sent is what `docs/serve.md` lists: ids, verbs, names, counts. No path, no content, no summary.
//!
//! Not here: the numbers themselves (`metrics`).

mod journal;
mod json;
mod request;
mod send;
mod span;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use backout_engine::{Ids, Report};
use backout_model::OperationId;
use tokio::runtime::Handle;
use ureq::http::Uri;

pub(crate) use self::request::Traced;
pub(crate) use self::span::Trace;

use self::span::Span;
use crate::app::App;

/// How many spans wait at most.
pub(crate) const QUEUE_MAX: usize = 2048;

/// How many are sent at a time.
const BATCH_MAX: usize = 512;

/// How many operations are remembered with the request that made them, in each of two generations.
const MADE_MAX: usize = 32_768;

/// Where spans and numbers go.
#[derive(Debug, Clone)]
pub struct Collector {
    url: Uri,
    /// What else each request to it says, such as a key.
    pub headers: Vec<(String, String)>,
    /// What the collector calls us.
    pub service: String,
    /// How long spans are gathered.
    pub spans_every: Duration,
    /// How often numbers are sent.
    pub metrics_every: Duration,
    /// How long an answer is waited for.
    pub patience: Duration,
    /// Tells people that the collector is away, or is back.
    pub say: fn(&str),
}

impl Collector {
    /// Reads the address of a collector. `/v1/traces` and `/v1/metrics` are put behind it.
    pub fn at(url: &str, say: fn(&str)) -> Result<Self, Report> {
        let bad = |why: &str| {
            Report::usage("this is no address of a collector")
                .because(why)
                .next("give the one for OTLP over HTTP, such as `--otlp http://127.0.0.1:4318`")
        };
        let url = url.trim();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(bad("it does not begin with `http://` or `https://`"));
        }
        let url: Uri = url.parse().map_err(|_| bad("it cannot be read as a URL"))?;
        if url.host().is_none_or(str::is_empty) {
            return Err(bad("it names no host"));
        }
        if url.query().is_some() {
            return Err(bad("it has a query"));
        }
        Ok(Self {
            url,
            headers: Vec::new(),
            service: "backout".to_owned(),
            spans_every: Duration::from_secs(5),
            metrics_every: Duration::from_mins(1),
            patience: Duration::from_secs(10),
            say,
        })
    }

    /// Names it for people: without a password that may stand in the address.
    fn name(&self) -> String {
        let scheme = self.url.scheme_str().unwrap_or("http");
        let host = self.url.host().unwrap_or_default();
        let port = self.url.port_u16().map(|port| format!(":{port}"));
        format!("{scheme}://{host}{}", port.unwrap_or_default())
    }

    fn address(&self, signal: &str) -> String {
        format!("{}/v1/{signal}", self.url.to_string().trim_end_matches('/'))
    }
}

/// Spans that wait, and which request made which operation.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    waiting: Mutex<Waiting>,
    bell: Condvar,
    made: Mutex<Made>,
    sent: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    spans: VecDeque<Span>,
    is_over: bool,
}

/// Operations by the request that named them. Names that came to nothing go with their generation.
#[derive(Debug, Default)]
struct Made {
    young: HashMap<OperationId, Trace>,
    old: HashMap<OperationId, Trace>,
}

impl Telemetry {
    /// Leaves a span for the collector. Never waits.
    fn leave(&self, span: Span) {
        let mut waiting = held(&self.waiting);
        if waiting.spans.len() >= QUEUE_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.spans.push_back(span);
        let is_batch = waiting.spans.len() >= BATCH_MAX;
        drop(waiting);
        if is_batch {
            self.bell.notify_all();
        }
    }

    /// Waits until a time, or until there is a batch, if one is wanted. Tells whether it is over.
    fn wait(&self, until: Instant, wants_batch: bool) -> bool {
        let mut waiting = held(&self.waiting);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let is_batch = wants_batch && waiting.spans.len() >= BATCH_MAX;
            if waiting.is_over || is_batch || left.is_zero() {
                return waiting.is_over;
            }
            let woken = self.bell.wait_timeout(waiting, left);
            (waiting, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn take(&self) -> Vec<Span> {
        let mut waiting = held(&self.waiting);
        let count = waiting.spans.len().min(BATCH_MAX);
        waiting.spans.drain(..count).collect()
    }

    fn end(&self) {
        held(&self.waiting).is_over = true;
        self.bell.notify_all();
    }

    /// Tells how many spans were sent and how many were dropped.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (of(&self.sent), of(&self.dropped))
    }

    fn note_made(&self, id: OperationId, trace: &Trace) {
        let mut made = held(&self.made);
        if made.young.len() >= MADE_MAX {
            made.old = std::mem::take(&mut made.young);
        }
        made.young.insert(id, trace.clone());
    }

    /// Gives the request that made an operation, if it was one of this server.
    fn made_by(&self, id: OperationId) -> Option<Trace> {
        let made = held(&self.made);
        made.young.get(&id).or_else(|| made.old.get(&id)).cloned()
    }

    /// Names operations as the others do, and notes which request they are of before anybody can see them.
    pub(crate) fn ids_for(self: &Arc<Self>, ids: Arc<dyn Ids>, trace: Trace) -> Arc<dyn Ids> {
        let telemetry = Arc::clone(self);
        Arc::new(Noting {
            ids,
            trace,
            telemetry,
        })
    }
}

#[derive(Debug)]
struct Noting {
    ids: Arc<dyn Ids>,
    trace: Trace,
    telemetry: Arc<Telemetry>,
}

impl Ids for Noting {
    fn next(&self) -> OperationId {
        let id = self.ids.next();
        self.telemetry.note_made(id, &self.trace);
        id
    }
}

/// The two threads: one reads the journal, one sends.
pub(crate) struct Export {
    telemetry: Arc<Telemetry>,
    reader: JoinHandle<()>,
    sender: JoinHandle<()>,
}

impl Export {
    /// Begins to send, from the end of the journal on.
    pub(crate) fn begin(
        app: &Arc<App>,
        collector: Collector,
        telemetry: &Arc<Telemetry>,
        over: tokio::sync::watch::Receiver<bool>,
    ) -> Result<Self, Report> {
        let cannot = |error: std::io::Error| {
            Report::refused("the server could not be started").because(error)
        };
        let spawn = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let (shared, queue, handle) = (Arc::clone(app), Arc::clone(telemetry), Handle::current());
        let reader = spawn("spans")
            .spawn(move || journal::follow(&shared, &queue, &handle, over))
            .map_err(cannot)?;
        let (shared, queue) = (Arc::clone(app), Arc::clone(telemetry));
        let sender = spawn("otlp")
            .spawn(move || send::send(&shared, &collector, &queue))
            .map_err(cannot)?;
        Ok(Self {
            telemetry: Arc::clone(telemetry),
            reader,
            sender,
        })
    }

    /// Sends what is left. The reader was told that it is over.
    pub(crate) fn finish(self) {
        let _read = self.reader.join();
        self.telemetry.end();
        let _sent = self.sender.join();
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector(url: &str) -> Result<Collector, Report> {
        Collector::at(url, |_| {})
    }

    #[test]
    fn the_signals_are_put_behind_the_address() {
        let of = |url: &str| collector(url).unwrap().address("traces");
        assert_eq!(
            of("http://127.0.0.1:4318"),
            "http://127.0.0.1:4318/v1/traces"
        );
        assert_eq!(of("https://host/otlp/"), "https://host/otlp/v1/traces");
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason() {
        let why = |url: &str| collector(url).unwrap_err().why;
        assert_eq!(
            why("127.0.0.1:4318"),
            ["it does not begin with `http://` or `https://`"]
        );
        assert_eq!(why("http://"), ["it cannot be read as a URL"]);
        assert_eq!(
            why("grpc://host:4317"),
            ["it does not begin with `http://` or `https://`"]
        );
        assert_eq!(why("http://host/?a=b"), ["it has a query"]);
        assert_eq!(why("http://host name"), ["it cannot be read as a URL"]);
    }

    #[test]
    fn a_password_in_the_address_is_not_said() {
        assert_eq!(
            collector("http://me:secret@host:1/x").unwrap().name(),
            "http://host:1"
        );
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_counted() {
        let telemetry = Telemetry::default();
        for _ in 0..QUEUE_MAX + 3 {
            telemetry.leave(Span::of_a_test());
        }
        assert_eq!(telemetry.counts(), (0, 3));
        assert_eq!(telemetry.take().len(), BATCH_MAX);
    }
}
