//! Looking: what is there before a call, after it, and now. Nothing here changes anything.

use std::time::{Duration, Instant};

use backout_model::Digest;
use backout_model::compensation::{Condition, Encoding, Lookup, Template, Verify, steps};
use backout_model::ports::State;
use serde_json::Value;

use super::client::{Answer, BODY_BYTES_MAX, Call, Silence, send};
use super::error::HttpError;
use super::facts::{captured_item, filled_headers, variable};
use super::recipe::{Answered, CallRecipe, Seen};
use super::send::plain;

/// How long to wait between two looks for an effect that takes its time.
const SETTLE_PAUSE: Duration = Duration::from_millis(100);

/// Looks at the thing that a call is about. Gives its bytes beside.
pub(super) fn see(call: &CallRecipe) -> Result<(Seen, Vec<u8>), HttpError> {
    let rule = call.rule.as_ref();
    let mut headers = plain(&call.headers)?;
    headers.retain(|(name, _)| {
        let name = name.to_ascii_lowercase();
        !name.starts_with("content-") && !name.starts_with("if-")
    });
    let url = Template::with_variables(&call.url)?;
    let url = url.fill(&Value::Null, &variable, Encoding::Url)?;
    let answer = get(url, headers, call)?;
    if answer.is_cut {
        let (url, max) = (call.url.clone(), BODY_BYTES_MAX);
        return Err(HttpError::TooLarge { url, max });
    }
    let is_there = answer.is_good();
    if !is_there && !answer.is_gone() {
        return Err(refused(&format!("GET {}", call.url), &answer));
    }
    let ignore = rule.map(|rule| rule.ignore.as_slice()).unwrap_or_default();
    let seen = Seen {
        is_there,
        etag: answer.headers.get("etag").cloned().filter(|_| is_there),
        kind: answer.headers.get("content-type").cloned(),
        body: is_there.then(|| Digest::of(&answer.body)),
        compared: is_there.then(|| compared(&answer.body, ignore)),
    };
    Ok((seen, answer.body))
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
fn holds(found: &[u8], sent: &[u8]) -> bool {
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
    call: &CallRecipe,
    lookup: &Lookup,
    facts: &Value,
) -> Result<Option<Answered>, HttpError> {
    let equals = equals(&lookup.when, facts)?;
    let until = Instant::now() + Duration::from_millis(lookup.settle_ms);
    loop {
        let url = lookup.url.fill(facts, &variable, Encoding::Url)?;
        let answer = get(url, filled_headers(&lookup.headers, facts)?, call)?;
        if !answer.is_good() && !answer.is_gone() && lookup.when.status != Some(answer.status) {
            return Err(refused(&format!("GET {}", lookup.url.as_str()), &answer));
        }
        let found = lookup.found(answer.status, &answer.value(), equals.as_deref());
        if let Some(item) = found {
            let facts = captured_item(call, &item);
            let (status, after) = (200, None);
            return Ok(Some(Answered {
                status,
                facts,
                after,
            }));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        std::thread::sleep(SETTLE_PAUSE);
    }
}

/// Tells whether an effect is gone.
pub(super) fn is_gone(
    call: &CallRecipe,
    verify: &Verify,
    facts: &Value,
) -> Result<bool, HttpError> {
    let equals = equals(&verify.when, facts)?;
    let url = verify.url.fill(facts, &variable, Encoding::Url)?;
    let answer = get(url, filled_headers(&verify.headers, facts)?, call)?;
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
    call: &CallRecipe,
    verify: &Verify,
    facts: &Value,
) -> Result<bool, HttpError> {
    let until = Instant::now() + Duration::from_millis(verify.limit_ms);
    loop {
        let gone = is_gone(call, verify, facts);
        match gone {
            Ok(true) => return Ok(true),
            Ok(false) | Err(_) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(verify.interval_ms.max(10)));
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

fn get(
    url: String,
    headers: Vec<(String, String)>,
    call: &CallRecipe,
) -> Result<Answer, HttpError> {
    let look = Call {
        method: "GET".to_owned(),
        url,
        headers,
        body: None,
        timeout_ms: call.timeout_ms,
    };
    send(&look).map_err(|silence| {
        let (Silence::NotSent(why) | Silence::Lost(why)) = silence;
        let call = format!("GET for {} {}", call.method, call.url);
        HttpError::NotSent { call, why }
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
