//! The driver of calls.

use std::fmt;
use std::sync::Arc;

use backout_crashpoint::crash_point;
use backout_model::compensation::{Encoding, Idempotency};
use backout_model::drift::DriftKind;
use backout_model::ports::{
    Applied, Aspect, Compare, Differing, Driver, DriverError, Durability, Examined, How, Looking,
    NewContent, Outline, Prepared, PreparedUndo, ReadContents, Request, Scope, Staged, State,
    ValueChange, Watch,
};
use backout_model::{
    Armed, Completion, Digest, DriverName, Effect, JsonText, OperationId, OperationKind,
    OutcomeKind, Recipe, Strategy, Target, TargetOutcome,
};

use super::error::HttpError;
use super::look::{is_as_sent, see};
use super::recipe::{Answered, CallRecipe, HTTP, HttpRecipe, SentKey, VERSION};
use super::request::HttpRequest;
use super::send::{Ready, key_of, now_ms};
use super::undo::state;

/// The driver of calls.
pub struct HttpDriver {
    contents: Arc<dyn ReadContents>,
    watch: Watch,
}

impl fmt::Debug for HttpDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpDriver")
    }
}

/// Who sees what a call does.
const USERS: &str = "whoever uses the service";

/// What is said of a call whose effect cannot be looked at.
const UNSEEN: &str = "what others will change in what it makes cannot be seen, and an undo takes that along: give the rule a `look`";

/// What is staged: everything is at hand, and nothing was sent.
#[derive(Debug)]
pub(super) enum StagedCall {
    Call(Box<Ready>),
    Answer(Box<Ready>, Option<Answered>),
    Nothing,
}

impl Staged for StagedCall {}

impl HttpDriver {
    /// Makes one that reads what was kept from `contents`.
    pub fn new(contents: Arc<dyn ReadContents>) -> Self {
        let watch = Watch::default();
        Self { contents, watch }
    }

    /// Tells which target an effect is about and how it stands, or why nobody can tell.
    fn sight_of(&self, effect: &Effect) -> Result<(Target, Result<State, HttpError>), DriverError> {
        Ok(match effect.recipe.read(VERSION)? {
            HttpRecipe::Call(call) => {
                let target = call.target.clone();
                let answered = answered_in(effect.completion.as_ref());
                let ready = self.ready(*call);
                let sight = ready.and_then(|ready| state(&ready, answered));
                (target, sight.map(|sight| sight.state))
            }
            HttpRecipe::Answer(answer) => {
                let is_recorded = effect.completion.as_ref().is_some_and(|it| !it.0.is_null());
                let target = answer.call.target.clone();
                (target, self.state_of_answer(&answer, is_recorded))
            }
        })
    }

