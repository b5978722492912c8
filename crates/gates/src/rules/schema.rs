//! The JSON Schema of `backout.toml`, made from the table of its keys.

use serde_json::{Map, Value, json};

use super::spec::{FILE, FORMATS, Key, Kind, SEVERITIES, VALUE};

/// Gives the schema.
pub fn schema() -> Value {
    let mut schema = table(FILE);
    schema.extend([
        of_text("$schema", "https://json-schema.org/draft/2020-12/schema"),
        of_text("title", "backout.toml"),
        of_text(
            "description",
            "What a good write looks like, who must approve what, and what happens when it goes wrong.",
        ),
    ]);
    Value::Object(schema)
}

fn of_text(name: &str, text: &str) -> (String, Value) {
    (name.to_owned(), text.into())
}

/// Says what a table may have.
fn table(keys: &[Key]) -> Map<String, Value> {
    let properties = keys.iter().map(|key| {
        let mut value = of(key.kind);
        if let Some(value) = value.as_object_mut() {
            value.extend([of_text("description", key.about)]);
        }
        (key.name.to_owned(), value)
    });
    let properties: Map<String, Value> = properties.collect();
    Map::from_iter([
        of_text("type", "object"),
        ("properties".to_owned(), properties.into()),
        ("additionalProperties".to_owned(), false.into()),
    ])
}

fn of(kind: Kind) -> Value {
    match kind {
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Text | Kind::Time { .. } => json!({"type": "string"}),
        Kind::Size => json!({"type": ["string", "integer"]}),
        Kind::Count { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Word(words) => json!({"enum": words}),
        Kind::Words(words) => json!({"type": "array", "items": {"enum": words}}),
        Kind::Patterns => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Command => json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
        Kind::Formats => json!({"type": "object", "additionalProperties": {"enum": FORMATS}}),
        Kind::Texts => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Kind::Any => json!({}),
        Kind::Values => {
            let names: serde_json::Map<String, Value> = VALUE
                .iter()
                .map(|key| (key.name.to_owned(), json!({"description": key.about})))
                .collect();
            let rule = json!({"type": "object", "properties": names, "required": ["key"], "additionalProperties": false});
            json!({"type": "array", "items": rule})
        }
        Kind::Table(keys) => Value::Object(table(keys)),
        Kind::Tables(keys) => json!({"type": "array", "items": table(keys)}),
        Kind::BySeverity(keys) => {
            let each = SEVERITIES
                .iter()
                .map(|name| ((*name).to_owned(), Value::Object(table(keys))));
            let each: serde_json::Map<String, Value> = each.collect();
            json!({"type": "object", "properties": each, "additionalProperties": false})
        }
    }
}
