//! What a parser found in a text: keys, values and where they stand.
//!
//! A tree holds positions and names, hardly any text. The same tree serves all formats: a table is a map, a section is a map, an item of a
//! list is a member without a name. `Dialect` knows what a scalar's text means.

use std::ops::Range;

use crate::error::ConfigError;
use crate::key::{KeyPath, Segment};
use crate::lines;

/// The largest text that is read, in bytes.
pub const SIZE_MAX: usize = 64 << 20;
/// The same for TOML, whose judge needs more memory.
pub const TOML_SIZE_MAX: usize = 16 << 20;
/// The deepest nesting that is read.
pub const DEPTH_MAX: usize = 128;
/// The most values that are read in one text.
pub const VALUES_MAX: usize = 4_000_000;

/// A range of bytes. Half as large as `Range<usize>`, for trees are large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Makes a span; the text was checked to be shorter than `SIZE_MAX`.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let small = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            start: small(start),
            end: small(end),
        }
    }

    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    pub(crate) fn end(self) -> usize {
        self.end as usize
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.start()..self.end()
    }

    pub(crate) fn of(self, text: &str) -> &str {
        lines::cut(text, self.range())
    }
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A scalar, or a list or map in brackets: its span begins and ends with it.
    Plain,
    /// A list or map of YAML that is told by indentation.
    Block,
    /// A section with a header of its own, or the whole text.
    Section,
    /// A value of YAML that is left out: `key:`.
    Absent,
    /// A table of TOML that only its members' names tell of (`a.b = 1`, `[a.b]`).
    Implied,
}

#[derive(Debug)]
pub(crate) enum Kind {
    /// A scalar. It has a text only where its span cannot tell it without its surroundings.
    Scalar(Option<Box<str>>),
    Map(Vec<Member>),
    List(Vec<Member>),
    /// An alias of YAML.
    Alias,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) kind: Kind,
    pub(crate) form: Form,
    /// Others refer to this value (a YAML anchor that is used).
    pub(crate) shared: bool,
    /// It has an anchor or a tag of YAML before it.
    pub(crate) marked: bool,
}

#[derive(Debug)]
pub(crate) struct Member {
    /// The name; empty for an item of a list.
    pub(crate) name: Box<str>,
    pub(crate) name_at: Span,
    /// Name and value together; nothing if they stand in several places.
    pub(crate) whole: Option<Span>,
    /// What is replaced to give it another value: from behind the name or its separator to the value's end.
    pub(crate) tail: Option<Span>,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn scalar(span: Span) -> Self {
        Self::new(span, Kind::Scalar(None), Form::Plain)
    }

    pub(crate) fn new(span: Span, kind: Kind, form: Form) -> Self {
        Self {
            span,
            kind,
            form,
            shared: false,
            marked: false,
        }
    }

    pub(crate) fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Map(members) | Kind::List(members) => members,
            Kind::Scalar(_) | Kind::Alias => &[],
        }
    }

    pub(crate) fn named<'t>(&'t self, name: &str) -> impl Iterator<Item = &'t Member> {
        let members: &[Member] = match &self.kind {
            Kind::Map(members) => members,
            Kind::List(_) | Kind::Scalar(_) | Kind::Alias => &[],
        };
        members.iter().filter(move |member| &*member.name == name)
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.form == Form::Absent
    }
}

/// The way from the root to a key, as far as it is there.
#[derive(Debug, Clone)]
pub(crate) struct Way<'t> {
    pub(crate) root: &'t Node,
    pub(crate) members: Vec<&'t Member>,
}

impl<'t> Way<'t> {
    /// The value at the end of the way.
    pub(crate) fn node(&self) -> &'t Node {
        self.members.last().map_or(self.root, |member| &member.node)
    }

    /// What holds the last member.
    pub(crate) fn parent(&self) -> &'t Node {
        match self.members.as_slice() {
            [.., parent, _] => &parent.node,
            [_] | [] => self.root,
        }
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &'t Node> {
        std::iter::once(self.root).chain(self.members.iter().map(|member| &member.node))
    }
}

/// Follows a key as far as it goes. The way is as long as the key if the key is there.
pub(crate) fn follow<'t>(
    root: &'t Node,
    text: &str,
    key: &KeyPath,
) -> Result<Way<'t>, ConfigError> {
    let mut way = Way {
        root,
        members: Vec::new(),
    };
    let segments = key.segments();
    for (depth, segment) in segments.iter().enumerate() {
        let so_far = || KeyPath::new(segments.iter().take(depth + 1).cloned().collect());
        let node = way.node();
        let next = match (segment, &node.kind) {
            (Segment::Name(name), Kind::Map(_)) => {
                let below = segments.get(depth + 1);
                only(node.named(name).collect(), below, text, so_far)?
            }
            (Segment::Index(index), Kind::List(items)) => items.get(*index),
            (Segment::Append, Kind::List(_)) => None,
            (_, Kind::Scalar(_)) if node.is_absent() => None,
            (_, Kind::Alias) => {
                return Err(ConfigError::Shared {
                    key: so_far(),
                    at: lines::place(text, node.span.start()),
                    why: "it comes through an alias",
                });
            }
            (_, Kind::Map(_) | Kind::List(_) | Kind::Scalar(_)) => {
                return Err(ConfigError::WrongKind {
                    key: so_far(),
                    at: lines::place(text, node.span.start()),
                    found: kind_name(node),
                    wanted: segment.wants(),
                });
            }
        };
        let Some(next) = next else { break };
        way.members.push(next);
    }
    Ok(way)
}

/// The one member of those that have the name. Sections of the same name are one, if only one has what is sought below.
fn only<'t>(
    mut found: Vec<&'t Member>,
    below: Option<&Segment>,
    text: &str,
    key: impl Fn() -> KeyPath,
) -> Result<Option<&'t Member>, ConfigError> {
    let [first, second, ..] = found.as_slice() else {
        return Ok(found.pop());
    };
    let twice = ConfigError::Duplicate {
        key: key(),
        first: lines::place(text, first.name_at.start()),
        second: lines::place(text, second.name_at.start()),
    };
    let sections = found.iter().all(|member| member.node.form == Form::Section);
    match below {
        Some(Segment::Name(name)) if sections => {
            let mut with = found.iter().filter(|m| m.node.named(name).next().is_some());
            match (with.next(), with.next()) {
                (Some(one), None) => Ok(Some(one)),
                (Some(_) | None, _) => Err(twice),
            }
        }
        Some(_) | None => Err(twice),
    }
}

/// What a value is, in a word for people.
pub(crate) fn kind_name(node: &Node) -> &'static str {
    match (&node.kind, node.form) {
        (Kind::Scalar(_), _) => "a single value",
        (Kind::Alias, _) => "an alias",
        (Kind::List(_), _) => "a list",
        (Kind::Map(_), Form::Section) => "a section",
        (Kind::Map(_), Form::Plain | Form::Block | Form::Absent | Form::Implied) => "a table",
    }
}
