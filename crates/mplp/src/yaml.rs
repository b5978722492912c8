//! Reads the YAML of rule files: maps, lists and scalars, without anchors or tags.
//!
//! Scalars stay texts. No rule has a number or a truth value, and `on` is not one here.

use granit_parser::{Event, Parser, StrInput};
use serde_json::{Map, Value};

/// Says why a text is not such YAML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the rules cannot be read: {0}")]
pub struct YamlError(String);

/// Reads the one document of a text.
pub(crate) fn read(text: &str) -> Result<Value, YamlError> {
    let mut reader = Reader(Parser::new_from_str(text));
    loop {
        match reader.next()? {
            Event::StreamStart | Event::DocumentStart(..) => {}
            event => return reader.value(event, 0),
        }
    }
}

/// How deep lists and maps may lie in each other.
const DEPTH_MAX: usize = 64;

struct Reader<'t>(Parser<'t, StrInput<'t>>);

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Event<'t>, YamlError> {
        match self.0.next_event() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(YamlError(error.to_string())),
            None => Err(YamlError("the text ends too early".to_owned())),
        }
    }

    fn value(&mut self, event: Event<'t>, depth: usize) -> Result<Value, YamlError> {
        if depth > DEPTH_MAX {
            return Err(YamlError("it is nested too deep".to_owned()));
        }
        match event {
            Event::Scalar(text, ..) => Ok(Value::String(text.into_owned())),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => return Ok(Value::Array(items)),
                        event => items.push(self.value(event, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut map = Map::new();
                loop {
                    let key = match self.next()? {
                        Event::MappingEnd => return Ok(Value::Object(map)),
                        Event::Scalar(key, ..) => key.into_owned(),
                        _ => return Err(YamlError("a key is no plain text".to_owned())),
                    };
                    let event = self.next()?;
                    let value = self.value(event, depth + 1)?;
                    if map.insert(key.clone(), value).is_some() {
                        return Err(YamlError(format!("`{key}` is there twice")));
                    }
                }
            }
            _ => Err(YamlError("a value is needed".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_lists_and_texts_are_read() {
        let text = "# said\nrules:\n  - id: one # here\n    rule: enum(a,b)\n  - id: \"two\"\nnote: last\n";
        let read = read(text).unwrap();
        let rules = json!([{"id": "one", "rule": "enum(a,b)"}, {"id": "two"}]);
        assert_eq!(read, json!({"rules": rules, "note": "last"}));
    }

    #[test]
    fn what_is_no_such_yaml_is_told() {
        for wrong in ["a: [", "a: 1\na: 2\n", "? [x]\n: y\n", "*nobody"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
