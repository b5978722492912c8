//! Reads TOML into a tree: the parser's events give the places, `toml_edit` is the judge of what is valid.
//!
//! A table may be written in several places: under a header, by dotted names, by the headers of its children. The tree has it once, and says
//! whether its lines stand together (`Member::whole`).

use std::collections::HashMap;

use toml_parser::parser::{Event, EventKind};
use toml_parser::{ParseError, Source};

use crate::error::ConfigError;
use crate::lines;
use crate::tree::{DEPTH_MAX, Form, Kind, Member, Node, Span, VALUES_MAX};

pub(super) fn parse(text: &str) -> Result<Node, ConfigError> {
    let offset = lines::text_start(text);
    let body = lines::rest(text, offset);
    let mut errors: Vec<ParseError> = Vec::new();
    let mut events: Vec<Event> = Vec::new();
    let tokens = Source::new(body).lex().into_vec();
    {
        let mut guard = toml_parser::parser::RecursionGuard::new(&mut events, DEPTH_LIMIT);
        toml_parser::parser::parse_document(&tokens, &mut guard, &mut errors);
    }
    drop(tokens);
    if let Some(error) = errors.first() {
        let at = error
            .unexpected()
            .or(error.context())
            .map_or(0, |span| span.start());
        return Err(syntax(text, offset + at, error.description()));
    }
    shallow(&events)?;
    if let Err(error) = toml_edit::Document::parse(body) {
        let at = error.span().map_or(0, |span| span.start);
        return Err(syntax(text, offset + at, error.message()));
    }
    let mut build = Build {
        text,
        offset,
        events: events.into_iter(),
        root: Node::new(
            Span::new(offset, text.len()),
            Kind::Map(Vec::new()),
            Form::Section,
        ),
        index: HashMap::new(),
        starts: Vec::new(),
        values: 0,
    };
    build.document()?;
    let Build {
        mut root, starts, ..
    } = build;
    super::extent::mark_whole(&mut root, &starts);
    Ok(root)
}

/// Refuses dotted names of too many steps, which nest as deep.
fn shallow(events: &[Event]) -> Result<(), ConfigError> {
    let mut steps = 0;
    for event in events {
        match event.kind() {
            EventKind::SimpleKey => steps += 1,
            EventKind::KeySep | EventKind::Whitespace => {}
            _ => steps = 0,
        }
        if steps > DEPTH_MAX {
            return Err(ConfigError::OverLimit {
                what: "the nesting",
                limit: DEPTH_MAX,
            });
        }
    }
    Ok(())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the limit is far below the bound"
)]
const DEPTH_LIMIT: u32 = DEPTH_MAX as u32;

fn syntax(text: &str, at: usize, what: &str) -> ConfigError {
    ConfigError::Syntax {
        at: lines::place(text, at),
        what: what.trim().replace('\n', ", "),
    }
}

/// A table in the tree: the way to it, and its name in the index.
#[derive(Debug, Clone, Default)]
struct Table {
    way: Vec<usize>,
    name: String,
}

struct Build<'t> {
    text: &'t str,
    offset: usize,
    events: std::vec::IntoIter<Event>,
    root: Node,
    index: HashMap<String, usize>,
    /// Where headers and lines begin, in the order of the text.
    starts: Vec<usize>,
    values: usize,
}

