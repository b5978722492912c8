//! Words of a command in JSON, whatever their bytes are: each as `any_path` writes a path.
//!
//! For `#[serde(with = "any_words")]` on a `Vec<OsString>`; the modules are for pairs, such as variables.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::any_path;

#[derive(Serialize, Deserialize)]
struct Word(#[serde(with = "any_path")] PathBuf);

impl From<&OsString> for Word {
    fn from(word: &OsString) -> Self {
        Self(word.into())
    }
}

impl From<Word> for OsString {
    fn from(word: Word) -> Self {
        word.0.into()
    }
}

/// Writes words.
pub fn serialize<S: Serializer>(words: &[OsString], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(words.iter().map(Word::from))
}

/// Reads words.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<OsString>, D::Error> {
    let words = Vec::<Word>::deserialize(deserializer)?;
    Ok(words.into_iter().map(OsString::from).collect())
}

type Pair = (OsString, OsString);

fn as_words((one, other): &Pair) -> (Word, Word) {
    (one.into(), other.into())
}

fn as_pairs(words: Vec<(Word, Word)>) -> Vec<Pair> {
    let pairs = words.into_iter();
    pairs
        .map(|(one, other)| (one.into(), other.into()))
        .collect()
}

/// Pairs of words.
pub mod pairs {
    use super::{Deserialize as _, Deserializer, Pair, Serializer, Word, as_pairs, as_words};

    /// Writes pairs.
    pub fn serialize<S: Serializer>(pairs: &[Pair], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(pairs.iter().map(as_words))
    }

    /// Reads pairs.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pair>, D::Error> {
        Vec::<(Word, Word)>::deserialize(deserializer).map(as_pairs)
    }
}

/// Pairs of words, if there are any.
pub mod some_pairs {
    use super::{
        Deserialize as _, Deserializer, Pair, Serialize as _, Serializer, Word, as_pairs, as_words,
    };

    /// Writes pairs, or `null`.
    pub fn serialize<S: Serializer>(
        pairs: &Option<Vec<Pair>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let words = pairs
            .as_deref()
            .map(|pairs| pairs.iter().map(as_words).collect::<Vec<_>>());
        words.serialize(serializer)
    }

    /// Reads pairs, or `null`.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<Pair>>, D::Error> {
        let words = Option::<Vec<(Word, Word)>>::deserialize(deserializer)?;
        Ok(words.map(as_pairs))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn words_of_any_bytes_come_back() {
        #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
        struct All {
            #[serde(with = "super")]
            words: Vec<OsString>,
            #[serde(with = "super::pairs")]
            set: Vec<Pair>,
            #[serde(with = "super::some_pairs")]
            base: Option<Vec<Pair>>,
        }
        let odd = OsString::from_vec(b"caf\xe9".to_vec());
        for base in [None, Some(vec![("A".into(), odd.clone())])] {
            let all = All {
                words: vec!["ls".into(), odd.clone()],
                set: vec![(odd.clone(), "".into())],
                base,
            };
            let text = serde_json::to_string(&all).unwrap();
            assert_eq!(serde_json::from_str::<All>(&text).unwrap(), all, "{text}");
        }
    }
}
