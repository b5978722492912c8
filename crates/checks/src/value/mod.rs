//! Config texts of all formats as one tree of values, with the place of each.
//!
//! - Numbers stay the text they are: nothing is rounded before somebody compares.
//! - YAML is read by the core schema of YAML 1.2 (`no` is a text). Anchors are resolved within a budget, `<<` is merged as readers do. Several documents are
//!   a list, and their index is in the key: `[1].spec.replicas`.
//! - A key that stands twice is a finding in JSON, YAML and TOML. In INI it is a list, for such files mean it so. In `.env` the last one counts.
//! - A date of TOML is a text.
//! - At most [`FINDINGS_MAX`] findings come of one check: a place costs a walk through the text.
//!
//! Not here: whether the syntax is right in all points (`syntax`). What cannot be read is one finding, and nothing else is checked then.

mod convert;
mod yaml;

use backout_config::{ConfigError, Document, KeyPath, Position, Segment};

pub use backout_config::Format;

use crate::finding::{Finding, Place};

/// The most findings that one check gives.
pub const FINDINGS_MAX: usize = 100;

/// A text that was read.
#[derive(Debug, Clone)]
pub struct Tree<'t> {
    text: &'t str,
    format: Format,
    documents: Vec<Node>,
}

/// A value, with where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where its name stands, in bytes; where it begins itself, if it has none.
    pub(crate) name_at: u32,
    /// Where it begins, in bytes.
    pub(crate) at: u32,
    /// Whether it comes through an alias or a merge key of YAML: what is below it stands elsewhere.
    pub(crate) copied: bool,
    /// The value itself, with all that is below it.
    pub kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number, as it is written.
    Number(Box<str>),
    /// Without its quotes and escapes.
    Text(Box<str>),
    /// In its order.
    List(Vec<Node>),
    /// A table, in the order of the text.
    Map(Vec<(Box<str>, Node)>),
}

impl<'t> Tree<'t> {
    /// Reads the bytes of a file. What cannot be read is the finding.
    pub fn read(format: Format, bytes: &'t [u8]) -> Result<Self, Finding> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Err(refusal(&not_utf8(format, bytes)));
        };
        let documents = match format {
            Format::Yaml => yaml::read(text)?,
            Format::Json | Format::Jsonc | Format::Toml | Format::Ini | Format::Env => {
                let document = Document::parse(format, text).map_err(|error| refusal(&error))?;
                vec![convert::node(text, format, document.view())?]
            }
        };
        Ok(Self {
            text,
            format,
            documents,
        })
    }

    /// The format it was read as.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The text it was read from.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The documents, each with how keys in it begin. Only YAML has more than one.
    pub fn documents(&self) -> impl Iterator<Item = (Vec<Segment>, &Node)> {
        let many = self.documents.len() > 1;
        self.documents.iter().enumerate().map(move |(index, node)| {
            (
                many.then_some(Segment::Index(index)).into_iter().collect(),
                node,
            )
        })
    }

    /// The whole text as JSON: the value, or the list of all documents.
    pub fn to_json(&self) -> serde_json::Value {
        match self.documents.as_slice() {
            [one] => one.to_json(),
            several => several.iter().map(Node::to_json).collect(),
        }
    }

    /// The value of a key, if it is there.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let key: KeyPath = key.parse().ok()?;
        let (first, rest) = key.segments().split_first()?;
        match (self.documents.as_slice(), first) {
            ([one], _) => one.below(key.segments()),
            (several, Segment::Index(index)) => several.get(*index)?.below(rest),
            (_, Segment::Name(_) | Segment::Append) => None,
        }
    }

    /// Where a value stands.
    pub fn place_of(&self, node: &Node) -> Place {
        place(self.text, node.at as usize)
    }

    /// Where the name of a value stands, or the value itself if it has none.
    pub fn place_of_name(&self, node: &Node) -> Place {
        place(self.text, node.name_at as usize)
    }
}

