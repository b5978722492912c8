//! The page: the files of `web/`, which are in the program. A one-time link leads to `/enter`, which is the page too.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, Uri, header};
use axum::response::IntoResponse as _;
use backout_engine::{ErrorCode, Report};

use crate::answer::{Failed, typed};

/// Every file of the page, by its name.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/web.rs"));

/// Tells whether a path is a file of the page: these hold no data, and need nobody.
pub(crate) fn is_file(path: &str) -> bool {
    find(path).is_some()
}

fn find(path: &str) -> Option<(&'static str, &'static [u8])> {
    let name = match path.strip_prefix('/')? {
        "" | "enter" => "index.html",
        name => name,
    };
    FILES.iter().find(|(file, _)| *file == name).copied()
}

/// Gives a file of the page, or says that there is no such route.
pub(crate) async fn file(uri: Uri) -> Response<Body> {
    match find(uri.path()) {
        Some((name, bytes)) => {
            let mut response = typed(kind_of(name), bytes);
            let always = HeaderValue::from_static("no-cache");
            response.headers_mut().insert(header::CACHE_CONTROL, always);
            response
        }
        None => missing().into_response(),
    }
}

fn missing() -> Failed {
    let report = Report::refused("there is no such route")
        .code(ErrorCode::UnknownRoute)
        .next("see which there are: `GET /openapi.json`");
    Failed::with(StatusCode::NOT_FOUND, report)
}

fn kind_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("json" | "webmanifest") => "application/json",
        _ => "application/octet-stream",
    }
}
