//! A reader of `docs/schema/backout.json`: as much of JSON Schema as that file uses.
//!
//! A keyword that is not known here fails the test, so nothing in the schema goes unchecked.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a schema that is not as it should be fails the test"
)]

use std::collections::BTreeSet;

use serde_json::{Map, Value};

#[derive(Debug)]
pub(crate) struct Schema(Value);

/// The properties that a schema speaks of, or what does not fit.
type Checked = Result<BTreeSet<String>, String>;

impl Schema {
    /// Reads the file.
    pub(crate) fn read() -> Self {
        let text = include_str!("../../../../docs/schema/backout.json");
        Self(serde_json::from_str(text).unwrap())
    }

    /// Lists the names of the definitions.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0["$defs"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
    }

    /// Gives a definition.
    pub(crate) fn definition(&self, name: &str) -> &Value {
        self.0["$defs"]
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not defined"))
    }

    /// Checks a value against a definition.
    #[track_caller]
    pub(crate) fn check(&self, name: &str, value: &Value) {
        if let Err(why) = self.fits(self.definition(name), value) {
            panic!("{why}\nin {value:#}");
        }
    }

    fn fits(&self, schema: &Value, value: &Value) -> Checked {
        let schema = match schema {
            Value::Bool(true) => return Ok(BTreeSet::new()),
            Value::Object(schema) => schema,
            other => panic!("{other} is no schema"),
        };
        let mut known = self.composed(schema, value)?;
        for (keyword, wanted) in schema.iter().filter(|(keyword, _)| !is_about_rest(keyword)) {
            let is_good = match keyword.as_str() {
                "description" | "$ref" | "allOf" | "oneOf" => true,
                "type" => type_of(value) == wanted,
                "const" => value == wanted,
                "enum" => wanted.as_array().unwrap().contains(value),
                "pattern" => value
                    .as_str()
                    .is_none_or(|text| is_like(wanted.as_str().unwrap(), text)),
                "minimum" => !value.is_number() || value.as_i64() >= wanted.as_i64(),
                "maximum" => {
                    !value.is_number()
                        || value.as_i64().is_some_and(|it| Some(it) <= wanted.as_i64())
                }
                "required" => {
                    let mut names = wanted.as_array().unwrap().iter();
                    names.all(|name| value.get(name.as_str().unwrap()).is_some())
                }
                "items" => {
                    for item in value.as_array().into_iter().flatten() {
                        self.fits(wanted, item)?;
                    }
                    true
                }
                "properties" => {
                    known.extend(self.properties(wanted.as_object().unwrap(), value)?);
                    true
                }
                "propertyNames" => {
                    for name in value.as_object().unwrap().keys() {
                        self.fits(wanted, &Value::from(name.as_str()))?;
                    }
                    true
                }
                other => panic!("the keyword {other} is not known here"),
            };
            if !is_good {
                return Err(format!("{keyword} is to be {wanted}, but it is {value}"));
            }
        }
        self.closed(schema, value, known)
    }

    /// Follows references and choices.
    fn composed(&self, schema: &Map<String, Value>, value: &Value) -> Checked {
        let mut known = BTreeSet::new();
        if let Some(Value::String(reference)) = schema.get("$ref") {
            let name = reference.strip_prefix("#/$defs/").unwrap();
            known.extend(self.fits(self.definition(name), value)?);
        }
        for part in schema
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            known.extend(self.fits(part, value)?);
        }
        if let Some(Value::Array(choices)) = schema.get("oneOf") {
            let results = choices.iter().map(|choice| self.fits(choice, value));
            let (good, bad): (Vec<Checked>, Vec<Checked>) = results.partition(Result::is_ok);
            if good.len() != 1 {
                let why: Vec<String> = bad.into_iter().filter_map(Result::err).collect();
                return Err(format!(
                    "{} choices fit {value}:\n{}",
                    good.len(),
                    why.join("\n")
                ));
            }
            known.extend(good.into_iter().flatten().flatten());
        }
        Ok(known)
    }

    fn properties(&self, wanted: &Map<String, Value>, value: &Value) -> Checked {
        let mut known = BTreeSet::new();
        for (name, schema) in wanted {
            if let Some(field) = value.get(name) {
                self.fits(schema, field)
                    .map_err(|why| format!("{name}: {why}"))?;
                known.insert(name.clone());
            }
        }
        Ok(known)
    }

    /// Looks for properties that the schema does not speak of.
    fn closed(
        &self,
        schema: &Map<String, Value>,
        value: &Value,
        known: BTreeSet<String>,
    ) -> Checked {
        let mut all = schema.iter();
        let rest = all.find_map(|(keyword, rest)| is_about_rest(keyword).then_some(rest));
        for (name, field) in value.as_object().into_iter().flatten() {
            match rest {
                Some(Value::Bool(false)) if !known.contains(name) => {
                    return Err(format!("{name} is not in the schema"));
                }
                Some(schema @ Value::Object(_)) if !known.contains(name) => {
                    self.fits(schema, field)?;
                }
                _ => {}
            }
        }
        Ok(known)
    }
}

/// Tells whether a keyword is about the properties that are not listed.
fn is_about_rest(keyword: &str) -> bool {
    matches!(keyword, "additionalProperties" | "unevaluatedProperties")
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Tells whether a text is like one of the patterns that the schema uses.
fn is_like(pattern: &str, text: &str) -> bool {
    let is_hex = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match pattern {
        "^[0-9a-f]{16}$" => is_hex && text.len() == 16,
        "^[0-9a-f]{64}$" => is_hex && text.len() == 64,
        "^([0-9a-f]{2})*$" => is_hex && text.len().is_multiple_of(2),
        "^[0-7]+$" => !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'7')),
        other => panic!("the pattern {other} is not known here"),
    }
}

#[test]
fn a_field_that_is_not_in_the_schema_is_found() {
    let schema = Schema::read();
    let error = r#"{"code":"nothing","severity":"refused","what":"","why":[],"next":[]}"#;
    let mut error: Value = serde_json::from_str(error).unwrap();
    schema.check("error", &error);
    let wrong = |error: &Value| schema.fits(schema.definition("error"), error).is_err();
    error["extra"] = 1.into();
    assert!(wrong(&error), "a field too many");
    error.as_object_mut().unwrap().remove("extra");
    error["code"] = "no-such-code".into();
    assert!(wrong(&error), "a word that is not listed");
    error.as_object_mut().unwrap().remove("code");
    assert!(wrong(&error), "a field too few");
}

#[test]
fn every_object_is_closed() {
    let schema = Schema::read();
    for name in schema.names() {
        // These are parts of others, which are closed.
        let is_part = name.ends_with("-fields") || name == "on-the-way";
        let closed = is_closed(schema.definition(name));
        assert!(is_part || closed.is_ok(), "{name}: {closed:?}");
    }
}

/// Looks for a schema that lets unknown properties pass.
fn is_closed(schema: &Value) -> Result<(), &Value> {
    let mut keywords = schema.as_object().into_iter().flat_map(Map::keys);
    if schema["properties"].is_object() && !keywords.any(|keyword| is_about_rest(keyword)) {
        return Err(schema);
    }
    let parts = schema.as_object().into_iter().flat_map(Map::values);
    let items = schema.as_array().into_iter().flatten();
    parts.chain(items).try_for_each(is_closed)
}
