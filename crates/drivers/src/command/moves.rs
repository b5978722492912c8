//! Moves: which thing of before stands where.

use std::collections::BTreeSet;

use backout_model::TargetPath;

use super::log::Move;
use super::tracker::{Standing, Tracker};

impl Tracker {
    /// Takes a move in that happened.
    pub(crate) fn moved(&mut self, what: &Move) {
        let (from, to) = (&what.from, &what.to);
        // What somebody changed and the command then replaced is theirs as well as its own; a stranger is gone.
        let was_changed = !what.is_exchange && self.foreign.contains(to);
        for names in [&mut self.foreign, &mut self.strangers] {
            rename(names, from, to, what.is_exchange);
        }
        if was_changed {
            self.foreign.insert(to.clone());
        }
        let taken = self.lift(from);
        if what.is_exchange {
            let other = self.lift(to);
            self.put(from, other);
            self.put(to, taken);
            return;
        }
        drop(self.lift(to));
        self.put(from, Lifted::of(from, Standing::Born));
        self.put(to, taken);
        if !what.is_directory {
            self.forget_if_plain(from);
            self.forget_if_plain(to);
        }
    }

    /// Takes a thing out of its place, with what is below it.
    fn lift(&mut self, at: &TargetPath) -> Lifted {
        let standing = self.is_untouched(at).map_or(Standing::Born, Standing::From);
        let is_part = |path: &TargetPath| path == at || path.is_below(at);
        let below: Vec<TargetPath> = self
            .names
            .range(at.clone()..)
            .map(|(path, _)| path)
            .take_while(|path| is_part(path))
            .filter(|path| path.is_below(at))
            .cloned()
            .collect();
        let mut lifted = Lifted::of(at, standing);
        for path in below {
            if let Some(standing) = self.names.remove(&path) {
                lifted.below.push((path, standing));
            }
        }
        self.names.remove(at);
        let aliases: Vec<TargetPath> = self
            .aliases
            .keys()
            .filter(|path| is_part(path))
            .cloned()
            .collect();
        for path in aliases {
            if let Some(of) = self.aliases.remove(&path) {
                lifted.aliases.push((path, of));
            }
        }
        lifted
    }

    fn put(&mut self, at: &TargetPath, lifted: Lifted) {
        for (rest, standing) in lifted.below {
            if let Some(path) = rest.rebase(&lifted.from, at) {
                self.names.insert(path, standing);
            }
        }
        for (rest, of) in lifted.aliases {
            if let Some(path) = rest.rebase(&lifted.from, at) {
                self.aliases.insert(path, of);
            }
        }
        // What is back where it was needs no word.
        let is_home = self
            .origin(at)
            .is_some_and(|origin| lifted.standing == Standing::From(origin));
        if !is_home {
            self.names.insert(at.clone(), lifted.standing);
        }
    }

    /// A file that the command made needs no word where all is known of the name.
    fn forget_if_plain(&mut self, at: &TargetPath) {
        if self.names.get(at) != Some(&Standing::Born) {
            return;
        }
        self.names.remove(at);
        let is_known = self
            .origin(at)
            .is_none_or(|origin| self.known.contains_key(&origin));
        if !is_known {
            self.names.insert(at.clone(), Standing::Born);
        }
    }
}

/// Gives names that lie at or below what moves their new place.
fn rename(names: &mut BTreeSet<TargetPath>, from: &TargetPath, to: &TargetPath, is_exchange: bool) {
    let moved = |name: &TargetPath, one: &TargetPath, other: &TargetPath| {
        let is_part = name == one || name.is_below(one);
        is_part.then(|| name.rebase(one, other)).flatten()
    };
    let all = std::mem::take(names).into_iter();
    *names = all
        .filter_map(|name| {
            let back = || is_exchange.then(|| moved(&name, to, from)).flatten();
            match moved(&name, from, to).or_else(back) {
                Some(new) => Some(new),
                // What is replaced is gone.
                None if name == *to => None,
                None => Some(name),
            }
        })
        .collect();
}

/// A thing out of its place, with the names it had there.
struct Lifted {
    from: TargetPath,
    standing: Standing,
    below: Vec<(TargetPath, Standing)>,
    aliases: Vec<(TargetPath, TargetPath)>,
}

impl Lifted {
    fn of(from: &TargetPath, standing: Standing) -> Self {
        Self {
            from: from.clone(),
            standing,
            below: Vec::new(),
            aliases: Vec::new(),
        }
    }
}
