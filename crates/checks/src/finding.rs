//! The one answer of every check.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where something is in a text. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

impl Place {
    /// Finds the place of a byte in a text. An offset behind the end is the end.
    pub fn of(text: &str, offset: usize) -> Self {
        let end = text.floor_char_boundary(offset.min(text.len()));
        let before = text.get(..end).unwrap_or(text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let last = before.rsplit('\n').next().unwrap_or_default();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            line: count(line),
            column: count(last.chars().count() + 1),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Something that is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Where, if it is at one place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The key that it is about, as `backout set` would name it, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What was found, in words that fit behind "FILE: ".
    pub found: String,
    /// What would mend it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    /// Says what was found, without a place.
    pub fn new(found: impl Into<String>) -> Self {
        Self {
            place: None,
            key: None,
            found: found.into(),
            remedy: None,
        }
    }

    /// Adds where it is.
    #[must_use]
    pub const fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Adds the key that it is about.
    #[must_use]
    pub fn of_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Adds what would mend it.
    #[must_use]
    pub fn mended_by(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_characters_from_one() {
        let text = "ä\nbö c";
        for (offset, line, column) in [(0, 1, 1), (2, 1, 2), (3, 2, 1), (7, 2, 4), (99, 2, 5)] {
            assert_eq!(Place::of(text, offset), Place { line, column }, "{offset}");
        }
    }

    #[test]
    fn an_offset_inside_of_a_character_is_its_beginning() {
        assert_eq!(Place::of("ä", 1), Place { line: 1, column: 1 });
    }
}
