//! `GET /v1/events`: the journal as a stream. The queue of a slow reader is the journal itself: each reader has its own place in it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use backout_engine::{Context, Engine, EngineError};
use backout_model::{AgentId, Event, Lsn, Record};
use serde_json::{Value, json as object};
use tokio::sync::watch;

use crate::answer::Failed;
use crate::app::App;
use crate::ask::{Who, Words, unreadable};
use crate::caller::Caller;
use crate::roles::{Need, permit};
use crate::stream::{Events, Gone, stream};
use crate::watch::last_place;

/// How many records are read at a time.
const AT_A_TIME: usize = 100;

pub(super) async fn events(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Failed> {
    permit(&caller, Need::Look)?;
    let mut words = Words::of(&uri)?;
    let asked = words.lsn("after")?;
    words.end()?;
    // What a reader has seen goes before where it once began.
    let seen = match headers.get("last-event-id") {
        Some(seen) => {
            let number = seen.to_str().ok().and_then(|seen| seen.trim().parse().ok());
            let number = number.ok_or_else(|| unreadable("`Last-Event-ID`", "it is no place"))?;
            Some(Lsn(number))
        }
        None => asked,
    };
    let slot = App::slot(&app.streams, "too many read events already")?;
    let context = caller.context(Context::default())?;
    let last = app
        .work(&caller, context, |engine, _| Ok(last_place(engine)))
        .await?;
    let last = Lsn(last.unwrap_or_default());
    let from = seen.map_or(last, |seen| seen.min(last));
    let (events, response) = stream(slot, app.patience.reader);
    tokio::spawn(async move {
        let _gone = follow(&app, &caller, &events, from).await;
    });
    Ok(response)
}

/// Sends what is new until the reader is gone or the server ends.
async fn follow(app: &Arc<App>, caller: &Caller, events: &Events, from: Lsn) -> Result<(), Gone> {
    let (mut head, mut stop) = (app.head.clone(), app.stop.clone());
    let mut place = from;
    events
        .send(Some(place.0), "hello", &object!({"lsn": place}))
        .await?;
    loop {
        // Marked before the look: what comes during it wakes us again.
        head.mark_unchanged();
        while let Some((last, told)) = next(app, caller, place).await {
            for (id, kind, data) in told {
                events.send(id, kind, &data).await?;
            }
            place = last;
        }
        tokio::select! {
            changed = head.changed() => changed.map_err(|_| Gone)?,
            () = events.closed() => return Err(Gone),
            () = tokio::time::sleep(app.patience.silence) => events.breathe().await?,
            () = stopped(&mut stop) => return Ok(()),
        }
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // What it gives back must not be held across a wait.
    let _ended = stop.wait_for(|stop| *stop).await.is_ok();
}

type Told = Vec<One>;

/// Reads what comes after a place; none if there is nothing.
async fn next(app: &Arc<App>, caller: &Caller, place: Lsn) -> Option<(Lsn, Told)> {
    let context = caller.context(Context::default()).ok()?;
    let read = app.work(caller, context, move |engine, caller| {
        let records = engine.store().records_after(place, AT_A_TIME);
        let records = records.map_err(EngineError::from)?;
        let Some(last) = records.last().map(|record| record.lsn) else {
            return Ok(None);
        };
        let mut told = Told::new();
        if records
            .first()
            .is_some_and(|first| first.lsn > place.next())
        {
            told.push((None, "gap", object!({"after": place})));
        }
        for record in records {
            told.extend(tell(engine, caller.only_of(), &record)?);
        }
        Ok(Some((last, told)))
    });
    read.await.ok().flatten()
}

/// An event: its id, kind and data.
type One = (Option<u64>, &'static str, Value);

/// Says what a record is about. Recipes and contents stay where they are.
fn tell(
    engine: &Engine,
    own: Option<&AgentId>,
    record: &Record,
) -> Result<Option<One>, EngineError> {
    let kind = record.event.kind();
    let mut data = object!({"lsn": record.lsn, "at": record.at, "event": kind});
    let mut also = |name: &str, value: Value| {
        if let Some(data) = data.as_object_mut() {
            data.insert(name.to_owned(), value);
        }
    };
    let mut agent = None;
    if let Some(id) = record.event.operation() {
        also("id", object!(id));
        if let Some(operation) = engine.store().operation(id)? {
            agent.clone_from(&operation.agent);
            also("operation", object!(operation));
        }
    }
    let event = &record.event;
    if let Some(task) = event.task() {
        also("task", object!(task));
        agent = if let Event::TaskBegin { agent, .. } = event {
            agent.clone()
        } else {
            engine.store().task(task)?.and_then(|known| known.agent)
        };
    } else if let Event::Prompt(prompt) = event {
        also("prompt", object!(prompt.id));
        agent = Some(prompt.agent.clone());
    } else if let Event::Checkpoint(checkpoint) = event {
        also("checkpoint", object!(checkpoint.name));
        agent.clone_from(&checkpoint.agent);
    } else if let Event::Proposed(proposal) = event {
        agent.clone_from(&proposal.agent);
    }
    if let Some(ids) = event.lets_go() {
        also("ids", object!(ids));
    }
    if own.is_some() && agent.as_ref() != own {
        return Ok(None);
    }
    Ok(Some((Some(record.lsn.0), kind, data)))
}
