//! The door: limits, Host, Origin and who asks, in this order, before a request is read.
//!
//! - A page from elsewhere in the same browser gets nowhere: its `Origin` is not ours, a name that it bends to us is not our `Host`, and the
//!   cookie does not travel with what it sends.
//! - Loopback is not a proof: every user of the machine can reach it. So TCP always asks for a token or a session.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::Next;
use axum::response::IntoResponse as _;
use backout_engine::{ErrorCode, Report};

use crate::answer::Failed;
use crate::app::App;
use crate::caller::{Caller, Role, Way, forbidden};
use crate::limits::HEAD_BYTES_MAX;
use crate::listen::Peer;
use crate::otlp::Traced;
use crate::sessions::By;
use crate::tokens::PREFIX;

/// What is no secret: the page without its data, and what the API looks like.
const PUBLIC: [&str; 5] = [
    "/openapi.json",
    "/healthz",
    "/enter",
    "/v1/session",
    "/v1/session/bearer",
];

/// Names in a query that carry secrets elsewhere.
const SECRETS: [&str; 6] = [
    "token",
    "access_token",
    "auth",
    "authorization",
    "code",
    "key_secret",
];

const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
     connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Lets a request in, or not.
pub(crate) async fn door(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let mut traced = app.telemetry.as_ref().and_then(|_| Traced::begin(&request));
    let mut response = match admit(&app, &request) {
        Ok((slot, caller)) => {
            if let Some(mut caller) = caller {
                if let Some(traced) = &mut traced {
                    traced.asked_by(&caller);
                    caller.trace = Some(traced.trace());
                }
                request.extensions_mut().insert(caller);
            }
            let response = next.run(request).await;
            drop(slot);
            response
        }
        Err(failed) => failed.into_response(),
    };
    app.metrics.answered(response.status());
    if let (Some(traced), Some(telemetry)) = (traced, &app.telemetry) {
        traced.end(response.status(), telemetry);
    }
    for (name, value) in [
        ("content-security-policy", CSP),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        let name = HeaderName::from_static(name);
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
        .headers_mut()
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

type Admitted = (tokio::sync::OwnedSemaphorePermit, Option<Caller>);

fn admit(app: &Arc<App>, request: &Request) -> Result<Admitted, Failed> {
    let slot = App::slot(&app.requests, "too many requests are under way")?;
    app.metrics.requests.fetch_add(1, Ordering::Relaxed);
    let peer = request.extensions().get::<Peer>();
    let peer = peer.ok_or_else(|| unauthenticated("nothing is known of the connection"))?;
    no_secret_in(request.uri().query().unwrap_or_default())?;
    let headers = request.headers();
    check_size(request)?;
    if matches!(peer, Peer::Tcp) {
        check_host(app, request)?;
    }
    let is_ours = check_origin(app, headers)?;
    check_type(request)?;
    let path = request.uri().path();
    let is_public = PUBLIC.contains(&path) || crate::page::is_file(path);
    let caller = match who(app, headers, peer) {
        Ok(caller) => Some(caller),
        Err(_) if is_public => None,
        Err(failed) => return Err(failed),
    };
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD);
    let by_cookie = caller.as_ref().is_some_and(|it| it.way == Way::Session);
    if by_cookie && !is_safe && !is_ours {
        return Err(forbidden("a page must say that the request is its own")
            .because("neither `Origin` nor `Sec-Fetch-Site` does")
            .into());
    }
    Ok((slot, caller))
}

/// Finds out who asks. A token goes before everything else: it may make the caller less than he is, never more.
fn who(app: &App, headers: &HeaderMap, peer: &Peer) -> Result<Caller, Failed> {
    if headers.contains_key(header::AUTHORIZATION) {
        let secret = bearer(headers);
        // A page that remembers its session is still a page: what it sends must say that it is its own.
        if secret.is_some_and(|secret| app.sessions.is_open(secret, By::Memory)) {
            return Ok(operator(Way::Session, peer));
        }
        let token = secret.and_then(|secret| app.tokens.find(secret));
        let token = token.ok_or_else(|| unauthenticated("the token is not known"))?;
        return Ok(Caller {
            role: token.role,
            agent: token.agent,
            way: Way::Token,
            forebears: peer.forebears(),
            trace: None,
        });
    }
    if let Some(secret) = cookie(app, headers)
        && app.sessions.is_open(secret, By::Cookie)
    {
        return Ok(operator(Way::Session, peer));
    }
    match peer {
        Peer::Unix { .. } => Ok(operator(Way::Socket, peer)),
        Peer::Tcp => Err(unauthenticated("a token is needed")),
    }
}

fn operator(way: Way, peer: &Peer) -> Caller {
    Caller {
        role: Role::Operator,
        agent: None,
        way,
        forebears: peer.forebears(),
        trace: None,
    }
}

/// Finds what is sent as a bearer.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = given.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(secret.trim())
}

