//! What the formats share: the trait that each of them fills in.
//!
//! A dialect reads a text into a tree and proposes edits. It need not be right about layout: `edit` reads every proposal again and
//! refuses what does not come out as it should.

use std::ops::Range;

use crate::document::Document;
use crate::error::ConfigError;
use crate::format::Format;
use crate::key::{KeyPath, Segment};
use crate::lines;
use crate::slip::Slip;
use crate::tree::{Kind, Node, Span, Way};
use crate::value::Value;

/// One replaced range of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) range: Range<usize>,
    pub(crate) new: String,
}

impl Edit {
    pub(crate) fn new(range: Range<usize>, new: impl Into<String>) -> Self {
        Self {
            range,
            new: new.into(),
        }
    }

    pub(crate) fn applied(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + self.new.len());
        out.push_str(lines::cut(text, 0..self.range.start));
        out.push_str(&self.new);
        out.push_str(lines::rest(text, self.range.end));
        out
    }
}

/// A value to be written.
#[derive(Debug, Clone)]
pub(crate) enum Fresh {
    /// To be put into the format's words.
    Value(Value),
    /// In the format's words already.
    Raw(String),
}

/// A format: how it is read, and how keys of it are edited.
pub(crate) trait Dialect {
    /// Reads a text. Keys that stand twice are no error here.
    fn parse(&self, text: &str) -> Result<Node, ConfigError>;

    /// What a scalar means.
    fn scalar(&self, raw: &str, decoded: Option<&str>) -> Value;

    /// Gives another value to a member that is there: the new text of its tail.
    fn tail(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        value: &Fresh,
    ) -> Result<String, ConfigError>;

    /// Puts another tail in the place of one.
    fn exchange(&self, _document: &Document<'_>, span: Span, tail: String) -> Edit {
        Edit::new(span.range(), tail)
    }

    /// Adds what is missing of a key, below the end of the way.
    fn insert(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        missing: &[Segment],
        value: &Fresh,
    ) -> Result<Edit, ConfigError>;

    /// Adds a section whose lines are given as they stood, header included. Only formats with sections do.
    fn insert_section(&self, _text: &str, _lines: &str) -> Option<Edit> {
        None
    }

    /// The comment behind the last member of a way, with the blanks before it.
    fn behind(&self, document: &Document<'_>, way: &Way<'_>) -> String {
        behind_line(document.text(), way).to_owned()
    }

    /// Puts a member back as it stood, into what the way leads to, behind the member of this index or before all.
    fn weave(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        left: Option<usize>,
        slip: &Slip,
    ) -> Option<Edit>;

    /// Takes the last member of the way out.
    fn remove(&self, document: &Document<'_>, way: &Way<'_>) -> Result<Edit, ConfigError>;

    /// Refuses keys that this format cannot have, and keys that must not be touched.
    fn guard(
        &self,
        document: &Document<'_>,
        key: &KeyPath,
        way: &Way<'_>,
    ) -> Result<(), ConfigError>;
}

/// What stands behind a member up to the end of its line, if it is a comment.
pub(crate) fn behind_line<'t>(text: &'t str, way: &Way<'_>) -> &'t str {
    let whole = way.members.last().and_then(|member| member.whole);
    let end = whole.map_or(text.len(), Span::end);
    let rest = lines::cut(text, end..lines::line_end(text, end));
    let is_remark = rest.trim_start().starts_with(['#', ';']);
    if is_remark { rest } else { "" }
}

/// Gives who reads and edits texts of a format.
pub(crate) fn dialect(format: Format) -> &'static dyn Dialect {
    match format {
        Format::Json => &crate::json::Json { comments: false },
        Format::Jsonc => &crate::json::Json { comments: true },
        Format::Yaml => &crate::yaml::Yaml,
        Format::Toml => &crate::toml::Toml,
        Format::Ini => &crate::ini::Ini,
        Format::Env => &crate::env::Env,
    }
}

/// What a value of the tree means.
pub(crate) fn meaning(dialect: &dyn Dialect, text: &str, node: &Node) -> Value {
    match &node.kind {
        Kind::Scalar(_) | Kind::Alias if node.marked => Value::Raw(node.span.of(text).to_owned()),
        Kind::Scalar(decoded) => dialect.scalar(node.span.of(text), decoded.as_deref()),
        Kind::Alias => Value::Raw(node.span.of(text).to_owned()),
        Kind::List(items) => Value::List(
            items
                .iter()
                .map(|item| meaning(dialect, text, &item.node))
                .collect(),
        ),
        Kind::Map(members) => {
            let pair =
                |m: &crate::tree::Member| (m.name.to_string(), meaning(dialect, text, &m.node));
            Value::Map(members.iter().map(pair).collect())
        }
    }
}
