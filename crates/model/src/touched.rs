//! Which of many targets lie at, above or below a target, without comparing each with each.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::{Below, Key, Reach, Target};

/// Some targets, to ask quickly whether another touches one of them.
pub(crate) struct Touched<'t> {
    all: BTreeSet<&'t Key>,
    trees: BTreeSet<&'t Key>,
}

impl<'t> Touched<'t> {
    pub(crate) fn by(targets: impl Iterator<Item = &'t Target>) -> Self {
        let (mut all, mut trees) = (BTreeSet::new(), BTreeSet::new());
        for target in targets {
            all.insert(target.key());
            if target.reach() == Reach::Tree {
                trees.insert(target.key());
            }
        }
        Self { all, trees }
    }

    pub(crate) fn has_above(&self, key: &Key) -> bool {
        key.ancestors().iter().any(|above| {
            self.trees.contains(above)
                || self.all.contains(above) && key.below(above) == Some(Below::Part)
        })
    }

    pub(crate) fn has_below(&self, target: &Target) -> bool {
        let key = target.key();
        // What lies below a key comes right after it.
        let mut below = self
            .all
            .range::<&Key, _>((Bound::Excluded(key), Bound::Unbounded))
            .map_while(|other| other.below(key));
        below.any(|below| below == Below::Part || target.reach() == Reach::Tree)
    }

    pub(crate) fn is_touched_by(&self, target: &Target) -> bool {
        self.all.contains(target.key()) || self.has_above(target.key()) || self.has_below(target)
    }
}
