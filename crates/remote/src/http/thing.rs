//! What a call made: looked at after the call and at its undo, and brought back as others had it.
//!
//! An inverse takes away whatever others made of the thing since. So it is compared first, and what a forced undo takes away is kept:
//! a redo makes the thing again and gives it the fields that others had changed.

use backout_model::compensation::{CallTemplate, Encoding, Look, Template};
use serde_json::{Map, Value};

use super::client::{Call, send};
use super::error::HttpError;
use super::facts::{filled_headers, variable};
use super::look::{refused, seen_at};
use super::recipe::{Answered, Kept, Seen};
use super::send::Ready;

impl Ready {
    /// Says how to look at what the call made.
    fn eye(&self) -> Option<Look> {
        let is_made = self.call.before.is_none();
        let rule = self.call.rule.as_ref().filter(|_| is_made)?;
        rule.looks()
    }

    /// Tells whether it can be looked at what the call made.
    pub(super) fn has_eye(&self) -> bool {
        self.eye().is_some()
    }

    /// Looks at what the call made. None if the rule does not say where, or the answer does not tell.
    pub(super) fn thing(&self, answered: &Answered) -> Result<Option<(Seen, Vec<u8>)>, HttpError> {
        let facts = self.facts(Some(answered));
        let Some(look) = self.eye() else {
            return Ok(None);
        };
        let Ok(url) = look.url.fill(&facts, &variable, Encoding::Url) else {
            return Ok(None);
        };
        let headers = filled_headers(&look.headers, &facts)?;
        seen_at(self, url, headers, look.url.as_str()).map(Some)
    }

    /// Gives the guard under which the inverse takes away what was just looked at, if it goes to the same place.
    pub(super) fn guard(&self, answered: &Answered, now: &Seen) -> Vec<(String, String)> {
        let rule = self.call.rule.as_ref();
        let inverse = rule.and_then(|rule| rule.inverse.as_ref());
        let is_same = |it: &CallTemplate| it.method == "DELETE" && self.is_at_look(it, answered);
        let guard = now.guard().filter(|_| inverse.is_some_and(is_same));
        guard.into_iter().collect()
    }

    /// Tells whether a call goes to where it is looked at what was made.
    pub(super) fn is_at_look(&self, inverse: &CallTemplate, answered: &Answered) -> bool {
        let facts = self.facts(Some(answered));
        let fill = |it: &Template| it.fill(&facts, &variable, Encoding::Url).ok();
        let look = self.eye();
        look.is_some_and(|look| fill(&look.url) == fill(&inverse.url))
    }

    /// Gives a thing that was made again what others had changed in it. The error says why they do not have it back.
    pub(super) fn bring(&self, answered: &mut Answered) -> Result<(), String> {
        let (Some(kept), Some(bytes)) = (&self.call.brings, &self.brings) else {
            return Ok(());
        };
        let brought = self.brought(answered, kept, bytes);
        let (is_back, why) = match brought {
            Ok(is_back) => (is_back, "the service made something else of it".to_owned()),
            Err(error) => (false, error.to_string()),
        };
        if is_back {
            return Ok(());
        }
        let (fields, by) = (named(&kept.fields), kept.by.short());
        Err(format!(
            "it was made again without what others had changed in it ({fields}), which `backout diff {by}` has: {why}"
        ))
    }

    fn brought(
        &self,
        answered: &mut Answered,
        kept: &Kept,
        bytes: &[u8],
    ) -> Result<bool, HttpError> {
        let (Some(look), Some((now, found))) = (self.eye(), self.thing(answered)?) else {
            return Ok(false);
        };
        let facts = self.facts(Some(answered));
        let mut headers = filled_headers(&look.headers, &facts)?;
        let kind = kept.kind.clone();
        headers.extend(kind.map(|kind| ("Content-Type".to_owned(), kind)));
        headers.extend(now.guard());
        let call = Call {
            method: look.change.clone(),
            url: look.url.fill(&facts, &variable, Encoding::Url)?,
            headers,
            body: Some(joined(&found, bytes, &kept.fields, look.change == "PATCH")),
            timeout_ms: self.call.timeout_ms,
        };
        let name = format!("{} {}", look.change, look.url.as_str());
        backout_crashpoint::crash_point("http.before-bring");
        match send(&call, &self.watch) {
            Ok(answer) if answer.is_good() => {}
            Ok(answer) => return Err(refused(&name, &answer)),
            Err(silence) => {
                let (call, why) = (name, silence.why());
                return Err(HttpError::NotSent { call, why });
            }
        }
        backout_crashpoint::crash_point("http.brought");
        let Some((after, body)) = self.thing(answered)? else {
            return Ok(false);
        };
        answered.after = Some(after);
        Ok(has_fields(&body, bytes, &kept.fields))
    }
}

/// Names fields for people.
pub(super) fn named(fields: &[String]) -> String {
    if fields.is_empty() {
        return "all of it".to_owned();
    }
    let each: Vec<String> = fields.iter().map(|name| format!("`{name}`")).collect();
    each.join(", ")
}

fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// Puts the fields that others had into a thing; for a change of a part only those.
fn joined(found: &[u8], kept: &[u8], fields: &[String], is_part: bool) -> Vec<u8> {
    let (Some(mut thing), Some(kept)) = (object(found), object(kept)) else {
        return kept.to_vec();
    };
    if is_part {
        thing.clear();
    }
    for name in fields {
        match kept.get(name) {
            Some(value) => thing.insert(name.clone(), value.clone()),
            None if is_part => thing.insert(name.clone(), Value::Null),
            None => thing.remove(name),
        };
    }
    Value::Object(thing).to_string().into_bytes()
}

/// Tells whether a thing has what others had.
fn has_fields(found: &[u8], kept: &[u8], fields: &[String]) -> bool {
    match (object(found), object(kept)) {
        (Some(found), Some(kept)) => fields.iter().all(|name| {
            let of = |it: &Map<String, Value>| it.get(name).cloned().unwrap_or(Value::Null);
            of(&found) == of(&kept)
        }),
        _ => found == kept,
    }
}
