//! What every request shares: the engine, who is known, and how much is under way.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::http::StatusCode;
use backout_engine::{Command, Context, Engine, ErrorCode, Reply, Report};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::answer::{Failed, told};
use crate::caller::Caller;
use crate::limits::{ENGINE_MAX, Patience, REQUESTS_MAX, RUNS_MAX, STREAMS_MAX};
use crate::metrics::Metrics;
use crate::otlp::Telemetry;
use crate::own;
use crate::roles::{need, permit};
use crate::sessions::Sessions;
use crate::tokens::Tokens;

/// How to start this program again, for commands that need a process of their own.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program.
    pub path: PathBuf,
    /// What comes before the command, such as the state directory.
    pub words: Vec<OsString>,
}

/// What every request shares.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) tokens: Tokens,
    pub(crate) sessions: Sessions,
    pub(crate) metrics: Metrics,
    /// What is told to a collector, if there is one.
    pub(crate) telemetry: Option<Arc<Telemetry>>,
    pub(crate) patience: Patience,
    pub(crate) program: Program,
    /// Who decides, where somebody comes by the socket or the page.
    pub(crate) user: String,
    /// The names by which browsers may know us, with our port.
    pub(crate) hosts: Vec<String>,
    /// Our address for browsers, if we have one.
    pub(crate) url: Option<String>,
    pub(crate) has_tls: bool,
    /// The name of the cookie.
    pub(crate) cookie: String,
    /// The last place in the journal that was seen.
    pub(crate) head: watch::Receiver<u64>,
    /// Whether the server is about to end.
    pub(crate) stop: watch::Receiver<bool>,
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) at_work: Arc<Semaphore>,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) runs: Arc<Semaphore>,
    pub(crate) connections: AtomicU64,
}

/// How much may be under way at a time.
pub(crate) struct Slots {
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) at_work: Arc<Semaphore>,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) runs: Arc<Semaphore>,
}

impl Default for Slots {
    fn default() -> Self {
        let of = |count| Arc::new(Semaphore::new(count));
        Self {
            requests: of(REQUESTS_MAX),
            at_work: of(ENGINE_MAX),
            streams: of(STREAMS_MAX),
            runs: of(RUNS_MAX),
        }
    }
}

impl App {
    /// Has something done on a thread of its own, with a handle for the caller. Who does not wait for the answer does not stop it.
    pub(crate) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        caller: &Caller,
        context: Context,
        work: impl FnOnce(&Engine, &Caller) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Failed> {
        if *self.stop.borrow() {
            return Err(stopping());
        }
        let limit = self.patience.answer;
        let slot = tokio::time::timeout(limit, Arc::clone(&self.at_work).acquire_owned()).await;
        let Ok(Ok(slot)) = slot else {
            return Err(too_many("the engine has all hands full"));
        };
        let (app, caller) = (Arc::clone(self), caller.clone());
        let done = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            let mut engine = app.engine.for_caller(context);
            if let (Some(telemetry), Some(trace)) = (&app.telemetry, &caller.trace) {
                let ids = telemetry.ids_for(engine.ids(), trace.clone());
                engine = engine.named_by(ids);
            }
            work(&engine, &caller)
        });
        match tokio::time::timeout(limit, done).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => Err(broke(&panic)),
            Err(_elapsed) => Err(Report::refused("the answer is not waited for any longer")
                .code(ErrorCode::TimedOut)
                .because("what was asked goes on, and may still be done")
                .next("see what came of it in the log before you ask again")
                .into()),
        }
    }

    /// Has a command carried out for a caller, and gives the reply as JSON.
    pub(crate) async fn command(
        self: &Arc<Self>,
        caller: &Caller,
        given: Context,
        command: Command,
    ) -> Result<Value, Failed> {
        permit(caller, need(&command))?;
        let context = caller.context(given)?;
        self.work(caller, context.clone(), move |engine, caller| {
            let (reply, engine) = carry_out(engine, caller, context, command)?;
            told(&engine, &reply)
        })
        .await
    }

    /// Takes one of the places that are counted.
    pub(crate) fn slot(
        of: &Arc<Semaphore>,
        what: &'static str,
    ) -> Result<OwnedSemaphorePermit, Failed> {
        Arc::clone(of)
            .try_acquire_owned()
            .map_err(|_| too_many(what))
    }
}

/// Carries a command out, narrowed to what is the caller's own.
pub(crate) fn carry_out(
    engine: &Engine,
    caller: &Caller,
    mut context: Context,
    command: Command,
) -> Result<(Reply, Engine), Failed> {
    let command = own::narrow(engine, caller, &mut context, command)?;
    let engine = engine.for_caller(context);
    let reply = engine.execute(command)?;
    Ok((own::strip(caller, reply), engine))
}

pub(crate) fn stopping() -> Failed {
    Report::refused("nothing was done")
        .code(ErrorCode::Stopping)
        .because("the server is about to end")
        .next("ask the next one")
        .into()
}

fn too_many(why: &'static str) -> Failed {
    Report::refused("nothing was done")
        .code(ErrorCode::TooMany)
        .because(why)
        .next("ask again in a moment")
        .into()
}

fn broke(panic: &tokio::task::JoinError) -> Failed {
    let report = Report::broken("the server failed")
        .because(panic)
        .next("see what came of it in the log before you ask again");
    Failed::with(StatusCode::INTERNAL_SERVER_ERROR, report)
}
