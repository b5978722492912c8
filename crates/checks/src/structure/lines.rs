//! Which lines of two texts are the same, whatever their indentation.
//!
//! Lines at both ends that are the same are paired; then lines that each text has once, in their longest common order; then the neighbours of pairs. A line
//! that is not paired counts as changed. The time is that of a sort.

use std::collections::HashMap;
use std::ops::RangeInclusive;

/// The lines of two texts, counted from 0, and which are the same.
#[derive(Debug)]
pub(super) struct Pairs {
    after: Vec<Option<usize>>,
    before: Vec<Option<usize>>,
    old_indents: Vec<usize>,
    new_indents: Vec<usize>,
}

impl Pairs {
    pub(super) fn of(before: &str, after: &str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) =
            (before.lines().collect(), after.lines().collect());
        let trim = |lines: &[&'_ str]| -> Vec<String> {
            lines.iter().map(|line| line.trim().to_owned()).collect()
        };
        let indents = |lines: &[&str]| {
            lines
                .iter()
                .map(|line| line.len() - line.trim_start().len())
                .collect()
        };
        let (old_text, new_text) = (trim(&old), trim(&new));
        let mut pairs = Self {
            after: vec![None; old.len()],
            before: vec![None; new.len()],
            old_indents: indents(&old),
            new_indents: indents(&new),
        };
        let same = |a: usize, b: usize| {
            old_text
                .get(a)
                .is_some_and(|text| Some(text) == new_text.get(b))
        };
        let head = (0..old.len().min(new.len()))
            .take_while(|at| same(*at, *at))
            .count();
        let rest = old.len().min(new.len()) - head;
        let tail = (1..=rest)
            .take_while(|at| same(old.len() - at, new.len() - at))
            .count();
        for at in 0..head {
            pairs.join(at, at);
        }
        for at in 1..=tail {
            pairs.join(old.len() - at, new.len() - at);
        }
        let middle = |lines: &[String], end: usize| -> HashMap<String, Option<usize>> {
            let mut once = HashMap::new();
            for (at, line) in lines.iter().enumerate().take(end - tail).skip(head) {
                once.entry(line.clone())
                    .and_modify(|seen| *seen = None)
                    .or_insert(Some(at));
            }
            once
        };
        let new_once = middle(&new_text, new.len());
        let mut anchors: Vec<(usize, usize)> = middle(&old_text, old.len())
            .into_iter()
            .filter_map(|(line, at)| Some((at?, (*new_once.get(&line)?)?)))
            .collect();
        anchors.sort_unstable();
        for (a, b) in rising(&anchors) {
            pairs.join(a, b);
        }
        pairs.spread(&same);
        pairs
    }

    fn join(&mut self, old: usize, new: usize) {
        if let (Some(a), Some(b)) = (self.after.get_mut(old), self.before.get_mut(new)) {
            *a = Some(new);
            *b = Some(old);
        }
    }

    /// Pairs the neighbours of pairs, downwards and upwards.
    fn spread(&mut self, same: &impl Fn(usize, usize) -> bool) {
        for old in 1..self.after.len() {
            let next = self
                .after
                .get(old - 1)
                .copied()
                .flatten()
                .map(|new| new + 1);
            self.join_free(old, next, same);
        }
        for old in (0..self.after.len().saturating_sub(1)).rev() {
            let next = self
                .after
                .get(old + 1)
                .copied()
                .flatten()
                .and_then(|new| new.checked_sub(1));
            self.join_free(old, next, same);
        }
    }

    fn join_free(&mut self, old: usize, new: Option<usize>, same: &impl Fn(usize, usize) -> bool) {
        let Some(new) = new else { return };
        let is_free = self.after.get(old) == Some(&None) && self.before.get(new) == Some(&None);
        if is_free && same(old, new) {
            self.join(old, new);
        }
    }

    /// The line of the old text that a line of the new one was.
    pub(super) fn before_of(&self, line: usize) -> Option<usize> {
        self.before.get(line).copied().flatten()
    }

    /// The line of the new text that a line of the old one became.
    pub(super) fn after_of(&self, line: usize) -> Option<usize> {
        self.after.get(line).copied().flatten()
    }

    /// Whether the indentation of a pair changed.
    pub(super) fn is_indented(&self, old: usize, new: usize) -> bool {
        self.old_indents.get(old) != self.new_indents.get(new)
    }

    /// How many lines changed: the more of those that went and those that came, and those that were indented.
    pub(super) fn changed(&self) -> usize {
        let went = self.after.iter().filter(|line| line.is_none()).count();
        let came = self.before.iter().filter(|line| line.is_none()).count();
        let pairs = self
            .after
            .iter()
            .enumerate()
            .filter_map(|(old, new)| Some((old, (*new)?)));
        went.max(came)
            + pairs
                .filter(|(old, new)| self.is_indented(*old, *new))
                .count()
    }

    /// Whether any line of these was changed.
    pub(super) fn is_touched(
        &self,
        old: RangeInclusive<usize>,
        new: RangeInclusive<usize>,
    ) -> bool {
        let lost = self
            .after
            .get(old)
            .unwrap_or_default()
            .iter()
            .any(Option::is_none);
        lost || self
            .before
            .get(new)
            .unwrap_or_default()
            .iter()
            .any(Option::is_none)
    }
}

/// The longest row of pairs in which both sides rise. The pairs are sorted by their first side.
fn rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length of a row, the pair that ends it with the smallest second side.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    let second = |at: usize| pairs.get(at).map(|pair| pair.1);
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| second(*end).is_some_and(|b| b < pair.1));
        previous.push(
            length
                .checked_sub(1)
                .and_then(|below| ends.get(below))
                .copied(),
        );
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut row = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(here) = at {
        row.extend(pairs.get(here).copied());
        at = previous.get(here).copied().flatten();
    }
    row.reverse();
    row
}
