//! The driver of calls.

use std::fmt;
use std::sync::Arc;

use backout_model::compensation::{Hole, Idempotency};
use backout_model::ports::{
    Applied, Driver, DriverError, Durability, Examined, How, NewContent, OnConflict, Outline,
    Prepared, PreparedUndo, ReadContents, Request, Scope, Staged, State,
};
use backout_model::{
    Armed, Completion, Digest, DriverName, Effect, JsonText, OperationId, OperationKind,
    OutcomeKind, Recipe, Strategy, Target, TargetOutcome,
};

use super::error::HttpError;
use super::look::{is_as_sent, is_gone, see, state_of};
use super::recipe::{AnswerRecipe, Answered, CallRecipe, HTTP, HttpRecipe, Seen, SentKey, VERSION};
use super::request::{Heard, HttpRequest};
use super::send::{Ready, is_repeatable, key_of, now_ms};

/// The driver of calls.
pub struct HttpDriver {
    contents: Arc<dyn ReadContents>,
}

impl fmt::Debug for HttpDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpDriver")
    }
}

/// What is staged: everything is at hand, and nothing was sent.
#[derive(Debug)]
enum StagedCall {
    Call(Box<Ready>),
    Answer(Box<Ready>, Option<Answered>),
    Nothing,
}

impl Staged for StagedCall {}

impl HttpDriver {
    /// Makes one that reads what was kept from `contents`.
    pub fn new(contents: Arc<dyn ReadContents>) -> Self {
        Self { contents }
    }

    /// Gets the bodies of a call that was recorded.
    fn ready(&self, call: CallRecipe) -> Result<Ready, HttpError> {
        let read = |digest: Option<&Digest>| digest.map(|it| self.contents.read(it)).transpose();
        let body = read(call.body.as_ref())?;
        let before = read(call.before.as_ref().and_then(|seen| seen.body.as_ref()))?;
        Ok(Ready {
            call,
            body,
            before,
            guards: Vec::new(),
            heard: Heard::default(),
        })
    }

    /// Tells where the call that answers another one stands: the other way round.
    fn state_of_answer(
        &self,
        answer: &AnswerRecipe,
        is_recorded: bool,
    ) -> Result<State, HttpError> {
        let ready = self.ready(answer.call.clone())?;
        let rule = answer.call.rule.as_ref();
        let has_look = rule.is_some_and(|rule| rule.verify.is_some() || rule.lookup.is_some());
        if !has_look {
            return Ok(match (is_recorded, is_repeatable(&ready)) {
                (true, _) => State::After,
                // It does no harm to send it again.
                (false, true) => State::Before,
                (false, false) => unknown(),
            });
        }
        let (state, _) = state(&ready, answer.answered.clone())?;
        Ok(match state {
            State::After => State::Before,
            State::Before => State::After,
            other @ State::Other { .. } => other,
        })
    }

    fn undo_of_call(
        &self,
        id: OperationId,
        call: CallRecipe,
        answered: Option<Answered>,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        let target = call.target.clone();
        let ready = self.ready(call)?;
        if ready.call.before.is_some() {
            return undo_of_change(id, &ready, answered.as_ref(), how);
        }
        let Some(inverse) = ready
            .call
            .rule
            .as_ref()
            .and_then(|rule| rule.inverse.clone())
        else {
            let kind = if answered.is_some() {
                let why = "it was sent although nothing takes it back".to_owned();
                OutcomeKind::Failed { why }
            } else {
                let why = "it is not known whether it was sent, and nothing takes it back";
                let why = why.to_owned();
                OutcomeKind::InDoubt { why }
            };
            return Ok(outcome(nothing(&ready.call)?, target, kind));
        };
        let (state, answered) = match state(&ready, answered)? {
            // Sending it again tells; that is part of the undo, and no look.
            (State::Other { .. }, None) if ready.is_resolvable() => (State::After, None),
            found => found,
        };
        let needs_answer = {
            let mut templates = inverse.templates().into_iter();
            templates.any(|it| it.holes().any(Hole::is_of_answer))
        };
        let kind = match state {
            State::Before => OutcomeKind::AlreadyGone,
            State::After => OutcomeKind::Compensated,
            State::Other { .. } if how.on_conflict == OnConflict::Force && !needs_answer => {
                OutcomeKind::Compensated
            }
            State::Other { why } => OutcomeKind::InDoubt { why },
        };
        if kind != OutcomeKind::Compensated {
            return Ok(outcome(nothing(&ready.call)?, target, kind));
        }
        let call = ready.call.clone();
        let answer = AnswerRecipe {
            call,
            answered: answered.clone(),
        };
        let recipe = recipe_of(&HttpRecipe::Answer(Box::new(answer)), &ready.call)?;
        let contents = contents_of(&ready);
        let staged = StagedCall::Answer(Box::new(ready), answered);
        let mut prepared = Prepared::plain(recipe, vec![target.clone()], staged);
        prepared.strategy = Strategy::Compensation;
        prepared.contents = contents;
        Ok(outcome(prepared.boxed(), target, kind))
    }

