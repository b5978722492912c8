//! The life of a server: taking the store, listening, serving, and ending with nothing half done.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use axum::Router;
use backout_engine::{Engine, ErrorCode, Report};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

use crate::app::{App, Program, Slots};
use crate::limits::{ENGINE_MAX, Patience, RUNS_MAX};
use crate::listen::{Door, Lineage, bind};
use crate::metrics::Metrics;
use crate::otlp::{Collector, Export, Telemetry};
use crate::place::{Held, Place, Serving, cannot};
use crate::routes::router;
use crate::sessions::Sessions;
use crate::tokens::Tokens;
use crate::watch::{last_place, watch_journal};
use crate::{tls, tls::Tls};

/// How to serve.
#[derive(Debug)]
pub struct Options {
    /// The address for browsers and programs; none leaves the unix socket alone.
    pub listen: Option<SocketAddr>,
    /// Names by which clients know this machine, beside the loopback ones.
    pub hosts: Vec<String>,
    /// The certificate and its key.
    pub tls: Option<Tls>,
    /// How long things take.
    pub patience: Patience,
    /// How to start this program again.
    pub program: Program,
    /// Who decides, where somebody comes by the socket or the page.
    pub user: String,
    /// Looks whom a process descends from.
    pub lineage: Lineage,
    /// What else is served, by its path, behind the same door: the [`Caller`](crate::Caller) is in the extensions of each request.
    /// `/mcp` is kept for the Model Context Protocol.
    pub mounts: Vec<(String, Router)>,
    /// Where spans and numbers are sent, if anywhere.
    pub collector: Option<Collector>,
}

/// Serves a store until a signal says to end. `told` hears where, once it can be asked.
pub fn serve(engine: Engine, options: Options, told: impl FnOnce(&Serving)) -> Result<(), Report> {
    let place = Place::of(&engine.settings().state_dir);
    let held = place.hold()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(ENGINE_MAX + RUNS_MAX)
        .enable_all()
        .build()
        .map_err(|error| Report::refused("the server could not be started").because(error))?;
    let served = runtime.block_on(run(engine, options, &place, held, told));
    runtime.shutdown_background();
    served
}

async fn run(
    engine: Engine,
    mut options: Options,
    place: &Place,
    mut held: Held,
    when_ready: impl FnOnce(&Serving),
) -> Result<(), Report> {
    let tokens = Tokens::of(place.clone());
    let tcp = open_tcp(&options, &tokens).await?;
    let unix = place.listen()?;
    let unix = unix
        .set_nonblocking(true)
        .and_then(|()| UnixListener::from_std(unix));
    let unix = unix.map_err(|error| cannot(&place.socket(), &error))?;
    let (stop, stopped) = watch::channel(false);
    let last = last_place(&engine).unwrap_or_default();
    let (newest, seen) = watch::channel(last);
    let (lineage, collector) = (options.lineage, options.collector.take());
    let telemetry = collector.map(|to| (Arc::new(Telemetry::default()), to));
    let (app, mounts) = make_app(
        engine,
        options,
        tokens,
        tcp.as_ref(),
        (seen, stopped.clone()),
        (last, telemetry.as_ref().map(|(kept, _)| Arc::clone(kept))),
    );
    let serving = Serving {
        pid: std::process::id(),
        socket: place.socket(),
        url: app.url.clone(),
    };
    held.tell(&serving)
        .map_err(|error| cannot(&place.socket(), &error))?;
    let (alive, mut ended) = mpsc::channel(1);
    let door = Door::new(Arc::clone(&app), router(&app, mounts), stopped, alive);
    tokio::spawn(door.clone().listen_unix(unix, lineage));
    if let Some(Tcp { listener, tls, .. }) = tcp {
        tokio::spawn(door.clone().listen_tcp(listener, tls));
    }
    drop(door);
    let eyes = Eyes::open(&app, newest)?;
    let (close, over) = watch::channel(false);
    let export = telemetry.map(|(kept, to)| Export::begin(&app, to, &kept, over));
    let export = export.transpose()?;
    when_ready(&serving);
    wait_for_end().await?;
    let _told = stop.send(true);
    // Every connection holds a sender: none is left when all have ended.
    let grace = app.patience.grace + app.patience.answer;
    let _all_ended = tokio::time::timeout(grace, ended.recv()).await;
    // Whoever hung up left work behind, and commands end by themselves: both are waited for.
    let of = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let _writes = tokio::time::timeout(grace, app.at_work.acquire_many(of(ENGINE_MAX))).await;
    let _commands = tokio::time::timeout(grace, app.runs.acquire_many(of(RUNS_MAX))).await;
    // Last, so that what was under way is in it.
    let _told = close.send(true);
    if let Some(export) = export {
        export.finish();
    }
    eyes.close();
    // Only here: what stood there when we could not listen is not ours.
    place.stop_listening();
    drop(held);
    Ok(())
}

