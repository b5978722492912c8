//! How far work is, on its way to the client, and the client's wish that it stop.

use std::sync::atomic::{AtomicU64, Ordering};

use backout_model::ports::Progress;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// So many words wait for a client that reads slowly; further ones are dropped.
const WAITING_MAX: usize = 16;

/// One word on how far work is.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    done: u64,
    total: Option<u64>,
    message: Option<String>,
}

/// Tells a client how far work is, if it wants to know.
#[derive(Debug, Clone)]
pub(crate) struct Teller {
    says: Option<mpsc::Sender<Step>>,
}

impl Teller {
    /// Begins to tell a client, if it gave a token to tell it by.
    pub(crate) fn new(peer: Peer<RoleServer>, token: Option<ProgressToken>) -> Self {
        let Some(token) = token else {
            return Self { says: None };
        };
        let (says, mut hears) = mpsc::channel::<Step>(WAITING_MAX);
        tokio::spawn(async move {
            while let Some(step) = hears.recv().await {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "the protocol has only such numbers"
                )]
                let number = |it: u64| it as f64;
                let mut told = ProgressNotificationParam::new(token.clone(), number(step.done));
                told.total = step.total.map(number);
                told.message = step.message;
                // A client that is gone needs no news.
                if peer.notify_progress(told).await.is_err() {
                    return;
                }
            }
        });
        Self { says: Some(says) }
    }

    /// Tells nobody.
    pub(crate) const fn new_silent() -> Self {
        Self { says: None }
    }

    /// Says how far it is. Whoever does not listen misses it.
    pub(crate) fn say(&self, done: u64, total: Option<u64>, message: Option<String>) {
        if let Some(says) = &self.says {
            let step = Step {
                done,
                total,
                message,
            };
            // What comes later says more.
            let _full = says.try_send(step);
        }
    }
}

/// What the engine tells of its work.
#[derive(Debug)]
pub(crate) struct Watched {
    teller: Teller,
    stop: CancellationToken,
    total: AtomicU64,
    done: AtomicU64,
}

impl Watched {
    pub(crate) const fn new(teller: Teller, stop: CancellationToken) -> Self {
        Self {
            teller,
            stop,
            total: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }
}

impl Progress for Watched {
    fn total(&self, items: u64) {
        self.total.store(items, Ordering::Relaxed);
    }

    fn advance(&self, items: u64) {
        let done = self.done.fetch_add(items, Ordering::Relaxed) + items;
        let total = self.total.load(Ordering::Relaxed);
        self.teller
            .say(done, (total >= done).then_some(total), None);
    }

    fn waits(&self, for_what: &str) {
        let done = self.done.load(Ordering::Relaxed);
        self.teller
            .say(done, None, Some(format!("waits for {for_what}")));
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }
}
