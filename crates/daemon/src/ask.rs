//! Reading what a request says: names in paths, words in queries, JSON in bodies. Whatever cannot be read is said as a report.

use std::str::FromStr;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use backout_engine::{EngineError, ErrorCode, Glob, OperationRef, Report, Selection};
use backout_model::ports::OnConflict;
use backout_model::{Key, Lsn};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::answer::Failed;
use crate::app::App;
use crate::caller::Caller;
use crate::limits::BODY_BYTES_MAX;

/// Who asks, as the door found out.
pub(crate) struct Who(pub(crate) Caller);

impl FromRequestParts<Arc<App>> for Who {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, _app: &Arc<App>) -> Result<Self, Failed> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.map(Self).ok_or_else(|| {
            let report = Report::refused("it is not clear who asks");
            report.code(ErrorCode::Unauthenticated).into()
        })
    }
}

/// The operation that a path names.
pub(crate) struct Named(pub(crate) OperationRef);

impl FromRequestParts<Arc<App>> for Named {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failed> {
        let name = Path::<String>::from_request_parts(parts, app).await;
        let Path(name) = name.map_err(|error| unreadable("the path", &error.to_string()))?;
        let reference = name.parse().map_err(EngineError::Ref)?;
        Ok(Self(reference))
    }
}

/// The words of a query. Each is taken once; what is left at the end is not known.
pub(crate) struct Words(Vec<(String, String)>);

impl Words {
    pub(crate) fn of(uri: &Uri) -> Result<Self, Failed> {
        let words = Query::<Vec<(String, String)>>::try_from_uri(uri);
        let Query(words) = words.map_err(|error| unreadable("the query", &error.to_string()))?;
        Ok(Self(words))
    }

    /// Takes all values of a name.
    pub(crate) fn all(&mut self, name: &str) -> Vec<String> {
        let (taken, left) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(its, _)| its == name);
        self.0 = left;
        let taken: Vec<(String, String)> = taken;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    /// Takes the only value of a name.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Failed> {
        let mut values = self.all(name).into_iter();
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(unreadable(
                &format!("`{name}`"),
                "it is given more than once",
            )),
        }
    }

    /// Takes a value and reads it.
    pub(crate) fn read<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, Failed>
    where
        T::Err: ToString,
    {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let value = text
            .parse()
            .map_err(|error: T::Err| unreadable(&format!("`{name}`"), &error.to_string()))?;
        Ok(Some(value))
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Failed> {
        Ok(self.read::<bool>(name)?.unwrap_or(false))
    }

    pub(crate) fn lsn(&mut self, name: &str) -> Result<Option<Lsn>, Failed> {
        const MOST: u64 = i64::MAX as u64;
        let number = self.read::<u64>(name)?;
        Ok(number.map(|number| Lsn(number.min(MOST))))
    }

    /// Takes how many are wanted.
    pub(crate) fn limit(&mut self, usual: usize, most: usize) -> Result<usize, Failed> {
        let limit = self.read::<usize>("limit")?.unwrap_or(usual);
        if (1..=most).contains(&limit) {
            return Ok(limit);
        }
        Err(unreadable(
            "`limit`",
            &format!("it is between 1 and {most}"),
        ))
    }

    /// Makes sure that nothing is left.
    pub(crate) fn end(self) -> Result<(), Failed> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(unreadable(
                "the query",
                &format!("`{name}` is not known here"),
            )),
        }
    }
}

/// How to take something back, as HTTP says it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of its own for whoever asks"
)]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UndoBody {
    pub(crate) only: Vec<String>,
    pub(crate) exclude: Vec<String>,
    pub(crate) merge: bool,
    pub(crate) force: bool,
    pub(crate) partial: bool,
    pub(crate) others: bool,
    pub(crate) committed: bool,
    pub(crate) with_dependencies: bool,
}

impl UndoBody {
    /// Takes it from a query.
    pub(crate) fn of(words: &mut Words) -> Result<Self, Failed> {
        Ok(Self {
            only: words.all("only"),
            exclude: words.all("exclude"),
            merge: words.flag("merge")?,
            force: words.flag("force")?,
            partial: words.flag("partial")?,
            others: words.flag("others")?,
            committed: words.flag("committed")?,
            with_dependencies: words.flag("with_dependencies")?,
        })
    }

    /// Says it to the engine.
    pub(crate) fn options(&self, diff: bool) -> Result<backout_engine::UndoOptions, Failed> {
        let on_conflict = match (self.merge, self.force) {
            (true, true) => {
                return Err(unreadable(
                    "the body",
                    "`merge` and `force` exclude each other",
                ));
            }
            (true, false) => OnConflict::Merge,
            (false, true) => OnConflict::Force,
            (false, false) => OnConflict::Refuse,
        };
        Ok(backout_engine::UndoOptions {
            on_conflict,
            with_dependencies: self.with_dependencies,
            committed: self.committed,
            others: self.others,
            partial: self.partial,
            selection: selection(&self.only, &self.exclude)?,
            diff,
            only: None,
            trigger: None,
        })
    }
}

/// Reads patterns. A server is nowhere, so they are absolute, or name targets elsewhere.
pub(crate) fn selection(only: &[String], exclude: &[String]) -> Result<Selection, Failed> {
    let read = |patterns: &[String]| {
        let mut globs = Vec::new();
        for pattern in patterns {
            let elsewhere = Glob::elsewhere(pattern);
            if !pattern.starts_with('/') && elsewhere.is_none() {
                return Err(unreadable(
                    &format!("the pattern `{pattern}`"),
                    "it is no absolute path and no key",
                ));
            }
            globs.extend(elsewhere);
            if pattern.starts_with('/') {
                globs.push(Glob::new(pattern, std::path::Path::new("/")));
            }
        }
        Ok(globs)
    };
    Ok(Selection {
        only: read(only)?,
        exclude: read(exclude)?,
    })
}

/// Reads a place: an absolute path, or another target as it is printed.
pub(crate) fn place(text: &str) -> Result<Key, Failed> {
    text.parse()
        .map_err(|error: backout_model::KeyError| unreadable("`at`", &error.to_string()))
}

/// Reads a body as JSON, no more than is allowed and no longer than is waited for. None at all is an empty object.
pub(crate) async fn body<T: DeserializeOwned>(app: &App, body: Body) -> Result<T, Failed> {
    let limited = Limited::new(body, BODY_BYTES_MAX).collect();
    let Ok(read) = tokio::time::timeout(app.patience.answer, limited).await else {
        let report = Report::refused("the body did not come").code(ErrorCode::TimedOut);
        return Err(report.next("send it faster, or in parts").into());
    };
    let text: Bytes = match read {
        Ok(read) => read.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let most = BODY_BYTES_MAX / 1024 / 1024;
            let report = Report::refused("the body is too large").code(ErrorCode::TooLarge);
            return Err(report.because(format!("it may have {most} MiB")).into());
        }
        Err(error) => return Err(unreadable("the body", &error.to_string())),
    };
    let text: &[u8] = if text.is_empty() { b"{}" } else { &text };
    serde_json::from_slice(text).map_err(|error| unreadable("the body", &error.to_string()))
}

/// Says that something of the request cannot be read.
pub(crate) fn unreadable(what: &str, why: &str) -> Failed {
    let report = Report::usage(format!("{what} cannot be read")).because(why);
    Failed::with(
        StatusCode::BAD_REQUEST,
        report.next("see what is expected: `GET /openapi.json`"),
    )
}