    /// Gets the bodies of a call that was recorded.
    pub(super) fn ready(&self, call: CallRecipe) -> Result<Ready, HttpError> {
        let read = |digest: Option<&Digest>| digest.map(|it| self.contents.read(it)).transpose();
        let body = read(call.body.as_ref())?;
        let before = read(call.before.as_ref().and_then(|seen| seen.body.as_ref()))?;
        let brings = read(call.brings.as_ref().map(|kept| &kept.body))?;
        Ok(Ready {
            body,
            before,
            brings,
            ..Ready::of(call, self.watch.clone())
        })
    }
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

pub(super) fn key_for(idempotency: Option<&Idempotency>, id: OperationId) -> Option<SentKey> {
    let idempotency = idempotency?;
    Some(SentKey {
        header: idempotency.header.clone(),
        value: key_of("call", &id.to_string()),
        until_ms: now_ms().saturating_add(idempotency.window_ms),
    })
}

pub(super) fn recipe_of(body: &HttpRecipe) -> Result<Recipe, DriverError> {
    let mut recipe = Recipe::of(HTTP, VERSION, body)?;
    let (call, kept) = match body {
        HttpRecipe::Call(call) => (&**call, None),
        HttpRecipe::Answer(answer) => (&answer.call, answer.kept.as_ref()),
    };
    let before = call.before.as_ref().and_then(|seen| seen.body);
    let kept = kept.into_iter().chain(&call.brings).map(|kept| kept.body);
    recipe.contents = call.body.into_iter().chain(before).chain(kept).collect();
    recipe.contents.sort();
    recipe.contents.dedup();
    Ok(recipe)
}

pub(super) fn contents_of(ready: &Ready) -> Vec<NewContent> {
    let has_before = ready.call.before.as_ref().is_some_and(|seen| seen.is_there);
    let before = ready.before.clone().filter(|_| has_before);
    let bodies = ready.body.clone().into_iter().chain(before);
    let bodies = bodies.chain(ready.brings.clone());
    let mut contents: Vec<NewContent> = bodies.map(NewContent::of).collect();
    contents.sort_by_key(|content| content.digest);
    contents.dedup_by_key(|content| content.digest);
    contents
}

/// Stages a call.
pub(super) fn staged(mut ready: Ready) -> Result<Prepared, DriverError> {
    ready.call.is_blind = ready.is_blind();
    let recipe = recipe_of(&HttpRecipe::Call(Box::new(ready.call.clone())))?;
    let targets = vec![ready.call.target.clone()];
    let contents = contents_of(&ready);
    let strategy = match (&ready.call.rule, &ready.call.before) {
        (None, _) => Strategy::Irreversible,
        (Some(_), Some(_)) => Strategy::Snapshot,
        (Some(_), None) => Strategy::Compensation,
    };
    let is_unseen = strategy == Strategy::Compensation && !ready.has_eye();
    let mut prepared = Prepared::plain(recipe, targets, StagedCall::Call(Box::new(ready)));
    prepared.notes.extend(is_unseen.then(|| UNSEEN.to_owned()));
    prepared.strategy = strategy;
    prepared.contents = contents;
    Ok(prepared.boxed())
}

/// Stages nothing: there is nothing to do, or nothing can be done.
pub(super) fn nothing(call: &CallRecipe) -> Result<Prepared, DriverError> {
    let recipe = recipe_of(&HttpRecipe::Call(Box::new(call.clone())))?;
    Ok(Prepared::plain(recipe, Vec::new(), StagedCall::Nothing).boxed())
}

fn answered_in(completion: Option<&Completion>) -> Option<Answered> {
    completion.and_then(|completion| serde_json::from_value(completion.0.clone()).ok())
}

impl Driver for HttpDriver {
    fn name(&self) -> DriverName {
        HTTP
    }

