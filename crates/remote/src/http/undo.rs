//! The undo of a call, and its redo: what was before, after and is now decides.

use backout_model::compensation::Hole;
use backout_model::ports::{DriverError, How, OnConflict, Prepared, PreparedUndo, State};
use backout_model::{OperationId, OutcomeKind, Strategy, Target, TargetOutcome};

use super::answer::is_repeatable;
use super::driver::{HttpDriver, StagedCall, contents_of, key_for, nothing, recipe_of, staged};
use super::error::HttpError;
use super::look::{holds, is_gone, see, state_of};
use super::recipe::{AnswerRecipe, Answered, CallRecipe, HttpRecipe, Kept, Seen};
use super::send::Ready;
use super::thing::named;

/// Where a call stands.
pub(super) struct Sight {
    pub(super) state: State,
    /// What it was answered with, if that is known by now.
    pub(super) answered: Option<Answered>,
    /// What it made, as it is now, if that was looked at.
    pub(super) thing: Option<(Seen, Vec<u8>)>,
}

impl Sight {
    fn of((state, answered): (State, Option<Answered>)) -> Self {
        let thing = None;
        Self {
            state,
            answered,
            thing,
        }
    }
}

impl HttpDriver {
    /// Tells where the call that answers another one stands: the other way round.
    pub(super) fn state_of_answer(
        &self,
        answer: &AnswerRecipe,
        is_recorded: bool,
    ) -> Result<State, HttpError> {
        let ready = self.ready(answer.call.clone())?;
        let rule = answer.call.rule.as_ref();
        let has_look = rule.is_some_and(|rule| rule.verify.is_some() || rule.lookup.is_some());
        let made = answer.answered.as_ref().and_then(Answered::made);
        if !has_look && (is_recorded || made.is_none()) {
            return Ok(match (is_recorded, is_repeatable(&ready)) {
                (true, _) => State::After,
                // It does no harm to send it again.
                (false, true) => State::Before,
                (false, false) => unknown(),
            });
        }
        let sight = state(&ready, answer.answered.clone())?;
        Ok(match sight.state {
            State::After => State::Before,
            State::Before => State::After,
            // What was forced was not as the call had left it; nor is what a service only crosses out.
            State::Other { .. } if made.is_some() && is_repeatable(&ready) => State::Before,
            other @ State::Other { .. } => other,
        })
    }