struct Tcp {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
}

/// Listens on TCP, if that is wanted and safe.
async fn open_tcp(options: &Options, tokens: &Tokens) -> Result<Option<Tcp>, Report> {
    let Some(address) = options.listen else {
        return Ok(None);
    };
    if !address.ip().is_loopback() {
        let refused = |why: &str| {
            Report::usage(format!("the server does not listen on {address}"))
                .because("others could reach it there")
                .because(why)
        };
        if options.tls.is_none() {
            return Err(
                refused("without TLS anybody on the way could read tokens and contents")
                    .next("give a certificate with `--tls-cert FILE --tls-key FILE`")
                    .next("listen on loopback, and reach it through a tunnel"),
            );
        }
        if tokens.list()?.is_empty() {
            return Err(refused("there is no token, so nobody could ask anything")
                .next("make one with `backout serve token add --role viewer`"));
        }
    }
    let tls = options.tls.as_ref().map(tls::acceptor).transpose()?;
    let listener = bind(address).await?;
    let address = listener.local_addr().map_err(|error| {
        Report::refused("the server cannot listen")
            .code(ErrorCode::NotListening)
            .because(error)
    })?;
    Ok(Some(Tcp {
        listener,
        address,
        tls,
    }))
}

fn make_app(
    engine: Engine,
    options: Options,
    tokens: Tokens,
    tcp: Option<&Tcp>,
    (head, stop): (watch::Receiver<u64>, watch::Receiver<bool>),
    (last, telemetry): (u64, Option<Arc<Telemetry>>),
) -> (Arc<App>, Vec<(String, Router)>) {
    let has_tls = options.tls.is_some();
    let port = tcp.map(|tcp| tcp.address.port());
    let scheme = if has_tls { "https" } else { "http" };
    let url = tcp.map(|tcp| match options.hosts.first() {
        Some(host) => format!("{scheme}://{host}:{}", tcp.address.port()),
        None => format!("{scheme}://{}", tcp.address),
    });
    let slots = Slots::default();
    let app = App {
        tokens,
        sessions: Sessions::default(),
        metrics: Metrics::beginning_at(last),
        telemetry,
        patience: options.patience,
        program: options.program,
        user: options.user,
        hosts: hosts(&options.hosts, tcp.map(|tcp| tcp.address), has_tls),
        url,
        has_tls,
        cookie: format!("backout_{}", port.unwrap_or_default()),
        head,
        stop,
        requests: slots.requests,
        at_work: slots.at_work,
        streams: slots.streams,
        runs: slots.runs,
        connections: AtomicU64::new(0),
        engine,
    };
    (Arc::new(app), options.mounts)
}

/// Lists the names that a request may be for.
fn hosts(given: &[String], address: Option<SocketAddr>, has_tls: bool) -> Vec<String> {
    let Some(address) = address else {
        return Vec::new();
    };
    let port = address.port();
    let own = [
        address.ip().to_string(),
        "127.0.0.1".to_owned(),
        "localhost".to_owned(),
    ];
    let six = [format!("[::1]:{port}")];
    let usual = if has_tls { 443 } else { 80 };
    let names = own
        .into_iter()
        .chain(given.iter().map(|it| it.to_ascii_lowercase()));
    let mut all: Vec<String> = six.into_iter().collect();
    for name in names {
        all.push(format!("{name}:{port}"));
        if port == usual {
            all.push(name);
        }
    }
    all
}

/// The thread that watches the journal.
struct Eyes {
    stop: Arc<AtomicBool>,
}

impl Eyes {
    fn open(app: &Arc<App>, head: watch::Sender<u64>) -> Result<Self, Report> {
        let stop = Arc::new(AtomicBool::new(false));
        let (app, is_over) = (Arc::clone(app), Arc::clone(&stop));
        let directory: PathBuf = app.engine.settings().state_dir.clone();
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || watch_journal(&app.engine, &directory, &head, &is_over))
            .map_err(|error| Report::refused("the server could not be started").because(error))?;
        Ok(Self { stop })
    }

    fn close(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Waits for the first signal; the second ends the process at once.
async fn wait_for_end() -> Result<(), Report> {
    let failed = |error: std::io::Error| Report::refused("signals cannot be heard").because(error);
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        // What is under way is recovered by the next command, as after any death.
        std::process::abort();
    });
    Ok(())
}