/// Finds our cookie.
pub(crate) fn cookie<'h>(app: &App, headers: &'h HeaderMap) -> Option<&'h str> {
    let all = headers.get_all(header::COOKIE).into_iter();
    let mut pairs = all
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == app.cookie).then_some(value))
}

fn unauthenticated(why: &str) -> Failed {
    Report::refused("it is not clear who asks")
        .code(ErrorCode::Unauthenticated)
        .because(why)
        .next("send `Authorization: Bearer TOKEN`; `backout serve token add` makes one")
        .next("open the page with `backout ui`")
        .into()
}

/// What reads the head takes somewhat more than it is told to.
fn check_size(request: &Request) -> Result<(), Failed> {
    let lines = request.headers().iter();
    let size: usize = lines
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let uri = request.uri().path().len() + request.uri().query().map_or(0, str::len);
    if size + uri <= HEAD_BYTES_MAX {
        return Ok(());
    }
    let report = Report::refused("the head of the request is too large").code(ErrorCode::TooLarge);
    let report = report.because(format!("it may have {} KiB", HEAD_BYTES_MAX / 1024));
    Err(Failed::with(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        report,
    ))
}

/// URLs end up in logs and histories: what is in one is no secret any more.
fn no_secret_in(query: &str) -> Result<(), Failed> {
    let mut pairs = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let is_secret = pairs.any(|(name, value)| {
        SECRETS.contains(&name.to_ascii_lowercase().as_str()) || value.starts_with(PREFIX)
    });
    if !is_secret {
        return Ok(());
    }
    Err(Report::usage("a URL holds a secret")
        .because("URLs end up in logs and in histories, so it is not looked at")
        .next("send `Authorization: Bearer TOKEN` instead, and take that token back with `backout serve token revoke`")
        .into())
}

/// A name that somebody bends to our address is not ours.
fn check_host(app: &App, request: &Request) -> Result<(), Failed> {
    let named = request.headers().get(header::HOST);
    let named = named.and_then(|host| host.to_str().ok());
    let named = named.or_else(|| {
        request
            .uri()
            .authority()
            .map(axum::http::uri::Authority::as_str)
    });
    let is_ours = named.is_some_and(|named| {
        let named = named.to_ascii_lowercase();
        app.hosts.contains(&named)
    });
    if is_ours {
        return Ok(());
    }
    let report = forbidden("the request is for another host than this one")
        .next("ask by the address that `backout serve` printed, or name the host with `--host`");
    Err(Failed::with(StatusCode::MISDIRECTED_REQUEST, report))
}

/// Refuses what a page from elsewhere sends. Tells whether the request says of itself that it is from our own page.
fn check_origin(app: &App, headers: &HeaderMap) -> Result<bool, Failed> {
    let scheme = if app.has_tls { "https" } else { "http" };
    let of = |name: &str| headers.get(name).map(|it| it.to_str().unwrap_or("?"));
    let origin = of("origin");
    let is_ours = |origin: &str| {
        let host = origin
            .strip_prefix(scheme)
            .and_then(|it| it.strip_prefix("://"));
        host.is_some_and(|host| app.hosts.iter().any(|own| own == host))
    };
    let site = of("sec-fetch-site");
    let is_elsewhere = site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
    if origin.is_some_and(|origin| !is_ours(origin))
        || is_elsewhere && of("sec-fetch-mode") != Some("navigate")
    {
        return Err(forbidden("a page from elsewhere sent it").into());
    }
    Ok(origin.is_some() || site == Some("same-origin"))
}

/// Whoever can send this type from another page was asked by the browser first, and the answer was no.
fn check_type(request: &Request) -> Result<(), Failed> {
    let has_body = !matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::DELETE
    );
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.map(|kind| kind.to_str().unwrap_or_default());
    let is_json = kind.is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("application/json")
    });
    let is_empty = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .is_none_or(|it| it == "0")
        && request.headers().get(header::TRANSFER_ENCODING).is_none();
    if !has_body || is_json || (is_empty && kind.is_none()) {
        return Ok(());
    }
    let report = Report::usage("the body is not said to be JSON")
        .next("send it with `Content-Type: application/json`");
    Err(Failed::with(StatusCode::UNSUPPORTED_MEDIA_TYPE, report))
}
