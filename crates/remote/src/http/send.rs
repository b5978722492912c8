//! Carrying a call out, and the call that answers it: what to do about each answer, and about none.
//!
//! ```text
//! Intent ─► Sent ─► Known ──────────────► Compensating ─► Compensated
//!             └──► Unknown ─► sent again under its key, or looked for ─► Known | did not happen | in doubt
//! ```

use std::time::{SystemTime, UNIX_EPOCH};

use backout_crashpoint::crash_point;
use backout_model::compensation::{Encoding, Lookup, Template};
use backout_model::ports::{State, Watch};
use serde_json::Value;

use super::client::{Answer, Call, Silence, pause, send};
use super::error::HttpError;
use super::facts::{captured, facts, variable};
use super::look::{find, is_gone, refused, see, state_of, stopped};
use super::recipe::{Answered, CallRecipe, Seen};
use super::request::Heard;

/// How often a call is tried.
pub(super) const TRIES_MAX: u32 = 5;

/// The pause before the second try; it doubles.
pub(super) const PAUSE_MS: u64 = 100;

/// No service makes us wait longer than this between two tries.
pub(super) const PAUSE_MS_MAX: u64 = 10_000;

/// A call with its bodies at hand.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) call: CallRecipe,
    pub(super) body: Option<Vec<u8>>,
    pub(super) before: Option<Vec<u8>>,
    /// What others had made of the thing, if that is brought back with it.
    pub(super) brings: Option<Vec<u8>>,
    /// Headers that hold only while this is so: `If-Match`, for one.
    pub(super) guards: Vec<(String, String)>,
    /// What a look found right before the call that answers this one.
    pub(super) found: Option<Seen>,
    pub(super) heard: Heard,
    pub(super) watch: Watch,
}

impl Ready {
    /// A call of which nothing but the recipe is known yet.
    pub(super) fn of(call: CallRecipe, watch: Watch) -> Self {
        Self {
            call,
            body: None,
            before: None,
            brings: None,
            guards: Vec::new(),
            found: None,
            heard: Heard::default(),
            watch,
        }
    }

    pub(super) fn facts(&self, answered: Option<&Answered>) -> Value {
        facts(
            &self.call,
            self.body.as_deref(),
            self.before.as_deref(),
            answered,
        )
    }

    /// Fills in the secrets.
    fn sendable(&self) -> Result<Call, HttpError> {
        let call = &self.call;
        let url = Template::with_variables(&call.url)?;
        let mut headers = plain(&call.headers)?;
        headers.extend(self.guards.iter().cloned());
        headers.extend(
            call.key
                .iter()
                .map(|key| (key.header.clone(), key.value.clone())),
        );
        let body = match &self.body {
            Some(body) if !call.is_raw => {
                let text = String::from_utf8_lossy(body);
                let text = Template::with_variables(&text)?;
                Some(
                    text.fill(&Value::Null, &variable, Encoding::Plain)?
                        .into_bytes(),
                )
            }
            body => body.clone(),
        };
        Ok(Call {
            method: call.method.clone(),
            url: url.fill(&Value::Null, &variable, Encoding::Url)?,
            headers,
            body,
            timeout_ms: call.timeout_ms,
        })
    }

    pub(super) fn name(&self) -> String {
        format!("{} {}", self.call.method, self.call.url)
    }

    /// Tells whether the service would know the call again.
    pub(super) fn has_key(&self) -> bool {
        self.call
            .key
            .as_ref()
            .is_some_and(|key| now_ms() < key.until_ms)
    }