    fn watch(&self) -> Option<&Watch> {
        Some(&self.watch)
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
        let call = CallRecipe {
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
            brings: None,
        };
        let mut ready = Ready {
            body,
            heard: request.heard.clone(),
            ..Ready::of(call, self.watch.clone())
        };
        if is_captured {
            let (seen, bytes) = see(&ready)?;
            ready.guards.extend(seen.guard());
            ready.call.before = Some(seen);
            ready.before = Some(bytes);
        }
        staged(ready)
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        let (_, _, staged) = armed.into_parts();
        let mut unlike = Vec::new();
        let completion = match staged.take()? {
            StagedCall::Call(ready) => {
                let mut answered = ready.carry_out()?;
                ready.wait_until_put(&mut answered)?;
                if let Err(why) = ready.bring(&mut answered) {
                    let kind = OutcomeKind::Overtaken { why };
                    unlike.push(TargetOutcome::new(ready.call.target.clone(), kind));
                }
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
            is_idle: false,
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

    fn finish(&self, effect: &Effect) -> Result<Option<Completion>, DriverError> {
        let HttpRecipe::Call(call) = effect.recipe.read(VERSION)? else {
            return Ok(None);
        };
        let ready = self.ready(*call)?;
        if ready.call.rule.is_some() || !ready.has_key() {
            return Ok(None);
        }
        crash_point("http.before-replay");
        match ready.carry_out() {
            Ok(answered) => Ok(Some(Completion(serde_json::to_value(answered)?))),
            Err(error @ HttpError::Stopped { .. }) => Err(error.into()),
            // It stays in doubt, and is asked for again.
            Err(_) => Ok(None),
        }
    }

    fn answered_by(&self, effect: &Effect) -> Result<Option<String>, DriverError> {
        let HttpRecipe::Call(call) = effect.recipe.read(VERSION)? else {
            return Ok(None);
        };
        if call.before.is_some() {
            return Ok(None);
        }
        let answered = answered_in(effect.completion.as_ref());
        let ready = self.ready(*call)?;
        let rule = ready.call.rule.as_ref();
        Ok(rule.and_then(|rule| rule.inverse.as_ref()).map(|inverse| {
            let facts = ready.facts(answered.as_ref());
            // No variable is looked up to be shown.
            let named = |name: &str| Some(format!("${{env:{name}}}"));
            let url = inverse.url.fill(&facts, &named, Encoding::Plain);
            let url = url.unwrap_or_else(|_| inverse.url.as_str().to_owned());
            format!("{} {url}", inverse.method)
        }))
    }

    fn no_way_back(&self, effect: &Effect) -> Result<Option<String>, DriverError> {
        let HttpRecipe::Call(call) = effect.recipe.read(VERSION)? else {
            return Ok(None);
        };
        let answered = answered_in(effect.completion.as_ref());
        Ok(self.ready(*call)?.no_way_back(answered.as_ref()))
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        let (target, is_exact, is_seen) = match effect.recipe.read(VERSION)? {
            HttpRecipe::Call(call) => {
                let answered = answered_in(effect.completion.as_ref());
                let is_seen = answered.is_some_and(|it| it.made().is_some());
                (call.target, call.before.is_some(), is_seen)
            }
            HttpRecipe::Answer(answer) => (answer.call.target, false, true),
        };
        if is_exact {
            return Ok(Outline::of(vec![target]).seen_by(USERS));
        }
        let who = if is_seen {
            USERS.to_owned()
        } else {
            format!("{USERS}; what they changed in it since cannot be seen, and goes with it")
        };
        Ok(Outline::of(vec![target]).seen_by(who).compensating())
    }

    fn tells_all_values(&self) -> bool {
        false
    }

    fn values(&self, effect: &Effect) -> Result<Option<Vec<ValueChange>>, DriverError> {
        let told = match effect.recipe.read(VERSION)? {
            HttpRecipe::Call(call) => {
                let answered = answered_in(effect.completion.as_ref());
                self.told_of_call(*call, answered.as_ref())?
            }
            HttpRecipe::Answer(answer) => self.told_of_answer(*answer)?,
        };
        Ok(Some(vec![told]))
    }

    fn examine(&self, effect: &Effect, _to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        let (target, state) = self.sight_of(effect)?;
        let state = state.unwrap_or_else(|error| State::Other {
            why: error.to_string(),
        });
        // Whether anything takes it back is no question where it is not there.
        let lost = match state {
            State::Before => None,
            State::After | State::Other { .. } => self.no_way_back(effect).unwrap_or_default(),
        };
        Ok(vec![Examined {
            lost,
            ..Examined::new(0, target, state)
        }])
    }

    fn differing(
        &self,
        effect: &Effect,
        looking: &Looking<'_>,
    ) -> Result<Vec<Differing>, DriverError> {
        // Of a lost call that somebody says has happened nobody can tell what it left.
        if effect.completion.is_none() && self.no_way_back(effect)?.is_some() {
            return Ok(Vec::new());
        }
        let (target, state) = self.sight_of(effect)?;
        // Who does not answer says nothing.
        let why = match state? {
            State::After => return Ok(Vec::new()),
            State::Before => "what it was before".to_owned(),
            State::Other { why } => why,
        };
        if looking.wanted(target.key(), Aspect::Whole) == Compare::Nothing {
            return Ok(Vec::new());
        }
        Ok(vec![Differing {
            target,
            kind: DriftKind::Changed,
            expected: "what the call left".to_owned(),
            mark: Digest::of(why.as_bytes()),
            found: why,
            changed: None,
            told_as: None,
        }])
    }
}
