//! Bytes that survive JSON: a plain string when they are UTF-8, `{"hex": "…"}` when they are not.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

/// Any bytes: a link's target, an attribute's name or value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnyBytes(pub Vec<u8>);

impl fmt::Debug for AnyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Shape {
    Text(String),
    Bytes { hex: String },
}

impl Serialize for AnyBytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(text) = std::str::from_utf8(&self.0) {
            return serializer.serialize_str(text);
        }
        let mut hex = String::with_capacity(self.0.len() * 2);
        for byte in &self.0 {
            write!(hex, "{byte:02x}").map_err(serde::ser::Error::custom)?;
        }
        Shape::Bytes { hex }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AnyBytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Shape::deserialize(deserializer)? {
            Shape::Text(text) => Ok(Self(text.into_bytes())),
            Shape::Bytes { hex } => {
                let digits = hex.as_bytes();
                let pairs = digits.chunks(2).map(|pair| {
                    let pair = std::str::from_utf8(pair)
                        .ok()
                        .filter(|pair| pair.len() == 2)?;
                    u8::from_str_radix(pair, 16).ok()
                });
                let bytes = pairs.collect::<Option<Vec<u8>>>();
                bytes
                    .map(Self)
                    .ok_or_else(|| serde::de::Error::custom("not hexadecimal"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_json() {
        for bytes in [
            &b""[..],
            b"plain",
            b"\0\x01nul",
            b"\xff\xfe",
            b"{\"hex\":\"00\"}",
        ] {
            let json = serde_json::to_string(&AnyBytes(bytes.to_vec())).unwrap();
            assert_eq!(
                serde_json::from_str::<AnyBytes>(&json).unwrap().0,
                bytes,
                "{json}"
            );
        }
        assert!(serde_json::from_str::<AnyBytes>(r#"{"hex":"abc"}"#).is_err());
    }
}