    /// Makes a call again that was answered: a new effect, under a new key.
    fn redo(
        &self,
        id: OperationId,
        answer: AnswerRecipe,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        let target = answer.call.target.clone();
        if how.is_unfinished {
            let kind = match self.state_of_answer(&answer, false)? {
                State::Before => OutcomeKind::AlreadyGone,
                State::After => OutcomeKind::InDoubt {
                    why: "the call was answered, and the process died before that was recorded"
                        .to_owned(),
                },
                State::Other { why } => OutcomeKind::InDoubt { why },
            };
            return Ok(outcome(nothing(&answer.call)?, target, kind));
        }
        let mut ready = self.ready(CallRecipe { id, ..answer.call })?;
        ready.call.key = ready
            .call
            .rule
            .as_ref()
            .and_then(|rule| key_for(rule.idempotency.as_ref(), id));
        let prepared = staged(ready)?;
        Ok(outcome(prepared, target, OutcomeKind::Compensated))
    }
}

/// Tells where a call stands, with what it was answered, if that is known by now.
fn state(
    ready: &Ready,
    answered: Option<Answered>,
) -> Result<(State, Option<Answered>), HttpError> {
    let call = &ready.call;
    if call.before.is_some() {
        let (now, bytes) = see(call)?;
        let state = state_of(call, answered.as_ref(), &now, &bytes, ready.body.as_deref());
        return Ok((state, answered));
    }
    let Some(answered) = answered else {
        let looked = ready.looked_up()?;
        return Ok(looked.unwrap_or_else(|| (unknown(), None)));
    };
    let verify = call.rule.as_ref().and_then(|rule| rule.verify.as_ref());
    let gone = match verify {
        Some(verify) => is_gone(call, verify, &ready.facts(Some(&answered)))?,
        None => matches!(ready.looked_up()?, Some((State::Before, _))),
    };
    let state = if gone { State::Before } else { State::After };
    Ok((state, Some(answered)))
}

/// Prepares the undo of a call that was looked at before it was made.
fn undo_of_change(
    id: OperationId,
    ready: &Ready,
    answered: Option<&Answered>,
    how: How<'_>,
) -> Result<PreparedUndo, DriverError> {
    let target = ready.call.target.clone();
    let (now, bytes) = see(&ready.call)?;
    let state = state_of(&ready.call, answered, &now, &bytes, ready.body.as_deref());
    let kind = state.taken_back(how.on_conflict);
    let is_work = kind.is_taken_back() && kind != OutcomeKind::AlreadyGone;
    let prepared = if is_work {
        back_to(id, ready, now, bytes)?
    } else {
        nothing(&ready.call)?
    };
    Ok(outcome(prepared, target, kind))
}

/// Prepares the call that makes a thing again what it was.
fn back_to(
    id: OperationId,
    ready: &Ready,
    now: Seen,
    bytes: Vec<u8>,
) -> Result<Prepared, DriverError> {
    let call = &ready.call;
    let was = call.before.clone();
    let there = was.as_ref().is_some_and(|was| was.is_there);
    let keeps = |name: &str| {
        let name = name.to_ascii_lowercase();
        !name.starts_with("content-") && !name.starts_with("if-")
    };
    let headers = call.headers.iter().filter(|(name, _)| keeps(name));
    let mut headers: Vec<_> = headers.cloned().collect();
    let kind = was.as_ref().and_then(|was| was.kind.clone());
    headers.extend(
        kind.filter(|_| there)
            .map(|kind| ("Content-Type".to_owned(), kind)),
    );
    let guards = match (&now.etag, now.is_there) {
        (Some(etag), true) => vec![("If-Match".to_owned(), etag.clone())],
        (None, true) => Vec::new(),
        (_, false) => vec![("If-None-Match".to_owned(), "*".to_owned())],
    };
    let back = CallRecipe {
        id,
        target: call.target.clone(),
        method: if there { "PUT" } else { "DELETE" }.to_owned(),
        url: call.url.clone(),
        headers,
        body: was.and_then(|was| was.body),
        is_raw: true,
        timeout_ms: call.timeout_ms,
        rule: call.rule.clone(),
        holes: call.holes.clone(),
        key: None,
        before: Some(now),
        is_blind: false,
    };
    let body = ready.before.clone();
    staged(Ready {
        call: back,
        body,
        before: Some(bytes),
        guards,
        heard: Heard::default(),
    })
}

