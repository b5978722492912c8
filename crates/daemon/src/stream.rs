//! A body that is written while it is read: server-sent events, one after the other, with a limit on how many wait.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Response;
use http_body::Frame;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::answer::typed;
use crate::limits::EVENTS_WAITING_MAX;

/// Where events go.
#[derive(Debug)]
pub(crate) struct Events {
    sender: mpsc::Sender<Bytes>,
    patience: Duration,
}

/// The reader is gone, or took nothing for too long.
#[derive(Debug)]
pub(crate) struct Gone;

#[derive(Debug)]
struct Stream {
    receiver: mpsc::Receiver<Bytes>,
    _slot: OwnedSemaphorePermit,
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.receiver.poll_recv(context);
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Begins a stream; the slot is given back when it ends.
pub(crate) fn stream(slot: OwnedSemaphorePermit, patience: Duration) -> (Events, Response<Body>) {
    let (sender, receiver) = mpsc::channel(EVENTS_WAITING_MAX);
    let body = Body::new(Stream {
        receiver,
        _slot: slot,
    });
    (
        Events { sender, patience },
        typed("text/event-stream", body),
    )
}

impl Events {
    /// Sends an event. A reader that takes nothing for too long is given up.
    pub(crate) async fn send(
        &self,
        id: Option<u64>,
        event: &str,
        data: &Value,
    ) -> Result<(), Gone> {
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        self.write(format!("{id}event: {event}\ndata: {data}\n\n"))
            .await
    }

    /// Sends a sign of life.
    pub(crate) async fn breathe(&self) -> Result<(), Gone> {
        self.write(":\n\n".to_owned()).await
    }

    /// Waits until the reader is gone.
    pub(crate) async fn closed(&self) {
        self.sender.closed().await;
    }

    async fn write(&self, text: String) -> Result<(), Gone> {
        let sent = self.sender.send(Bytes::from(text));
        match tokio::time::timeout(self.patience, sent).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }
}
