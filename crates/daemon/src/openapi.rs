//! The `OpenAPI` document: made from the table of routes and from `docs/schema/backout.json`, which `--json` is checked against. So it
//! cannot say anything else than the code does. `docs/schema/openapi.json` is the same text.

use serde_json::{Map, Value, json};

use crate::routes::{Answer, Endpoint, Kind, endpoints};

/// What `--json` prints, and this crate answers.
const REPLIES: &str = include_str!("../../../docs/schema/backout.json");

/// Schemas that only HTTP has.
const OWN: &str = include_str!("openapi_own.json");

/// Gives the document as text.
pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(&document()).unwrap_or_default();
    text.push('\n');
    text
}

fn document() -> Value {
    let mut paths = Map::new();
    for endpoint in endpoints() {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(endpoint.method.to_owned(), operation(&endpoint));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Backout",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Every write of an AI agent, reversible: what `backout serve` answers. See docs/serve.md.",
            "license": {"name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT"}
        },
        "servers": [{"url": "http://127.0.0.1:7627"}],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "backout_7627"}
            },
            "schemas": schemas()
        }
    })
}

fn operation(endpoint: &Endpoint) -> Value {
    let mut operation = json!({
        "operationId": endpoint.id,
        "summary": endpoint.about,
        "parameters": parameters(endpoint),
        "responses": responses(endpoint),
    });
    let Some(object) = operation.as_object_mut() else {
        return operation;
    };
    if let Some(body) = endpoint.body {
        let body = json!({
            "required": matches!(body, "command" | "undo-many" | "run" | "session-code"),
            "content": {"application/json": {"schema": reference(body)}},
        });
        object.insert("requestBody".to_owned(), body);
    }
    if endpoint.is_public {
        object.insert("security".to_owned(), json!([]));
    }
    operation
}

fn parameters(endpoint: &Endpoint) -> Vec<Value> {
    let mut all = Vec::new();
    if endpoint.path.contains("{id}") {
        all.push(json!({
            "name": "id", "in": "path", "required": true,
            "description": "The beginning of an id; `@` is the newest, `@-1` the one before it.",
            "schema": {"type": "string", "minLength": 1},
        }));
    }
    for (name, kind) in endpoint.query {
        let is_required = matches!((*name, endpoint.id), ("path" | "side", "readContent"));
        all.push(json!({"name": name, "in": "query", "required": is_required, "schema": schema_of(*kind)}));
    }
    if endpoint.id == "readEvents" {
        all.push(json!({"name": "Last-Event-ID", "in": "header", "schema": {"type": "integer", "minimum": 0}}));
    }
    all
}

fn schema_of(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!({"type": "string", "minLength": 1}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string", "minLength": 1}}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Number => {
            json!({"type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_u64})
        }
        Kind::UpTo(most) => json!({"type": "integer", "minimum": 1, "maximum": most}),
        Kind::OneOf(words) => json!({"type": "string", "enum": words}),
    }
}

fn responses(endpoint: &Endpoint) -> Value {
    let content = match endpoint.answer {
        Answer::Json(name) => json!({"application/json": {"schema": reference(name)}}),
        Answer::Either(names) => {
            let names: Vec<_> = names.iter().map(|name| reference(name)).collect();
            json!({"application/json": {"schema": {"oneOf": names}}})
        }
        Answer::Events => json!({"text/event-stream": {"schema": {"type": "string"}}}),
        Answer::Text => json!({"text/plain": {"schema": {"type": "string"}}}),
        Answer::Bytes => {
            let kinds = [
                "application/octet-stream",
                "image/png",
                "image/jpeg",
                "image/gif",
                "image/bmp",
                "image/webp",
            ];
            let content = kinds.map(|kind| (kind.to_owned(), json!({})));
            Value::Object(content.into_iter().collect())
        }
        Answer::Nothing => Value::Null,
    };
    let mut responses = Map::new();
    if content.is_null() {
        responses.insert("204".to_owned(), json!({"description": "Done."}));
    } else {
        responses.insert(
            "200".to_owned(),
            json!({"description": "Done.", "content": content}),
        );
    }
    let failed = json!({
        "description": "Not, or not wholly, done: what happened, why, and what to do next.",
        "content": {"application/json": {"schema": reference("failed")}},
    });
    for status in [
        "400", "401", "403", "404", "405", "408", "409", "413", "415", "421", "429", "500", "503",
        "507",
    ] {
        responses.insert(status.to_owned(), failed.clone());
    }
    Value::Object(responses)
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Gathers the schemas: those of the replies, with their names moved, and our own.
fn schemas() -> Map<String, Value> {
    let moved = REPLIES.replace("#/$defs/", "#/components/schemas/");
    let replies: Value = serde_json::from_str(&moved).unwrap_or_default();
    let mut schemas = match replies.get("$defs") {
        Some(Value::Object(replies)) => replies.clone(),
        _ => Map::new(),
    };
    let own: Value = serde_json::from_str(OWN).unwrap_or_default();
    if let Value::Object(own) = own {
        schemas.extend(own);
    }
    schemas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_in_the_repository_is_what_the_server_gives() {
        let kept = include_str!("../../../docs/schema/openapi.json");
        assert_eq!(
            text(),
            kept,
            "write it again with `backout serve openapi > docs/schema/openapi.json`"
        );
    }

    #[test]
    fn every_schema_that_is_named_is_there() {
        let (document, schemas) = (document(), schemas());
        let text = document.to_string();
        let mut names = text.split("#/components/schemas/").skip(1);
        let is_there = |rest: &str| schemas.contains_key(rest.split('"').next().unwrap_or(""));
        let missing = names.find(|rest| !is_there(rest));
        assert_eq!(missing.map(|rest| rest.get(..40)), None);
    }
}
