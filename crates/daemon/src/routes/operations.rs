//! Operations: the list, one of them, and what it changed.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use backout_engine::{Command, Context, Engine, Filter, Reply};
use backout_model::{Operation, Status, Verb};
use serde_json::json as object;

use crate::answer::{Failed, json};
use crate::app::App;
use crate::ask::{Named, Who, Words, place, selection, unreadable};
use crate::roles::{Need, permit};

/// How many operations one answer may hold.
pub(super) const LIMIT_MAX: usize = 500;

const LIMIT: usize = 50;

/// How many operations are looked at for one answer. A rare word is found page by page.
const LOOKED_AT_MAX: usize = 5_000;

/// What the list is narrowed by, beyond what the journal has an index for.
struct Sieve {
    verb: Option<Verb>,
    status: Option<Status>,
    /// Each must be found, in lower case.
    words: Vec<String>,
}

impl Sieve {
    fn keeps(&self, operation: &Operation) -> bool {
        self.verb.is_none_or(|verb| operation.verb == verb)
            && self.status.is_none_or(|status| operation.status == status)
            && (self.words.is_empty() || self.finds(operation))
    }

    fn finds(&self, operation: &Operation) -> bool {
        let mut text = operation.summary.clone();
        let agent = operation.agent.as_ref().map(backout_model::AgentId::as_str);
        let task = operation.task.as_ref().map(backout_model::TaskId::as_str);
        for part in [agent, task].into_iter().flatten() {
            text.push('\n');
            text.push_str(part);
        }
        text.push('\n');
        text.push_str(&operation.id.to_string());
        for standing in &operation.targets {
            text.push('\n');
            text.push_str(&standing.target.key().plainly());
        }
        let text = text.to_lowercase();
        self.words.iter().all(|word| text.contains(word))
    }
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    permit(&caller, Need::Look)?;
    let mut words = Words::of(&uri)?;
    let at = words.text("at")?;
    let mut filter = Filter {
        agent: words.read("agent")?,
        task: words.read("task")?,
        prompt: words.read("prompt")?,
        at: at.as_deref().map(place).transpose()?,
        after: words.lsn("after")?,
        before: words.lsn("before")?,
        ..Filter::default()
    };
    let sieve = Sieve {
        verb: word(&mut words, "verb")?,
        status: word(&mut words, "status")?,
        words: words
            .text("q")?
            .unwrap_or_default()
            .to_lowercase()
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
    };
    let limit = words.limit(LIMIT, LIMIT_MAX)?;
    words.end()?;
    if let Some(own) = caller.only_of() {
        if filter.agent.as_ref().is_some_and(|asked| asked != own) {
            return Err(crate::caller::forbidden("the token is for another agent").into());
        }
        filter.agent = Some(own.clone());
    }
    let context = caller.context(Context::default())?;
    app.work(&caller, context, move |engine, _| {
        page(engine, filter, &sieve, limit)
    })
    .await
}

/// Reads as much of the list as is asked for. `next` is where it goes on.
fn page(
    engine: &Engine,
    mut filter: Filter,
    sieve: &Sieve,
    limit: usize,
) -> Result<Response, Failed> {
    let (mut kept, mut looked_at, mut next) = (Vec::new(), 0, None);
    filter.limit = Some(limit);
    'pages: loop {
        let operations = listed(engine, &filter)?;
        let is_end = operations.len() < limit;
        for operation in operations {
            filter.before = Some(operation.lsn);
            looked_at += 1;
            if sieve.keeps(&operation) {
                kept.push(operation);
            }
            if kept.len() == limit {
                next = filter.before;
                break 'pages;
            }
        }
        if is_end {
            break;
        }
        if looked_at >= LOOKED_AT_MAX {
            next = filter.before;
            break;
        }
    }
    Ok(json(
        &object!({"reply": "log", "operations": kept, "next": next}),
    ))
}

/// Asks the engine for the list, as `log` does.
pub(super) fn listed(engine: &Engine, filter: &Filter) -> Result<Vec<Operation>, Failed> {
    let Reply::Log { operations } = engine.execute(Command::Log(filter.clone()))? else {
        return Ok(Vec::new());
    };
    Ok(operations)
}

/// Takes a word of ours.
fn word<T: serde::de::DeserializeOwned>(
    words: &mut Words,
    name: &str,
) -> Result<Option<T>, Failed> {
    let Some(text) = words.text(name)? else {
        return Ok(None);
    };
    let value = serde_json::from_value(object!(text));
    value
        .map(Some)
        .map_err(|error| unreadable(&format!("`{name}`"), &error.to_string()))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    Named(operation): Named,
    uri: Uri,
) -> Result<Response, Failed> {
    Words::of(&uri)?.end()?;
    let command = Command::Show(operation);
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}

pub(super) async fn diff(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    Named(operation): Named,
    uri: Uri,
) -> Result<Response, Failed> {
    let mut words = Words::of(&uri)?;
    let (only, exclude) = (words.all("only"), words.all("exclude"));
    let is_brief = words.flag("brief")?;
    words.end()?;
    let command = Command::Diff {
        operation,
        selection: selection(&only, &exclude)?,
        is_brief,
    };
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}
