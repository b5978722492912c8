//! INI: sections with keys, and keys before the first section.
//!
//! Dialects differ. Here `;` and `#` begin a comment at the start of a line or behind a blank; `=` or `:` ends a name; a line that is indented
//! deeper than its key continues the value, and so does one behind a `\`. A value in double quotes means what is between them.
//! A text that would need quotes is not written unless the key has quotes already: half of the readers would take the quotes for a part of it.

use crate::dialect::{Dialect, Edit, Fresh};
use crate::document::Document;
use crate::error::ConfigError;
use crate::format::Format;
use crate::key::{KeyPath, Segment};
use crate::lines;
use crate::slip::Slip;
use crate::tree::{Form, Kind, Member, Node, Span, Way};
use crate::value::Value;

/// Why a key cannot go deeper.
const TOO_DEEP: &str = "INI has sections and keys in them, no deeper";

#[derive(Debug)]
pub(crate) struct Ini;

impl Dialect for Ini {
    fn parse(&self, text: &str) -> Result<Node, ConfigError> {
        let mut root = Vec::new();
        let mut at = lines::text_start(text);
        while at < text.len() {
            let end = lines::line_end(text, at);
            let start = lines::skip_blanks(text, at);
            match lines::byte(text, start) {
                _ if start >= end => at = lines::next_line(text, end),
                Some(b';' | b'#') => at = lines::next_line(text, end),
                Some(b'[') => {
                    root.push(section(text, start, end)?);
                    at = lines::next_line(text, end);
                }
                _ => {
                    let member = key(text, start, end)?;
                    let stop = member.whole.map_or(end, Span::end);
                    add(text, &mut root, member);
                    at = lines::next_line(text, stop);
                }
            }
        }
        let span = Span::new(lines::text_start(text), text.len());
        Ok(Node::new(span, Kind::Map(root), Form::Section))
    }

    fn scalar(&self, raw: &str, decoded: Option<&str>) -> Value {
        match (raw, decoded) {
            ("", None) => Value::Null,
            (raw, _) => Value::Text(in_quotes(raw).unwrap_or(raw).to_owned()),
        }
    }

    fn tail(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        value: &Fresh,
    ) -> Result<String, ConfigError> {
        let (text, node) = (document.text(), way.node());
        let old = node.span.of(text);
        let tail = way.members.last().and_then(|m| m.tail).unwrap_or_default();
        let separator = lines::cut(text, tail.start()..node.span.start());
        let separator = match separator {
            "" => separator_of(document, way.parent()),
            separator
                if (old.is_empty() || old.starts_with(['\n', '\r']))
                    && separator.starts_with(' ') =>
            {
                format!("{} ", separator.trim_end())
            }
            separator => separator.to_owned(),
        };
        assigned(&separator, value, in_quotes(old).is_some())
    }

    fn insert(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        missing: &[Segment],
        value: &Fresh,
    ) -> Result<Edit, ConfigError> {
        let (text, node) = (document.text(), way.node());
        let line_break = lines::line_break(text);
        let assigned = assigned(&separator_of(document, node), value, false)?;
        let names: Vec<&str> = missing.iter().filter_map(name).collect();
        match names.as_slice() {
            [name] => {
                let entry = format!("{}{assigned}", fits(missing, name)?);
                Ok(crate::sections::add_line(
                    document,
                    node,
                    &entry,
                    way.members.is_empty(),
                ))
            }
            [section, name] => {
                if section.contains([']', '\n', '\r'])
                    || section.trim() != *section
                    || section.is_empty()
                {
                    return Err(no_such(
                        missing,
                        "no reader would find a section of this name",
                    ));
                }
                let entry = format!("{}{assigned}", fits(missing, name)?);
                Ok(crate::sections::add_section(
                    text,
                    &format!("[{section}]{line_break}{entry}"),
                ))
            }
            _ => Err(no_such(missing, TOO_DEEP)),
        }
    }

    fn insert_section(&self, text: &str, lines: &str) -> Option<Edit> {
        Some(crate::sections::add_section(text, lines))
    }

    fn weave(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        left: Option<usize>,
        slip: &Slip,
    ) -> Option<Edit> {
        crate::sections::weave(document, way, left, slip)
    }

    fn remove(&self, document: &Document<'_>, way: &Way<'_>) -> Result<Edit, ConfigError> {
        Ok(crate::sections::remove_lines(document.text(), way))
    }

