//! What a row is called, and how it is shown.

use std::fmt::Write as _;

use backout_changeset::Value;
use backout_model::Digest;
use serde_json::{Map, Value as Json};

/// A key that is longer is called by its digest.
const NAME_BYTES_MAX: usize = 80;

/// Names a row by the values of its key: `7`, `x,2`. Texts that could be taken for something else are quoted as in SQL.
pub(super) fn row_name(key: &[&Value]) -> String {
    let names: Vec<String> = key.iter().map(|value| value_name(value)).collect();
    let name = names.join(",");
    if name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let digest = Digest::of(name.as_bytes()).to_string();
    format!("#{}", digest.get(..32).unwrap_or(&digest))
}

fn value_name(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => format!("{number:?}"),
        Value::Blob(bytes) => format!("x'{}'", hex(bytes)),
        Value::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if is_plain(text) => text.to_owned(),
            Ok(text) if !text.contains('\0') => format!("'{}'", text.replace('\'', "''")),
            _ => format!("text x'{}'", hex(bytes)),
        },
    }
}

/// Tells whether a text can be nothing else: no number, no list, no NULL.
fn is_plain(text: &str) -> bool {
    let is_word = |it: char| it.is_alphanumeric() || "-_ @/".contains(it);
    !text.is_empty()
        && text.chars().all(is_word)
        && !text.starts_with(|it: char| it.is_ascii_digit() || it == '-' || it == ' ')
        && !["NULL", "inf", "NaN"].contains(&text)
}

/// Shows columns as one line of JSON. Those that are not known are left out.
pub(super) fn row_json(columns: &[String], row: &[Option<Value>]) -> String {
    let mut shown = Map::new();
    for (at, value) in row.iter().enumerate() {
        if let Some(value) = value {
            let column = columns.get(at).cloned();
            let column = column.unwrap_or_else(|| format!("column {}", at + 1));
            shown.insert(column, value_json(value));
        }
    }
    Json::Object(shown).to_string()
}

/// Gives a value as JSON. Bytes, and texts that are no texts, are written as in SQL.
pub(super) fn value_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        // Other programs could not tell a wider number from its neighbours.
        Value::Integer(number) if number.unsigned_abs() >= 1 << 53 => number.to_string().into(),
        Value::Integer(number) => Json::from(*number),
        Value::Real(number) => serde_json::Number::from_f64(*number)
            .map_or_else(|| number.to_string().into(), Json::Number),
        Value::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => format!("text x'{}'", hex(bytes)).into(),
        },
        Value::Blob(bytes) => format!("x'{}'", hex(bytes)).into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes a value as SQL does.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) if number.is_finite() => format!("{number:e}"),
        Value::Real(number) if *number > 0.0 => "9e999".to_owned(),
        Value::Real(_) => "-9e999".to_owned(),
        Value::Blob(bytes) => format!("x'{}'", hex(bytes)),
        Value::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => format!("'{}'", text.replace('\'', "''")),
            _ => format!("CAST(x'{}' AS TEXT)", hex(bytes)),
        },
    }
}

/// Quotes a name for use in a statement.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_different_keys_have_different_names() {
        let text = |text: &str| Value::Text(text.as_bytes().to_vec());
        let values = [
            Value::Null,
            Value::Integer(7),
            Value::Real(7.0),
            text("7"),
            text(""),
            text("NULL"),
            text("a"),
            text("'a'"),
            text("a,b"),
            text("x'61'"),
            Value::Blob(b"a".to_vec()),
            Value::Text(vec![0xff]),
            Value::Text(vec![0]),
            text(&"long".repeat(99)),
        ];
        let mut names: Vec<String> = values.iter().map(|value| row_name(&[value])).collect();
        names.push(row_name(&[&text("a"), &text("b")]));
        assert!(
            names
                .iter()
                .all(|name| !name.is_empty() && !name.contains('\0'))
        );
        assert_eq!(names.get(1).map(String::as_str), Some("7"));
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }
}