/// Says what is wrong with a thing that was put back, by a second look at it.
fn not_as_it_was(ready: &Ready, answered: &Answered) -> Option<TargetOutcome> {
    if !ready.call.is_raw {
        return None;
    }
    let why = match &answered.after {
        Some(after) if is_as_sent(&ready.call, ready.body.as_deref(), after) => return None,
        Some(_) => "the service made something else of it than it was",
        None => "the service took it, and did not let it be looked at afterwards",
    };
    let why = why.to_owned();
    let kind = OutcomeKind::Overtaken { why };
    Some(TargetOutcome::new(ready.call.target.clone(), kind))
}

fn unknown() -> State {
    let why = "it is not known whether the call happened".to_owned();
    State::Other { why }
}

fn outcome(prepared: Prepared, target: Target, kind: OutcomeKind) -> PreparedUndo {
    let outcomes = vec![TargetOutcome::new(target, kind)];
    PreparedUndo { prepared, outcomes }
}

fn key_for(idempotency: Option<&Idempotency>, id: OperationId) -> Option<SentKey> {
    let idempotency = idempotency?;
    Some(SentKey {
        header: idempotency.header.clone(),
        value: key_of("call", &id.to_string()),
        until_ms: now_ms().saturating_add(idempotency.window_ms),
    })
}

fn recipe_of(body: &HttpRecipe, call: &CallRecipe) -> Result<Recipe, DriverError> {
    let mut recipe = Recipe::of(HTTP, VERSION, body)?;
    let before = call.before.as_ref().and_then(|seen| seen.body);
    recipe.contents = call.body.into_iter().chain(before).collect();
    recipe.contents.sort();
    recipe.contents.dedup();
    Ok(recipe)
}

fn contents_of(ready: &Ready) -> Vec<NewContent> {
    let has_before = ready.call.before.as_ref().is_some_and(|seen| seen.is_there);
    let before = ready.before.clone().filter(|_| has_before);
    let bodies = ready.body.clone().into_iter().chain(before);
    let mut contents: Vec<NewContent> = bodies.map(NewContent::of).collect();
    contents.dedup_by_key(|content| content.digest);
    contents
}

/// Stages a call.
fn staged(mut ready: Ready) -> Result<Prepared, DriverError> {
    ready.call.is_blind = ready.is_blind();
    let recipe = recipe_of(&HttpRecipe::Call(Box::new(ready.call.clone())), &ready.call)?;
    let targets = vec![ready.call.target.clone()];
    let contents = contents_of(&ready);
    let strategy = match (&ready.call.rule, &ready.call.before) {
        (None, _) => Strategy::Irreversible,
        (Some(_), Some(_)) => Strategy::Snapshot,
        (Some(_), None) => Strategy::Compensation,
    };
    let mut prepared = Prepared::plain(recipe, targets, StagedCall::Call(Box::new(ready)));
    prepared.strategy = strategy;
    prepared.contents = contents;
    Ok(prepared.boxed())
}

/// Stages nothing: there is nothing to do, or nothing can be done.
fn nothing(call: &CallRecipe) -> Result<Prepared, DriverError> {
    let recipe = recipe_of(&HttpRecipe::Call(Box::new(call.clone())), call)?;
    Ok(Prepared::plain(recipe, Vec::new(), StagedCall::Nothing).boxed())
}

fn answered_in(completion: Option<&Completion>) -> Option<Answered> {
    completion.and_then(|completion| serde_json::from_value(completion.0.clone()).ok())
}

impl Driver for HttpDriver {
    fn name(&self) -> DriverName {
        HTTP
    }

    fn keeps_undos_in_place(&self) -> bool {
        true
    }

    fn scope(&self, request: &dyn Request) -> Result<Scope, DriverError> {
        let request: &HttpRequest = request.as_a()?;
        let targets = vec![request.check()?.target(None)?];
        let mut scope = Scope::of(targets, OperationKind::ApiCall);
        scope.traits.is_reversible_api = request.way_back().is_some();
        Ok(scope)
    }

    fn read_request(&self, text: &JsonText) -> Result<Box<dyn Request>, DriverError> {
        Ok(Box::new(text.read::<HttpRequest>()?))
    }