impl Build<'_> {
    fn span(&self, event: Event) -> Span {
        Span::new(
            self.offset + event.span().start(),
            self.offset + event.span().end(),
        )
    }

    fn document(&mut self) -> Result<(), ConfigError> {
        let mut section = Table::default();
        let mut keys = Vec::new();
        while let Some(event) = self.events.next() {
            let span = self.span(event);
            match event.kind() {
                EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                    self.starts.push(span.start());
                    section = self.header(span.start(), event.kind() == EventKind::ArrayTableOpen);
                }
                EventKind::SimpleKey => keys.push(span),
                EventKind::KeyValSep => {
                    let start = keys.first().map_or(span.start(), |key: &Span| key.start());
                    self.starts.push(start);
                    let keys = std::mem::take(&mut keys);
                    let member = self.member(&keys)?;
                    self.attach(&section, &keys, member);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a header and finds or makes its table.
    fn header(&mut self, start: usize, array: bool) -> Table {
        let mut keys = Vec::new();
        let mut end = start;
        for event in self.events.by_ref() {
            let span = Span::new(
                self.offset + event.span().start(),
                self.offset + event.span().end(),
            );
            match event.kind() {
                EventKind::SimpleKey => keys.push(span),
                EventKind::StdTableClose | EventKind::ArrayTableClose => {
                    end = span.end();
                    break;
                }
                _ => {}
            }
        }
        let span = Span::new(start, end);
        let mut table = Table::default();
        for (depth, key) in keys.iter().enumerate() {
            let last = depth + 1 == keys.len();
            let kind = if last && array {
                Kind::List(Vec::new())
            } else {
                Kind::Map(Vec::new())
            };
            table = self.child(&table, *key, kind);
            let found = descend(&mut self.root, &table.way);
            if let Some(Kind::List(items)) = found.map(|node| &mut node.kind) {
                if last && array {
                    items.push(item(span));
                }
                let newest = items.len().saturating_sub(1);
                table.way.push(newest);
                table.name = format!("{}\0\0{newest}", table.name);
            }
        }
        if let Some(node) = descend(&mut self.root, &table.way) {
            node.form = Form::Section;
            node.span = span;
        }
        table
    }

    /// The table of this name below another, made if it is not there.
    fn child(&mut self, table: &Table, key: Span, kind: Kind) -> Table {
        let name = super::key_name(key.of(self.text));
        let full = format!("{}\0{name}", table.name);
        let node = descend(&mut self.root, &table.way);
        let Some(Kind::Map(members)) = node.map(|node| &mut node.kind) else {
            return table.clone();
        };
        let known = self.index.get(&full).copied();
        let at = known.unwrap_or(members.len());
        if known.is_none() {
            self.index.insert(full.clone(), at);
            let form = if matches!(kind, Kind::List(_)) {
                Form::Section
            } else {
                Form::Implied
            };
            members.push(Member {
                name: name.into(),
                name_at: key,
                whole: None,
                tail: None,
                node: Node::new(key, kind, form),
            });
        }
        let mut way = table.way.clone();
        way.push(at);
        Table { way, name: full }
    }

    /// Puts a line into its section, below the tables that its dotted name tells of.
    fn attach(&mut self, section: &Table, keys: &[Span], member: Member) {
        let end = lines::line_end(self.text, member.whole.map_or(0, Span::end));
        let mut table = section.clone();
        for key in keys.iter().take(keys.len().saturating_sub(1)) {
            table = self.child(&table, *key, Kind::Map(Vec::new()));
        }
        let node = descend(&mut self.root, &table.way);
        if let Some(Kind::Map(members)) = node.map(|node| &mut node.kind) {
            members.push(member);
        }
        if let Some(node) = descend(&mut self.root, &section.way)
            && !section.way.is_empty()
        {
            node.span = Span::new(node.span.start(), end);
        }
    }

    /// Reads the value of a line or an inline member whose keys were just read.
    fn member(&mut self, keys: &[Span]) -> Result<Member, ConfigError> {
        let node = self.value()?;
        let name_at = keys.last().copied().unwrap_or(node.span);
        let start = keys.first().map_or(node.span.start(), |key| key.start());
        Ok(Member {
            name: super::key_name(name_at.of(self.text)).into(),
            name_at,
            whole: Some(Span::new(start, node.span.end())),
            tail: Some(node.span),
            node,
        })
    }

    fn value(&mut self) -> Result<Node, ConfigError> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(ConfigError::OverLimit {
                what: "the number of values",
                limit: VALUES_MAX,
            });
        }
        while let Some(event) = self.events.next() {
            let span = self.span(event);
            match event.kind() {
                EventKind::Scalar => return Ok(Node::scalar(span)),
                EventKind::ArrayOpen => return self.array(span.start()),
                EventKind::InlineTableOpen => return self.inline(span.start()),
                _ => {}
            }
        }
        Err(syntax(self.text, self.text.len(), "a value is missing"))
    }

    fn array(&mut self, start: usize) -> Result<Node, ConfigError> {
        let mut items = Vec::new();
        loop {
            let Some(event) = self.events.next() else {
                return Err(syntax(self.text, start, "this array is not closed"));
            };
            let span = self.span(event);
            let node = match event.kind() {
                EventKind::ArrayClose => {
                    return Ok(Node::new(
                        Span::new(start, span.end()),
                        Kind::List(items),
                        Form::Plain,
                    ));
                }
                EventKind::Scalar => Node::scalar(span),
                EventKind::ArrayOpen => self.array(span.start())?,
                EventKind::InlineTableOpen => self.inline(span.start())?,
                _ => continue,
            };
            self.values += 1;
            items.push(Member {
                name: "".into(),
                name_at: Span::new(node.span.start(), node.span.start()),
                whole: Some(node.span),
                tail: Some(node.span),
                node,
            });
        }
    }

    fn inline(&mut self, start: usize) -> Result<Node, ConfigError> {
        let mut members: Vec<Member> = Vec::new();
        let mut keys = Vec::new();
        loop {
            let Some(event) = self.events.next() else {
                return Err(syntax(self.text, start, "this inline table is not closed"));
            };
            let span = self.span(event);
            match event.kind() {
                EventKind::InlineTableClose => {
                    return Ok(Node::new(
                        Span::new(start, span.end()),
                        Kind::Map(members),
                        Form::Plain,
                    ));
                }
                EventKind::SimpleKey => keys.push(span),
                EventKind::KeyValSep => {
                    let keys = std::mem::take(&mut keys);
                    let member = self.member(&keys)?;
                    self.nest(&mut members, &keys, member);
                }
                _ => {}
            }
        }
    }

    /// Puts a member of an inline table below the tables that its dotted name tells of.
    fn nest(&self, mut members: &mut Vec<Member>, keys: &[Span], member: Member) {
        for key in keys.iter().take(keys.len().saturating_sub(1)) {
            let name = super::key_name(key.of(self.text));
            let at = members
                .iter()
                .position(|m| *m.name == *name)
                .unwrap_or(members.len());
            if at == members.len() {
                members.push(Member {
                    name: name.into(),
                    name_at: *key,
                    whole: None,
                    tail: None,
                    node: Node::new(*key, Kind::Map(Vec::new()), Form::Implied),
                });
            }
            match members.get_mut(at).map(|m| &mut m.node.kind) {
                Some(Kind::Map(inner)) => members = inner,
                _ => return,
            }
        }
        members.push(member);
    }
}

fn item(span: Span) -> Member {
    Member {
        name: "".into(),
        name_at: span,
        whole: None,
        tail: None,
        node: Node::new(span, Kind::Map(Vec::new()), Form::Section),
    }
}

/// The value at the end of a way, which was made while the tree was.
fn descend<'n>(node: &'n mut Node, way: &[usize]) -> Option<&'n mut Node> {
    let Some((first, rest)) = way.split_first() else {
        return Some(node);
    };
    match &mut node.kind {
        Kind::Map(members) | Kind::List(members) => {
            descend(&mut members.get_mut(*first)?.node, rest)
        }
        Kind::Scalar(_) | Kind::Alias => None,
    }
}
