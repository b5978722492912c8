//! All shortest edit scripts between two texts at once, by Myers' algorithm.
//!
//! Texts with repeated lines can be paired in many equally short ways. All of them are paths through
//! the same grid and lie between two extreme ones:
//!
//! ```text
//!   new →       A path goes down to remove a line, right to add one, and along the diagonal to keep
//! o ┌──┐        one. The extreme paths turn off as late as they can, one to this side and one to the
//! l │  └──┐     other. Where both take the same diagonal step, every shortest path takes it: there
//! d └──┐  │     is no room to pass by.
//! ↓    └──╲
//! ```
//!
//! Not here: what certainty is good for (`align`).

/// Which kind of step an extreme path takes as late as it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Late {
    Removals,
    Additions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Remove,
    Add,
    Keep,
}

/// Gives for each old line the new line that every shortest script pairs it with. Gives up beyond
/// `edits_max` edits; memory grows with the square of their number.
pub(super) fn pairs_of_all(
    old: &[usize],
    new: &[usize],
    edits_max: usize,
) -> Option<Vec<Option<usize>>> {
    let grid = Grid::explore(old, new, edits_max)?;
    let one = grid.path(Late::Removals)?;
    let other = grid.path(Late::Additions)?;
    Some(
        one.iter()
            .zip(other)
            .map(|(one, other)| one.filter(|_| *one == other))
            .collect(),
    )
}

/// How far each number of edits reaches: `reach[edits][j]` is the furthest number of old lines on the
/// diagonal where old minus new lines is `2 j - edits`. Distances never shrink along a diagonal, so
/// a point is within `edits` of the start exactly if it is not beyond the one that is reached.
#[derive(Debug)]
struct Grid<'a> {
    old: &'a [usize],
    new: &'a [usize],
    reach: Vec<Vec<usize>>,
}

impl<'a> Grid<'a> {
    fn explore(old: &'a [usize], new: &'a [usize], edits_max: usize) -> Option<Self> {
        let mut grid = Self {
            old,
            new,
            reach: Vec::new(),
        };
        for edits in 0..=edits_max {
            let reached = (0..=edits).map(|j| grid.furthest(edits, j)).collect();
            grid.reach.push(reached);
            if grid.is_within(Some(edits), old.len(), new.len()) {
                return Some(grid);
            }
        }
        None
    }

    /// Extends what one edit less reaches by an edit and then by all lines that can be kept. Points
    /// beyond the texts are as if both went on with lines that have no counterpart.
    fn furthest(&self, edits: usize, j: usize) -> usize {
        let fewer = edits.checked_sub(1).and_then(|fewer| self.reach.get(fewer));
        let removing = fewer
            .and_then(|reached| reached.get(j.checked_sub(1)?))
            .map(|old| old + 1);
        let adding = fewer.and_then(|reached| reached.get(j)).copied();
        let start = removing.max(adding).unwrap_or(0);
        let old = self.old.get(start..).unwrap_or_default();
        let new = self
            .new
            .get((start + edits).saturating_sub(2 * j)..)
            .unwrap_or_default();
        start
            + old
                .iter()
                .zip(new)
                .take_while(|(old, new)| old == new)
                .count()
    }

    /// Tells whether the first `old` lines become the first `new` lines with so many edits.
    fn is_within(&self, edits: Option<usize>, old: usize, new: usize) -> bool {
        let Some(edits) = edits else { return false };
        let Some(twice) = (old + edits).checked_sub(new) else {
            return false;
        };
        let furthest = self
            .reach
            .get(edits)
            .and_then(|reached| reached.get(twice / 2));
        twice.is_multiple_of(2) && furthest.is_some_and(|furthest| old <= *furthest)
    }

    /// Walks an extreme path from the end to the start and gives the pairs on it. `None` does not
    /// happen: from every point that is reached some step leads back.
    fn path(&self, late: Late) -> Option<Vec<Option<usize>>> {
        let mut pairs = vec![None; self.old.len()];
        let (mut old, mut new) = (self.old.len(), self.new.len());
        let mut edits = self.reach.len().checked_sub(1)?;
        while old > 0 || new > 0 {
            match self.step_back(late, edits, old, new)? {
                Step::Remove => (edits, old) = (edits - 1, old - 1),
                Step::Add => (edits, new) = (edits - 1, new - 1),
                Step::Keep => {
                    (old, new) = (old - 1, new - 1);
                    *pairs.get_mut(old)? = Some(new);
                }
            }
        }
        Some(pairs)
    }

    /// Chooses the last step of a shortest path to a point; late steps come first when going back.
    fn step_back(&self, late: Late, edits: usize, old: usize, new: usize) -> Option<Step> {
        let fewer = edits.checked_sub(1);
        let is_removed = || old > 0 && self.is_within(fewer, old - 1, new);
        let is_added = || new > 0 && self.is_within(fewer, old, new - 1);
        let is_kept = || {
            let last_old = old.checked_sub(1).and_then(|last| self.old.get(last));
            let last_new = new.checked_sub(1).and_then(|last| self.new.get(last));
            last_old.is_some() && last_old == last_new
        };
        match late {
            Late::Removals if is_removed() => Some(Step::Remove),
            Late::Additions if is_added() => Some(Step::Add),
            Late::Removals | Late::Additions if is_kept() => Some(Step::Keep),
            Late::Removals => is_added().then_some(Step::Add),
            Late::Additions => is_removed().then_some(Step::Remove),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    type Pairs = BTreeSet<(usize, usize)>;

    /// Lists every longest way to pair two texts, by trying all.
    fn all_pairings(old: &[usize], new: &[usize], from: (usize, usize)) -> BTreeSet<Pairs> {
        let mut all = BTreeSet::from([Pairs::new()]);
        for i in from.0..old.len() {
            for j in (from.1..new.len()).filter(|j| old[i] == new[*j]) {
                for mut pairing in all_pairings(old, new, (i + 1, j + 1)) {
                    pairing.insert((i, j));
                    all.insert(pairing);
                }
            }
        }
        let longest = all.iter().map(BTreeSet::len).max().unwrap();
        all.into_iter()
            .filter(|pairing| pairing.len() == longest)
            .collect()
    }

    #[test]
    fn a_repeated_line_is_certain_only_where_it_cannot_move() {
        assert_eq!(pairs_of_all(&[1, 1], &[1, 1, 1], 9).unwrap(), [None, None]);
        assert_eq!(
            pairs_of_all(&[1, 2, 1], &[1, 2, 1], 9).unwrap(),
            [Some(0), Some(1), Some(2)]
        );
        assert_eq!(
            pairs_of_all(&[2, 1], &[2, 1, 1], 9).unwrap(),
            [Some(0), None]
        );
        assert_eq!(pairs_of_all(&[], &[1], 9).unwrap(), []);
    }

    #[test]
    fn too_many_edits_are_given_up() {
        assert_eq!(pairs_of_all(&[1, 2], &[3, 4], 3), None);
        assert_eq!(pairs_of_all(&[1, 2], &[3, 4], 4).unwrap(), [None, None]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn certain_pairs_are_those_of_every_longest_pairing(
            old in proptest::collection::vec(0_usize..3, 0..7),
            new in proptest::collection::vec(0_usize..3, 0..7),
        ) {
            let all = all_pairings(&old, &new, (0, 0));
            let common = all.iter().cloned().reduce(|a, b| &a & &b).unwrap();
            let certain = pairs_of_all(&old, &new, 20).unwrap();
            let certain: Pairs = certain.iter().enumerate().filter_map(|(i, j)| Some((i, (*j)?))).collect();
            prop_assert_eq!(certain, common);
        }
    }
}
