//! What is known of a call, as holes ask for it, and the calls that holes are filled in.

use std::collections::BTreeMap;

use backout_model::compensation::{
    BodyTemplate, CallTemplate, Compensation, Encoding, Template, TemplateError, at, encoded,
    fill_json,
};
use serde_json::{Map, Value, json};

pub(super) use crate::secret::variable;

use super::client::{Answer, Call};
use super::recipe::{Answered, CallRecipe};
use super::secrets::is_secret_header;

/// Gathers what is known of a call.
pub(super) fn facts(
    call: &CallRecipe,
    body: Option<&[u8]>,
    before: Option<&[u8]>,
    answered: Option<&Answered>,
) -> Value {
    let headers = call.headers.iter();
    let headers = headers.filter(|(name, _)| !is_secret_header(name));
    let headers: Map<String, Value> = headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone().into()))
        .collect();
    let kind = headers.get("content-type").and_then(Value::as_str);
    let mut facts = Map::new();
    for (name, value) in &call.holes {
        facts.insert(name.clone(), value.clone().into());
    }
    let request = json!({
        "method": call.method,
        "url": call.url,
        "body": body.map_or(Value::Null, |body| parsed(body, kind.unwrap_or_default())),
    });
    facts.insert("request".to_owned(), request);
    if let Some(Value::Object(request)) = facts.get_mut("request") {
        request.insert("header".to_owned(), headers.into());
    }
    if let Some(seen) = &call.before {
        let kind = seen.kind.as_deref().unwrap_or_default();
        let body = before.map_or(Value::Null, |body| parsed(body, kind));
        let before =
            json!({"body": body, "header": {"etag": seen.etag, "content-type": seen.kind}});
        facts.insert("before".to_owned(), before);
    }
    if let Some(answered) = answered {
        facts.insert("response".to_owned(), answered.facts.clone());
    }
    facts.into()
}

/// Takes from an answer what the way back needs, and nothing else.
pub(super) fn captured(call: &CallRecipe, answer: &Answer) -> Value {
    let all = json!({
        "status": answer.status,
        "header": answer.headers,
        "body": answer.value(),
    });
    captured_of(call, &all, answer.status)
}

/// The same of a thing that a lookup found: it stands for the body of the answer.
pub(super) fn captured_item(call: &CallRecipe, item: &Value) -> Value {
    captured_of(call, &json!({"status": 200, "body": item}), 200)
}

fn captured_of(call: &CallRecipe, all: &Value, status: u16) -> Value {
    let mut kept = json!({"status": status});
    let templates = call.rule.iter().flat_map(Compensation::templates);
    for template in templates {
        for hole in template.holes().filter(|hole| hole.is_of_answer()) {
            let way = hole.way.get(1..).unwrap_or_default();
            if let Some(found) = at(all, way) {
                put(&mut kept, way, found);
            }
        }
    }
    kept
}

/// Puts a value at the end of a way. Numbers of lists become names, which are found the same.
fn put(tree: &mut Value, way: &[String], value: &Value) {
    let [step, rest @ ..] = way else {
        *tree = value.clone();
        return;
    };
    if !tree.is_object() {
        *tree = Value::Object(Map::new());
    }
    if let Some(fields) = tree.as_object_mut() {
        put(
            fields.entry(step.clone()).or_insert(Value::Null),
            rest,
            value,
        );
    }
}

/// Reads a body as its kind says: JSON, fields of a form, or text.
fn parsed(body: &[u8], kind: &str) -> Value {
    if kind.starts_with("application/x-www-form-urlencoded") {
        let text = String::from_utf8_lossy(body);
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        let fields = pairs.map(|(name, value)| (decoded(name), Value::String(decoded(value))));
        return Value::Object(fields.collect());
    }
    serde_json::from_slice(body)
        .unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned().into())
}

/// Reads a text that was written as part of a form.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        let pair = |after: &[u8]| {
            let hex = std::str::from_utf8(after.get(..2)?).ok()?;
            u8::from_str_radix(hex, 16).ok()
        };
        match (first, pair(after)) {
            (b'+', _) => bytes.push(b' '),
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Fills the holes of a call.
pub(super) fn filled(
    template: &CallTemplate,
    facts: &Value,
    timeout_ms: u64,
) -> Result<Call, TemplateError> {
    let mut headers = filled_headers(&template.headers, facts)?;
    let mut is_of = |kind: &str| {
        if !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        {
            headers.push(("Content-Type".to_owned(), kind.to_owned()));
        }
    };
    let body = match &template.body {
        None => None,
        Some(BodyTemplate::Text(text)) => Some(text.fill(facts, &variable, Encoding::Plain)?),
        Some(BodyTemplate::Json(value)) => {
            is_of("application/json");
            Some(fill_json(value, facts, &variable)?.to_string())
        }
        Some(BodyTemplate::Form(fields)) => {
            is_of("application/x-www-form-urlencoded");
            let pairs = fields.iter().map(|(name, value)| {
                let value = value.fill(facts, &variable, Encoding::Plain)?;
                Ok(format!("{}={}", encoded(name), encoded(&value)))
            });
            Some(pairs.collect::<Result<Vec<_>, TemplateError>>()?.join("&"))
        }
    };
    Ok(Call {
        method: template.method.clone(),
        url: template.url.fill(facts, &variable, Encoding::Url)?,
        headers,
        body: body.map(String::into_bytes),
        timeout_ms,
    })
}

/// Fills the holes of headers.
pub(super) fn filled_headers(
    headers: &BTreeMap<String, Template>,
    facts: &Value,
) -> Result<Vec<(String, String)>, TemplateError> {
    let each = headers.iter().map(|(name, value)| {
        let value = value.fill(facts, &variable, Encoding::Plain)?;
        Ok((name.clone(), value))
    });
    each.collect()
}
