//! Looking: what is there before a call, after it, and now. Nothing here changes anything.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use backout_model::Digest;
use backout_model::compensation::{Condition, Encoding, Lookup, Template, Verify, steps};
use backout_model::ports::State;
use serde_json::Value;

use super::client::{Answer, BODY_BYTES_MAX, Call, Silence, pause, send};
use super::error::HttpError;
use super::facts::{captured_item, filled_headers, variable};
use super::recipe::{Answered, CallRecipe, Seen};
use super::send::{Ready, plain};

/// How long to wait between two looks for an effect that takes its time.
pub(super) const SETTLE_PAUSE_MS: u64 = 100;

/// Of things with more fields than this it is not kept which of them others changed.
const FIELDS_MAX: usize = 500;

/// Looks at the thing that a call is about. Gives its bytes beside.
pub(super) fn see(ready: &Ready) -> Result<(Seen, Vec<u8>), HttpError> {
    let call = &ready.call;
    let mut headers = plain(&call.headers)?;
    headers.retain(|(name, _)| {
        let name = name.to_ascii_lowercase();
        !name.starts_with("content-") && !name.starts_with("if-")
    });
    let url = Template::with_variables(&call.url)?;
    let url = url.fill(&Value::Null, &variable, Encoding::Url)?;
    seen_at(ready, url, headers, &call.url)
}

/// Looks at a place, which is called `name` where it is told of.
pub(super) fn seen_at(
    ready: &Ready,
    url: String,
    headers: Vec<(String, String)>,
    name: &str,
) -> Result<(Seen, Vec<u8>), HttpError> {
    let answer = get(url, headers, ready)?;
    if answer.is_cut {
        let (url, max) = (name.to_owned(), BODY_BYTES_MAX);
        return Err(HttpError::TooLarge { url, max });
    }
    let is_there = answer.is_good();
    if !is_there && !answer.is_gone() {
        return Err(refused(&format!("GET {name}"), &answer));
    }
    let rule = ready.call.rule.as_ref();
    let ignore = rule.map(|rule| rule.ignore.as_slice()).unwrap_or_default();
    let seen = Seen {
        is_there,
        etag: answer.headers.get("etag").cloned().filter(|_| is_there),
        kind: answer.headers.get("content-type").cloned(),
        body: is_there.then(|| Digest::of(&answer.body)),
        compared: is_there.then(|| compared(&answer.body, ignore)),
        fields: if is_there {
            fields_of(&answer.body, ignore)
        } else {
            BTreeMap::new()
        },
    };
    Ok((seen, answer.body))
}

/// Gives the digest of each field; of none if it is not made of fields, or of too many.
fn fields_of(body: &[u8], ignore: &[String]) -> BTreeMap<String, Digest> {
    let Ok(mut value) = serde_json::from_slice::<Value>(body) else {
        return BTreeMap::new();
    };
    for way in ignore {
        take_out(&mut value, &steps(way));
    }
    match value {
        Value::Object(fields) if fields.len() <= FIELDS_MAX => fields
            .into_iter()
            .map(|(name, value)| (name, Digest::of(value.to_string().as_bytes())))
            .collect(),
        _ => BTreeMap::new(),
    }
}

/// Gives the digest of a body without what says nothing. Of JSON the values count, and not how they are written.
fn compared(body: &[u8], ignore: &[String]) -> Digest {
    let Ok(mut value) = serde_json::from_slice::<Value>(body) else {
        return Digest::of(body);
    };
    for way in ignore {
        take_out(&mut value, &steps(way));
    }
    Digest::of(value.to_string().as_bytes())
}

/// Tells whether a thing that was put back is what was sent, to the last field that counts.
pub(super) fn is_as_sent(call: &CallRecipe, sent: Option<&[u8]>, found: &Seen) -> bool {
    let rule = call.rule.as_ref();
    let ignore = rule.map(|rule| rule.ignore.as_slice()).unwrap_or_default();
    match sent.filter(|_| call.method != "DELETE") {
        Some(sent) => found.compared == Some(compared(sent, ignore)),
        None => !found.is_there,
    }
}

fn take_out(value: &mut Value, way: &[String]) {
    match (way, value) {
        ([name], Value::Object(fields)) => {
            fields.remove(name);
        }
        ([step, rest @ ..], Value::Array(items)) if step == "*" => {
            for item in items {
                take_out(item, rest);
            }
        }
        ([step, rest @ ..], value) => {
            let next = match value {
                Value::Object(fields) => fields.get_mut(step),
                Value::Array(items) => step.parse().ok().and_then(|at: usize| items.get_mut(at)),
                _ => None,
            };
            if let Some(next) = next {
                take_out(next, rest);
            }
        }
        ([], _) => {}
    }
}

