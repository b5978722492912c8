//! `.env` files: `NAME=value` lines, with `export` or without.
//!
//! Readers differ: some resolve `$X` and escapes, some do not. So a text is written without quotes if nothing in it is special, else in single
//! quotes, else in double quotes if no reader would see an escape or a variable in it; else it is refused.

use crate::dialect::{Dialect, Edit, Fresh};
use crate::document::Document;
use crate::error::ConfigError;
use crate::format::Format;
use crate::key::{KeyPath, Segment};
use crate::lines;
use crate::slip::Slip;
use crate::tree::{Form, Kind, Member, Node, Span, Way};
use crate::value::Value;

#[derive(Debug)]
pub(crate) struct Env;

impl Dialect for Env {
    fn parse(&self, text: &str) -> Result<Node, ConfigError> {
        let mut members = Vec::new();
        let mut at = lines::text_start(text);
        while at < text.len() {
            let end = lines::line_end(text, at);
            let start = lines::skip_blanks(text, at);
            if start >= end || lines::byte(text, start) == Some(b'#') {
                at = lines::next_line(text, end);
                continue;
            }
            let member = entry(text, start, end)?;
            at = lines::next_line(text, member.whole.map_or(end, Span::end));
            members.push(member);
        }
        let span = Span::new(lines::text_start(text), text.len());
        Ok(Node::new(span, Kind::Map(members), Form::Section))
    }

    fn scalar(&self, raw: &str, decoded: Option<&str>) -> Value {
        if raw.is_empty() && decoded.is_none() {
            return Value::Null;
        }
        Value::Text(meaning(raw))
    }

    fn tail(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        value: &Fresh,
    ) -> Result<String, ConfigError> {
        let (text, node) = (document.text(), way.node());
        let tail = way.members.last().and_then(|m| m.tail).unwrap_or_default();
        let separator = lines::cut(text, tail.start()..node.span.start());
        let separator = if separator.is_empty() { "=" } else { separator };
        assigned(separator, value, node.span.of(text))
    }

    fn insert(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        missing: &[Segment],
        value: &Fresh,
    ) -> Result<Edit, ConfigError> {
        let name = match missing {
            [Segment::Name(name)] if is_name(name) => name,
            _ => {
                return Err(ConfigError::NoSuchKeys {
                    key: KeyPath::new(missing.to_vec()),
                    why: "a name in a .env file is made of letters, digits and `_`",
                });
            }
        };
        let text = document.text();
        let last = way.node().members().last().and_then(|member| member.whole);
        let exported = last.is_some_and(|whole| has_export(whole.of(text)));
        let export = if exported { "export " } else { "" };
        let entry = format!("{export}{name}{}", assigned("=", value, "")?);
        Ok(crate::sections::add_line(
            document,
            way.node(),
            &entry,
            true,
        ))
    }

    fn weave(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        left: Option<usize>,
        slip: &Slip,
    ) -> Option<Edit> {
        let text = document.text();
        match way.node().members() {
            [] => crate::weave::at(text, slip, text.len()),
            _ => crate::weave::in_lines(text, way.node(), left, slip),
        }
    }

    fn remove(&self, document: &Document<'_>, way: &Way<'_>) -> Result<Edit, ConfigError> {
        Ok(crate::sections::remove_lines(document.text(), way))
    }

    fn guard(
        &self,
        _document: &Document<'_>,
        key: &KeyPath,
        _way: &Way<'_>,
    ) -> Result<(), ConfigError> {
        match key.segments() {
            [Segment::Name(_)] => Ok(()),
            _ => Err(single_names(key)),
        }
    }
}

/// The refusal of a key that is more than a name.
pub(crate) fn single_names(key: &KeyPath) -> ConfigError {
    ConfigError::NoSuchKeys {
        key: key.clone(),
        why: "a .env file has single names",
    }
}

