//! A text that was read, and the questions and edits one can put to it.

use crate::change::{KeyChange, Piece};
use crate::dialect::{Dialect, dialect, meaning};
use crate::edit;
use crate::error::ConfigError;
use crate::format::Format;
use crate::key::{KeyPath, Segment};
use crate::lines::{self, Position};
use crate::merge;
use crate::tree::{self, Kind, Node, SIZE_MAX, TOML_SIZE_MAX, Way};
use crate::value::{NewValue, Value};

/// A config text, read and understood.
#[derive(Debug)]
pub struct Document<'t> {
    format: Format,
    text: &'t str,
    root: Node,
}

/// A value that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<'t> {
    /// Its text.
    pub raw: &'t str,
    /// What it means.
    pub value: Value,
    /// Where it stands.
    pub at: Position,
}

/// What an edit came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Edited {
    /// The new text.
    pub text: String,
    /// What changed, in the order in which it did. Empty if everything was so before.
    pub changes: Vec<KeyChange>,
}

impl<'t> Document<'t> {
    /// Reads a text.
    pub fn parse(format: Format, text: &'t str) -> Result<Self, ConfigError> {
        let limit = match format {
            Format::Toml => TOML_SIZE_MAX,
            Format::Json | Format::Jsonc | Format::Yaml | Format::Ini | Format::Env => SIZE_MAX,
        };
        if text.len() > limit {
            return Err(ConfigError::OverLimit {
                what: "the size in bytes",
                limit,
            });
        }
        let root = dialect(format).parse(text)?;
        Ok(Self { format, text, root })
    }

    /// Reads the bytes of a file.
    pub fn from_bytes(format: Format, bytes: &'t [u8]) -> Result<Self, ConfigError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(format, text),
            Err(error) => {
                let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let good = String::from_utf8_lossy(good);
                Err(ConfigError::NotUtf8 {
                    at: lines::place(&good, good.len()),
                })
            }
        }
    }

    /// The format it was read as.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The text it was read from.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The whole text as one value.
    pub fn value(&self) -> Value {
        self.meaning(&self.root)
    }

    /// The value of a key, if it is there.
    pub fn get(&self, key: &KeyPath) -> Result<Option<Found<'t>>, ConfigError> {
        let way = self.follow(key)?;
        Ok((way.members.len() == key.segments().len()).then(|| self.found(way.node())))
    }

    /// All values that have none below them, in the order of the text, with their keys.
    pub fn keys(&self) -> Result<Vec<(KeyPath, Found<'t>)>, ConfigError> {
        let mut found = Vec::new();
        self.gather(&self.root, &KeyPath::default(), &mut found)?;
        Ok(found)
    }

    /// Gives a key a value. What is missing above it is made.
    pub fn set(&self, key: &KeyPath, value: &NewValue) -> Result<Edited, ConfigError> {
        edit::set(self, key, value)
    }

    /// Takes a key out.
    pub fn unset(&self, key: &KeyPath) -> Result<Edited, ConfigError> {
        edit::unset(self, key)
    }

    /// Sets and removes keys as a patch says, in the manner of RFC 7396: tables are merged, `null` removes, anything else replaces.
    pub fn merge(&self, patch: &Value) -> Result<Edited, ConfigError> {
        merge::merge(self, patch)
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    pub(crate) fn dialect(&self) -> &'static dyn Dialect {
        dialect(self.format)
    }

    pub(crate) fn follow(&self, key: &KeyPath) -> Result<Way<'_>, ConfigError> {
        tree::follow(&self.root, self.text, key)
    }

    pub(crate) fn place(&self, at: usize) -> Position {
        lines::place(self.text, at)
    }

    pub(crate) fn meaning(&self, node: &Node) -> Value {
        meaning(self.dialect(), self.text, node)
    }

    /// What a change records of the value at the end of a way.
    pub(crate) fn piece(&self, way: &Way<'_>) -> Piece {
        let node = way.node();
        let tail = match way.members.last() {
            Some(member) => member.tail.or(member.whole).unwrap_or(node.span),
            None => node.span,
        };
        Piece {
            raw: node.span.of(self.text).to_owned(),
            tail: tail.of(self.text).to_owned(),
            value: self.meaning(node),
        }
    }

    fn found(&self, node: &Node) -> Found<'t> {
        Found {
            raw: node.span.of(self.text),
            value: self.meaning(node),
            at: self.place(node.span.start()),
        }
    }

    fn gather(
        &self,
        node: &Node,
        key: &KeyPath,
        found: &mut Vec<(KeyPath, Found<'t>)>,
    ) -> Result<(), ConfigError> {
        match &node.kind {
            Kind::Map(members) if !members.is_empty() => {
                let mut names = std::collections::HashMap::with_capacity(members.len());
                for member in members {
                    let key = key.child(Segment::Name(member.name.to_string()));
                    if let Some(first) = names.insert(&*member.name, member.name_at) {
                        return Err(ConfigError::Duplicate {
                            key,
                            first: self.place(first.start()),
                            second: self.place(member.name_at.start()),
                        });
                    }
                    self.gather(&member.node, &key, found)?;
                }
            }
            Kind::List(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    self.gather(&item.node, &key.child(Segment::Index(index)), found)?;
                }
            }
            Kind::Map(_) | Kind::List(_) | Kind::Scalar(_) | Kind::Alias => {
                found.push((key.clone(), self.found(node)));
            }
        }
        Ok(())
    }
}
