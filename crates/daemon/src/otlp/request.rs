//! The span of one request of the API.

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, Method, StatusCode};

use super::Telemetry;
use super::span::{Kind, Span, Trace, now_ns, parent, random};
use crate::caller::Caller;

/// What the router puts behind the path of a mount.
const TAIL: &str = "/{*";

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Traced {
    span: Span,
    trace: Trace,
}

impl Traced {
    /// Begins the span of a request. None for what is no route: the files of the page, and what does not exist.
    pub(crate) fn begin(request: &Request) -> Option<Self> {
        let route = request.extensions().get::<MatchedPath>()?.as_str();
        let route = route.split(TAIL).next().unwrap_or(route).to_owned();
        let headers = request.headers();
        let above = header(headers, "traceparent");
        let above = above.and_then(|it| parent(it, header(headers, "tracestate")));
        let start_ns = now_ns();
        let trace = Trace {
            id: match &above {
                Some(above) => above.id,
                None => random()?,
            },
            span: random()?,
            state: above.as_ref().and_then(|above| above.state.clone()),
            is_sampled: above.as_ref().is_none_or(|above| above.is_sampled),
            start_ns,
        };
        let method = method(request.method());
        let mut span = Span {
            trace: trace.id,
            id: trace.span,
            parent: above.as_ref().map(|above| above.span),
            is_remote: above.is_some(),
            state: trace.state.clone(),
            name: format!("{method} {route}"),
            kind: Kind::Server,
            start_ns,
            end_ns: start_ns,
            attributes: Vec::new(),
            error: None,
        };
        span.text("http.request.method", method);
        span.text("http.route", route);
        Some(Self { span, trace })
    }

    /// What the request makes is a child of this.
    pub(crate) fn trace(&self) -> Trace {
        self.trace.clone()
    }

    /// Says who asks.
    pub(crate) fn asked_by(&mut self, caller: &Caller) {
        self.span.text("backout.role", caller.role);
        if let Some(agent) = &caller.agent {
            self.span.text("backout.agent", agent);
        }
    }

    /// Leaves the span for the collector. Of a stream it ends where the stream begins.
    pub(crate) fn end(mut self, status: StatusCode, telemetry: &Telemetry) {
        if !self.trace.is_sampled {
            return;
        }
        self.span.end_ns = now_ns().max(self.span.start_ns);
        self.span
            .number("http.response.status_code", usize::from(status.as_u16()));
        if status.is_server_error() {
            self.span.text("error.type", status.as_u16());
            self.span.error = Some(status.canonical_reason().unwrap_or_default().to_owned());
        }
        telemetry.leave(self.span);
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whatever somebody makes up is one name.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        _ => "_OTHER",
    }
}