    /// Makes the call, and finds out whether it happened where the answer does not say.
    pub(super) fn carry_out(&self) -> Result<Answered, HttpError> {
        let sendable = self.sendable()?;
        let (mut why, mut next) = (String::new(), PAUSE_MS);
        for _ in 0..TRIES_MAX {
            crash_point("http.before-send");
            let answer = send(&sendable, &self.watch);
            crash_point("http.sent");
            let mut wait = next;
            match answer {
                Ok(answer) => {
                    self.heard.put(&answer);
                    match answer.status {
                        200..=303 => return Ok(self.known(&answer)),
                        412 if why.is_empty() => {
                            let url = self.call.url.clone();
                            return Err(HttpError::Changed { url });
                        }
                        // The service did nothing, and says when it will.
                        429 => wait = answer.retry_after_ms().unwrap_or(next),
                        500.. => why = format!("it was answered with {}", answer.status),
                        // Somebody, perhaps we, is at work on the same key.
                        409 if !why.is_empty() => {}
                        _ if why.is_empty() => return Err(refused(&self.name(), &answer)),
                        _ => break,
                    }
                    if answer.status == 429 && wait > PAUSE_MS_MAX && why.is_empty() {
                        return Err(refused(&self.name(), &answer));
                    }
                }
                Err(Silence::NotSent(reason)) if why.is_empty() => {
                    let call = self.name();
                    return Err(HttpError::NotSent { call, why: reason });
                }
                Err(Silence::NotSent(_)) => {}
                Err(Silence::Lost(reason)) => why = reason,
                Err(Silence::Stopped) if why.is_empty() => return Err(stopped(self)),
                Err(Silence::Stopped | Silence::Interrupted) => return Err(self.put_back()),
            }
            if !why.is_empty() && !self.has_key() {
                break;
            }
            if pause(wait.min(PAUSE_MS_MAX), &self.watch).is_err() {
                return Err(if why.is_empty() {
                    stopped(self)
                } else {
                    self.put_back()
                });
            }
            next *= 2;
        }
        if why.is_empty() {
            let (call, status) = (self.name(), 429);
            let said = String::new();
            return Err(HttpError::Refused { call, status, said });
        }
        self.find_out(why)
    }

    /// What only the answer tells, and a look at what is there since.
    fn known(&self, answer: &Answer) -> Answered {
        let answered = Answered::of(answer.status, captured(&self.call, answer));
        self.with_look(answered)
    }

    /// Adds what a look finds right after the call. What cannot be looked at now can perhaps be later.
    fn with_look(&self, mut answered: Answered) -> Answered {
        if self.call.before.is_some() {
            answered.after = see(self).ok().map(|(seen, _)| seen);
            return answered;
        }
        let thing = self.thing(&answered);
        answered.after = thing.ok().flatten().map(|(seen, _)| seen);
        let verify = self.call.rule.as_ref().and_then(|it| it.verify.as_ref());
        answered.gone_at_once = verify
            .is_some_and(|it| matches!(is_gone(self, it, &self.facts(Some(&answered))), Ok(true)));
        crash_point("http.looked");
        answered
    }

    /// Somebody stopped the call, and it may have arrived: what can be found out and taken back is. Gives the error to return.
    fn put_back(&self) -> HttpError {
        self.watch.going_back(|| {
            let call = self.name();
            let rule = self.call.rule.as_ref();
            let inverse = rule.and_then(|rule| rule.inverse.as_ref());
            let is_gone = match (self.looked_up(), inverse) {
                (Ok(Some((State::Before, _))), _) => true,
                (_, Some(inverse)) if self.is_resolvable() => match self.resolved() {
                    Ok(Some(answered)) => self.answer(inverse, Some(&answered)).is_ok(),
                    Ok(None) => true,
                    Err(_) => false,
                },
                (_, Some(_) | None) => false,
            };
            if is_gone {
                HttpError::Stopped { call }
            } else {
                HttpError::Interrupted { call }
            }
        })
    }

    /// Finds out by a look whether a call happened whose answer is lost.
    fn find_out(&self, why: String) -> Result<Answered, HttpError> {
        crash_point("http.unknown");
        match self.looked_up() {
            Ok(Some((State::After, Some(answered)))) => Ok(self.with_look(answered)),
            Ok(Some((State::Before, _))) => {
                let call = self.name();
                Err(HttpError::NoEffect { call, why })
            }
            Ok(_) => Err(self.unknown(why)),
            Err(error) => Err(self.unknown(format!("{why}; {error}"))),
        }
    }

