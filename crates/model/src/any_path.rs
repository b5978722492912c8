//! Any path in JSON: a plain string when it is UTF-8, and `{"hex": "…"}` when it is not. Both read back to the same bytes.
//!
//! For `#[serde(with = "any_path")]`: what the standard library does with a path fails on names that are no text.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Shape {
    Text(String),
    Bytes { hex: String },
}

impl Shape {
    fn of(path: &Path) -> Self {
        if let Some(text) = path.to_str() {
            return Self::Text(text.to_owned());
        }
        let mut hex = String::new();
        for byte in path.as_os_str().as_bytes() {
            // Writing to a string cannot fail.
            let _written = write!(hex, "{byte:02x}");
        }
        Self::Bytes { hex }
    }
}

/// Writes a path.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => serializer.serialize_str(text),
        None => Shape::of(path).serialize(serializer),
    }
}

/// Reads a path.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    match Shape::deserialize(deserializer)? {
        Shape::Text(text) => Ok(text.into()),
        Shape::Bytes { hex } => {
            let bytes = unhex(&hex).ok_or_else(|| serde::de::Error::custom("not hexadecimal"))?;
            Ok(OsString::from_vec(bytes).into())
        }
    }
}

/// A path, if there is one.
pub mod some {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Path(#[serde(with = "super")] PathBuf);

    /// Writes a path, or `null`.
    pub fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        path.clone().map(Path).serialize(serializer)
    }

    /// Reads a path, or `null`.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        let path = Option::<Path>::deserialize(deserializer)?;
        Ok(path.map(|path| path.0))
    }
}

/// Several paths.
pub mod list {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use serde::{Deserializer, Serializer};

    use crate::any_words;

    /// Writes paths.
    pub fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        let words: Vec<OsString> = paths.iter().map(OsString::from).collect();
        any_words::serialize(&words, serializer)
    }

    /// Reads paths.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let words = any_words::deserialize(deserializer)?;
        Ok(words.into_iter().map(PathBuf::from).collect())
    }
}

fn unhex(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
