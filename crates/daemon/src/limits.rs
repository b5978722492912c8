//! How much of everything the server takes. What is above is refused by name, and never kept in memory first.

use std::time::Duration;

const MIB: usize = 1024 * 1024;

/// How many requests are answered at a time, those that wait for the engine among them.
pub(crate) const REQUESTS_MAX: usize = 256;

/// How many of them are in the engine: each has a thread.
pub(crate) const ENGINE_MAX: usize = 64;

/// How many readers of events there are.
pub(crate) const STREAMS_MAX: usize = 64;

/// How many commands run.
pub(crate) const RUNS_MAX: usize = 16;

/// How many connections are open.
pub(crate) const CONNECTIONS_MAX: usize = 512;

/// How large a body may be.
pub(crate) const BODY_BYTES_MAX: usize = 16 * MIB;

/// How large the head of a request may be.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// How many header lines it may have.
pub(crate) const HEADERS_MAX: usize = 100;

/// How many bytes of each stream of a command are passed on.
pub(crate) const OUTPUT_BYTES_MAX: usize = MIB;

/// How large a content may be that is given out.
pub(crate) const CONTENT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How many events wait for a reader: the rest waits in the journal.
pub(crate) const EVENTS_WAITING_MAX: usize = 64;

/// How long things take. A person may set some of them, and tests do.
#[derive(Debug, Clone)]
pub struct Patience {
    /// For the head of a request.
    pub head: Duration,
    /// For the body of a request, and for its answer.
    pub answer: Duration,
    /// For a reader of events that takes nothing.
    pub reader: Duration,
    /// Between two signs of life on a stream of events.
    pub silence: Duration,
    /// For commands, and for writes, when the server stops.
    pub grace: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            answer: Duration::from_mins(1),
            reader: Duration::from_secs(30),
            silence: Duration::from_secs(15),
            grace: Duration::from_secs(10),
        }
    }
}
