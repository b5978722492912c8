//! Answers: a reply as JSON, or a report with the status that fits its code.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use backout_engine::{DriftError, Engine, EngineError, ErrorCode, Reply, Report, Severity};
use serde::Serialize;
use serde_json::Value;

/// A request that was not, or not wholly, done.
#[derive(Debug)]
pub(crate) struct Failed {
    report: Box<Report>,
    status: StatusCode,
    /// What was done of it all the same.
    reply: Option<Value>,
}

impl Failed {
    /// Answers with a status of its own.
    pub(crate) fn with(status: StatusCode, report: Report) -> Self {
        let report = Box::new(report);
        Self {
            report,
            status,
            reply: None,
        }
    }
}

impl From<Report> for Failed {
    fn from(report: Report) -> Self {
        Self::with(status_of(&report), report)
    }
}

impl From<EngineError> for Failed {
    fn from(error: EngineError) -> Self {
        let done = if let EngineError::Partial(report) | EngineError::Stopped(report) = &error {
            Some(Reply::Undone((**report).clone()))
        } else if let EngineError::Drift(DriftError::Partly { done, .. }) = &error {
            Some(Reply::DriftDecided((**done).clone()))
        } else {
            None
        };
        let part = done.and_then(|done| serde_json::to_value(done).ok());
        let mut failed = Self::from(Report::from(error));
        failed.reply = part;
        failed
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response<Body> {
        let mut value = serde_json::to_value(&*self.report).unwrap_or_default();
        if let (Some(object), Some(reply)) = (value.as_object_mut(), self.reply) {
            object.insert("reply".to_owned(), reply);
        }
        let mut response = json(&value);
        *response.status_mut() = self.status;
        if self.status == StatusCode::UNAUTHORIZED {
            let how = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, how);
        }
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            let soon = HeaderValue::from_static("1");
            response.headers_mut().insert(header::RETRY_AFTER, soon);
        }
        response
    }
}

/// Gives the status that says best what happened.
fn status_of(report: &Report) -> StatusCode {
    match report.code {
        ErrorCode::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden
        | ErrorCode::NotFromInside
        | ErrorCode::OwnProposal
        | ErrorCode::OwnFailure
        | ErrorCode::Permission => StatusCode::FORBIDDEN,
        ErrorCode::UnknownOperation
        | ErrorCode::UnknownTask
        | ErrorCode::UnknownCheckpoint
        | ErrorCode::UnknownRollout
        | ErrorCode::UnknownNode
        | ErrorCode::UnknownRoute
        | ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::TimedOut => StatusCode::REQUEST_TIMEOUT,
        ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::TooMany => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Interrupted | ErrorCode::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::StoreFull | ErrorCode::DiskFull | ErrorCode::NoSpace => {
            StatusCode::INSUFFICIENT_STORAGE
        }
        ErrorCode::MalformedName | ErrorCode::AmbiguousName => StatusCode::BAD_REQUEST,
        _ => match report.severity {
            Severity::Usage => StatusCode::BAD_REQUEST,
            Severity::Broken => StatusCode::INTERNAL_SERVER_ERROR,
            Severity::Refused => StatusCode::CONFLICT,
        },
    }
}

/// Answers with JSON.
pub(crate) fn json(value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(text) => typed("application/json", text),
        Err(error) => {
            let report = Report::refused("the reply could not be written").because(error);
            Failed::from(report.code(ErrorCode::NoReply)).into_response()
        }
    }
}

/// Answers with something of a type.
pub(crate) fn typed(kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Writes a reply down, with what was recovered on the way to it.
pub(crate) fn told(engine: &Engine, reply: &impl Serialize) -> Result<Value, Failed> {
    let unwritten = |error: serde_json::Error| {
        let report = Report::refused("the reply could not be written").because(error);
        Failed::from(report.code(ErrorCode::NoReply))
    };
    let mut value = serde_json::to_value(reply).map_err(unwritten)?;
    let (recovered, left) = (engine.take_recovered(), engine.take_acts_left());
    if let Some(object) = value.as_object_mut() {
        if !recovered.is_empty() {
            let recovered = serde_json::to_value(recovered).map_err(unwritten)?;
            object.insert("recovered".to_owned(), recovered);
        }
        if !left.is_empty() {
            let left = serde_json::to_value(left).map_err(unwritten)?;
            object.insert("acts_left".to_owned(), left);
        }
    }
    Ok(value)
}
