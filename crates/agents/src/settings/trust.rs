//! Codex runs a hook only if its user trusts it: a digest of exactly that hook stands in `config.toml`.
//!
//! The digest is SHA-256 of compact JSON with sorted keys and the defaults filled in. Any edit of the hook switches it off in
//! silence, so `doctor` computes it again.

use std::path::Path;

use backout_config::{Document, Format, KeyPath, Value};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::{SettingsError, edit};
use crate::Agent;

/// The trust in one hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// Where it stands in `config.toml`.
    pub key: KeyPath,
    /// The digest.
    pub hash: String,
}

/// Computes the trust that each of our hooks in a `hooks.json` needs.
pub fn trust(file: &Path, text: &str) -> Result<Vec<Trust>, SettingsError> {
    let document = Document::parse(Format::Json, text)?;
    let hooks = document.get(&KeyPath::of_names(["hooks"]))?;
    let Some(Value::Map(events)) = hooks.map(|found| found.value) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for (event, groups) in &events {
        let Value::List(groups) = groups else {
            continue;
        };
        for (group, entry) in groups.iter().enumerate() {
            if edit::runs_our_hook(entry, Agent::Codex) {
                found.extend(trust_in(file, event, group, entry));
            }
        }
    }
    Ok(found)
}

fn trust_in(file: &Path, event: &str, group: usize, entry: &Value) -> Vec<Trust> {
    let Value::Map(members) = entry else {
        return Vec::new();
    };
    let member = |name: &str| members.iter().find(|(key, _)| key == name).map(|it| &it.1);
    let Some(Value::List(handlers)) = member("hooks") else {
        return Vec::new();
    };
    let event = snake(event);
    let handlers = handlers.iter().enumerate();
    // A hook of somebody else in the same group is theirs to trust.
    let handlers = handlers.filter(|(_, handler)| edit::runs_our_hook(handler, Agent::Codex));
    let handlers = handlers.map(|(index, handler)| {
        let mut told = json!({"event_name": event, "hooks": [normal(handler)]});
        if let (Some(Value::Text(matcher)), Some(told)) = (member("matcher"), told.as_object_mut())
        {
            told.insert("matcher".to_owned(), matcher.as_str().into());
        }
        let digest = Sha256::digest(told.to_string().as_bytes());
        let name = format!("{}:{event}:{group}:{index}", file.display());
        Trust {
            key: KeyPath::of_names(["hooks", "state", &name, "trusted_hash"]),
            hash: format!("sha256:{digest:x}"),
        }
    });
    handlers.collect()
}

/// A handler with the defaults filled in.
fn normal(handler: &Value) -> Json {
    let Value::Map(members) = handler else {
        return Json::Null;
    };
    let mut told = json!({"async": false, "timeout": 600, "type": "command"});
    if let Some(told) = told.as_object_mut() {
        for (name, value) in members {
            let value = match value {
                Value::Text(text) => Json::from(text.as_str()),
                Value::Bool(it) => Json::from(*it),
                Value::Number(it) => serde_json::from_str(it).unwrap_or(Json::Null),
                Value::Null | Value::Raw(_) | Value::List(_) | Value::Map(_) => continue,
            };
            told.insert(name.clone(), value);
        }
    }
    told
}

/// `PreToolUse` becomes `pre_tool_use`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}
