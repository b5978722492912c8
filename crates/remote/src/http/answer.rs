//! The call that answers another one: sent until the service takes it, and looked at until the effect is gone.

use backout_crashpoint::crash_point;
use backout_model::compensation::CallTemplate;
use backout_model::ports::State;

use super::client::{Call, Silence, pause, send};
use super::error::HttpError;
use super::facts::filled;
use super::look::{refused, wait_until_gone};
use super::recipe::Answered;
use super::send::{PAUSE_MS, PAUSE_MS_MAX, Ready, TRIES_MAX, key_of};
use super::settled::SETTLE_MS_MAX;

impl Ready {
    /// Sends the call that answers this one until the service takes it, and waits until the effect is gone.
    pub(super) fn answer(
        &self,
        inverse: &CallTemplate,
        answered: Option<&Answered>,
    ) -> Result<(), HttpError> {
        let facts = self.facts(answered);
        let mut call = filled(inverse, &facts, self.call.timeout_ms)?;
        let rule = self.call.rule.as_ref();
        if let Some(idempotency) = rule.and_then(|rule| rule.idempotency.as_ref()) {
            let key = key_of("inverse", &self.call.id.to_string());
            call.headers.push((idempotency.header.clone(), key));
        }
        call.headers.extend(self.guards.iter().cloned());
        let name = format!("{} {}", inverse.method, inverse.url.as_str());
        let taken = self.persist(&call, &name, is_repeatable(self))?;
        crash_point("http.answered");
        let verify = rule.and_then(|rule| rule.verify.as_ref());
        if let Some(verify) = verify
            && !wait_until_gone(self, verify, &facts)?
        {
            let limit_ms = verify.limit_ms;
            let call = name;
            return Err(HttpError::StillThere { call, limit_ms });
        }
        let is_verified =
            verify.is_some() && answered.is_none_or(|answered| !answered.gone_at_once);
        if let (Taken::Good, Some(answered), false) = (&taken, answered, is_verified)
            && self.stays(inverse, answered)?
        {
            let (call, limit_ms) = (name, SETTLE_MS_MAX);
            return Err(HttpError::StillThere { call, limit_ms });
        }
        match taken {
            Taken::Nothing(status) if !self.was_there(answered)? => {
                let call = name;
                Err(HttpError::NothingThere { call, status })
            }
            Taken::Nothing(_) | Taken::Good => Ok(()),
        }
    }

    /// Tells whether an effect that is said not to be there was seen before, and is gone: then that can be believed.
    fn was_there(&self, answered: Option<&Answered>) -> Result<bool, HttpError> {
        let rule = self.call.rule.as_ref();
        let Some(answered) = answered else {
            return Ok(false);
        };
        if rule.is_some_and(|rule| rule.verify.is_some()) && !answered.gone_at_once {
            return Ok(true);
        }
        if answered.made().is_some() {
            let thing = self.thing(answered)?;
            return Ok(thing.is_some_and(|(now, _)| !now.is_there));
        }
        Ok(matches!(self.looked_up()?, Some((State::Before, _))))
    }

    /// Sends a call until it is taken. One that may not be sent twice is sent once.
    fn persist(&self, call: &Call, name: &str, is_repeatable: bool) -> Result<Taken, HttpError> {
        let mut next = PAUSE_MS;
        let mut last = None;
        for _ in 0..TRIES_MAX {
            crash_point("http.before-answer");
            let mut wait = next;
            let known = name.to_owned();
            match send(call, &self.watch) {
                Ok(answer) if answer.is_good() => return Ok(Taken::Good),
                Ok(answer) if answer.is_gone() && call.method == "DELETE" => {
                    return Ok(Taken::Nothing(answer.status));
                }
                Ok(answer) if answer.status == 412 && !self.guards.is_empty() => {
                    return Err(HttpError::Changed { url: known });
                }
                Ok(answer) if answer.status == 429 => {
                    wait = answer.retry_after_ms().unwrap_or(next);
                    last = Some(refused(name, &answer));
                }
                Ok(answer) if answer.status >= 500 => {
                    last = Some(refused(name, &answer));
                    if !is_repeatable {
                        break;
                    }
                }
                Ok(answer) => return Err(refused(name, &answer)),
                Err(Silence::Stopped) => return Err(HttpError::Stopped { call: known }),
                Err(Silence::Interrupted) => return Err(HttpError::Interrupted { call: known }),
                Err(Silence::Lost(why)) if !is_repeatable => {
                    return Err(HttpError::Unknown { call: known, why });
                }
                Err(Silence::NotSent(why) | Silence::Lost(why)) => {
                    last = Some(HttpError::NotSent { call: known, why });
                }
            }
            if pause(wait.min(PAUSE_MS_MAX), &self.watch).is_err() {
                let call = name.to_owned();
                return Err(HttpError::Stopped { call });
            }
            next *= 2;
        }
        last.map_or(Ok(Taken::Good), Err)
    }
}

/// What a service made of the call that answers another one.
enum Taken {
    Good,
    /// It knows nothing there.
    Nothing(u16),
}

/// Tells whether the call that answers another one may be sent twice.
pub(super) fn is_repeatable(ready: &Ready) -> bool {
    let Some(rule) = &ready.call.rule else {
        return false;
    };
    let is_by_method = rule
        .inverse
        .as_ref()
        .is_some_and(|inverse| matches!(inverse.method.as_str(), "PUT" | "DELETE"));
    is_by_method || rule.idempotency.is_some()
}
