//! An edit that moves more keys than its lines suggest.
//!
//! Two blanks before one line of YAML can hang half of the file under another key. The text hardly changed, and the syntax is right; what the program
//! reads is something else. So: lines that are the same before and after, whatever their indentation, are paired, and the keys on them are compared.
//!
//! - A key on a paired line that has another way to it, is not there any more, or is new there has **moved**. One whose kind changed although no line of its
//!   value did was **retyped**.
//! - It is no finding if the lines do tell: its parent was renamed (the old name's line went, a new one came), or it was put under a new parent, or taken out from under
//!   one that went, and its own indentation changed with it.
//! - Items of a list are compared without their index: a new item moves none.
//! - What comes through an alias or a merge key of YAML counts where it is defined.
//!
//! Edits of single keys never give a finding.

mod keys;
mod lines;

use crate::finding::Finding;
use crate::value::{Tree, short};

use keys::{Key, Keys};
use lines::Pairs;

/// How many of the moved keys are named.
const NAMED_MAX: usize = 3;

/// Compares what was read before an edit with what is read after it.
pub fn check(before: &Tree<'_>, after: &Tree<'_>) -> Vec<Finding> {
    let pairs = Pairs::of(before.text(), after.text());
    let (old, new) = (Keys::of(before), Keys::of(after));
    let compare = Compare {
        pairs: &pairs,
        old: &old,
        new: &new,
    };
    let mut moves = Vec::new();
    for (line, on_line) in new.by_line() {
        if let Some(pair) = pairs.before_of(line) {
            compare.line(pair, old.on_line(pair), line, on_line, &mut moves);
        }
    }
    // Lines on which nothing is any more.
    for (line, on_line) in old.by_line() {
        if let Some(pair) = pairs.after_of(line)
            && new.on_line(pair).is_empty()
        {
            compare.line(line, on_line, pair, &[], &mut moves);
        }
    }
    let Some(first) = moves.first() else {
        return Vec::new();
    };
    let named: Vec<&str> = moves
        .iter()
        .take(NAMED_MAX)
        .map(|change| change.told.as_str())
        .collect();
    let more = match moves.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let count = |number: usize, what: &str| {
        format!("{number} {what}{}", if number == 1 { "" } else { "s" })
    };
    let found = format!(
        "{} changed, and {} moved whose lines did not: {}{more}",
        count(pairs.changed(), "line"),
        count(moves.len(), "key"),
        named.join(", "),
    );
    let place = match first.after {
        Some(key) => crate::value::place(after.text(), new.offset(key)),
        None => crate::value::place(before.text(), first.offset),
    };
    vec![
        Finding::new(found)
            .at(place)
            .of_key(first.key.clone())
            .mended_by("look at the indentation and the brackets around there; single keys are safer to change with `backout set`"),
    ]
}

/// How many keys of a line are searched for one that moved within it.
const SEARCHED_MAX: usize = 64;

/// The positions at which a key of a line may be in the other: first the same one, for the lines are the same.
fn near(index: usize, count: usize) -> impl Iterator<Item = usize> {
    std::iter::once(index).chain(0..count.min(SEARCHED_MAX))
}

/// A key that is not where it was.
struct Change {
    /// The key as it is now, or as it was if it is gone.
    key: String,
    /// The key in the new text, if it is there.
    after: Option<Key>,
    /// Where it stood in the old text.
    offset: usize,
    told: String,
}

struct Compare<'a> {
    pairs: &'a Pairs,
    old: &'a Keys<'a>,
    new: &'a Keys<'a>,
}

impl Compare<'_> {
    /// Compares the keys of two paired lines.
    fn line(&self, before: usize, old: &[Key], after: usize, new: &[Key], moves: &mut Vec<Change>) {
        let same = |a: Key, b: Key| self.old.chain(a).eq_names(&self.new.chain(b));
        let is_indented = self.pairs.is_indented(before, after);
        let mut taken = vec![false; new.len()];
        for (index, key) in old.iter().copied().enumerate() {
            if let Some(at) = near(index, new.len())
                .find(|at| new.get(*at).is_some_and(|other| same(key, *other)))
            {
                if let Some(seat) = taken.get_mut(at) {
                    *seat = true;
                }
                if let Some(other) = new.get(at).copied() {
                    self.retyped(key, other, moves);
                }
                continue;
            }
            if !self.old.is_leaf(key) {
                continue;
            }
            let free = |at: &usize| {
                taken.get(*at) == Some(&false)
                    && new.get(*at).is_some_and(|other| {
                        self.new.is_leaf(*other) && self.old.name(key) == self.new.name(*other)
                    })
            };
            let to = near(index, new.len()).find(free);
            if let Some(seat) = to.and_then(|at| taken.get_mut(at)) {
                *seat = true;
            }
            let to = to.and_then(|at| new.get(at).copied());
            if to.is_some_and(|to| self.is_explained(key, to, is_indented)) {
                continue;
            }
            let was = self.old.told(key);
            let told = match to {
                Some(to) => format!("`{}` is now `{}`", short(&was), short(&self.new.told(to))),
                None => format!("`{}` is gone", short(&was)),
            };
            moves.push(Change {
                key: to.map_or(was, |to| self.new.told(to)),
                after: to,
                offset: self.old.offset(key),
                told,
            });
        }
        for (key, _) in new
            .iter()
            .copied()
            .zip(&taken)
            .filter(|(_, taken)| !**taken)
        {
            let grew = old
                .iter()
                .take(SEARCHED_MAX)
                .any(|other| self.old.chain(*other).leads_to(&self.new.chain(key)));
            if self.new.is_leaf(key) && !grew {
                let name = self.new.told(key);
                moves.push(Change {
                    told: format!("`{}` is new", short(&name)),
                    key: name,
                    after: Some(key),
                    offset: 0,
                });
            }
        }
    }

    /// A value of another kind, none of whose lines changed.
    fn retyped(&self, key: Key, other: Key, moves: &mut Vec<Change>) {
        let (was, is) = (self.old.kind(key), self.new.kind(other));
        if was == is
            || self
                .pairs
                .is_touched(self.old.extent(key), self.new.extent(other))
        {
            return;
        }
        // What is below it moved, and is told of itself.
        if !self.old.is_leaf(key) || !self.new.is_leaf(other) {
            return;
        }
        let name = self.new.told(other);
        moves.push(Change {
            told: format!("`{}` was {was} and is {is}", short(&name)),
            key: name,
            after: Some(other),
            offset: self.old.offset(key),
        });
    }

    /// Whether the changed lines tell why a key has another way to it.
    fn is_explained(&self, from: Key, to: Key, is_indented: bool) -> bool {
        let (old, new) = (self.old.chain(from), self.new.chain(to));
        let depth = old.common(&new);
        let went = old
            .line(depth)
            .is_some_and(|line| self.pairs.after_of(line).is_none());
        let came = new
            .line(depth)
            .is_some_and(|line| self.pairs.before_of(line).is_none());
        (went && came) || ((went || came) && is_indented)
    }
}

#[cfg(test)]
mod tests;
