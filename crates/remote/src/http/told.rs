//! What a call changed, for people: the thing before, after and now. Secrets in it are hidden.
//!
//! Of what a call left there only digests are kept. So it is told by what is there now, if that is the same, and else by what was
//! sent.

use backout_model::ports::{DriverError, ValueChange};

use super::driver::HttpDriver;
use super::error::HttpError;
use super::look::see;
use super::recipe::{AnswerRecipe, Answered, CallRecipe, Seen};
use super::secrets::shown;
use super::send::Ready;

/// What is said of a thing that is no text, or too long.
const UNTOLD: &str = "(not shown)";

/// What is there now, in words; the error says why nobody can tell.
type Now = Result<Option<(Seen, String)>, String>;

impl HttpDriver {
    /// Tells what a call changed.
    pub(super) fn told_of_call(
        &self,
        call: CallRecipe,
        answered: Option<&Answered>,
    ) -> Result<ValueChange, DriverError> {
        let key = call.target.clone().into();
        let ready = self.ready(call)?;
        let was_there = ready.call.before.as_ref().is_some_and(|it| it.is_there);
        let before = ready.before.as_deref().filter(|_| was_there).map(text);
        let now = now(&ready, answered);
        let is_gone = ready.call.method == "DELETE" && ready.call.before.is_some();
        let after = (!is_gone).then(|| left(&ready, answered, &now));
        Ok(ValueChange {
            key,
            before,
            after,
            now: now.map(|now| now.map(|(_, text)| text)),
        })
    }

    /// Tells what the call that answers another one took away. It never brings anything.
    pub(super) fn told_of_answer(&self, answer: AnswerRecipe) -> Result<ValueChange, DriverError> {
        let key = answer.call.target.clone().into();
        let is_kept = answer.kept.is_some();
        let ready = self.ready(CallRecipe {
            brings: answer.kept.or_else(|| answer.call.brings.clone()),
            ..answer.call
        })?;
        let answered = answer.answered.as_ref();
        let now = now(&ready, answered);
        let before = match ready.brings.as_deref().filter(|_| is_kept) {
            Some(bytes) => text(bytes),
            None => left(&ready, answered, &now),
        };
        Ok(ValueChange {
            key,
            before: Some(before),
            after: None,
            now: now.map(|now| now.map(|(_, text)| text)),
        })
    }
}

fn text(bytes: &[u8]) -> String {
    shown(bytes).unwrap_or_else(|| UNTOLD.to_owned())
}

/// Says what a call left there.
fn left(ready: &Ready, answered: Option<&Answered>, now: &Now) -> String {
    let after = answered.and_then(|it| it.after.as_ref());
    match (after, now) {
        (Some(after), Ok(Some((now, text)))) if now.is_like(after) => text.clone(),
        _ => ready.body.as_deref().map(text).unwrap_or_default(),
    }
}

/// Looks what is there now.
fn now(ready: &Ready, answered: Option<&Answered>) -> Now {
    let seen: Result<_, HttpError> = match (&ready.call.before, answered) {
        (Some(_), _) => see(ready).map(Some),
        (None, Some(answered)) => ready.thing(answered),
        (None, None) => Ok(None),
    };
    match seen {
        Ok(Some((seen, bytes))) => Ok(seen.is_there.then(|| (seen, text(&bytes)))),
        Ok(None) => Err("nothing says where to look at what the call made".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
