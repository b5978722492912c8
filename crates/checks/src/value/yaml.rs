//! YAML with anchors, merge keys and several documents.

use std::collections::HashMap;

use backout_config::{DEPTH_MAX, SIZE_MAX, Segment, VALUES_MAX, yaml_scalar};
use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput, Tag};

use super::convert::scalar;
use super::{Kind, Node, key_of, place, twice};
use crate::finding::Finding;

/// The most bytes that aliases may add to a text.
const ALIASED_MAX: usize = 32 << 20;

/// Reads all documents of a text. A text without any is one document of nothing.
pub(super) fn read(text: &str) -> Result<Vec<Node>, Finding> {
    if text.len() > SIZE_MAX {
        return Err(Finding::new(format!(
            "it cannot be checked: the size in bytes is over the limit of {SIZE_MAX}"
        )));
    }
    let mut options = Options::default();
    options.flow_nesting_limit = DEPTH_MAX;
    options.block_nesting_limit = DEPTH_MAX;
    let mut build = Build {
        text,
        parser: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        way: Vec::new(),
        values: 0,
        aliased: 0,
    };
    let mut documents = Vec::new();
    loop {
        let (event, span) = build.next()?;
        match event {
            Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentEnd => {}
            Event::DocumentStart(..) => build.anchors.clear(),
            event => {
                build.way = vec![Segment::Index(documents.len())];
                documents.push(build.node(event, span)?);
            }
        }
    }
    if documents.is_empty() {
        documents.push(Node::new(0, 0, Kind::Null));
    }
    Ok(documents)
}

struct Build<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, Node>,
    way: Vec<Segment>,
    values: usize,
    aliased: usize,
}

impl<'t> Build<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), Finding> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let at = error.marker().byte_offset().unwrap_or_default();
                Err(self.wrong(at, &error.info()))
            }
            None => Err(self.wrong(self.text.len(), "the text ends too early")),
        }
    }

    fn wrong(&self, at: usize, what: &str) -> Finding {
        Finding::new(format!("it cannot be read: {what}")).at(place(self.text, at))
    }

    /// The key of where reading is. The first step is left out of a text of one document, which most are.
    fn key(&self) -> String {
        match self.way.split_first() {
            Some((Segment::Index(0), rest)) => key_of(rest),
            Some(_) | None => key_of(&self.way),
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span) -> Result<Node, Finding> {
        let at = span.byte_range().unwrap_or_default().start;
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(self.wrong(at, "it has more than 4000000 values"));
        }
        let anchor = event.anchor_id().filter(|id| *id != 0);
        let kind = match event {
            Event::Alias(id) => return self.alias(id, at),
            Event::Scalar(value, style, _, tag) => single(&value, style, tag.as_deref()),
            Event::SequenceStart(..) => self.list()?,
            Event::MappingStart(..) => self.map()?,
            _ => return Err(self.wrong(at, "a value is needed here")),
        };
        let node = Node::new(at, at, kind);
        if let Some(id) = anchor {
            self.spend(&node, at)?;
            self.anchors.insert(id, node.clone());
        }
        Ok(node)
    }

    /// Counts what a copy costs, so that a few lines cannot become gigabytes.
    fn spend(&mut self, node: &Node, at: usize) -> Result<(), Finding> {
        self.aliased += weight(node);
        if self.aliased > ALIASED_MAX {
            return Err(self
                .wrong(at, "its aliases multiply to more than 32 MiB")
                .mended_by("write the values out, or use fewer aliases of aliases"));
        }
        Ok(())
    }

    fn alias(&mut self, id: usize, at: usize) -> Result<Node, Finding> {
        let Some(target) = self.anchors.get(&id).cloned() else {
            return Err(self.wrong(at, "this alias stands inside of what it refers to"));
        };
        self.spend(&target, at)?;
        Ok(Node {
            copied: true,
            ..Node::new(at, at, target.kind)
        })
    }

    fn list(&mut self) -> Result<Kind, Finding> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(Kind::List(items));
            }
            self.way.push(Segment::Index(items.len()));
            items.push(self.node(event, span)?);
            self.way.pop();
        }
    }

    fn map(&mut self) -> Result<Kind, Finding> {
        let mut members: Vec<(Box<str>, Node)> = Vec::new();
        let mut index: HashMap<Box<str>, usize> = HashMap::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                for source in merged {
                    merge(&mut members, &mut index, source);
                }
                return Ok(Kind::Map(members));
            }
            let at = span.byte_range().unwrap_or_default().start;
            let is_merge =
                matches!(&event, Event::Scalar(name, ScalarStyle::Plain, _, None) if name == "<<");
            let name = self.name(event, span)?;
            self.way.push(Segment::Name(name.to_string()));
            if let Some(first) = index.get(&name).and_then(|at| members.get(*at)) {
                let first = place(self.text, first.1.name_at as usize);
                return Err(twice(&self.key(), first, place(self.text, at)));
            }
            let (event, span) = self.next()?;
            let mut node = self.node(event, span)?;
            node.name_at = u32::try_from(at).unwrap_or(u32::MAX);
            self.way.pop();
            if is_merge && is_mergeable(&node) {
                merged.push(node);
                continue;
            }
            index.insert(name.clone(), members.len());
            members.push((name, node));
        }
    }

    /// The name of a member. A name that is no single value is written as JSON.
    fn name(&mut self, event: Event<'t>, span: Span) -> Result<Box<str>, Finding> {
        if let Event::Scalar(name, _, 0, _) = &event {
            return Ok(name.as_ref().into());
        }
        let node = self.node(event, span)?;
        Ok(match &node.kind {
            Kind::Text(text) | Kind::Number(text) => text.clone(),
            Kind::Null | Kind::Bool(_) | Kind::List(_) | Kind::Map(_) => {
                node.to_json().to_string().into()
            }
        })
    }
}

