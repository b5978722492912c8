//! What answers a call of a service: plain data, read from `[[compensation]]` in a `backout.toml` and kept in recipes.
//!
//! No I/O: who sends what is in `crates/remote`. Design: `docs/design/data.md`.

mod action;
mod pattern;
mod template;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use action::{CompensationAction, CompensationStatus};
pub use pattern::{CallPattern, PatternError, WRITES};
pub use template::{
    Encoding, Hole, ROOTS, Template, TemplateError, Variables, at, encoded, text_of,
};

/// Whether there is a way back from a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reversibility {
    /// Another call answers it.
    #[default]
    Compensable,
    /// Nothing does.
    Irreversible,
}

/// What answers calls of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compensation {
    /// What the rule is called.
    pub name: String,
    /// What a call must look like to be answered by it.
    #[serde(rename = "match")]
    pub pattern: CallPattern,
    /// Whether there is a way back.
    #[serde(default)]
    pub reversibility: Reversibility,
    /// Whether the thing itself is looked at before, and put back as it was.
    #[serde(default)]
    pub capture: bool,
    /// Fields that the service changes by itself, and that say nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The call that answers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inverse: Option<CallTemplate>,
    /// How the service knows the same call again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<Idempotency>,
    /// How to find the effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup: Option<Lookup>,
    /// How to find out that the effect is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// How to look at what the call made; see [`Compensation::looks`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<Look>,
}

/// A look at what a call made: what others made of it since shows there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// The address, with holes for what only the call tells.
    pub url: Template,
    /// By name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Template>,
    /// The method that changes it: by this a redo brings back what others had made of it.
    pub change: String,
}

/// A call with holes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTemplate {
    /// Such as `DELETE`.
    pub method: String,
    /// Where to.
    pub url: Template,
    /// By name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Template>,
    /// What is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyTemplate>,
}

/// A body with holes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BodyTemplate {
    /// One hole, or a text without any.
    Text(Template),
    /// JSON, whose texts may have holes.
    Json(Value),
    /// Fields of a form.
    Form(BTreeMap<String, Template>),
}

/// How a service knows the same call again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// The header with the key.
    pub header: String,
    /// How long the service remembers it.
    pub window_ms: u64,
}

/// A look that finds the effect of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// The address, with holes for what only the call tells.
    pub url: Template,
    /// By name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Template>,
    /// The way to it in the answer: names and numbers, and `*` for any item of a list. What is found stands for the answer of
    /// the call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub item: String,
    /// What it looks like.
    #[serde(default)]
    pub when: Condition,
    /// How long it may take until the effect can be seen.
    #[serde(default)]
    pub settle_ms: u64,
}

/// A look that tells that an effect is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    /// The address, with holes for what only the call tells.
    pub url: Template,
    /// By name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Template>,
    /// What is so when the effect is gone; an answer that there is no such thing, if nothing is said.
    #[serde(default)]
    pub when: Condition,
    /// How long to wait between two looks.
    pub interval_ms: u64,
    /// How long to look.
    pub limit_ms: u64,
}

/// What an answer looks like.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Condition {
    /// Any if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// A field that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What that field is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Template>,
    /// A field that is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

impl Condition {
    /// Tells whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Tells whether a body is as said. `equals` is what the template came to.
    pub fn holds(&self, status: u16, body: &Value, equals: Option<&str>) -> bool {
        let there = |field: &str| at(body, &steps(field)).filter(|value| !is_nothing(value));
        let is_equal = |field: &str| match (equals, there(field)) {
            (Some(wanted), Some(found)) => text_of(found) == wanted,
            (None, found) => found.is_some(),
            (Some(_), None) => false,
        };
        self.status.is_none_or(|wanted| wanted == status)
            && self.field.as_deref().is_none_or(is_equal)
            && self
                .absent
                .as_deref()
                .is_none_or(|field| there(field).is_none())
    }
}

impl Lookup {
    /// Finds the effect in an answer.
    pub fn found(&self, status: u16, body: &Value, equals: Option<&str>) -> Option<Value> {
        let is_good = self.when.status.is_some() || (200..300).contains(&status);
        let items = if is_good {
            items(body, &steps(&self.item))
        } else {
            Vec::new()
        };
        let mut items = items.into_iter().filter(|item| !is_nothing(item));
        items
            .find(|item| self.when.holds(status, item, equals))
            .cloned()
    }
}