impl Node {
    pub(crate) fn new(name_at: usize, at: usize, kind: Kind) -> Self {
        let small = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            name_at: small(name_at),
            at: small(at),
            copied: false,
            kind,
        }
    }

    /// The value as JSON. A number that JSON cannot have is a text.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(yes) => Value::Bool(*yes),
            Kind::Number(raw) => convert::json_number(raw),
            Kind::Text(text) => Value::String(text.to_string()),
            Kind::List(items) => items.iter().map(Self::to_json).collect(),
            Kind::Map(members) => members
                .iter()
                .map(|(name, node)| (name.to_string(), node.to_json()))
                .collect(),
        }
    }

    /// The value of this name, if it is a table that has it.
    pub fn named(&self, name: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Map(members) => members
                .iter()
                .find(|(n, _)| &**n == name)
                .map(|(_, node)| node),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => None,
        }
    }

    /// Gives what it means; none if it is no text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// The values one level below, with the step that leads to each.
    pub fn children(&self) -> Vec<(Segment, &Self)> {
        match &self.kind {
            Kind::List(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| (Segment::Index(index), item))
                .collect(),
            Kind::Map(members) => members
                .iter()
                .map(|(name, node)| (Segment::Name(name.to_string()), node))
                .collect(),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => Vec::new(),
        }
    }

    /// The value that a way leads to, if it is there.
    pub fn below(&self, way: &[Segment]) -> Option<&Self> {
        way.iter()
            .try_fold(self, |node, step| match (step, &node.kind) {
                (Segment::Name(name), _) => node.named(name),
                (Segment::Index(index), Kind::List(items)) => items.get(*index),
                (Segment::Index(_) | Segment::Append, _) => None,
            })
    }

    /// What it is, in a word for people.
    pub fn what(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a table",
        }
    }

    /// The value in few words: itself if it is short, else what it is.
    pub fn shown(&self) -> String {
        match &self.kind {
            Kind::Null => "nothing".into(),
            Kind::Bool(yes) => format!("`{yes}`"),
            Kind::Number(raw) => format!("`{}`", short(raw)),
            Kind::Text(text) => format!("\"{}\"", short(text)),
            Kind::List(items) => format!("a list of {}", items.len()),
            Kind::Map(_) => "a table".into(),
        }
    }

    /// A number as one that compares: exact if it is whole and not above 128 bits.
    pub(crate) fn as_amount(&self) -> Option<convert::Amount> {
        match &self.kind {
            Kind::Number(raw) => convert::amount(raw),
            Kind::Null | Kind::Bool(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => None,
        }
    }
}

pub(crate) use convert::{Amount, amount};

/// The first characters of a text, in one line.
pub(crate) fn short(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut out: String = text
        .chars()
        .take(SHOWN)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}

/// Where a byte of a text is. A byte order mark is no column.
pub(crate) fn place(text: &str, at: usize) -> Place {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Place::of(rest, at.saturating_sub('\u{feff}'.len_utf8())),
        None => Place::of(text, at),
    }
}

/// The key of a way, as `backout set` names it.
pub(crate) fn key_of(way: &[Segment]) -> String {
    KeyPath::new(way.to_vec()).to_string()
}

fn not_utf8(format: Format, bytes: &[u8]) -> ConfigError {
    match Document::from_bytes(format, bytes) {
        Err(error) => error,
        Ok(_) => ConfigError::NotUtf8 {
            at: Position { line: 1, column: 1 },
        },
    }
}

/// Says why a text cannot be read.
pub(crate) fn refusal(error: &ConfigError) -> Finding {
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let at = |position: &Position| Place {
        line: small(position.line),
        column: small(position.column),
    };
    if let ConfigError::Syntax { at: position, what } = error {
        Finding::new(format!("it cannot be read: {what}")).at(at(position))
    } else if let ConfigError::NotUtf8 { at: position } = error {
        Finding::new("it is not UTF-8")
            .at(at(position))
            .mended_by("save it as UTF-8")
    } else if let ConfigError::Duplicate { key, first, second } = error {
        twice(&key.to_string(), at(first), at(second))
    } else {
        Finding::new(format!("it cannot be checked: {error}"))
    }
}

pub(crate) fn twice(key: &str, first: Place, second: Place) -> Finding {
    Finding::new(format!("the key stands twice, first in {first}"))
        .at(second)
        .of_key(key)
        .mended_by("remove one of the two")
}

#[cfg(test)]
mod tests;
