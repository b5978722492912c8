//! Which lines of two texts are certainly the same line.
//!
//! Texts with repeated lines can be paired in many equally short ways, and a merge that trusts one of
//! them may put a change in the wrong place. So a pair counts here only if *every* shortest edit
//! script has it. All shortest scripts lie between two extreme ones in the grid of Myers' algorithm:
//!
//! ```text
//!   new →          Any shortest path from corner to corner runs between the path that turns off
//! o ┌─┐            as early as it can to one side and the one that does so to the other. Where the
//! l │ └──┐         two take the same diagonal step, all of them take it.
//! d └──┐ └─╲       
//! ↓    └────╲
//! ```
//!
//! - Pairs come in order and never cross.
//! - Beyond [`EDITS_MAX`] edits the extremes are too expensive; then a pair counts if a forward and a
//!   backward comparison agree on it.

use std::collections::HashSet;

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// The most edits between two texts for which all shortest scripts are considered. Memory grows with
/// the square: this many take 32 MiB. Lines that only one of the texts has are not counted.
const EDITS_MAX: usize = 4096;

/// Gives for each old line the new line it certainly is.
pub(super) fn certain_pairs(old: &[usize], new: &[usize]) -> Vec<Option<usize>> {
    let mut pairs = of_shortest(&shared(old, new), &shared(new, old), old.len());
    pairs = agreed(&pairs, &of_shortest(&telling(old, new), &telling(new, old), old.len()));
    if std::env::var("NOREAD").is_err() {
    for algorithm in READINGS {
        pairs = agreed(&pairs, &compared(algorithm, old, new));
    }
    }
    pairs
}
const READINGS: [Algorithm; 2] = [Algorithm::Histogram, Algorithm::Patience];

type Line = (usize, usize);

fn of_shortest(old: &[Line], new: &[Line], old_len: usize) -> Vec<Option<usize>> {
    let old_numbers: Vec<_> = old.iter().map(|(_, number)| *number).collect();
    let new_numbers: Vec<_> = new.iter().map(|(_, number)| *number).collect();
    let pairs = Grid::explore(&old_numbers, &new_numbers, EDITS_MAX)
        .and_then(|grid| Some(agreed(&grid.path(Lean::Old)?, &grid.path(Lean::New)?)))
        .unwrap_or_else(|| compared_both_ways(&old_numbers, &new_numbers));
    let mut certain = vec![None; old_len];
    for ((old_index, _), pair) in old.iter().zip(pairs) {
        let new_index = pair.and_then(|new_index| new.get(new_index));
        if let (Some(slot), Some((new_index, _))) = (certain.get_mut(*old_index), new_index) {
            *slot = Some(*new_index);
        }
    }
    certain
}

fn telling(text: &[usize], other: &[usize]) -> Vec<(usize, usize)> {
    let mut counts = std::collections::HashMap::new();
    for n in other { *counts.entry(*n).or_insert(0usize) += 1; }
    let prefix = text.iter().zip(other).take_while(|(a, b)| a == b).count();
    let suffix = text.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count().min(text.len().min(other.len()) - prefix);
    let mut limit = 1; let mut n = text.len(); while n > 0 { limit <<= 1; n >>= 2; }
    let limit = limit.min(1024);
    // 0 keep, 1 none, 2 many
    let kinds: Vec<u8> = text.iter().map(|n| match counts.get(n) { None => 1, Some(c) if *c >= limit => 2, _ => 0 }).collect();
    let scan = |it: &mut dyn Iterator<Item = usize>| { let (mut none, mut many) = (0usize, 0usize); for i in it.take(100) { match kinds[i] { 1 => none += 1, 2 => many += 1, _ => break } } (none, many) };
    (0..text.len()).filter(|i| {
        if *i < prefix || *i >= text.len() - suffix { return true; }
        match kinds[*i] { 0 => true, 1 => false, _ => {
            let (n1, m1) = scan(&mut (prefix..*i).rev());
            let (n2, m2) = scan(&mut (*i + 1..text.len() - suffix));
            !(n1 > 0 && n2 > 0 && (m1 + m2 + 1) * 4 < m1 + m2 + 1 + n1 + n2 )
        } }
    }).map(|i| (i, text[i])).collect()
}

/// The lines of `text` that `other` has as well, with their places. No script can keep the rest, so
/// leaving them out changes no pair and makes the grid smaller.
fn shared(text: &[usize], other: &[usize]) -> Vec<(usize, usize)> {
    let other: HashSet<_> = other.iter().collect();
    text.iter().copied().enumerate().filter(|(_, number)| other.contains(number)).collect()
}

fn agreed(one: &[Option<usize>], other: &[Option<usize>]) -> Vec<Option<usize>> {
    one.iter().zip(other).map(|(one, other)| one.filter(|_| one == other)).collect()
}

