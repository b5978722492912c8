//! JSON, with or without comments.
//!
//! Invariant: without `comments` only strict JSON is read; a comment or a trailing comma is an error that names `jsonc`.

mod scan;

use crate::dialect::{Dialect, Edit, Fresh};
use crate::document::Document;
use crate::error::ConfigError;
use crate::flow::{Comments, Flow, Look};
use crate::format::Format;
use crate::key::{KeyPath, Segment};
use crate::lines;
use crate::slip::Slip;
use crate::tree::{Kind, Node, Way};
use crate::value::Value;
use crate::weave;

pub(crate) use scan::string_length;

#[derive(Debug)]
pub(crate) struct Json {
    pub(crate) comments: bool,
}

/// A text in double quotes.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// The text that a text in double quotes means.
pub(crate) fn unquoted(raw: &str) -> Option<String> {
    serde_json::from_str(raw).ok()
}

impl Dialect for Json {
    fn parse(&self, text: &str) -> Result<Node, ConfigError> {
        scan::parse(text, self.comments)
    }

    fn scalar(&self, raw: &str, _decoded: Option<&str>) -> Value {
        match raw {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            raw if raw.starts_with('"') => Value::Text(unquoted(raw).unwrap_or_default()),
            raw => Value::Number(raw.to_owned()),
        }
    }

    fn tail(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        value: &Fresh,
    ) -> Result<String, ConfigError> {
        let at = way.node().span.start();
        let style = Style::of(document);
        written(value, &style, lines::indent(document.text(), at))
    }

    fn insert(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        missing: &[Segment],
        value: &Fresh,
    ) -> Result<Edit, ConfigError> {
        let (text, node) = (document.text(), way.node());
        let style = Style::of(document);
        let flow = self.flow(text);
        let indent = flow.member_indent(node, style.unit);
        let (segment, below) = missing.split_first().ok_or(ConfigError::Missing {
            key: KeyPath::default(),
        })?;
        let inner = wrapped(below, value, &style, &indent)?;
        let entry = match segment {
            Segment::Name(name) => format!("{}{}{inner}", quoted(name), style.colon),
            Segment::Index(_) | Segment::Append => inner,
        };
        let look = Look {
            unit: style.unit,
            comma: style.comma,
            pad: "",
            many_lines: style.many_lines,
        };
        Ok(flow.insert(node, &entry, look))
    }

    fn behind(&self, document: &Document<'_>, way: &Way<'_>) -> String {
        self.flow(document.text()).remark(way)
    }

    fn weave(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        left: Option<usize>,
        slip: &Slip,
    ) -> Option<Edit> {
        let (flow, node) = (self.flow(document.text()), way.node());
        if node.members().is_empty() {
            return flow.first_again(node, slip, "");
        }
        weave::in_brackets(&flow, node, left, slip, Style::of(document).comma)
    }

    fn remove(&self, document: &Document<'_>, way: &Way<'_>) -> Result<Edit, ConfigError> {
        self.flow(document.text()).remove(way)
    }

    fn guard(
        &self,
        _document: &Document<'_>,
        _key: &KeyPath,
        _way: &Way<'_>,
    ) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl Json {
    fn flow<'t>(&self, text: &'t str) -> Flow<'t> {
        let comments = if self.comments {
            Comments::Slashes
        } else {
            Comments::None
        };
        Flow { text, comments }
    }
}

/// How a document is laid out.
struct Style<'t> {
    unit: &'t str,
    colon: &'t str,
    comma: &'t str,
    many_lines: bool,
    line_break: &'static str,
}

impl<'t> Style<'t> {
    fn of(document: &Document<'t>) -> Self {
        let (text, root) = (document.text(), document.root());
        let first = root.members().first();
        let many_lines = match root.members() {
            [] => true,
            _ => root.span.of(text).contains('\n'),
        };
        let start = first.map_or(0, |member| member.whole.unwrap_or_default().start());
        let unit = match lines::indent(text, start) {
            unit if !unit.is_empty() && lines::begins_line(text, start) => unit,
            _ => "  ",
        };
        let colon = first.map(|m| lines::cut(text, m.name_at.end()..m.node.span.start()));
        let colon = colon
            .filter(|c| matches!(root.kind, Kind::Map(_)) && c.trim() == ":" && !c.contains('\n'));
        let colon = colon.unwrap_or(": ");
        Self {
            unit,
            colon,
            comma: if colon == ":" { "," } else { ", " },
            many_lines,
            line_break: lines::line_break(text),
        }
    }
}

/// A value inside the objects that are still missing above it.
fn wrapped(
    missing: &[Segment],
    value: &Fresh,
    style: &Style<'_>,
    indent: &str,
) -> Result<String, ConfigError> {
    let Some((segment, below)) = missing.split_first() else {
        return written(value, style, indent);
    };
    let inner_indent = format!("{indent}{}", style.unit);
    let inner = wrapped(below, value, style, &inner_indent)?;
    let (open, inner, close) = match segment {
        Segment::Name(name) => ("{", format!("{}{}{inner}", quoted(name), style.colon), "}"),
        Segment::Index(_) | Segment::Append => ("[", inner, "]"),
    };
    Ok(if style.many_lines {
        let line = style.line_break;
        format!("{open}{line}{inner_indent}{inner}{line}{indent}{close}")
    } else {
        format!("{open}{inner}{close}")
    })
}

fn written(value: &Fresh, style: &Style<'_>, indent: &str) -> Result<String, ConfigError> {
    match value {
        Fresh::Raw(raw) => Ok(raw.clone()),
        Fresh::Value(value) => rendered(value, style, indent),
    }
}

fn rendered(value: &Value, style: &Style<'_>, indent: &str) -> Result<String, ConfigError> {
    let inner = format!("{indent}{}", style.unit);
    let (open, parts, close) = match value {
        Value::Null => return Ok("null".into()),
        Value::Bool(yes) => return Ok(yes.to_string()),
        Value::Number(number) if crate::value::is_json_number(number) => return Ok(number.clone()),
        Value::Text(text) => return Ok(quoted(text)),
        Value::Number(_) | Value::Raw(_) => {
            return Err(ConfigError::Unwritable {
                format: Format::Json,
                why: "JSON has no such value",
            });
        }
        Value::List(items) => {
            let parts = items.iter().map(|item| rendered(item, style, &inner));
            ("[", parts.collect::<Result<Vec<_>, _>>()?, "]")
        }
        Value::Map(members) => {
            let pair = |(name, value): &(String, Value)| {
                Ok(format!(
                    "{}{}{}",
                    quoted(name),
                    style.colon,
                    rendered(value, style, &inner)?
                ))
            };
            (
                "{",
                members
                    .iter()
                    .map(pair)
                    .collect::<Result<Vec<_>, ConfigError>>()?,
                "}",
            )
        }
    };
    Ok(if parts.is_empty() || !style.many_lines {
        format!("{open}{}{close}", parts.join(style.comma))
    } else {
        let line = style.line_break;
        let joined = parts.join(&format!(",{line}{inner}"));
        format!("{open}{line}{inner}{joined}{line}{indent}{close}")
    })
}
