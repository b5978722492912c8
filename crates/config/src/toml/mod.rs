//! TOML: sections, dotted names, inline tables, arrays, arrays of tables.
//!
//! A new key goes where its table is written: as a line of its section, as a dotted line beside other dotted lines, or into the inline table. A table
//! that is not there gets a section.

mod build;
mod extent;

use crate::dialect::{Dialect, Edit, Fresh, behind_line};
use crate::document::Document;
use crate::error::ConfigError;
use crate::flow::{Comments, Flow, Look};
use crate::format::Format;
use crate::key::{KeyPath, Segment};
use crate::lines;
use crate::sections;
use crate::slip::Slip;
use crate::tree::{Form, Kind, Node, Way};
use crate::value::Value;
use crate::weave;

#[derive(Debug)]
pub(crate) struct Toml;

/// The name that a key, in quotes or not, means.
fn key_name(raw: &str) -> String {
    if raw.starts_with(['"', '\'']) {
        let parsed = raw.parse::<toml_edit::Key>();
        return parsed.map_or_else(|_| raw.to_owned(), |key| key.get().to_owned());
    }
    raw.to_owned()
}

/// A name, in quotes if it needs them.
fn key_text(name: &str) -> String {
    let bare = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if !name.is_empty() && name.bytes().all(bare) {
        name.to_owned()
    } else {
        basic(name)
    }
}

/// A text in double quotes.
fn basic(text: &str) -> String {
    crate::json::quoted(text).replace('\u{7f}', "\\u007f")
}

impl Dialect for Toml {
    fn parse(&self, text: &str) -> Result<Node, ConfigError> {
        build::parse(text)
    }

    fn scalar(&self, raw: &str, _decoded: Option<&str>) -> Value {
        match raw.parse::<toml_edit::Value>() {
            Ok(toml_edit::Value::String(text)) => Value::Text(text.into_value()),
            Ok(toml_edit::Value::Boolean(yes)) => Value::Bool(yes.into_value()),
            Ok(toml_edit::Value::Integer(_)) => Value::Number(raw.to_owned()),
            Ok(toml_edit::Value::Float(float)) if float.value().is_finite() => {
                Value::Number(raw.to_owned())
            }
            _ => Value::Raw(raw.to_owned()),
        }
    }

    fn tail(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        value: &Fresh,
    ) -> Result<String, ConfigError> {
        written(value, way.node().span.of(document.text()))
    }

    fn insert(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        missing: &[Segment],
        value: &Fresh,
    ) -> Result<Edit, ConfigError> {
        let node = way.node();
        // What is below a new list is written in brackets.
        let names = missing
            .iter()
            .take_while(|s| matches!(s, Segment::Name(_)))
            .count();
        let (names, inside) = missing.split_at_checked(names).unwrap_or((missing, &[]));
        // The item itself needs no brackets in a list that is there.
        let inside = if names.is_empty() {
            inside.get(1..).unwrap_or_default()
        } else {
            inside
        };
        let value = wrapped(inside, written(value, "")?);
        match (&node.kind, node.form) {
            (Kind::List(_), Form::Section) => Err(ConfigError::Unsupported {
                key: KeyPath::new(missing.to_vec()),
                at: document.place(node.members().first().map_or(0, |m| m.node.span.start())),
                why: "tables of a list are not added one by one",
            }),
            (_, Form::Plain | Form::Block | Form::Absent) => {
                let entry = match names.split_first() {
                    Some((first, below)) => {
                        format!("{} = {}", segment_text(first), wrapped(below, value))
                    }
                    None => value,
                };
                Ok(in_brackets(document, node, &entry))
            }
            (_, Form::Section) => Ok(in_section(document, way, names, &value)),
            (_, Form::Implied) => Ok(beside_implied(document, way, names, &value)),
        }
    }

    fn insert_section(&self, text: &str, lines: &str) -> Option<Edit> {
        Some(sections::add_section(text, lines))
    }

    fn behind(&self, document: &Document<'_>, way: &Way<'_>) -> String {
        if is_in_brackets(way) {
            flow(document).remark(way)
        } else {
            behind_line(document.text(), way).to_owned()
        }
    }

    fn weave(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        left: Option<usize>,
        slip: &Slip,
    ) -> Option<Edit> {
        let (flow, node) = (flow(document), way.node());
        match node.form {
            Form::Section => sections::weave(document, way, left, slip),
            Form::Plain if node.members().is_empty() => flow.first_again(node, slip, ""),
            Form::Plain => weave::in_brackets(&flow, node, left, slip, ", "),
            Form::Implied => weave::in_lines(document.text(), node, left, slip),
            Form::Block | Form::Absent => None,
        }
    }

    fn remove(&self, document: &Document<'_>, way: &Way<'_>) -> Result<Edit, ConfigError> {
        if is_in_brackets(way) {
            return flow(document).remove(way);
        }
        Ok(sections::remove_lines(document.text(), way))
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

/// Whether the last member of a way stands in an inline table or an array.
fn is_in_brackets(way: &Way<'_>) -> bool {
    let mut above = way.members.iter().rev().skip(1);
    above.any(|member| member.node.form == Form::Plain)
}

fn flow<'t>(document: &Document<'t>) -> Flow<'t> {
    Flow {
        text: document.text(),
        comments: Comments::Hash,
    }
}

