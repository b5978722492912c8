//! Reads YAML into a tree. The parser tells what is there; where dashes, colons and properties stand is found in the text between.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Options, Parser, ScalarStyle, Span as Marks, StrInput, StructureStyle};

use crate::error::ConfigError;
use crate::lines;
use crate::tree::{DEPTH_MAX, Form, Kind, Member, Node, Span, VALUES_MAX};

pub(super) fn parse(text: &str) -> Result<Node, ConfigError> {
    let mut options = Options::default();
    options.flow_nesting_limit = DEPTH_MAX;
    options.block_nesting_limit = DEPTH_MAX;
    let mut build = Build {
        text,
        parser: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        used: HashSet::new(),
        values: 0,
    };
    let mut root = build.document()?;
    let shared: HashSet<usize> = build
        .used
        .iter()
        .filter_map(|id| build.anchors.get(id).copied())
        .collect();
    if !shared.is_empty() {
        share(&mut root, &shared);
    }
    Ok(root)
}

/// Marks the values that aliases refer to.
fn share(node: &mut Node, shared: &HashSet<usize>) {
    node.shared = shared.contains(&node.span.start());
    if let Kind::Map(members) | Kind::List(members) = &mut node.kind {
        for member in members {
            share(&mut member.node, shared);
        }
    }
}

struct Build<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    /// Where the value of each anchor begins.
    anchors: HashMap<usize, usize>,
    used: HashSet<usize>,
    values: usize,
}

impl<'t> Build<'t> {
    fn wrong(&self, at: usize, what: &str) -> ConfigError {
        ConfigError::Syntax {
            at: lines::place(self.text, at),
            what: what.to_owned(),
        }
    }