impl Compensation {
    /// Says how to look at what a call made. If the rule does not say, and the inverse is a DELETE without a body, then what that
    /// removes is what was made, and a GET of the same place shows it.
    pub fn looks(&self) -> Option<Look> {
        let by_inverse = || {
            let inverse = self.inverse.as_ref()?;
            let is_plain = inverse.method == "DELETE" && inverse.body.is_none();
            is_plain.then(|| Look {
                url: inverse.url.clone(),
                headers: inverse.headers.clone(),
                change: "PUT".to_owned(),
            })
        };
        self.look.clone().or_else(by_inverse)
    }

    /// Lists every template that is filled for a way back.
    pub fn templates(&self) -> Vec<Template> {
        let mut all = Vec::new();
        if let Some(inverse) = &self.inverse {
            all.extend(inverse.templates());
        }
        if let Some(verify) = &self.verify {
            all.push(verify.url.clone());
            all.extend(verify.headers.values().cloned());
            all.extend(verify.when.equals.clone());
        }
        if let Some(look) = &self.look {
            all.push(look.url.clone());
            all.extend(look.headers.values().cloned());
        }
        all
    }
}

impl CallTemplate {
    /// Lists its templates.
    pub fn templates(&self) -> Vec<Template> {
        let mut all = vec![self.url.clone()];
        all.extend(self.headers.values().cloned());
        match &self.body {
            Some(BodyTemplate::Text(text)) => all.push(text.clone()),
            Some(BodyTemplate::Form(fields)) => all.extend(fields.values().cloned()),
            Some(BodyTemplate::Json(value)) => texts_in(value, &mut all),
            None => {}
        }
        all
    }
}

/// Fills the texts of a value of JSON.
pub fn fill_json(
    value: &Value,
    facts: &Value,
    variables: Variables<'_>,
) -> Result<Value, TemplateError> {
    Ok(match value {
        Value::String(text) => Template::parse(text)?.fill_value(facts, variables)?,
        Value::Array(items) => {
            let each = items.iter().map(|item| fill_json(item, facts, variables));
            Value::Array(each.collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let each = fields
                .iter()
                .map(|(name, value)| Ok((name.clone(), fill_json(value, facts, variables)?)));
            Value::Object(each.collect::<Result<_, TemplateError>>()?)
        }
        plain => plain.clone(),
    })
}

fn texts_in(value: &Value, all: &mut Vec<Template>) {
    match value {
        Value::String(text) => all.extend(Template::parse(text).ok()),
        Value::Array(items) => items.iter().for_each(|item| texts_in(item, all)),
        Value::Object(fields) => fields.values().for_each(|value| texts_in(value, all)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Splits the way to a field.
pub fn steps(way: &str) -> Vec<String> {
    let steps = way.split('.').filter(|step| !step.is_empty());
    steps.map(str::to_owned).collect()
}

fn items<'v>(value: &'v Value, way: &[String]) -> Vec<&'v Value> {
    match (way, value) {
        ([], value) => vec![value],
        ([step, rest @ ..], Value::Array(list)) if step == "*" => {
            list.iter().flat_map(|item| items(item, rest)).collect()
        }
        ([step, rest @ ..], value) => at(value, std::slice::from_ref(step))
            .map(|value| items(value, rest))
            .unwrap_or_default(),
    }
}

/// Nothing, or an empty list.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lookup_finds_the_item_that_fits() {
        let lookup: Lookup = serde_json::from_value(json!({
            "url": "http://h/", "item": "data.*",
            "when": {"field": "mail", "equals": "{request.mail}"},
        }))
        .expect("it is one");
        let body = json!({"data": [{"mail": "a", "id": 1}, {"mail": "b", "id": 2}]});
        let found = lookup.found(200, &body, Some("b"));
        assert_eq!(found, Some(json!({"mail": "b", "id": 2})));
        assert_eq!(lookup.found(200, &body, Some("c")), None);
        assert_eq!(lookup.found(404, &body, Some("b")), None);
        assert_eq!(lookup.found(200, &json!({"data": []}), Some("b")), None);
    }

    #[test]
    fn a_condition_holds_if_all_of_it_does() {
        let when = Condition {
            field: Some("state".to_owned()),
            absent: Some("error".to_owned()),
            ..Condition::default()
        };
        assert!(when.holds(200, &json!({"state": "off"}), Some("off")));
        assert!(!when.holds(200, &json!({"state": "on"}), Some("off")));
        assert!(!when.holds(200, &json!({"state": "off", "error": 1}), Some("off")));
        assert!(when.holds(200, &json!({"state": "off", "error": []}), None));
    }
}
