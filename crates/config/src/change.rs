//! What an edit did to one key, as plain data that can be kept, carried out and taken back.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dialect::Edit;
use crate::document::Document;
use crate::key::{KeyPath, Segment};
use crate::lines;
use crate::tree::{Form, Kind, Node};
use crate::value::Value;

/// One key, before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyChange {
    /// The key. A list that gained or lost an item is named itself.
    pub key: KeyPath,
    /// What it was; nothing if it was not there.
    pub before: Option<Piece>,
    /// What it became; nothing if it went.
    pub after: Option<Piece>,
    /// Where a member came or went, and with which bytes around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// How many parents were made for the key.
    #[serde(default)]
    pub made: usize,
    /// Whether the parent was there but had no value (`parent:` in YAML), and is to have none again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hollow: bool,
    /// By what the lists on the way to the key are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<Witness>,
}

impl KeyChange {
    /// The change that takes this one back.
    #[must_use]
    pub fn inverse(&self) -> Self {
        let mut inverse = self.clone();
        std::mem::swap(&mut inverse.before, &mut inverse.after);
        if let Some(patch) = &mut inverse.patch {
            std::mem::swap(&mut patch.before, &mut patch.after);
        }
        inverse
    }
}

/// A value as it stands in a text. `Debug` does not show it, for it may be a secret.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// The text of the value.
    pub raw: String,
    /// What is put back: the text from behind the name to the value's end, or all lines of a section.
    pub tail: String,
    /// What it means.
    pub value: Value,
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Piece({}, {} bytes)", self.value.kind(), self.raw.len())
    }
}

/// The bytes that came and went with a member, and between which neighbours.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Patch {
    /// The bytes before the change.
    pub before: String,
    /// The bytes after it.
    pub after: String,
    /// What stands before them, and the text up to it.
    pub left: Anchor,
    /// What stands behind them, and the text up to it.
    pub right: Anchor,
}

impl fmt::Debug for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Patch({} to {} bytes)",
            self.before.len(),
            self.after.len()
        )
    }
}

/// A neighbour that a later text is likely to have too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// The key of the neighbour, or of what holds both.
    pub key: KeyPath,
    /// Whether it is what holds both: then its inner edge is meant.
    pub edge: bool,
    /// The text between.
    pub gap: String,
}

/// By what a list is known again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Witness {
    /// The list.
    pub list: KeyPath,
    /// How many items it has.
    pub length: usize,
    /// What the item calls itself, if it is a table with a `name`, `id`, `key` or `title`: that key and its text.
    pub item: Option<(String, String)>,
}

impl Patch {
    pub(crate) fn of(document: &Document<'_>, key: &KeyPath, edit: &Edit) -> Self {
        let (text, range) = (document.text(), &edit.range);
        let (mut node, mut at) = (document.root(), KeyPath::default());
        // The innermost value on the key's way that holds the whole edit.
        for segment in key.segments() {
            let Some(next) = step(node, segment) else {
                break;
            };
            let (start, end) = (next.span.start(), next.span.end());
            let inside = start <= range.start && range.end <= end;
            // What the edit replaces as a whole is not there afterwards, and a block begins where its first member does.
            let stays = range.start > start || (range.end < end && next.form != Form::Block);
            let holds = next.form == Form::Implied || (inside && stays);
            if !holds {
                break;
            }
            node = next;
            at = at.child(segment.clone());
        }
        while node.form == Form::Implied && !at.segments().is_empty() {
            at = at.prefix(at.segments().len() - 1);
            node = at
                .segments()
                .iter()
                .try_fold(document.root(), step)
                .unwrap_or(document.root());
        }
        let mut near = Vec::new();
        neighbours(node, &at, &mut near);
        let left = near
            .iter()
            .filter(|(_, span)| span.end() <= range.start)
            .max_by_key(|(_, span)| span.end());
        let right = near
            .iter()
            .filter(|(_, span)| span.start() >= range.end)
            .min_by_key(|(_, span)| span.start());
        let (start, end) = edges(document, node, &at);
        let anchor = |found: Option<&(KeyPath, crate::tree::Span)>, gap: &str| Anchor {
            key: found.map_or_else(|| at.clone(), |(key, _)| key.clone()),
            edge: found.is_none(),
            gap: gap.to_owned(),
        };
        let from = left.map_or(start, |(_, span)| span.end());
        let to = right.map_or(end, |(_, span)| span.start());
        Self {
            before: lines::cut(text, range.clone()).to_owned(),
            after: edit.new.clone(),
            left: anchor(left, lines::cut(text, from..range.start)),
            right: anchor(right, lines::cut(text, range.end..to)),
        }
    }

