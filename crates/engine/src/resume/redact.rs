//! What is shown of an agent's state: what looks like a secret is left out.

use std::collections::BTreeMap;

use backout_model::{Checkpoint, ResumePoint};
use serde_json::Value;

use crate::sandbox::is_secret;

/// What stands for a secret.
const LEFT_OUT: &str = "[redacted]";

/// Gives a checkpoint without what looks like secrets. The journal has all of it, and so has whoever resumes.
pub fn redacted(checkpoint: &Checkpoint) -> Checkpoint {
    let resume = checkpoint.resume.as_ref().map(|point| {
        let environment: BTreeMap<String, Option<String>> = point
            .environment
            .iter()
            .map(|(name, value)| {
                let shown = value.as_ref().map(|value| without(name, value));
                (name.clone(), shown)
            })
            .collect();
        Box::new(ResumePoint {
            environment,
            ..(**point).clone()
        })
    });
    Checkpoint {
        state: of_value("", &checkpoint.state),
        resume,
        ..checkpoint.clone()
    }
}

/// Takes the variables out whose values look like secrets, and names them: the journal is exported and handed to others.
pub(super) fn without_secrets(
    environment: &BTreeMap<String, Option<String>>,
) -> (BTreeMap<String, Option<String>>, Vec<String>) {
    let looks_so =
        |name: &str, value: &Option<String>| value.as_ref().is_some_and(|it| is_secret(name, it));
    let mut kept = environment.clone();
    kept.retain(|name, value| !looks_so(name, value));
    let secrets = environment.keys().filter(|name| !kept.contains_key(*name));
    let secrets = secrets.cloned().collect();
    (kept, secrets)
}

fn without(name: &str, value: &str) -> String {
    if is_secret(name, value) {
        LEFT_OUT.to_owned()
    } else {
        value.to_owned()
    }
}

fn of_value(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(without(name, text)),
        Value::Array(values) => values.iter().map(|it| of_value(name, it)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), of_value(name, value)))
            .collect(),
        Value::Number(_) if is_secret(name, "") => Value::String(LEFT_OUT.to_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