fn cannot(why: &'static str) -> ConfigError {
    ConfigError::Unwritable {
        format: Format::Env,
        why,
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn has_export(line: &str) -> bool {
    line.strip_prefix("export")
        .is_some_and(|rest| rest.starts_with([' ', '\t']))
}

fn entry(text: &str, start: usize, end: usize) -> Result<Member, ConfigError> {
    let line = lines::cut(text, start..end);
    let name_start = if has_export(line) {
        lines::skip_blanks(text, start + "export".len())
    } else {
        start
    };
    let rest = lines::cut(text, name_start..end);
    let length = rest
        .find(|c: char| !c.is_ascii_alphanumeric() && !"_.-".contains(c))
        .unwrap_or(rest.len());
    let name_at = Span::new(name_start, name_start + length);
    let equals = lines::skip_blanks(text, name_at.end()).min(end);
    let wrong = |what: &str| ConfigError::Syntax {
        at: lines::place(text, equals),
        what: what.to_owned(),
    };
    if length == 0 {
        return Err(wrong("NAME=value is needed here"));
    }
    let (value, decoded) = match lines::byte(text, equals) {
        Some(b'=') if equals < end => (value(text, equals + 1, end)?, Some("".into())),
        _ if lines::cut(text, equals..end).starts_with('#') || equals >= end => {
            (Span::new(name_at.end(), name_at.end()), None)
        }
        _ => return Err(wrong("`=` is needed here")),
    };
    let decoded = decoded.filter(|_| value.start() == value.end());
    Ok(Member {
        name: name_at.of(text).into(),
        name_at,
        whole: Some(Span::new(start, value.end())),
        tail: Some(Span::new(name_at.end(), value.end())),
        node: Node::new(value, Kind::Scalar(decoded), Form::Plain),
    })
}

/// The value behind `=`: up to its closing quote, which may be lines below, or to a comment or the end of the line.
fn value(text: &str, from: usize, end: usize) -> Result<Span, ConfigError> {
    let start = lines::skip_blanks(text, from).min(end);
    if let Some(quote @ (b'"' | b'\'' | b'`')) = lines::byte(text, start).filter(|_| start < end) {
        let Some(close) = closing(lines::rest(text, start), quote) else {
            return Err(ConfigError::Syntax {
                at: lines::place(text, start),
                what: "this quote is not closed".into(),
            });
        };
        let close = start + close;
        let behind = lines::cut(text, close..lines::line_end(text, close));
        if behind.trim().is_empty() || behind.trim_start().starts_with('#') {
            return Ok(Span::new(start, close));
        }
        if close > end {
            return Err(ConfigError::Syntax {
                at: lines::place(text, close),
                what: "something follows the closing quote".into(),
            });
        }
    }
    let raw = lines::cut(text, start..end);
    let comment = raw
        .find(" #")
        .or_else(|| raw.find("\t#"))
        .unwrap_or(raw.len());
    let comment = if raw.starts_with('#') { 0 } else { comment };
    let length = lines::cut(raw, 0..comment).trim_end().len();
    let start = if length == 0 { from } else { start };
    Ok(Span::new(start, start + length))
}

/// Where a text in quotes ends, closing quote included.
fn closing(text: &str, quote: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'\\' if quote == b'"' => at += 2,
            byte if *byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// What a raw value means to most readers; `$X` stays as it is.
fn meaning(raw: &str) -> String {
    let inside = |quote: char| {
        let inside = raw.strip_prefix(quote)?.strip_suffix(quote)?;
        (raw.len() >= 2 && closing(raw, quote as u8) == Some(raw.len())).then_some(inside)
    };
    if let Some(inside) = inside('\'').or_else(|| inside('`')) {
        return inside.to_owned();
    }
    let Some(inside) = inside('"') else {
        return raw.to_owned();
    };
    let mut out = String::new();
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some(c @ ('"' | '\\' | '$' | '`')) => out.push(c),
                Some(c) => out.extend(['\\', c]),
                None => out.push('\\'),
            },
            (c, false) => out.push(c),
        }
    }
    out
}

/// What follows a name. A name without a value has nothing, not even `=`.
fn assigned(separator: &str, value: &Fresh, old: &str) -> Result<String, ConfigError> {
    if matches!(value, Fresh::Value(Value::Null)) {
        return Ok(String::new());
    }
    Ok(format!("{separator}{}", written(value, old)?))
}

fn written(value: &Fresh, old: &str) -> Result<String, ConfigError> {
    let text = match value {
        Fresh::Raw(raw) => return Ok(raw.clone()),
        Fresh::Value(Value::Text(text)) => text,
        Fresh::Value(_) => return Err(cannot("all values are texts")),
    };
    let simple = |c: char| {
        c.is_ascii_alphanumeric()
            || "_-./:@%+,=?&~^".contains(c)
            || !(c.is_ascii() || c.is_whitespace() || c == lines::BOM)
    };
    let double = !text.contains(['"', '\\', '$', '`', '\r']);
    let single = !text.contains(['\'', '\r']);
    match old.chars().next() {
        Some('"') if double => Ok(format!("\"{text}\"")),
        Some('\'') if single => Ok(format!("'{text}'")),
        _ if text.chars().all(simple) => Ok(text.clone()),
        _ if single => Ok(format!("'{text}'")),
        _ if double => Ok(format!("\"{text}\"")),
        _ => Err(cannot("no quoting means the same to all readers")),
    }
}