    /// Where the bytes `here` stand in a text, by the neighbour before them and by the one behind them.
    pub(crate) fn places(&self, document: &Document<'_>, here: &str) -> Vec<usize> {
        let text = document.text();
        let mut places = Vec::new();
        if let Some(from) = self.left.resolve(document, true)
            && lines::rest(text, from).starts_with(&self.left.gap)
        {
            places.push(from + self.left.gap.len());
        }
        if let Some(to) = self.right.resolve(document, false)
            && lines::cut(text, 0..to).ends_with(&self.right.gap)
            && let Some(at) = to.checked_sub(self.right.gap.len() + here.len())
        {
            places.push(at);
        }
        places.retain(|at| lines::rest(text, *at).starts_with(here));
        places.dedup();
        places
    }
}

impl Anchor {
    fn resolve(&self, document: &Document<'_>, left: bool) -> Option<usize> {
        let way = document.follow(&self.key).ok()?;
        if way.members.len() < self.key.segments().len() {
            return None;
        }
        let (start, end) = if self.edge {
            edges(document, way.node(), &self.key)
        } else {
            let whole = way.members.last()?.whole?;
            (whole.end(), whole.start())
        };
        Some(if left { start } else { end })
    }
}

fn step<'t>(node: &'t Node, segment: &Segment) -> Option<&'t Node> {
    match segment {
        Segment::Name(name) => node.named(name).next().map(|member| &member.node),
        Segment::Index(index) => match &node.kind {
            Kind::List(items) => items.get(*index).map(|item| &item.node),
            Kind::Map(_) | Kind::Scalar(_) | Kind::Alias => None,
        },
        Segment::Append => None,
    }
}

/// The edges of what holds the edit; the whole text for the root.
fn edges(document: &Document<'_>, node: &Node, key: &KeyPath) -> (usize, usize) {
    if key.segments().is_empty() {
        (0, document.text().len())
    } else {
        (node.span.start(), node.span.end())
    }
}

/// The members of a value that stand in one place each, with their keys. Tables that are only implied give their members. A name that
/// stands twice says not which, and is no neighbour.
fn neighbours(node: &Node, key: &KeyPath, near: &mut Vec<(KeyPath, crate::tree::Span)>) {
    let mut times: HashMap<&str, usize> = HashMap::new();
    for member in node.members() {
        *times.entry(&member.name).or_default() += 1;
    }
    for (index, member) in node.members().iter().enumerate() {
        let segment = match node.kind {
            Kind::Map(_) if times.get(&*member.name).is_some_and(|times| *times > 1) => continue,
            Kind::List(_) => Segment::Index(index),
            Kind::Map(_) | Kind::Scalar(_) | Kind::Alias => Segment::Name(member.name.to_string()),
        };
        let key = key.child(segment);
        match member.whole {
            Some(whole) => near.push((key, whole)),
            None => neighbours(&member.node, &key, near),
        }
    }
}

/// The keys by which people tell the items of a list.
const NAMES: [&str; 4] = ["name", "id", "key", "title"];

/// Tells by what the lists on the way to a key are known again.
pub(crate) fn witnesses(document: &Document<'_>, key: &KeyPath) -> Vec<Witness> {
    let mut witnesses = Vec::new();
    let mut node = document.root();
    for (depth, segment) in key.segments().iter().enumerate() {
        let Some(next) = step(node, segment) else {
            break;
        };
        if let Segment::Index(_) = segment {
            let below = key.segments().get(depth + 1);
            // A key that is the item itself, or what the item is called, tells nothing.
            let own = |name: &str| match below {
                Some(Segment::Name(own)) => own == name,
                Some(Segment::Index(_) | Segment::Append) => false,
                None => true,
            };
            let single = |member: &&crate::tree::Member| {
                let named = NAMES.contains(&&*member.name) && !own(&member.name);
                named && matches!(member.node.kind, Kind::Scalar(_))
            };
            let item = next.members().iter().find(single);
            witnesses.push(Witness {
                list: key.prefix(depth),
                length: node.members().len(),
                item: item.map(|m| {
                    (
                        m.name.to_string(),
                        m.node.span.of(document.text()).to_owned(),
                    )
                }),
            });
        }
        node = next;
    }
    witnesses
}
