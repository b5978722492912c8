//! Sessions of the page: a one-time link, the cookie or what is there instead of it, and its end.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use backout_engine::{ErrorCode, Report};
use serde::Deserialize;
use serde_json::json as object;

use super::deciding::Nothing;
use crate::answer::{Failed, json};
use crate::app::App;
use crate::ask::{Who, body};
use crate::auth::{bearer, cookie};
use crate::caller::{Way, forbidden};
use crate::roles::{Need, permit};
use crate::sessions::{By, CODE_LIFE, SESSION_LIFE};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Code {
    code: String,
}

pub(super) async fn link(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    sent: Body,
) -> Result<Response<Body>, Failed> {
    let Nothing {} = body(&app, sent).await?;
    permit(&caller, Need::Operate)?;
    if caller.way != Way::Socket {
        return Err(
            forbidden("a link to the page is only given to who comes by the unix socket")
                .next("run `backout ui`")
                .into(),
        );
    }
    // An agent's own process must not become an operator by opening the page.
    if caller
        .forebears
        .iter()
        .any(|it| it.agent.is_some() || it.within.is_some())
    {
        return Err(
            forbidden("whoever asks was started by an agent, or inside of a command").into(),
        );
    }
    let Some(url) = &app.url else {
        return Err(Report::refused("there is no address for a browser")
            .code(ErrorCode::NotListening)
            .because("the server was started with `--no-tcp`")
            .next("start it without that")
            .into());
    };
    let code = app.sessions.new_code()?;
    let (url, seconds) = (format!("{url}/enter#{code}"), CODE_LIFE.as_secs());
    Ok(json(&object!({"url": url, "seconds": seconds})))
}

pub(super) async fn enter(
    State(app): State<Arc<App>>,
    sent: Body,
) -> Result<Response<Body>, Failed> {
    let secret = open(&app, sent, By::Cookie).await?;
    set_cookie(&app, &secret, SESSION_LIFE.as_secs())
}

/// For a browser that keeps no cookies: the page remembers the secret itself, until it is closed or loaded again.
pub(super) async fn enter_by_memory(
    State(app): State<Arc<App>>,
    sent: Body,
) -> Result<Response<Body>, Failed> {
    let bearer = open(&app, sent, By::Memory).await?;
    let seconds = SESSION_LIFE.as_secs();
    Ok(json(&object!({"bearer": bearer, "seconds": seconds})))
}

async fn open(app: &Arc<App>, sent: Body, by: By) -> Result<String, Failed> {
    let Code { code } = body(app, sent).await?;
    let secret = app.sessions.enter(&code, by)?;
    secret.ok_or_else(|| {
        let report = Report::refused("the link cannot be used").code(ErrorCode::Unauthenticated);
        let report = report.because("it was used before, or is too old");
        report.next("get another one with `backout ui`").into()
    })
}

pub(super) async fn leave(
    State(app): State<Arc<App>>,
    Who(_caller): Who,
    headers: HeaderMap,
) -> Result<Response<Body>, Failed> {
    for secret in [cookie(&app, &headers), bearer(&headers)]
        .into_iter()
        .flatten()
    {
        app.sessions.leave(secret);
    }
    set_cookie(&app, "", 0)
}

fn set_cookie(app: &App, secret: &str, seconds: u64) -> Result<Response<Body>, Failed> {
    let secure = if app.has_tls { "; Secure" } else { "" };
    let name = &app.cookie;
    let text =
        format!("{name}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let value = HeaderValue::from_str(&text)
        .map_err(|error| Report::refused("no session was opened").because(error))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(header::SET_COOKIE, value);
    Ok(response)
}
