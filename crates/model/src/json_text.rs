//! JSON that is carried and not looked into: kept as text.
//!
//! A recipe of ten thousand files is some megabytes of text; as a tree of values it takes ten times that, and an undo holds
//! several. Two texts are equal if they mean the same. Numbers that are too wide are read as text (`wide`).

use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wide;

/// Any JSON value, as its text. A clone costs nothing.
#[derive(Debug, Clone)]
pub struct JsonText(Arc<str>);

impl JsonText {
    /// Writes a value down.
    pub fn of(value: &impl Serialize) -> serde_json::Result<Self> {
        Ok(Self(serde_json::to_string(value)?.into()))
    }

    /// Takes text that was checked to be JSON.
    pub fn of_raw(raw: &RawValue) -> Self {
        Self(raw.get().into())
    }

    /// Takes bytes that somebody else wrote down.
    pub fn from_slice(bytes: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice::<&RawValue>(bytes).map(Self::of_raw)
    }

    /// Gives the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses it into a type that was written as it.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(&self.0)
    }
}

impl Default for JsonText {
    fn default() -> Self {
        Self("null".into())
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        let value = |text: &Self| text.read::<Value>().ok();
        self.0 == other.0 || value(self) == value(other)
    }
}

impl Eq for JsonText {}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The text itself is out of reach here: a tagged enum has been read by then.
        let mut value = Value::deserialize(deserializer)?;
        wide::narrow(&mut value);
        Self::of(&value).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::JsonText;

    #[test]
    fn it_is_written_as_it_is_and_read_back_as_the_same() {
        let text: JsonText = serde_json::from_str(r#"{"b": [1, "x"], "a": null}"#).unwrap();
        let written = serde_json::to_string(&text).unwrap();
        assert_eq!(written, r#"{"a":null,"b":[1,"x"]}"#);
        let other = JsonText(r#"{"b":[1,"x"],"a":null}"#.into());
        assert_eq!(text, other);
        assert_eq!(
            serde_json::to_value(&other).unwrap(),
            serde_json::to_value(&text).unwrap()
        );
        assert_ne!(text, JsonText("null".into()));
    }
}
