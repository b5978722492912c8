//! Bytes and texts of the system that survive JSON, for fields of requests.

pub(crate) use backout_files::AnyBytes;

/// For `#[serde(with = "as_bytes")]` on bytes.
pub(crate) mod as_bytes {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::AnyBytes;

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        AnyBytes(bytes.to_vec()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        Ok(AnyBytes::deserialize(from)?.0)
    }
}

/// For `#[serde(with = "as_text")]` on a text of the system.
pub(crate) mod as_text {
    use std::ffi::{OsStr, OsString};
    use std::path::Path;

    use backout_model::any_path;
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(text: &OsStr, serializer: S) -> Result<S::Ok, S::Error> {
        any_path::serialize(Path::new(text), serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<OsString, D::Error> {
        any_path::deserialize(from).map(Into::into)
    }
}