/// What a single value is. Of tags only those of YAML itself count.
fn single(value: &str, style: ScalarStyle, tag: Option<&Tag>) -> Kind {
    let core = |name| tag.is_some_and(|tag| tag.is_yaml_core_schema_tag(name));
    let is_text = core("str") || tag.is_some_and(Tag::is_custom);
    let is_resolved = core("int") || core("float") || core("bool") || core("null");
    if !is_text && (style == ScalarStyle::Plain || is_resolved) {
        scalar(yaml_scalar(value))
    } else {
        Kind::Text(value.into())
    }
}

fn is_mergeable(node: &Node) -> bool {
    match &node.kind {
        Kind::Map(_) => true,
        Kind::List(items) => items.iter().all(|item| matches!(item.kind, Kind::Map(_))),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => false,
    }
}

/// Adds what `<<` brings. What the table has itself counts, and of several sources the first.
fn merge(members: &mut Vec<(Box<str>, Node)>, index: &mut HashMap<Box<str>, usize>, source: Node) {
    let (name_at, at) = (source.name_at, source.at);
    match source.kind {
        Kind::Map(more) => {
            for (name, node) in more {
                if !index.contains_key(&name) {
                    index.insert(name.clone(), members.len());
                    members.push((
                        name,
                        Node {
                            name_at,
                            at,
                            copied: true,
                            ..node
                        },
                    ));
                }
            }
        }
        Kind::List(items) => {
            for item in items {
                merge(
                    members,
                    index,
                    Node {
                        name_at,
                        at,
                        ..item
                    },
                );
            }
        }
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {}
    }
}

fn weight(node: &Node) -> usize {
    const OVERHEAD: usize = 48;
    let below = match &node.kind {
        Kind::Null | Kind::Bool(_) => 0,
        Kind::Number(text) | Kind::Text(text) => text.len(),
        Kind::List(items) => items.iter().map(weight).sum(),
        Kind::Map(members) => members
            .iter()
            .map(|(name, node)| name.len() + weight(node))
            .sum(),
    };
    OVERHEAD + below
}
