//! Three-way merge by lines.
//!
//! Used to take one change out of a file and keep what everybody did since: the base is the file right
//! after that change, ours the file now, theirs the file before the change.
//!
//! - A line stays fixed only if it is certainly the same line in all three texts (`align`). Between
//!   fixed lines at most one side may differ from the base, or both must be equal; else it is a conflict.
//! - Hence changes that touch, with no fixed line between them, conflict, as they do in git.
//! - Where git finds two ways to read a change and picks one, this merge reports a conflict instead: a
//!   result is clean only if it does not depend on the reading.
//!
//! Not here: conflict markers, and deciding what a conflict means for an undo.

use std::ops::Range;

use super::align::certain_pairs;
use super::diff::is_text;
use super::lines::{self, Numbering};

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// The merged content, with the changes of both sides.
    Clean(Vec<u8>),
    /// The places where the sides contradict each other, in order; nothing was merged. Texts too large
    /// to compare are one conflict from the first line to the last.
    Conflicting(Vec<MergeConflict>),
    /// One of the contents is binary, and both sides changed.
    NotText,
}

/// One place where both sides changed the same or touching lines differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflict {
    /// The lines of the base, counted from 0; empty where both sides inserted.
    pub base_lines: Range<usize>,
    /// What our side has there.
    pub ours: Vec<u8>,
    /// What their side has there.
    pub theirs: Vec<u8>,
    /// What the base has there.
    pub base: Vec<u8>,
}

/// Merges the changes from `base` to `ours` with those from `base` to `theirs`.
///
/// When a side did not change, or both are equal, the result is exact for any bytes. Otherwise it is
/// line by line; the order of the sides does not matter for a clean result.
pub fn merge3(base: &[u8], ours: &[u8], theirs: &[u8]) -> Merge {
    if theirs == base || ours == theirs {
        return Merge::Clean(ours.to_vec());
    }
    if ours == base {
        return Merge::Clean(theirs.to_vec());
    }
    if ![base, ours, theirs].into_iter().all(is_text) {
        return Merge::NotText;
    }
    if lines::are_too_large(&[base, ours, theirs]) {
        return Merge::Conflicting(vec![MergeConflict {
            base_lines: 0..lines::count(base),
            ours: ours.to_vec(),
            theirs: theirs.to_vec(),
            base: base.to_vec(),
        }]);
    }
    let texts = Texts { base: lines::split(base), ours: lines::split(ours), theirs: lines::split(theirs) };
    texts.merge()
}

/// One value for each of the three texts.
#[derive(Debug, Clone, Copy)]
struct Three<T> {
    base: T,
    ours: T,
    theirs: T,
}

#[derive(Debug)]
struct Texts<'a> {
    base: Vec<&'a [u8]>,
    ours: Vec<&'a [u8]>,
    theirs: Vec<&'a [u8]>,
}

impl Texts<'_> {
    fn merge(&self) -> Merge {
        let mut merged = Vec::new();
        let mut conflicts = Vec::new();
        let mut from = Three { base: 0, ours: 0, theirs: 0 };
        for fixed in self.fixed_lines() {
            self.settle(from, fixed, &mut merged, &mut conflicts);
            merged.extend(self.base.get(fixed.base).copied().unwrap_or_default());
            from = Three { base: fixed.base + 1, ours: fixed.ours + 1, theirs: fixed.theirs + 1 };
        }
        let end = Three { base: self.base.len(), ours: self.ours.len(), theirs: self.theirs.len() };
        self.settle(from, end, &mut merged, &mut conflicts);
        if conflicts.is_empty() { Merge::Clean(merged) } else { Merge::Conflicting(conflicts) }
    }

    /// Lists the places of the lines that both sides certainly kept.
    fn fixed_lines(&self) -> Vec<Three<usize>> {
        let mut numbering = Numbering::default();
        let base = numbering.of(&self.base);
        let ours = certain_pairs(&base, &numbering.of(&self.ours));
        let theirs = certain_pairs(&base, &numbering.of(&self.theirs));
        let both = ours.into_iter().zip(theirs).enumerate();
        both.filter_map(|(base, (ours, theirs))| Some(Three { base, ours: ours?, theirs: theirs? }))
            .collect()
    }

    /// Merges the lines between two fixed ones.
    fn settle(
        &self,
        from: Three<usize>,
        to: Three<usize>,
        merged: &mut Vec<u8>,
        conflicts: &mut Vec<MergeConflict>,
    ) {
        let base_lines = from.base..to.base;
        let base = self.base.get(base_lines.clone()).unwrap_or_default();
        let ours = self.ours.get(from.ours..to.ours).unwrap_or_default();
        let theirs = self.theirs.get(from.theirs..to.theirs).unwrap_or_default();
        if theirs == base || ours == theirs {
            merged.extend(ours.iter().copied().flatten());
        } else if ours == base {
            merged.extend(theirs.iter().copied().flatten());
        } else {
            conflicts.push(MergeConflict {
                base_lines,
                ours: ours.concat(),
                theirs: theirs.concat(),
                base: base.concat(),
            });
        }
    }
}
