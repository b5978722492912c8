//! What a server answered, as people and programs read it.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use redis::Value;
use serde_json::json;

use super::words::name_of;

/// One answer of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer(Value);

/// The answers to the commands of one request, once they are there.
#[derive(Debug, Clone, Default)]
pub struct Answers(Arc<Mutex<Vec<Answer>>>);

impl Answers {
    pub(super) fn put(&self, values: Vec<Value>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            values.into_iter().map(Answer).collect();
    }

    /// Gives what was answered.
    pub fn take(&self) -> Vec<Answer> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl Answer {
    /// Shows it as `redis-cli` does.
    pub fn text(&self) -> String {
        let mut text = String::new();
        show(&self.0, 0, &mut text);
        text
    }

    /// Gives it as JSON. Bytes that are no text have percent signs, and so has a percent sign beside them.
    pub fn json(&self) -> serde_json::Value {
        as_json(&self.0)
    }
}

fn show(value: &Value, indent: usize, text: &mut String) {
    // Writing to a string cannot fail.
    let _written = match value {
        Value::Nil => writeln!(text, "(nil)"),
        Value::Int(number) => writeln!(text, "(integer) {number}"),
        Value::Okay => writeln!(text, "OK"),
        Value::SimpleString(word) => writeln!(text, "{word}"),
        Value::BulkString(bytes) => writeln!(text, "\"{}\"", escaped(bytes)),
        Value::ServerError(error) => {
            writeln!(
                text,
                "(error) {} {}",
                error.code(),
                error.details().unwrap_or_default()
            )
        }
        Value::Array(list) if list.is_empty() => writeln!(text, "(empty array)"),
        Value::Array(list) => {
            let width = list.len().to_string().len();
            for (index, each) in list.iter().enumerate() {
                if index > 0 {
                    text.push_str(&" ".repeat(indent));
                }
                let _written = write!(text, "{:>width$}) ", index + 1);
                show(each, indent + width + 2, text);
            }
            Ok(())
        }
        // The connection speaks the older protocol, which has no more.
        other => writeln!(text, "{other:?}"),
    };
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for each in chunk.valid().chars() {
            match each {
                '"' | '\\' => text.extend(['\\', each]),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                each if each.is_control() => {
                    hex(each.encode_utf8(&mut [0; 4]).as_bytes(), &mut text);
                }
                each => text.push(each),
            }
        }
        hex(chunk.invalid(), &mut text);
    }
    text
}

fn hex(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _written = write!(text, "\\x{byte:02x}");
    }
}

fn as_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Nil => serde_json::Value::Null,
        Value::Int(number) => json!(number),
        Value::Okay => json!("OK"),
        Value::SimpleString(word) => json!(word),
        Value::BulkString(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => json!({ "bytes": name_of(bytes) }),
        },
        Value::ServerError(error) => {
            json!({ "error": format!("{} {}", error.code(), error.details().unwrap_or_default()) })
        }
        Value::Array(list) => list.iter().map(as_json).collect(),
        other => json!(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_read_as_in_redis_cli() {
        let bulk = |text: &[u8]| Value::BulkString(text.to_vec());
        let list = Value::Array(vec![
            bulk(b"a\n\"\xff"),
            Value::Array(vec![Value::Int(1), Value::Nil]),
            Value::Array(Vec::new()),
        ]);
        let answer = Answer(list);
        assert_eq!(
            answer.text(),
            "1) \"a\\n\\\"\\xff\"\n2) 1) (integer) 1\n   2) (nil)\n3) (empty array)\n"
        );
        let told = answer.json().to_string();
        assert_eq!(told, r#"[{"bytes":"a%0A\"%FF"},[1,null],[]]"#);
    }
}