    pub(super) fn undo_of_call(
        &self,
        id: OperationId,
        call: CallRecipe,
        answered: Option<Answered>,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        let target = call.target.clone();
        let mut ready = self.ready(call)?;
        if ready.call.before.is_some() {
            return undo_of_change(id, &ready, answered.as_ref(), how);
        }
        let rule = ready.call.rule.as_ref();
        let Some(inverse) = rule.and_then(|rule| rule.inverse.clone()) else {
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
        let sight = match state(&ready, answered)? {
            // Sending it again tells; that is part of the undo, and no look.
            Sight {
                state: State::Other { .. },
                answered: None,
                ..
            } if ready.is_resolvable() => Sight::of((State::After, None)),
            found => found,
        };
        let needs_answer = {
            let mut templates = inverse.templates().into_iter();
            templates.any(|it| it.holes().any(Hole::is_of_answer))
        };
        let is_forced = how.on_conflict == OnConflict::Force;
        let lost = ready.no_way_back(sight.answered.as_ref());
        let kind = match sight.state.clone() {
            State::Before => OutcomeKind::AlreadyGone,
            State::After | State::Other { .. } if let Some(why) = lost => {
                OutcomeKind::Failed { why }
            }
            State::After => OutcomeKind::Compensated,
            changed @ State::Other { .. } if sight.thing.is_some() => {
                changed.taken_back(how.on_conflict)
            }
            State::Other { .. } if is_forced && !needs_answer => OutcomeKind::Compensated,
            State::Other { why } => OutcomeKind::InDoubt { why },
        };
        if !kind.is_taken_back() || kind == OutcomeKind::AlreadyGone {
            return Ok(outcome(nothing(&ready.call)?, target, kind));
        }
        let is_over = matches!(kind, OutcomeKind::Overwritten { .. });
        let (kept, body) = kept(id, &sight, is_over);
        if let (Some(answered), Some((now, _))) = (&sight.answered, &sight.thing) {
            ready.guards = ready.guard(answered, now);
            ready.found = Some(now.clone());
        }
        let answer = AnswerRecipe {
            call: ready.call.clone(),
            answered: sight.answered.clone(),
            kept,
        };
        let recipe = recipe_of(&HttpRecipe::Answer(Box::new(answer)))?;
        let mut contents = contents_of(&ready);
        contents.extend(body.map(backout_model::ports::NewContent::of));
        let staged = StagedCall::Answer(Box::new(ready), sight.answered);
        let mut prepared = Prepared::plain(recipe, vec![target.clone()], staged);
        prepared.strategy = Strategy::Compensation;
        prepared.contents = contents;
        Ok(outcome(prepared.boxed(), target, kind))
    }

    /// Makes a call again that was answered: a new effect, under a new key, with what others had made of the first one.
    pub(super) fn redo(
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
        let brings = answer.kept.or_else(|| answer.call.brings.clone());
        let mut ready = self.ready(CallRecipe {
            id,
            brings,
            ..answer.call
        })?;
        let rule = ready.call.rule.as_ref();
        ready.call.key = rule.and_then(|rule| key_for(rule.idempotency.as_ref(), id));
        let prepared = staged(ready)?;
        Ok(outcome(prepared, target, OutcomeKind::Compensated))
    }
}

/// Gives what others made of a thing that goes all the same, with its bytes.
fn kept(by: OperationId, sight: &Sight, is_over: bool) -> (Option<Kept>, Option<Vec<u8>>) {
    let Some((now, bytes)) = sight.thing.as_ref().filter(|_| is_over) else {
        return (None, None);
    };
    let made = sight.answered.as_ref().and_then(Answered::made);
    let kept = now.body.map(|body| Kept {
        by,
        body,
        kind: now.kind.clone(),
        fields: made.map(|made| made.unlike(now)).unwrap_or_default(),
    });
    (kept, Some(bytes.clone()))
}

/// Tells where a call stands.
pub(super) fn state(ready: &Ready, answered: Option<Answered>) -> Result<Sight, HttpError> {
    let call = &ready.call;
    if call.before.is_some() {
        let (now, bytes) = see(ready)?;
        let state = state_of(call, answered.as_ref(), &now, &bytes, ready.body.as_deref());
        return Ok(Sight::of((state, answered)));
    }
    let Some(answered) = answered else {
        let Some((state, found)) = ready.looked_up()? else {
            return Ok(Sight::of((unknown(), None)));
        };
        return Ok(match found {
            Some(found) => as_sent(ready, state, found)?,
            None => Sight::of((state, None)),
        });
    };
    let verify = call.rule.as_ref().and_then(|rule| rule.verify.as_ref());
    let gone = match verify {
        Some(verify) if !answered.gone_at_once => {
            is_gone(ready, verify, &ready.facts(Some(&answered)))?
        }
        Some(_) => false,
        // Whoever changed it may have changed what it is found by: where it is known to be is better.
        None if answered.made().is_some() => false,
        None => matches!(ready.looked_up()?, Some((State::Before, _))),
    };
    if gone {
        return Ok(Sight::of((State::Before, Some(answered))));
    }
    let thing = match answered.made() {
        Some(_) => ready.thing(&answered)?,
        None => None,
    };
    let state = match (&thing, answered.made()) {
        (Some((now, _)), _) if !now.is_there => State::Before,
        (Some((now, _)), Some(made)) if !now.is_like(made) => {
            let fields = named(&made.unlike(now));
            let why = format!("somebody changed it since ({fields})");
            State::Other { why }
        }
        _ => State::After,
    };
    let answered = Some(answered);
    Ok(Sight {
        state,
        answered,
        thing,
    })
}

/// Compares what a look found of a call whose answer is lost with what was sent: nobody has seen it before.
fn as_sent(ready: &Ready, state: State, found: Answered) -> Result<Sight, HttpError> {
    let thing = ready.thing(&found)?.filter(|(now, _)| now.is_there);
    let sent = ready.body.as_deref().unwrap_or_default();
    let is_json = serde_json::from_slice::<serde_json::Value>(sent).is_ok();
    let state = match &thing {
        Some((_, bytes)) if is_json && !holds(bytes, sent) => State::Other {
            why: "what is there is not what was sent".to_owned(),
        },
        _ => state,
    };
    Ok(Sight {
        state,
        answered: Some(found),
        thing,
    })
}

/// Prepares the undo of a call that was looked at before it was made.
fn undo_of_change(
    id: OperationId,
    ready: &Ready,
    answered: Option<&Answered>,
    how: How<'_>,
) -> Result<PreparedUndo, DriverError> {
    let target = ready.call.target.clone();
    let (now, bytes) = see(ready)?;
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
    let guards = if now.is_there {
        now.guard().into_iter().collect()
    } else {
        vec![("If-None-Match".to_owned(), "*".to_owned())]
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
        brings: None,
    };
    staged(Ready {
        body: ready.before.clone(),
        before: Some(bytes),
        guards,
        ..Ready::of(back, ready.watch.clone())
    })
}

pub(super) fn unknown() -> State {
    let why = "it is not known whether the call happened".to_owned();
    State::Other { why }
}

fn outcome(prepared: Prepared, target: Target, kind: OutcomeKind) -> PreparedUndo {
    let outcomes = vec![TargetOutcome::new(target, kind)];
    PreparedUndo { prepared, outcomes }
}