fn in_brackets(document: &Document<'_>, node: &Node, entry: &str) -> Edit {
    let many_lines =
        matches!(node.kind, Kind::List(_)) && node.span.of(document.text()).contains('\n');
    let look = Look {
        unit: "    ",
        comma: ", ",
        pad: if matches!(node.kind, Kind::Map(_)) {
            " "
        } else {
            ""
        },
        many_lines,
    };
    flow(document).insert(node, entry, look)
}

/// Adds a line to a section, or a section below it.
fn in_section(document: &Document<'_>, way: &Way<'_>, names: &[Segment], value: &str) -> Edit {
    let text = document.text();
    let in_list = way.nodes().any(|node| matches!(node.kind, Kind::List(_)));
    let Some((last, above)) = names
        .split_last()
        .filter(|(_, above)| !above.is_empty() && !in_list)
    else {
        let entry = format!("{} = {value}", dotted(names.iter()));
        return sections::add_line(document, way.node(), &entry, way.members.is_empty());
    };
    let line_break = lines::line_break(text);
    let path = way
        .members
        .iter()
        .map(|member| Segment::Name(member.name.to_string()));
    let path: Vec<Segment> = path.chain(above.iter().cloned()).collect();
    let section = format!(
        "[{}]{line_break}{} = {value}",
        dotted(path.iter()),
        segment_text(last)
    );
    match way.members.last().and_then(|member| member.whole) {
        Some(whole) => {
            let end = lines::line_end(text, whole.end());
            Edit::new(end..end, format!("{line_break}{line_break}{section}"))
        }
        None => sections::add_section(text, &section),
    }
}

/// Adds a key to a table that has no section of its own: beside its dotted lines, or as a section before those of its children.
fn beside_implied(document: &Document<'_>, way: &Way<'_>, names: &[Segment], value: &str) -> Edit {
    let text = document.text();
    let line_break = lines::line_break(text);
    let dotted_line = way
        .node()
        .members()
        .iter()
        .rev()
        .find(|m| m.node.form == Form::Plain);
    let path: Vec<Segment> = way
        .members
        .iter()
        .map(|m| Segment::Name(m.name.to_string()))
        .collect();
    if let Some((member, whole)) = dotted_line.and_then(|member| Some((member, member.whole?))) {
        let prefix = lines::cut(text, whole.start()..member.name_at.start());
        let entry = format!("{prefix}{} = {value}", dotted(names.iter()));
        let inline = way.nodes().any(|node| node.form == Form::Plain);
        if inline {
            return Edit::new(whole.end()..whole.end(), format!(", {entry}"));
        }
        let end = lines::line_end(text, whole.end());
        let indent = lines::indent(text, whole.start());
        return Edit::new(end..end, format!("{line_break}{indent}{entry}"));
    }
    let (last, above) = names
        .split_last()
        .map_or((None, names), |(last, above)| (Some(last), above));
    let header = dotted(path.iter().chain(above));
    let key = last.map_or_else(String::new, segment_text);
    let section = format!("[{header}]{line_break}{key} = {value}");
    match sections::first_section(way.node()) {
        Some(start) => {
            let at = sections::above_comments(text, lines::line_start(text, start));
            Edit::new(at..at, format!("{section}{line_break}{line_break}"))
        }
        None => sections::add_section(text, &section),
    }
}

fn segment_text(segment: &Segment) -> String {
    match segment {
        Segment::Name(name) => key_text(name),
        Segment::Index(_) | Segment::Append => String::new(),
    }
}

fn dotted<'s>(names: impl Iterator<Item = &'s Segment>) -> String {
    names.map(segment_text).collect::<Vec<_>>().join(".")
}

/// A value inside the brackets that its key still needs.
fn wrapped(missing: &[Segment], value: String) -> String {
    missing
        .iter()
        .rev()
        .fold(value, |inner, segment| match segment {
            Segment::Name(name) => format!("{{ {} = {inner} }}", key_text(name)),
            Segment::Index(_) | Segment::Append => format!("[{inner}]"),
        })
}

/// Puts a value into words. A text keeps the kind of quotes that the old one had.
fn written(value: &Fresh, old: &str) -> Result<String, ConfigError> {
    match value {
        Fresh::Raw(raw) => Ok(raw.clone()),
        Fresh::Value(Value::Text(text))
            if old.starts_with('\'')
                && !old.starts_with("'''")
                && !text.contains('\'')
                && !text.chars().any(char::is_control) =>
        {
            Ok(format!("'{text}'"))
        }
        Fresh::Value(value) => rendered(value),
    }
}

fn rendered(value: &Value) -> Result<String, ConfigError> {
    let cannot = |why| ConfigError::Unwritable {
        format: Format::Toml,
        why,
    };
    Ok(match value {
        Value::Null => return Err(cannot("TOML has no null; unset the key instead")),
        Value::Raw(raw) => raw.clone(),
        Value::Bool(yes) => yes.to_string(),
        Value::Number(number) => number.clone(),
        Value::Text(text) => basic(text),
        Value::List(items) => {
            let items = items.iter().map(rendered).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Map(members) if members.is_empty() => "{}".into(),
        Value::Map(members) => {
            let pair = |(name, value): &(String, Value)| {
                Ok(format!("{} = {}", key_text(name), rendered(value)?))
            };
            let pairs = members
                .iter()
                .map(pair)
                .collect::<Result<Vec<_>, ConfigError>>()?;
            format!("{{ {} }}", pairs.join(", "))
        }
    })
}
