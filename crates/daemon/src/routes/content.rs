//! The bytes of one side of a file that an operation changed: for pictures on the page, and for programs.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, Uri, header};
use axum::response::Response;
use backout_engine::{Context, ErrorCode, Report};
use backout_model::TargetPath;

use crate::answer::{Failed, typed};
use crate::app::App;
use crate::ask::{Named, Who, Words, unreadable};
use crate::limits::CONTENT_BYTES_MAX;
use crate::own;
use crate::roles::{Need, permit};

/// Pictures that a browser shows and that cannot carry a script, by how their bytes begin.
const PICTURES: [(&[u8], &str); 5] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
];

pub(super) async fn content(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    Named(operation): Named,
    uri: Uri,
) -> Result<Response, Failed> {
    permit(&caller, Need::Look)?;
    let mut words = Words::of(&uri)?;
    let path = words.text("path")?.unwrap_or_default();
    let path = TargetPath::new(path).map_err(|error| unreadable("`path`", &error.to_string()))?;
    let is_after = match words.text("side")?.as_deref() {
        Some("after") => true,
        Some("before") => false,
        _ => return Err(unreadable("`side`", "it is `before` or `after`")),
    };
    words.end()?;
    let context = caller.context(Context::default())?;
    app.work(&caller, context, move |engine, caller| {
        if let Some(agent) = caller.only_of() {
            own::own(engine, agent, &operation)?;
        }
        let bytes = engine.side_of(&operation, &path, is_after, CONTENT_BYTES_MAX)?;
        let bytes = bytes.map_err(|why| {
            let report = Report::refused("there are no bytes to give").because(why);
            Failed::from(report.code(ErrorCode::NotFound))
        })?;
        let kind = kind_of(&bytes);
        let mut response = typed(kind, bytes);
        // Whatever it is, it is no page of ours.
        let how = if kind == "application/octet-stream" {
            "attachment"
        } else {
            "inline"
        };
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(how));
        Ok(response)
    })
    .await
}

fn kind_of(bytes: &[u8]) -> &'static str {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let mut pictures = PICTURES.iter();
    let picture = pictures.find(|(beginning, _)| bytes.starts_with(beginning));
    match picture {
        _ if is_webp => "image/webp",
        Some((_, kind)) => kind,
        None => "application/octet-stream",
    }
}
