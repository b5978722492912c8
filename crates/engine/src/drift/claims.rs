//! Who told of a name last: operations are asked newest first, and only the first one to tell of a name is believed.
//!
//! Names are kept as hashes of their bytes, since a workspace may have a million of them. Two names with one hash are one in 10^13 pairs; the
//! second would go unseen.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use backout_model::Key;

/// What has been told so far.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// All of it is told.
    whole: HashSet<u64>,
    /// Its mode, owner or attributes are told, by something newer than all of it.
    looks: HashSet<u64>,
    /// It was written with all that is in it: what older operations tell of that is over.
    trees: HashSet<u64>,
    /// Some part of it was written, by this operation last.
    parted: HashSet<u64>,
    /// A command changed names in it.
    inside: HashSet<u64>,
    /// Files of several names that are told by one of them, by device and number.
    numbers: HashMap<(u64, u64), Told>,
    /// How many names are told at or below each directory.
    counts: HashMap<u64, u64>,
}

/// What is known of a name before an operation tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It has to be compared.
    Nothing,
    /// Its mode, owner and attributes.
    Looks,
    /// Some keys or rows of it.
    Parts,
    /// Nothing of it has to be compared any more.
    All,
}

impl Claims {
    /// Says what newer operations told of a name.
    pub(super) fn told(&self, key: &Key) -> Told {
        let bytes = key.to_bytes();
        let own = hash(&bytes);
        if self.whole.contains(&own)
            || self.trees.contains(&own)
            || (!self.trees.is_empty() && prefixes(&bytes).any(|it| self.trees.contains(&it)))
        {
            return Told::All;
        }
        // A part is told with the whole that was written after it.
        let mut wholes = parts_of(&bytes);
        if wholes.any(|whole| self.whole.contains(&whole)) {
            return Told::All;
        }
        match (self.parted.contains(&own), self.looks.contains(&own)) {
            (true, _) => Told::Parts,
            (false, true) => Told::Looks,
            (false, false) => Told::Nothing,
        }
    }

    /// Notes that all of a name is told.
    pub(super) fn whole(&mut self, key: &Key) {
        let bytes = key.to_bytes();
        if self.whole.insert(hash(&bytes)) {
            for above in prefixes(&bytes).chain([hash(&bytes)]) {
                *self.counts.entry(above).or_default() += 1;
            }
            self.parted.extend(parts_of(&bytes));
        }
    }

    /// Notes that the looks of a name are told.
    pub(super) fn looks(&mut self, key: &Key) {
        self.looks.insert(hash(&key.to_bytes()));
    }

    /// Notes that something was written with all that is in it.
    pub(super) fn tree(&mut self, key: &Key) {
        self.trees.insert(hash(&key.to_bytes()));
    }

    /// Notes that a command changed something in all that holds it.
    pub(super) fn inside(&mut self, key: &Key) {
        let bytes = key.to_bytes();
        self.inside.extend(prefixes(&bytes));
    }

    /// Tells whether a command changed something in it.
    pub(super) fn has_inside(&self, key: &Key) -> bool {
        self.inside.contains(&hash(&key.to_bytes()))
    }

    /// Notes what is told of a file of several names.
    pub(super) fn number(&mut self, number: (u64, u64), told: Told) {
        let known = self.numbers.entry(number).or_insert(told);
        if told == Told::All {
            *known = Told::All;
        }
    }

    /// Says what newer operations told of a file of several names.
    pub(super) fn told_by_number(&self, number: (u64, u64)) -> Told {
        self.numbers.get(&number).copied().unwrap_or(Told::Nothing)
    }

    /// Counts the names that are told at or below another.
    pub(super) fn count(&self, key: &Key) -> u64 {
        let own = hash(&key.to_bytes());
        self.counts.get(&own).copied().unwrap_or_default()
    }

    /// Counts all names that are told.
    pub(super) fn len(&self) -> usize {
        self.whole.len()
    }
}

pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Gives the hashes of all that a key lies below.
fn prefixes(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let ends = bytes.iter().enumerate();
    let ends = ends.filter(|(at, byte)| *at > 0 && matches!(byte, b'/' | 0));
    ends.map(|(at, _)| hash(bytes.get(..at).unwrap_or_default()))
}

/// Gives the hashes of the wholes that a key is a part of.
fn parts_of(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == 0);
    ends.map(|(at, _)| hash(bytes.get(..at).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use backout_model::TargetPath;

    use super::*;

    fn key(path: &str) -> Key {
        Key::from(TargetPath::new(path).unwrap())
    }

    #[test]
    fn the_newest_is_believed_with_all_that_it_took_along() {
        let mut claims = Claims::default();
        claims.whole(&key("/w/a"));
        claims.tree(&key("/w/d"));
        assert_eq!(claims.told(&key("/w/a")), Told::All);
        assert_eq!(claims.told(&key("/w/d/x/y")), Told::All);
        assert_eq!(claims.told(&key("/w/dd")), Told::Nothing);
        claims.looks(&key("/w/b"));
        assert_eq!(claims.told(&key("/w/b")), Told::Looks);
        assert_eq!(claims.count(&key("/w")), 1);
    }

    #[test]
    fn a_part_leaves_the_whole_to_be_asked_for_and_the_whole_covers_its_parts() {
        let mut claims = Claims::default();
        let port = key("/w/app.toml").part("port").unwrap();
        claims.whole(&port);
        assert_eq!(claims.told(&key("/w/app.toml")), Told::Parts);
        claims.whole(&key("/w/app.toml"));
        let host = key("/w/app.toml").part("host").unwrap();
        assert_eq!(claims.told(&host), Told::All);
    }
}
