//! What an edit did to one key, as plain data that can be kept, carried out and taken back.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dialect::Edit;
use crate::document::Document;
use crate::key::{KeyPath, Segment};
use crate::lines;
use crate::slip::Slip;
use crate::tree::{Form, Kind, Node, Span};
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
    /// The member that came or went, as it stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slip: Option<Slip>,
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
    /// Where it stands.
    pub list: KeyPath,
    /// How many items it has.
    pub length: usize,
    /// What the item calls itself, if it is a table with a `name`, `id`, `key` or `title`: that key and its text.
    pub item: Option<(String, String)>,
}

impl Patch {
    /// What an edit of one text did, which gave the other one.
    pub(crate) fn of(
        document: &Document<'_>,
        now: &Document<'_>,
        key: &KeyPath,
        edit: &Edit,
    ) -> Self {
        let (text, range) = (document.text(), &edit.range);
        let shifted = |at: usize| (at + edit.new.len()).saturating_sub(range.len());
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
            let below = at.child(segment.clone());
            let still = now.follow(&below).ok().is_some_and(|way| {
                let is_there = way.members.len() == below.segments().len();
                let span = way.node().span;
                is_there && span.start() == start && span.end() == shifted(end)
            });
            let holds = next.form == Form::Implied || (inside && stays && still);
            if !holds {
                break;
            }
            node = next;
            at = below;
        }
        while node.form == Form::Implied && !at.segments().is_empty() {
            at = at.prefix(at.segments().len() - 1);
            node = at
                .segments()
                .iter()
                .try_fold(document.root(), step)
                .unwrap_or(document.root());
        }
        let left = nearest(
            (node, &at),
            |span| range.start.checked_sub(span.end()),
            |key, span| whole_of(now, key).is_some_and(|now| now.end() == span.end()),
        );
        let right = nearest(
            (node, &at),
            |span| span.start().checked_sub(range.end),
            |key, span| whole_of(now, key).is_some_and(|now| now.start() == shifted(span.start())),
        );
        let (left, right) = (left.as_ref(), right.as_ref());
        let (start, end) = edges(document, node, &at);
        let anchor = |found: Option<&(KeyPath, Span)>, gap: &str| Anchor {
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

    /// Where the bytes `here` stand in a text, by the neighbour before them and by the one behind them, and whether both say the same. With
    /// `from_right` the one behind is asked first.
    pub(crate) fn places(
        &self,
        document: &Document<'_>,
        here: &str,
        from_right: bool,
    ) -> (Vec<usize>, bool) {
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
        if from_right {
            places.reverse();
        }
        places.retain(|at| lines::rest(text, *at).starts_with(here));
        let is_both = matches!(places.as_slice(), [one, two] if one == two);
        places.dedup();
        (places, is_both)
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

/// The nearest member below a value that stands as the other text has it, too; what the edit made longer is looked into.
fn nearest(
    (node, key): (&Node, &KeyPath),
    distance: impl Fn(Span) -> Option<usize>,
    is_still: impl Fn(&KeyPath, Span) -> bool,
) -> Option<(KeyPath, Span)> {
    let (mut node, mut key) = (node, key.clone());
    loop {
        let mut near = Vec::new();
        neighbours(node, &key, &mut near);
        let near = near
            .into_iter()
            .filter_map(|(key, span, node)| Some((distance(span)?, key, span, node)));
        let (_, found, span, below) = near.min_by_key(|(distance, ..)| *distance)?;
        if is_still(&found, span) {
            return Some((found, span));
        }
        (node, key) = (below, found);
    }
}

fn whole_of(document: &Document<'_>, key: &KeyPath) -> Option<Span> {
    let way = document.follow(key).ok()?;
    let is_there = way.members.len() == key.segments().len();
    way.members.last().filter(|_| is_there)?.whole
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
fn neighbours<'t>(node: &'t Node, key: &KeyPath, near: &mut Vec<(KeyPath, Span, &'t Node)>) {
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
            Some(whole) => near.push((key, whole, &member.node)),
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