    pub(super) fn unknown(&self, why: String) -> HttpError {
        let call = self.name();
        HttpError::Unknown { call, why }
    }

    /// Tells by a look whether the call happened, with what stands for its answer; none if there is nothing to look at.
    pub(super) fn looked_up(&self) -> Result<Option<(State, Option<Answered>)>, HttpError> {
        let call = &self.call;
        if call.before.is_some() {
            let (now, bytes) = see(self)?;
            let state = state_of(call, None, &now, &bytes, self.body.as_deref());
            let answered = (state == State::After).then_some(Answered {
                after: Some(now),
                ..Answered::of(200, Value::Null)
            });
            return Ok(Some((state, answered)));
        }
        let Some(lookup) = self.lookup().filter(|_| !call.is_blind) else {
            return Ok(None);
        };
        let found = find(self, lookup, &self.facts(None))?;
        let state = if found.is_some() {
            State::After
        } else {
            State::Before
        };
        Ok(Some((state, found)))
    }

    /// Finds out what a call was answered with, by a look or by sending it again under its key. None if it did not happen.
    pub(super) fn resolved(&self) -> Result<Option<Answered>, HttpError> {
        if let Some((state, answered)) = self.looked_up()? {
            return match state {
                State::After => Ok(answered),
                State::Before => Ok(None),
                State::Other { why } => Err(self.unknown(why)),
            };
        }
        if !self.has_key() {
            let why = "the service does not know it again, and nothing finds the effect";
            return Err(self.unknown(why.to_owned()));
        }
        crash_point("http.before-replay");
        match self.carry_out() {
            Ok(answered) => Ok(Some(answered)),
            Err(HttpError::Refused { status, .. }) if status != 429 => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn lookup(&self) -> Option<&Lookup> {
        let rule = self.call.rule.as_ref()?;
        rule.lookup.as_ref()
    }

    /// Tells whether the lookup cannot tell an effect of this call from what is there already, before it is made. If it is not
    /// known what is there, it cannot either.
    pub(super) fn is_blind(&self) -> bool {
        let Some(lookup) = self.lookup().filter(|_| self.call.before.is_none()) else {
            return false;
        };
        let at_once = Lookup {
            settle_ms: 0,
            ..lookup.clone()
        };
        !matches!(find(self, &at_once, &self.facts(None)), Ok(None))
    }

    /// Tells whether [`Self::resolved`] can find anything out.
    pub(super) fn is_resolvable(&self) -> bool {
        let has_lookup = self.lookup().is_some() && !self.call.is_blind;
        self.call.before.is_some() || has_lookup || self.has_key()
    }
}

/// Fills in the secrets of headers.
pub(super) fn plain(headers: &[(String, String)]) -> Result<Vec<(String, String)>, HttpError> {
    let each = headers.iter().map(|(name, value)| {
        let value = Template::with_variables(value)?;
        let value = value.fill(&Value::Null, &variable, Encoding::Plain)?;
        Ok((name.clone(), value))
    });
    each.collect()
}

/// Makes the key by which a service knows a call again.
pub(super) fn key_of(what: &str, id: &str) -> String {
    let digest = backout_model::Digest::of(format!("backout {what} {id}").as_bytes());
    let text: String = digest.to_string().chars().take(32).collect();
    format!("backout-{text}")
}

pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Sends a call that only looks.
pub(super) fn look(request: &super::request::HttpRequest) -> Result<Answer, HttpError> {
    let url = Template::with_variables(&request.url)?;
    let call = Call {
        method: request.method.clone(),
        url: url.fill(&Value::Null, &variable, Encoding::Url)?,
        headers: plain(&request.headers)?,
        body: None,
        timeout_ms: request.timeout_ms,
    };
    send(&call, &Watch::default()).map_err(|silence| {
        let (call, why) = (request.call(), silence.why());
        HttpError::NotSent { call, why }
    })
}
