//! Listening: the unix socket, TCP, TLS; who is at the other end; and how a connection is served and ended.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use backout_engine::{ErrorCode, Forebear, Report};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_rustls::TlsAcceptor;

use crate::app::App;
use crate::limits::{CONNECTIONS_MAX, HEAD_BYTES_MAX, HEADERS_MAX};

/// Looks whom a process descends from.
pub type Lineage = fn(u32) -> Vec<Forebear>;

/// Who is at the other end of a connection.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    /// A process of the same user.
    Unix {
        /// Which, if the system told.
        pid: Option<u32>,
        /// Looks whom it descends from.
        lineage: Lineage,
    },
    /// Somebody on the network, or on this machine.
    Tcp,
}

impl Peer {
    /// Lists the processes that it is and descends from.
    pub(crate) fn forebears(&self) -> Vec<Forebear> {
        match self {
            Self::Unix {
                pid: Some(pid),
                lineage,
            } => lineage(*pid),
            Self::Unix { pid: None, .. } | Self::Tcp => Vec::new(),
        }
    }
}

/// What the listeners share. When the last sender is gone, all connections have ended.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) app: Arc<App>,
    pub(crate) router: Router,
    pub(crate) stop: watch::Receiver<bool>,
    /// Held by every connection, and read by nobody.
    _alive: mpsc::Sender<Infallible>,
    places: Arc<Semaphore>,
}

impl Door {
    pub(crate) fn new(
        app: Arc<App>,
        router: Router,
        stop: watch::Receiver<bool>,
        alive: mpsc::Sender<Infallible>,
    ) -> Self {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Self {
            app,
            router,
            stop,
            _alive: alive,
            places,
        }
    }

    /// Takes connections of the same user.
    pub(crate) async fn listen_unix(mut self, listener: UnixListener, lineage: Lineage) {
        let own = rustix::process::geteuid().as_raw();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = self.stop.wait_for(|stop| *stop) => return,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            };
            // The file is private; this holds also if somebody opened it up.
            let Some(peer) = stream.peer_cred().ok().filter(|peer| peer.uid() == own) else {
                continue;
            };
            let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
            self.serve(stream, Peer::Unix { pid, lineage });
        }
    }

    /// Takes connections from the network.
    pub(crate) async fn listen_tcp(mut self, listener: TcpListener, tls: Option<TlsAcceptor>) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = self.stop.wait_for(|stop| *stop) => return,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            };
            let _quick = stream.set_nodelay(true);
            let Some(tls) = &tls else {
                self.serve(stream, Peer::Tcp);
                continue;
            };
            let (door, tls) = (self.clone(), tls.clone());
            tokio::spawn(async move {
                let patience = door.app.patience.head;
                let greeted = tokio::time::timeout(patience, tls.accept(stream)).await;
                if let Ok(Ok(stream)) = greeted {
                    door.serve(stream, Peer::Tcp);
                }
            });
        }
    }

    /// Serves a connection until it ends. More than there are places for are closed at once.
    fn serve<S>(&self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return;
        };
        let door = self.clone();
        tokio::spawn(async move {
            door.app.connections.fetch_add(1, Ordering::Relaxed);
            door.converse(stream, peer).await;
            door.app.connections.fetch_sub(1, Ordering::Relaxed);
            drop(place);
        });
    }

    async fn converse<S>(&self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let router = self.router.clone();
        let answer = service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer.clone());
            let mut router = router.clone();
            async move { tower_call(&mut router, request).await }
        });
        let mut connection = std::pin::pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(self.app.patience.head)
                .max_buf_size(HEAD_BYTES_MAX)
                .max_headers(HEADERS_MAX)
                .serve_connection(TokioIo::new(stream), answer)
        );
        let mut stop = self.stop.clone();
        tokio::select! {
            _ended = connection.as_mut() => return,
            _ = stop.wait_for(|stop| *stop) => {}
        }
        // The request under way is answered, and none after it.
        connection.as_mut().graceful_shutdown();
        let _ended = connection.await;
    }
}

async fn tower_call(
    router: &mut Router,
    request: Request<Body>,
) -> Result<Response<Body>, Infallible> {
    use hyper::service::Service as _;
    let service = hyper_util::service::TowerToHyperService::new(router.clone());
    service.call(request).await
}

/// Listens on an address.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, Report> {
    TcpListener::bind(address).await.map_err(|error| {
        let report = Report::refused(format!("the server cannot listen on {address}"))
            .code(ErrorCode::NotListening);
        if error.kind() == std::io::ErrorKind::AddrInUse {
            report
                .because("another process listens there")
                .next("take a free port with `--listen 127.0.0.1:0`, or name another one")
                .next("do without with `--no-tcp`: the unix socket stays")
        } else {
            report
                .because(error)
                .next("name an address of this machine")
        }
    })
}
