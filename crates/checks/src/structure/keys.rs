//! The keys of a text by the line on which they stand.

use std::ops::RangeInclusive;

use backout_config::Segment;

use crate::value::{Kind, Node, Tree, key_of};

/// A key, as a number.
pub(super) type Key = usize;

struct Entry<'n> {
    parent: Option<Key>,
    /// The name; nothing for an item of a list.
    name: Option<&'n str>,
    /// The index of an item.
    index: usize,
    node: &'n Node,
    line: usize,
    /// The last line on which something of it stands.
    last: usize,
}

/// All keys of a tree.
pub(super) struct Keys<'n> {
    entries: Vec<Entry<'n>>,
    lines: Vec<Vec<Key>>,
    starts: Vec<usize>,
}

impl<'n> Keys<'n> {
    pub(super) fn of(tree: &'n Tree<'_>) -> Self {
        let text = tree.text();
        let starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let mut keys = Self {
            entries: Vec::new(),
            lines: Vec::new(),
            starts,
        };
        for (way, root) in tree.documents() {
            let parent = way.first().map(|segment| {
                let index = match segment {
                    Segment::Index(index) => *index,
                    Segment::Name(_) | Segment::Append => 0,
                };
                keys.push(None, None, index, root)
            });
            keys.below(parent, root);
        }
        keys.lines = vec![Vec::new(); keys.starts.len()];
        for (key, entry) in keys.entries.iter().enumerate() {
            if let Some(line) = keys.lines.get_mut(entry.line) {
                line.push(key);
            }
        }
        keys
    }

    fn push(
        &mut self,
        parent: Option<Key>,
        name: Option<&'n str>,
        index: usize,
        node: &'n Node,
    ) -> Key {
        let line = self.line_of(node.name_at as usize);
        let last = self.line_of(node.at as usize).max(line);
        self.entries.push(Entry {
            parent,
            name,
            index,
            node,
            line,
            last,
        });
        self.entries.len() - 1
    }

    fn line_of(&self, offset: usize) -> usize {
        self.starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1)
    }

    /// Adds what is below a value. What an alias or a merge brings stands elsewhere.
    fn below(&mut self, parent: Option<Key>, node: &'n Node) {
        let first = self.entries.len();
        match &node.kind {
            Kind::Map(members) => {
                for (name, member) in members.iter().filter(|(_, member)| !member.copied) {
                    let key = self.push(parent, Some(name), 0, member);
                    self.below(Some(key), member);
                }
            }
            Kind::List(items) => {
                for (index, item) in items.iter().enumerate().filter(|(_, item)| !item.copied) {
                    let key = self.push(parent, None, index, item);
                    self.below(Some(key), item);
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {}
        }
        let last = self
            .entries
            .get(first..)
            .unwrap_or_default()
            .iter()
            .map(|entry| entry.last)
            .max();
        if let (Some(last), Some(entry)) = (last, parent.and_then(|key| self.entries.get_mut(key)))
        {
            entry.last = entry.last.max(last);
        }
    }

    pub(super) fn by_line(&self) -> impl Iterator<Item = (usize, &[Key])> {
        self.lines
            .iter()
            .map(Vec::as_slice)
            .enumerate()
            .filter(|(_, keys)| !keys.is_empty())
    }

    pub(super) fn on_line(&self, line: usize) -> &[Key] {
        self.lines.get(line).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether nothing is below it.
    pub(super) fn is_leaf(&self, key: Key) -> bool {
        self.entries
            .get(key)
            .is_some_and(|entry| match &entry.node.kind {
                Kind::Map(members) => members.is_empty(),
                Kind::List(items) => items.is_empty(),
                Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => true,
            })
    }

    pub(super) fn name(&self, key: Key) -> Option<&str> {
        self.entries.get(key).and_then(|entry| entry.name)
    }

    pub(super) fn kind(&self, key: Key) -> &'static str {
        self.entries
            .get(key)
            .map_or("nothing", |entry| entry.node.what())
    }

    pub(super) fn offset(&self, key: Key) -> usize {
        self.entries
            .get(key)
            .map_or(0, |entry| entry.node.name_at as usize)
    }

    /// The lines that a value takes.
    pub(super) fn extent(&self, key: Key) -> RangeInclusive<usize> {
        self.entries
            .get(key)
            .map_or(0..=0, |entry| entry.line..=entry.last)
    }

    /// The key as people write it.
    pub(super) fn told(&self, key: Key) -> String {
        let segments: Vec<Segment> = self
            .chain(key)
            .0
            .iter()
            .map(|(name, index, _)| {
                name.map_or(Segment::Index(*index), |name| {
                    Segment::Name(name.to_owned())
                })
            })
            .collect();
        key_of(&segments)
    }

    /// The way to a key, outermost first.
    pub(super) fn chain(&self, key: Key) -> Chain<'n> {
        let mut chain = Vec::new();
        let mut at = Some(key);
        while let Some(entry) = at.and_then(|key| self.entries.get(key)) {
            chain.push((entry.name, entry.index, entry.line));
            at = entry.parent;
        }
        chain.reverse();
        Chain(chain)
    }
}

/// The way to a key: names, indices, lines.
pub(super) struct Chain<'n>(Vec<(Option<&'n str>, usize, usize)>);

impl Chain<'_> {
    /// How many steps are the same from the outside. Items of a list are all the same.
    pub(super) fn common(&self, other: &Chain<'_>) -> usize {
        self.0
            .iter()
            .zip(&other.0)
            .take_while(|(a, b)| a.0 == b.0)
            .count()
    }

    pub(super) fn eq_names(&self, other: &Chain<'_>) -> bool {
        self.0.len() == other.0.len() && self.common(other) == self.0.len()
    }

    /// Whether the other way goes on where this one ends.
    pub(super) fn leads_to(&self, other: &Chain<'_>) -> bool {
        self.0.len() < other.0.len() && self.common(other) == self.0.len()
    }

    /// The line of a step.
    pub(super) fn line(&self, depth: usize) -> Option<usize> {
        self.0.get(depth).map(|step| step.2)
    }
}
