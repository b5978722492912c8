//! The graph: operations, and what was built on what. And the project's state graph.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use backout_engine::{
    Command, Context, Engine, EngineError, Filter, GraphCommand, GraphPlace, OperationRef,
};
use backout_model::{AgentId, Lsn, Operation};
use serde_json::{Value, json as object};

use super::operations::listed;
use crate::answer::{Failed, json};
use crate::app::App;
use crate::ask::{Who, Words};
use crate::own;
use crate::roles::{Need, permit};

/// How many operations one answer may hold.
pub(super) const LIMIT_MAX: usize = 2_000;

const LIMIT: usize = 200;

pub(super) async fn graph(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    permit(&caller, Need::Look)?;
    let mut words = Words::of(&uri)?;
    let around: Option<OperationRef> = match words.text("around")? {
        Some(name) => Some(name.parse().map_err(EngineError::Ref)?),
        None => None,
    };
    let before = words.lsn("before")?;
    let limit = words.limit(LIMIT, LIMIT_MAX)?;
    words.end()?;
    let context = caller.context(Context::default())?;
    app.work(&caller, context, move |engine, caller| {
        let own = caller.only_of();
        let mut operations = match &around {
            Some(operation) => connected(engine, own, operation)?,
            None => newest(engine, own, before, limit)?,
        };
        let is_cut = operations.len() > limit || (around.is_none() && operations.len() == limit);
        operations.truncate(limit);
        let next = operations.last().filter(|_| is_cut).map(|it| it.lsn);
        Ok(json(&drawn(&operations, next)))
    })
    .await
}

/// Shows the project's state graph.
pub(super) async fn state(
    State(app): State<Arc<App>>,
    Who(caller): Who,
    uri: Uri,
) -> Result<Response, Failed> {
    let mut words = Words::of(&uri)?;
    let at = words.lsn("at")?.map(GraphPlace::Lsn);
    words.end()?;
    let command = Command::Graph(GraphCommand::Show { at });
    let reply = app.command(&caller, Context::default(), command).await?;
    Ok(json(&reply))
}

fn newest(
    engine: &Engine,
    own: Option<&AgentId>,
    before: Option<Lsn>,
    limit: usize,
) -> Result<Vec<Operation>, Failed> {
    let filter = Filter {
        agent: own.cloned(),
        before,
        limit: Some(limit),
        ..Filter::default()
    };
    listed(engine, &filter)
}

/// Gathers what hangs together with an operation, newest first.
fn connected(
    engine: &Engine,
    own: Option<&AgentId>,
    operation: &OperationRef,
) -> Result<Vec<Operation>, Failed> {
    if let Some(agent) = own {
        own::own(engine, agent, operation)?;
    }
    let store = engine.store();
    let id = store.resolve(operation).map_err(EngineError::from)?;
    let mut operations = store.connected(&[id]).map_err(EngineError::from)?;
    operations.retain(|it| own.is_none() || it.agent.as_ref() == own);
    operations.sort_by_key(|it| std::cmp::Reverse(it.lsn));
    Ok(operations)
}

fn drawn(operations: &[Operation], next: Option<Lsn>) -> Value {
    let there: HashSet<_> = operations.iter().map(|it| it.id).collect();
    let edges: Vec<Value> = operations
        .iter()
        .flat_map(|it| it.depends_on.iter().map(move |on| (it.id, on)))
        .filter(|(_, on)| there.contains(&on.on))
        .map(|(from, on)| object!({"from": from, "to": on.on, "reason": on.reason}))
        .collect();
    let nodes: Vec<Value> = operations.iter().map(node).collect();
    object!({"nodes": nodes, "edges": edges, "next": next})
}

fn node(operation: &Operation) -> Value {
    let mut node = object!({
        "id": operation.id,
        "lsn": operation.lsn,
        "at": operation.at,
        "verb": operation.verb,
        "summary": operation.summary,
        "status": operation.status,
    });
    let more = [
        ("agent", operation.agent.as_ref().map(|it| object!(it))),
        ("task", operation.task.as_ref().map(|it| object!(it))),
        ("prompt", operation.prompt.as_ref().map(|it| object!(it))),
        ("undoes", operation.undoes.map(|it| object!(it))),
        ("group", operation.group.map(|it| object!(it))),
    ];
    if let Some(node) = node.as_object_mut() {
        for (name, value) in more {
            if let Some(value) = value {
                node.insert(name.to_owned(), value);
            }
        }
    }
    node
}