    fn guard(
        &self,
        document: &Document<'_>,
        key: &KeyPath,
        way: &Way<'_>,
    ) -> Result<(), ConfigError> {
        let names: Vec<&str> = key.segments().iter().filter_map(name).collect();
        if let Some(like) = crate::sections::alike(way, &names) {
            return Err(ConfigError::Ambiguous {
                key: key.clone(),
                at: document.place(like.1),
                like: like.0,
            });
        }
        if names.len() != key.segments().len() || names.len() > 2 {
            return Err(no_deeper(key));
        }
        let is_there = way.members.len() == key.segments().len();
        let is_single = matches!(way.node().kind, Kind::Scalar(_));
        if is_there && is_single && hides_a_key(way.node().span.of(document.text())) {
            return Err(ConfigError::Unsupported {
                key: key.clone(),
                at: document.place(way.node().span.start()),
                why: "a deeper line follows it, which is a part of its value to some readers and a key to others",
            });
        }
        Ok(())
    }
}

fn name(segment: &Segment) -> Option<&str> {
    match segment {
        Segment::Name(name) => Some(name),
        Segment::Index(_) | Segment::Append => None,
    }
}

fn no_such(missing: &[Segment], why: &'static str) -> ConfigError {
    ConfigError::NoSuchKeys {
        key: KeyPath::new(missing.to_vec()),
        why,
    }
}

/// The refusal of a key that goes deeper than INI does.
pub(crate) fn no_deeper(key: &KeyPath) -> ConfigError {
    ConfigError::NoSuchKeys {
        key: key.clone(),
        why: match key.segments().len() {
            2 => "what stands there is a key, not a section",
            _ => TOO_DEEP,
        },
    }
}

/// Whether a line that continues a value may be a key of its own: git reads it so.
fn hides_a_key(value: &str) -> bool {
    let mut is_continued = false;
    value.lines().enumerate().any(|(index, line)| {
        let is_open = index > 0 && !is_continued;
        is_continued = line.ends_with('\\');
        is_open && line.contains(['=', ':'])
    })
}

fn cannot(why: &'static str) -> ConfigError {
    ConfigError::Unwritable {
        format: Format::Ini,
        why,
    }
}

/// Puts a key into the section that was last begun.
fn add(text: &str, root: &mut Vec<Member>, member: Member) {
    if let Some(last) = root.last_mut()
        && last.node.form == Form::Section
        && let Kind::Map(members) = &mut last.node.kind
    {
        let end = member.whole.map_or(0, Span::end);
        let span = Span::new(last.node.span.start(), lines::line_end(text, end));
        last.node.span = span;
        last.whole = Some(span);
        members.push(member);
    } else {
        root.push(member);
    }
}

fn section(text: &str, start: usize, end: usize) -> Result<Member, ConfigError> {
    let line = lines::cut(text, start..end);
    let behind = |at: usize| lines::rest(line, at + 1).trim_start();
    let close = line.rfind(']').filter(|at| behind(*at).is_empty());
    let close = close.or_else(|| {
        line.find(']')
            .filter(|at| behind(*at).starts_with([';', '#']))
    });
    let Some(close) = close else {
        return Err(ConfigError::Syntax {
            at: lines::place(text, start),
            what: "this section has no `]`, or something follows it".into(),
        });
    };
    let name = lines::cut(line, 1..close).trim();
    let span = Span::new(start, end - (line.len() - line.trim_end().len()));
    Ok(Member {
        name: name.into(),
        name_at: Span::new(start + 1, start + close),
        whole: Some(span),
        tail: None,
        node: Node::new(span, Kind::Map(Vec::new()), Form::Section),
    })
}

fn key(text: &str, start: usize, end: usize) -> Result<Member, ConfigError> {
    let line = lines::cut(text, start..end);
    let separator = line.find(['=', ':']);
    let name = lines::cut(line, 0..separator.unwrap_or(comment_start(line))).trim_end();
    if name.is_empty() {
        return Err(ConfigError::Syntax {
            at: lines::place(text, start),
            what: "a key is needed before this sign".into(),
        });
    }
    let name_at = Span::new(start, start + name.len());
    let (value, decoded) = match separator {
        Some(separator) => (value(text, start, start + separator + 1), Some("".into())),
        None => (Span::new(name_at.end(), name_at.end()), None),
    };
    let decoded = decoded.filter(|_| value.start() == value.end());
    Ok(Member {
        name: name.into(),
        name_at,
        whole: Some(Span::new(start, value.end())),
        tail: Some(Span::new(name_at.end(), value.end())),
        node: Node::new(value, Kind::Scalar(decoded), Form::Plain),
    })
}