    fn next(&mut self) -> Result<(Event<'t>, Marks), ConfigError> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let at = error.marker().byte_offset().unwrap_or_default();
                Err(self.wrong(at, &error.info()))
            }
            None => Err(self.wrong(self.text.len(), "the text ends too early")),
        }
    }

    fn document(&mut self) -> Result<Node, ConfigError> {
        let mut root = None;
        let mut from = lines::text_start(self.text);
        loop {
            let (event, marks) = self.next()?;
            let range = marks.byte_range().unwrap_or_default();
            match event {
                Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if root.is_some() => {
                    return Err(self.wrong(
                        range.start,
                        "a second document begins here; only texts of one document are edited",
                    ));
                }
                Event::DocumentStart(explicit, _) => {
                    if explicit {
                        from = range.end;
                    }
                }
                event => root = Some(self.node(event, &marks, from)?),
            }
        }
        let end = self.text.len();
        let nothing = || Node::new(Span::new(end, end), Kind::Map(Vec::new()), Form::Block);
        Ok(match root {
            Some(root) if !root.is_absent() => root,
            Some(_) | None => nothing(),
        })
    }

    /// Reads one value, which begins at or behind `from`.
    fn node(&mut self, event: Event<'t>, marks: &Marks, from: usize) -> Result<Node, ConfigError> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(ConfigError::OverLimit {
                what: "the number of values",
                limit: VALUES_MAX,
            });
        }
        let anchor = event
            .anchor_id()
            .filter(|_| !matches!(event, Event::Alias(_)));
        let marked = anchor.is_some_and(|id| id != 0) || event.tag().is_some();
        let range = marks.byte_range().unwrap_or_default();
        let mut node = match event {
            Event::Scalar(value, style, ..) => self.scalar(&value, style, range, from, marked),
            Event::Alias(id) => {
                self.used.insert(id);
                Node::new(Span::new(range.start, range.end), Kind::Alias, Form::Plain)
            }
            Event::MappingStart(style, ..) => self.map(style, range.start, from)?,
            Event::SequenceStart(style, ..) => self.list(style, range.start, from)?,
            _ => return Err(self.wrong(range.start, "a value is needed here")),
        };
        node.marked = marked;
        if let Some(id) = anchor.filter(|id| *id != 0) {
            self.anchors.insert(id, node.span.start());
        }
        Ok(node)
    }

    fn scalar(
        &self,
        value: &str,
        style: ScalarStyle,
        range: std::ops::Range<usize>,
        from: usize,
        marked: bool,
    ) -> Node {
        let text = self.text;
        let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        let mut start = range.start;
        let mut end = range.end;
        if marked || block {
            start = super::skip_space(text, from).min(start);
        }
        if block {
            let header = lines::cut(text, start..lines::line_end(text, start));
            let header = header.split('#').next().unwrap_or_default();
            let content = lines::cut(text, start..end);
            let kept = if header.contains('+') {
                let content = content.strip_suffix('\n').unwrap_or(content);
                content.strip_suffix('\r').unwrap_or(content)
            } else {
                content.trim_end()
            };
            end = (start + kept.len()).max(start + header.trim_end().len());
        }
        if range.is_empty() && !block {
            if !marked {
                return Node::new(Span::new(start, end), Kind::Scalar(None), Form::Absent);
            }
            end = super::behind_properties(text, start).max(start);
        }
        let raw = lines::cut(text, start..end);
        let decoded = (style != ScalarStyle::Plain || raw != value).then(|| value.into());
        Node::new(Span::new(start, end), Kind::Scalar(decoded), Form::Plain)
    }

    fn map(
        &mut self,
        style: StructureStyle,
        open: usize,
        from: usize,
    ) -> Result<Node, ConfigError> {
        let mut members: Vec<Member> = Vec::new();
        let brackets = style == StructureStyle::Flow && lines::byte(self.text, open) == Some(b'{');
        let mut cursor = from;
        loop {
            let (event, marks) = self.next()?;
            let range = marks.byte_range().unwrap_or_default();
            if event == Event::MappingEnd {
                let first = members.first().map_or(open, |m| m.name_at.start());
                let span = if brackets {
                    Span::new(open, range.end)
                } else {
                    Span::new(first, cursor.max(first))
                };
                let form = if style == StructureStyle::Flow {
                    Form::Plain
                } else {
                    Form::Block
                };
                return Ok(Node::new(span, Kind::Map(members), form));
            }
            let member = self.member(event, &marks, cursor)?;
            cursor = member.whole.map_or(cursor, Span::end);
            members.push(member);
        }
    }

    fn member(
        &mut self,
        event: Event<'t>,
        marks: &Marks,
        cursor: usize,
    ) -> Result<Member, ConfigError> {
        let name = match &event {
            Event::Scalar(name, ..) => Some(name.to_string()),
            _ => None,
        };
        let key = self.node(event, marks, cursor)?;
        // A name is no value, and does not count as one.
        self.values = self.values.saturating_sub(1);
        let simple = name.is_some() && !key.marked && !key.span.of(self.text).contains('\n');
        let name = name.unwrap_or_else(|| key.span.of(self.text).to_owned());
        let name = if key.is_absent() { String::new() } else { name };
        let colon = lines::skip_blanks(self.text, key.span.end());
        let has_colon = simple && lines::byte(self.text, colon) == Some(b':');
        let from = if has_colon { colon + 1 } else { key.span.end() };
        let (event, marks) = self.next()?;
        let mut node = self.node(event, &marks, from)?;
        if node.is_absent() {
            node.span = Span::new(from, from);
        }
        let end = node.span.end().max(from);
        Ok(Member {
            name: name.into(),
            name_at: key.span,
            whole: Some(Span::new(key.span.start(), end)),
            tail: has_colon.then(|| Span::new(from, end)),
            node,
        })
    }

    fn list(
        &mut self,
        style: StructureStyle,
        open: usize,
        from: usize,
    ) -> Result<Node, ConfigError> {
        let mut items: Vec<Member> = Vec::new();
        let block = style == StructureStyle::Block;
        let mut cursor = if block {
            super::behind_properties(self.text, super::skip_space(self.text, from))
        } else {
            open + 1
        };
        loop {
            let (event, marks) = self.next()?;
            let range = marks.byte_range().unwrap_or_default();
            if event == Event::SequenceEnd {
                let first = items
                    .first()
                    .and_then(|item| item.whole)
                    .map_or(open, Span::start);
                let end = if block { cursor.max(first) } else { range.end };
                let start = if block { first } else { open };
                let form = if block { Form::Block } else { Form::Plain };
                return Ok(Node::new(Span::new(start, end), Kind::List(items), form));
            }
            let here = super::skip_space(self.text, cursor);
            let dash = block && lines::byte(self.text, here) == Some(b'-');
            let from = match lines::byte(self.text, here) {
                Some(b'-') if block => here + 1,
                Some(b',') if !block => super::skip_space(self.text, here + 1),
                Some(_) | None => here,
            };
            let mut node = self.node(event, &marks, from)?;
            if node.is_absent() {
                node.span = Span::new(from, from);
            }
            let end = node.span.end().max(from);
            let start = if dash { here } else { node.span.start() };
            cursor = end;
            items.push(Member {
                name: "".into(),
                name_at: Span::new(start, start),
                whole: Some(Span::new(start, end)),
                tail: (dash || !block).then(|| Span::new(if dash { from } else { start }, end)),
                node,
            });
        }
    }
}