    fn fingerprint(&self, recipe: &Recipe) -> Result<Digest, DriverError> {
        let mut body: HttpRecipe = recipe.read(VERSION)?;
        if let HttpRecipe::Call(call) = &mut body {
            call.key = None;
        }
        Ok(Digest::of(&serde_json::to_vec(&body)?))
    }

    fn prepare(
        &self,
        id: OperationId,
        request: &dyn Request,
        _strategy: Strategy,
    ) -> Result<Prepared, DriverError> {
        let request: &HttpRequest = request.as_a()?;
        let address = request.check()?;
        let rule = request.way_back();
        if rule.is_none() && !request.irreversible {
            let call = request.call();
            return Err(HttpError::NoWayBack { call }.into());
        }
        let is_captured = rule.is_some_and(|rule| rule.capture) && request.method != "POST";
        let is_new = request.method == "POST";
        let holes = rule.and_then(|rule| rule.pattern.matched(&request.method, &address.url()));
        let body = request.body.clone().map(String::into_bytes);
        let mut call = CallRecipe {
            id,
            target: address.target(is_new.then_some(id))?,
            method: request.method.clone(),
            url: request.url.clone(),
            headers: request.headers.clone(),
            body: body.as_deref().map(Digest::of),
            is_raw: false,
            timeout_ms: request.timeout_ms,
            rule: rule.cloned(),
            holes: holes.unwrap_or_default(),
            key: request
                .compensation
                .as_ref()
                .and_then(|it| key_for(it.idempotency.as_ref(), id)),
            before: None,
            is_blind: false,
        };
        let mut before = None;
        let mut guards = Vec::new();
        if is_captured {
            let (seen, bytes) = see(&call)?;
            guards.extend(seen.etag.clone().map(|etag| ("If-Match".to_owned(), etag)));
            call.before = Some(seen);
            before = Some(bytes);
        }
        let heard = request.heard.clone();
        staged(Ready {
            call,
            body,
            before,
            guards,
            heard,
        })
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        let (_, _, staged) = armed.into_parts();
        let mut unlike = Vec::new();
        let completion = match staged.take()? {
            StagedCall::Call(ready) => {
                let answered = ready.carry_out()?;
                unlike.extend(not_as_it_was(&ready, &answered));
                Completion(serde_json::to_value(answered)?)
            }
            StagedCall::Answer(ready, answered) => {
                let is_known = answered.is_some();
                let answered = match answered {
                    Some(answered) => Some(answered),
                    None if ready.is_resolvable() => ready.resolved()?,
                    None => None,
                };
                let rule = ready.call.rule.as_ref();
                let inverse = rule.and_then(|rule| rule.inverse.as_ref());
                let is_there = is_known || answered.is_some() || !ready.is_resolvable();
                if let Some(inverse) = inverse.filter(|_| is_there) {
                    ready.answer(inverse, answered.as_ref())?;
                }
                Completion(serde_json::json!({"answered": true}))
            }
            StagedCall::Nothing => Completion::default(),
        };
        Ok(Applied {
            completion,
            durability: Durability::Power,
            unlike,
        })
    }

    fn prepare_undo(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        match effect.recipe.read(VERSION)? {
            HttpRecipe::Call(call) => {
                let answered = answered_in(effect.completion.as_ref());
                self.undo_of_call(id, *call, answered, how)
            }
            HttpRecipe::Answer(answer) => self.redo(id, *answer, how),
        }
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        let (target, is_exact) = match effect.recipe.read(VERSION)? {
            HttpRecipe::Call(call) => (call.target, call.before.is_some()),
            HttpRecipe::Answer(answer) => (answer.call.target, false),
        };
        let outline = Outline::of(vec![target]).seen_by("whoever uses the service");
        Ok(if is_exact {
            outline
        } else {
            outline.compensating()
        })
    }

    fn examine(&self, effect: &Effect, _to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        let (target, state) = match effect.recipe.read(VERSION)? {
            HttpRecipe::Call(call) => {
                let target = call.target.clone();
                let ready = self.ready(*call)?;
                let answered = answered_in(effect.completion.as_ref());
                (target, state(&ready, answered).map(|(state, _)| state))
            }
            HttpRecipe::Answer(answer) => {
                let is_recorded = effect.completion.as_ref().is_some_and(|it| !it.0.is_null());
                let target = answer.call.target.clone();
                (target, self.state_of_answer(&answer, is_recorded))
            }
        };
        let state = state.unwrap_or_else(|error| State::Other {
            why: error.to_string(),
        });
        Ok(vec![Examined::new(0, target, state)])
    }
}