/// The value behind a separator, with the lines that continue it.
fn value(text: &str, key: usize, from: usize) -> Span {
    let depth = key - lines::line_start(text, key);
    let start = lines::skip_blanks(text, from).min(lines::line_end(text, from));
    let mut end = lines::line_end(text, from);
    let line = lines::cut(text, start..end);
    let mut stop = start + lines::cut(line, 0..comment_start(line)).trim_end().len();
    let mut continued = line.ends_with('\\');
    loop {
        let next = lines::next_line(text, end);
        let next_end = lines::line_end(text, next);
        let line = lines::cut(text, next..next_end);
        let deeper = line.len() - line.trim_start().len() > depth && !is_remark(line);
        if next >= text.len() || line.trim().is_empty() || !(continued || deeper) {
            break;
        }
        stop = next + line.trim_end().len();
        continued = line.ends_with('\\');
        end = next_end;
    }
    // An empty value stands right behind its separator.
    if stop <= start {
        return Span::new(from, from);
    }
    Span::new(start, stop)
}

fn is_remark(line: &str) -> bool {
    line.trim_start().starts_with([';', '#'])
}

/// Where a comment begins in a value; its end if there is none.
fn comment_start(value: &str) -> usize {
    if value.starts_with('"')
        && let Some(close) = lines::rest(value, 1).find('"')
    {
        let close = close + 2;
        return close + comment_start(lines::rest(value, close));
    }
    let mut blank = true;
    for (at, c) in value.char_indices() {
        if blank && matches!(c, ';' | '#') {
            return at;
        }
        blank = c == ' ' || c == '\t';
    }
    value.len()
}

fn in_quotes(raw: &str) -> Option<&str> {
    let inside = raw.strip_prefix('"')?.strip_suffix('"')?;
    (!inside.contains(['"', '\\'])).then_some(inside)
}

/// The separator that neighbours use.
fn separator_of(document: &Document<'_>, node: &Node) -> String {
    let text = document.text();
    let keys = |node: &Node| -> Option<String> {
        let mut keys = node.members().iter().rev();
        keys.find_map(|m| {
            let separator = lines::cut(text, m.tail?.start()..m.node.span.start());
            (m.node.span.start() < m.node.span.end() && !separator.contains('\n'))
                .then(|| separator.to_owned())
        })
    };
    let all = std::iter::once(node).chain([document.root()]);
    let mut all = all.chain(document.root().members().iter().map(|member| &member.node));
    all.find_map(keys).unwrap_or_else(|| " = ".into())
}

/// A name that reads back as itself.
fn fits<'n>(missing: &[Segment], name: &'n str) -> Result<&'n str, ConfigError> {
    let odd = name.is_empty() || name.trim() != name || name.contains(['=', ':', '\n', '\r']);
    if odd || name.starts_with(['[', ';', '#']) || comment_start(name) < name.len() {
        return Err(no_such(missing, "no reader would find a key of this name"));
    }
    Ok(name)
}

/// What follows a name. A key without a value has nothing, not even a separator.
fn assigned(separator: &str, value: &Fresh, quoted: bool) -> Result<String, ConfigError> {
    if matches!(value, Fresh::Value(Value::Null)) {
        return Ok(String::new());
    }
    let value = written(value, quoted)?;
    let separator = if value.is_empty() {
        separator.trim_end()
    } else {
        separator
    };
    Ok(format!("{separator}{value}"))
}

fn written(value: &Fresh, quoted: bool) -> Result<String, ConfigError> {
    let text = match value {
        Fresh::Raw(raw) => return Ok(raw.clone()),
        Fresh::Value(Value::Text(text)) => text,
        Fresh::Value(_) => return Err(cannot("all values are texts of one line")),
    };
    let inner = text.contains(['"', '\\', '\n', '\r']);
    if quoted && !inner {
        return Ok(format!("\"{text}\""));
    }
    let odd = text.trim() != text || text.contains(['\n', '\r']) || text.ends_with('\\');
    if odd || text.starts_with('"') || comment_start(text) < text.len() {
        return Err(cannot(
            "it would need quotes, and readers disagree about them",
        ));
    }
    Ok(text.clone())
}
