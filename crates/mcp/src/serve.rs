//! The two ways to a server: the pipes of a process, and HTTP.

use std::io;
use std::sync::Arc;

use rmcp::serve_server;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::stdin::{LINE_BYTES_MAX, bounded};
use crate::{Given, Host, Server};

/// A service that a router can mount.
pub type HttpService = StreamableHttpService<Server, LocalSessionManager>;

/// A client over HTTP sends at most so much at once.
const BODY_BYTES_MAX: usize = LINE_BYTES_MAX;

/// Serves one client over the standard streams, until it closes them. What is under way then is ended and recorded.
pub fn serve_stdio(host: Arc<dyn Host>, given: Given) -> io::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(async {
        let server = Server::new(host, given);
        let (tracker, stop) = (server.tracker.clone(), server.stop.clone());
        let (stdin, stdout) = stdio_pipes();
        let transport = AsyncRwTransport::new_server(bounded(stdin), stdout);
        let transport = transport.with_max_line_length(LINE_BYTES_MAX + 1);
        let outcome = match serve_server(server, transport).await {
            Ok(running) => tokio::select! {
                ended = running.waiting() => ended.map(drop).map_err(io::Error::other),
                () = ended_by_signal() => Ok(()),
            },
            // A client that goes before it has said anything wants nothing.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        };
        stop.cancel();
        tracker.close();
        tracker.wait().await;
        outcome
    });
    // A thread may wait for input that never comes.
    runtime.shutdown_background();
    served
}

/// Waits for a signal that asks for the end.
async fn ended_by_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ];
    let (Ok(mut term), Ok(mut int), Ok(mut hup)) =
        (signal(kinds[0]), signal(kinds[1]), signal(kinds[2]))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        _ = hup.recv() => {}
    }
}

/// Gives a service for many clients over HTTP. Whoever mounts it says who they are, by [`Granted`](crate::Granted).
pub fn serve_http(host: Arc<dyn Host>, allowed_hosts: Vec<String>) -> HttpService {
    let given = Given {
        is_granted: true,
        ..Given::default()
    };
    let server = Server::new(host, given);
    let stop = server.stop.clone();
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .with_cancellation_token(stop);
    let config = if allowed_hosts.is_empty() {
        config
    } else {
        config.with_allowed_hosts(allowed_hosts)
    };
    StreamableHttpService::new(move || Ok(server.for_client()), Arc::default(), config)
}
