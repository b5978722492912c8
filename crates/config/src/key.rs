//! Keys as people write them: `server.port`, `list[0]`, `a."b.c".d`.
//!
//! What is printed parses to the same key, whatever the names hold.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::tree::DEPTH_MAX;

/// One step of a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A name in a table.
    Name(String),
    /// An item of a list, counted from 0.
    Index(usize),
    /// The place behind the last item of a list: `[+]`.
    Append,
}

impl Segment {
    pub(crate) fn wants(&self) -> &'static str {
        match self {
            Self::Name(_) => "a table",
            Self::Index(_) | Self::Append => "a list",
        }
    }
}

/// The way to a value: names and indices.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct KeyPath(Vec<Segment>);

impl KeyPath {
    /// Makes a key of its segments.
    pub fn new(segments: Vec<Segment>) -> Self {
        Self(segments)
    }

    /// Makes a key of names only.
    pub fn of_names<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self(names.into_iter().map(|n| Segment::Name(n.into())).collect())
    }

    /// The segments, outermost first.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The key one level below this one.
    #[must_use]
    pub fn child(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }

    /// The first `length` segments.
    #[must_use]
    pub fn prefix(&self, length: usize) -> Self {
        Self(self.0.iter().take(length).cloned().collect())
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Name(name) => {
                    if depth > 0 {
                        f.write_str(".")?;
                    }
                    if !name.is_empty() && name.chars().all(is_bare) {
                        f.write_str(name)?;
                    } else {
                        f.write_str(&crate::json::quoted(name))?;
                    }
                }
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Append => f.write_str("[+]")?,
            }
        }
        Ok(())
    }
}

/// Whether a character may stand in a name without quotes.
fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || "_-/@$+:*".contains(c)
        || (!c.is_ascii() && !c.is_whitespace() && !c.is_control() && c != '\u{feff}')
}

impl FromStr for KeyPath {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let mut segments = Vec::new();
        let mut at = 0;
        while at < text.len() || segments.is_empty() {
            if segments.len() == DEPTH_MAX {
                return Err(ConfigError::KeySyntax {
                    text: crate::lines::cut(text, 0..at)
                        .chars()
                        .take(40)
                        .chain(['…'])
                        .collect(),
                    column: at + 1,
                    what: "a key has no more than 128 steps",
                });
            }
            let (segment, length) = one(text, at, segments.is_empty())?;
            segments.push(segment);
            at += length;
        }
        Ok(Self(segments))
    }
}

/// Reads one segment, with the dot before it if it is not the first, and tells its length.
fn one(text: &str, at: usize, first: bool) -> Result<(Segment, usize), ConfigError> {
    let wrong = |offset: usize, what: &'static str| ConfigError::KeySyntax {
        text: text.to_owned(),
        column: crate::lines::cut(text, 0..offset).chars().count() + 1,
        what,
    };
    let here = crate::lines::rest(text, at);
    if let Some(inside) = here.strip_prefix('[') {
        let Some((index, _)) = inside.split_once(']') else {
            return Err(wrong(at, "this `[` has no `]`"));
        };
        let segment = if index == "+" {
            Segment::Append
        } else if !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()) {
            let index = index.parse();
            Segment::Index(index.map_err(|_| wrong(at, "this index is too large"))?)
        } else {
            return Err(wrong(
                at + 1,
                "an index is a number from 0, or `+`; put a name in double quotes",
            ));
        };
        return Ok((segment, index.len() + 2));
    }
    let dot = usize::from(!first);
    if !first && !here.starts_with('.') {
        return Err(wrong(
            at,
            "a `.` or `[` is needed here; put such a name in double quotes",
        ));
    }
    let here = crate::lines::rest(here, dot);
    if here.starts_with('"') {
        let length = crate::json::string_length(here)
            .ok_or_else(|| wrong(at + dot, "this quote is not closed"))?;
        let name = crate::json::unquoted(crate::lines::cut(here, 0..length));
        let name = name.ok_or_else(|| wrong(at + dot, "this is no text in double quotes"))?;
        return Ok((Segment::Name(name), length + dot));
    }
    let length = here.find(|c| !is_bare(c)).unwrap_or(here.len());
    if length == 0 {
        return Err(wrong(
            at + dot,
            "a name is needed here; put such a name in double quotes",
        ));
    }
    Ok((
        Segment::Name(crate::lines::cut(here, 0..length).to_owned()),
        length + dot,
    ))
}

impl From<KeyPath> for String {
    fn from(key: KeyPath) -> Self {
        key.to_string()
    }
}

impl TryFrom<String> for KeyPath {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        // A key of no segments is the whole text. People cannot write it, but a recipe may hold it.
        if text.is_empty() {
            return Ok(Self::default());
        }
        text.parse()
    }
}