/// Pairs by two single scripts that break ties in opposite directions.
fn compared_both_ways(old: &[usize], new: &[usize]) -> Vec<Option<usize>> {
    let forward = compared(Algorithm::Myers, old, new);
    let reversed = |text: &[usize]| text.iter().rev().copied().collect::<Vec<_>>();
    let mut backward = compared(Algorithm::Myers, &reversed(old), &reversed(new));
    backward.reverse();
    for pair in backward.iter_mut().flatten() {
        *pair = new.len().saturating_sub(*pair + 1);
    }
    agreed(&forward, &backward)
}

fn compared(algorithm: Algorithm, old: &[usize], new: &[usize]) -> Vec<Option<usize>> {
    let mut pairs = Vec::with_capacity(old.len());
    for op in capture_diff_slices(algorithm, old, new) {
        if op.tag() == DiffTag::Equal {
            pairs.extend(op.new_range().map(Some));
        } else {
            pairs.extend(op.old_range().map(|_| None));
        }
    }
    pairs
}

/// Which way an extreme path turns off first, seen from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lean {
    Old,
    New,
}

/// How far each number of edits reaches: `reach[edits][j]` is the furthest old line on diagonal
/// `2 j - edits` (old minus new line). Distances never shrink along a diagonal, so a point is within
/// `edits` of the start exactly if it is not beyond that line.
#[derive(Debug)]
struct Grid<'a> {
    old: &'a [usize],
    new: &'a [usize],
    reach: Vec<Vec<usize>>,
}

impl<'a> Grid<'a> {
    /// Explores from the start until the end is reached; gives up after `edits_max`.
    fn explore(old: &'a [usize], new: &'a [usize], edits_max: usize) -> Option<Self> {
        let mut grid = Self { old, new, reach: Vec::new() };
        for edits in 0..=edits_max {
            let furthest = (0..=edits).map(|j| grid.furthest(edits, j)).collect();
            grid.reach.push(furthest);
            if grid.is_within(edits, old.len(), new.len()) {
                return Some(grid);
            }
        }
        None
    }

    fn furthest(&self, edits: usize, j: usize) -> usize {
        let before = edits.checked_sub(1).and_then(|before| self.reach.get(before));
        let removing = before.and_then(|reach| reach.get(j.checked_sub(1)?)).map(|old| old + 1);
        let adding = before.and_then(|reach| reach.get(j)).copied();
        let mut old = removing.max(adding).unwrap_or(0);
        let mut new = (old + edits).saturating_sub(2 * j);
        while self.is_pair(old, new) {
            old += 1;
            new += 1;
        }
        old
    }

    fn is_pair(&self, old: usize, new: usize) -> bool {
        self.old.get(old).is_some_and(|line| self.new.get(new) == Some(line))
    }

    /// Tells whether the first `old` lines become the first `new` lines with so many edits.
    fn is_within(&self, edits: usize, old: usize, new: usize) -> bool {
        let Some(twice) = (old + edits).checked_sub(new) else { return false };
        let furthest = self.reach.get(edits).and_then(|reach| reach.get(twice / 2));
        twice % 2 == 0 && furthest.is_some_and(|furthest| old <= *furthest)
    }

    /// Walks from the end to the start, turning off to one side whenever a shortest path can. Gives
    /// the pairs on the way; `None` never happens on a grid that was explored to its end.
    fn path(&self, lean: Lean) -> Option<Vec<Option<usize>>> {
        let mut pairs = vec![None; self.old.len()];
        let (mut old, mut new) = (self.old.len(), self.new.len());
        let mut edits = self.reach.len().checked_sub(1)?;
        while old > 0 || new > 0 {
            let fewer = edits.checked_sub(1);
            let removed = fewer.zip(old.checked_sub(1));
            let added = fewer.zip(new.checked_sub(1));
            let removed = removed.filter(|(fewer, old)| self.is_within(*fewer, *old, new));
            let added = added.filter(|(fewer, new)| self.is_within(*fewer, old, *new));
            let kept = old.checked_sub(1).zip(new.checked_sub(1));
            let kept = kept.filter(|(old, new)| self.is_pair(*old, *new));
            let (first, last) = match lean {
                Lean::Old => (removed.map(|(fewer, old)| (fewer, old, new)), added.map(|(fewer, new)| (fewer, old, new))),
                Lean::New => (added.map(|(fewer, new)| (fewer, old, new)), removed.map(|(fewer, old)| (fewer, old, new))),
            };
            if let (None, Some((kept_old, kept_new))) = (first, kept) {
                *pairs.get_mut(kept_old)? = Some(kept_new);
                (old, new) = (kept_old, kept_new);
            } else {
                (edits, old, new) = first.or(last)?;
            }
        }
        Some(pairs)
    }
}
