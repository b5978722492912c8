//! The schemas of what tools answer: parts of the one schema that the program prints its JSON by.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// The schema of every reply and of the error.
const ALL: &str = include_str!("../../../docs/schema/backout.json");

static DEFINITIONS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let all: Value = serde_json::from_str(ALL).unwrap_or_default();
    let definitions = all.get("$defs").and_then(Value::as_object);
    definitions.cloned().unwrap_or_default()
});

/// What an error has. All of it is in the schema of the program; a client that only wants to know reads this, and not eighteen times more.
fn error() -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let next =
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    json!({
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "severity": {"type": "string", "enum": ["refused", "usage", "broken"]},
            "operation": {"type": "string"},
            "what": {"type": "string"},
            "why": texts,
            "next": {"type": "array", "items": next},
        },
        "required": ["code", "severity", "what", "why", "next"],
    })
}

/// Gives the schema of an answer that is one of these replies, or an error.
pub(crate) fn of(replies: &[&str]) -> Map<String, Value> {
    let names: Vec<String> = replies
        .iter()
        .map(|reply| format!("reply-{reply}"))
        .collect();
    let mut found = BTreeMap::new();
    let mut waiting = names.clone();
    while let Some(name) = waiting.pop() {
        let definition = DEFINITIONS.get(&name).cloned().unwrap_or(Value::Bool(true));
        let definition = plain(definition, &mut waiting);
        found.insert(name, definition);
        waiting.retain(|name| !found.contains_key(name));
    }
    let choices = names
        .iter()
        .map(|name| json!({"$ref": format!("#/$defs/{name}")}));
    let choices = choices.chain([error()]);
    let schema = json!({
        "type": "object",
        "oneOf": choices.collect::<Vec<_>>(),
        "$defs": found,
    });
    schema.as_object().cloned().unwrap_or_default()
}

/// Takes the words for people out, and lists what it refers to: a list of tools is read by every client at its start.
fn plain(value: Value, refers: &mut Vec<String>) -> Value {
    match value {
        Value::Object(members) => {
            let is_words = |name: &str, it: &Value| name == "description" && it.is_string();
            let kept = members.into_iter().filter(|(name, it)| !is_words(name, it));
            let each = kept.map(|(name, it)| {
                if name == "$ref"
                    && let Some(to) = it.as_str().and_then(|it| it.strip_prefix("#/$defs/"))
                {
                    refers.push(to.to_owned());
                }
                (name, plain(it, refers))
            });
            Value::Object(each.collect())
        }
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|it| plain(it, refers)).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_holds_all_that_it_refers_to() {
        let schema = of(&["finished", "undone"]);
        let definitions = schema["$defs"].as_object().unwrap();
        assert!(definitions.contains_key("reply-finished"));
        let mut refers = Vec::new();
        plain(Value::Object(schema.clone()), &mut refers);
        for name in refers {
            assert!(
                definitions.get(&name).is_some_and(Value::is_object),
                "{name}"
            );
        }
        assert!(!Value::Object(schema).to_string().contains("description"));
    }

    #[test]
    fn every_reply_of_a_tool_is_defined() {
        for tool in crate::tools::ALL {
            for reply in tool.replies {
                assert!(
                    DEFINITIONS.contains_key(&format!("reply-{reply}")),
                    "{reply}"
                );
            }
        }
    }
}
