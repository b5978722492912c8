//! Which parts of a call are secret: they are never kept, and never shown.

use serde_json::Value;

use super::error::HttpError;

/// How much of a thing is kept to be shown.
const SHOWN_BYTES_MAX: usize = 16 * 1024;

/// Headers whose value is a secret, whatever it is.
const HEADERS: [&str; 5] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-auth-token",
];

/// Words in a name that make its value a secret.
const WORDS: [&str; 8] = [
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "api-key",
    "api_key",
    "access_key",
];

/// What is shown in place of a secret.
pub(super) const HIDDEN: &str = "(hidden)";

/// Tells whether a header is secret by its name.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    HEADERS.contains(&name.as_str()) || is_secret_name(&name)
}

/// Tells whether the value of a name is secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "key" || WORDS.iter().any(|word| name.contains(word))
}

/// Refuses a header whose secret is written out.
pub(super) fn check_header(name: &str, value: &str) -> Result<(), HttpError> {
    let is_token = !backout_checks::secrets::check(value.as_bytes()).is_empty();
    if (is_secret_header(name) || is_token) && !value.contains("${env:") {
        let place = format!("the header `{name}`");
        return Err(HttpError::Secret { place });
    }
    Ok(())
}

/// Refuses a body in which a secret is written out.
pub(super) fn check_body(body: &str) -> Result<(), HttpError> {
    if backout_checks::secrets::check(body.as_bytes()).is_empty() {
        return Ok(());
    }
    let place = "the body".to_owned();
    Err(HttpError::Secret { place })
}

/// Gives a text for people: if it looks like a secret, it is not shown.
pub fn hidden(text: &str) -> &str {
    if backout_checks::secrets::check(text.as_bytes()).is_empty() {
        text
    } else {
        HIDDEN
    }
}

/// Gives a thing for people: fields of JSON by name, secrets hidden. None if it is no text, or too long.
pub(super) fn shown(body: &[u8]) -> Option<String> {
    if body.len() > SHOWN_BYTES_MAX {
        return None;
    }
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(mut value) => {
            hide(&mut value);
            value.to_string()
        }
        Err(_) => std::str::from_utf8(body).ok()?.to_owned(),
    };
    Some(hidden(&text).to_owned())
}

/// Takes secrets out of a value.
fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if is_secret_name(name) && !value.is_null() {
                    *value = HIDDEN.into();
                }
                hide(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::String(text) => {
            let plain = hidden(text).to_owned();
            *text = plain;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