/// Tells what the thing now is to a call that was looked at before it was made.
pub(super) fn state_of(
    call: &CallRecipe,
    answered: Option<&Answered>,
    now: &Seen,
    bytes: &[u8],
    sent: Option<&[u8]>,
) -> State {
    let before = call.before.as_ref();
    let after = answered.and_then(|answered| answered.after.as_ref());
    if after.is_some_and(|after| now.is_like(after)) {
        return State::After;
    }
    if before.is_some_and(|before| now.is_like(before)) {
        return State::Before;
    }
    if answered.is_none() {
        if call.method == "DELETE" && !now.is_there {
            return State::After;
        }
        if now.is_there && call.method != "DELETE" && sent.is_some_and(|sent| holds(bytes, sent)) {
            return State::After;
        }
    }
    let why = if now.is_there {
        "it is not what the call left there"
    } else {
        "it is gone"
    };
    let why = why.to_owned();
    State::Other { why }
}

/// Tells whether a thing is what was sent, and perhaps more.
pub(super) fn holds(found: &[u8], sent: &[u8]) -> bool {
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    match (read(found), read(sent)) {
        (Some(found), Some(sent)) => is_part(&found, &sent),
        _ => found == sent,
    }
}

fn is_part(found: &Value, sent: &Value) -> bool {
    match (found, sent) {
        (Value::Object(found), Value::Object(sent)) => sent
            .iter()
            .all(|(name, sent)| found.get(name).is_some_and(|found| is_part(found, sent))),
        (found, sent) => found == sent,
    }
}

/// Looks for the effect of a call. What is found stands for its answer.
pub(super) fn find(
    ready: &Ready,
    lookup: &Lookup,
    facts: &Value,
) -> Result<Option<Answered>, HttpError> {
    let equals = equals(&lookup.when, facts)?;
    let until = Instant::now() + Duration::from_millis(lookup.settle_ms);
    loop {
        let url = lookup.url.fill(facts, &variable, Encoding::Url)?;
        let answer = get(url, filled_headers(&lookup.headers, facts)?, ready)?;
        if !answer.is_good() && !answer.is_gone() && lookup.when.status != Some(answer.status) {
            return Err(refused(&format!("GET {}", lookup.url.as_str()), &answer));
        }
        let found = lookup.found(answer.status, &answer.value(), equals.as_deref());
        if let Some(item) = found {
            let facts = captured_item(&ready.call, &item);
            return Ok(Some(Answered::of(200, facts)));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        pause(SETTLE_PAUSE_MS, &ready.watch).map_err(|_| stopped(ready))?;
    }
}

/// Tells whether an effect is gone.
pub(super) fn is_gone(ready: &Ready, verify: &Verify, facts: &Value) -> Result<bool, HttpError> {
    let equals = equals(&verify.when, facts)?;
    let url = verify.url.fill(facts, &variable, Encoding::Url)?;
    let answer = get(url, filled_headers(&verify.headers, facts)?, ready)?;
    if verify.when.is_empty() {
        if !answer.is_good() && !answer.is_gone() {
            return Err(refused(&format!("GET {}", verify.url.as_str()), &answer));
        }
        return Ok(answer.is_gone());
    }
    Ok(verify
        .when
        .holds(answer.status, &answer.value(), equals.as_deref()))
}

/// Looks until an effect is gone, or for as long as the rule says.
pub(super) fn wait_until_gone(
    ready: &Ready,
    verify: &Verify,
    facts: &Value,
) -> Result<bool, HttpError> {
    let until = Instant::now() + Duration::from_millis(verify.limit_ms);
    loop {
        let gone = is_gone(ready, verify, facts);
        match gone {
            Ok(true) => return Ok(true),
            Err(error @ HttpError::Stopped { .. }) => return Err(error),
            Ok(false) | Err(_) if Instant::now() < until => {
                let ms = verify.interval_ms.max(10);
                pause(ms, &ready.watch).map_err(|_| stopped(ready))?;
            }
            gone => return gone,
        }
    }
}

fn equals(when: &Condition, facts: &Value) -> Result<Option<String>, HttpError> {
    let filled = when
        .equals
        .as_ref()
        .map(|equals| equals.fill(facts, &variable, Encoding::Plain));
    Ok(filled.transpose()?)
}

/// Says that somebody stopped a call, or a look for it.
pub(super) fn stopped(ready: &Ready) -> HttpError {
    let call = format!("{} {}", ready.call.method, ready.call.url);
    HttpError::Stopped { call }
}

fn get(url: String, headers: Vec<(String, String)>, ready: &Ready) -> Result<Answer, HttpError> {
    let look = Call {
        method: "GET".to_owned(),
        url,
        headers,
        body: None,
        timeout_ms: ready.call.timeout_ms,
    };
    send(&look, &ready.watch).map_err(|silence| match silence {
        Silence::Stopped | Silence::Interrupted => stopped(ready),
        Silence::NotSent(why) | Silence::Lost(why) => {
            let call = format!("GET for {} {}", ready.call.method, ready.call.url);
            HttpError::NotSent { call, why }
        }
    })
}

/// How much of what a service said is told.
const SAID_MAX: usize = 200;

/// Says that a service said no.
pub(super) fn refused(call: &str, answer: &Answer) -> HttpError {
    let text = String::from_utf8_lossy(&answer.body);
    let line = super::secrets::hidden(text.lines().next().unwrap_or_default());
    let short: String = line.chars().take(SAID_MAX).collect();
    HttpError::Refused {
        call: call.to_owned(),
        status: answer.status,
        said: if short.is_empty() {
            short
        } else {
            format!(": {short}")
        },
    }
}
