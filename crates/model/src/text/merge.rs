//! Three-way merge by lines.
//!
//! Used to take one change out of a file and keep what everybody did since: the base is the file right
//! after that change, ours the file now, theirs the file before the change.
//!
//! - A line stays fixed only if it is certainly the same line in all three texts (`align`). Between
//!   fixed lines at most one side may differ from the base, or both must be equal; else it is a conflict.
//! - Hence changes that touch, with no fixed line between them, conflict, as they do in git.
//! - Where a change can be read in two ways (which of three equal lines went?) git picks one; here the
//!   lines in question are not fixed, and what touches them conflicts. So a clean result does not
//!   depend on the reading.
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
    /// or too different to compare are one conflict from the first line to the last.
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
    let texts = Texts {
        base: lines::split(base),
        ours: lines::split(ours),
        theirs: lines::split(theirs),
    };
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
        let mut from = Three {
            base: 0,
            ours: 0,
            theirs: 0,
        };
        for fixed in self.fixed_lines() {
            self.merge_between(from, fixed, &mut merged, &mut conflicts);
            merged.extend(self.base.get(fixed.base).copied().unwrap_or_default());
            from = Three {
                base: fixed.base + 1,
                ours: fixed.ours + 1,
                theirs: fixed.theirs + 1,
            };
        }
        let end = Three {
            base: self.base.len(),
            ours: self.ours.len(),
            theirs: self.theirs.len(),
        };
        self.merge_between(from, end, &mut merged, &mut conflicts);
        if conflicts.is_empty() {
            Merge::Clean(merged)
        } else {
            Merge::Conflicting(conflicts)
        }
    }

    /// Lists the places of the lines that both sides certainly kept.
    fn fixed_lines(&self) -> Vec<Three<usize>> {
        let mut numbering = Numbering::default();
        let base = numbering.of(&self.base);
        let ours = certain_pairs(&base, &numbering.of(&self.ours));
        let theirs = certain_pairs(&base, &numbering.of(&self.theirs));
        let both = ours.into_iter().zip(theirs).enumerate();
        both.filter_map(|(base, (ours, theirs))| {
            Some(Three {
                base,
                ours: ours?,
                theirs: theirs?,
            })
        })
        .collect()
    }

    /// Merges the lines between two fixed ones.
    fn merge_between(
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn merged(base: &str, ours: &str, theirs: &str) -> String {
        match merge3(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()) {
            Merge::Clean(content) => String::from_utf8(content).unwrap(),
            other @ (Merge::Conflicting(_) | Merge::NotText) => panic!("{other:?}"),
        }
    }

    fn conflicts(base: &str, ours: &str, theirs: &str) -> Vec<MergeConflict> {
        match merge3(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()) {
            Merge::Conflicting(conflicts) => conflicts,
            other @ (Merge::Clean(_) | Merge::NotText) => panic!("{other:?}"),
        }
    }

    #[test]
    fn changes_apart_are_both_kept() {
        assert_eq!(
            merged("1\n2\n3\n", "one\n2\n3\n", "1\n2\nthree\n"),
            "one\n2\nthree\n"
        );
    }

    #[test]
    fn an_agents_change_is_taken_out_from_under_later_work() {
        let before = "fn a() {}\n\nfn b() {}\n";
        let after = "fn a() {}\n\nfn agent() {}\n\nfn b() {}\n";
        let now = "use x;\nfn a() {}\n\nfn agent() {}\n\nfn b() { later() }\nfn c() {}\n";
        let without = "use x;\nfn a() {}\n\nfn b() { later() }\nfn c() {}\n";
        // The blank line before or after `agent` may be the new one: `b` touches the change.
        assert_eq!(conflicts(after, now, before).len(), 1);
        let now = now.replace("fn b() { later() }", "fn b() {}");
        assert_eq!(
            merged(after, &now, before),
            without.replace("{ later() }", "{}")
        );
    }

    #[test]
    fn changes_that_touch_conflict() {
        let found = conflicts("1\n2\n3\n4\n", "1\ntwo\n3\n4\n", "1\n2\nthree\n4\n");
        assert_eq!(
            found,
            [MergeConflict {
                base_lines: 1..3,
                ours: b"two\n3\n".to_vec(),
                theirs: b"2\nthree\n".to_vec(),
                base: b"2\n3\n".to_vec(),
            }]
        );
        let inserted = conflicts("1\n2\n", "1\na\n2\n", "1\nb\n2\n");
        assert_eq!(inserted[0].base_lines, 1..1);
    }

    #[test]
    fn the_same_change_on_both_sides_is_made_once() {
        assert_eq!(
            merged("1\n2\n3\n", "1\nx\n3\n4\n", "0\n1\nx\n3\n"),
            "0\n1\nx\n3\n4\n"
        );
        assert_eq!(
            merged("1\n2\n3\n4\n", "1\n4\nx\n", "y\n1\n4\n"),
            "y\n1\n4\nx\n"
        );
    }

    #[test]
    fn a_change_that_could_be_read_in_two_ways_conflicts_with_one_it_may_touch() {
        // One of three equal lines went; the other side changed the line after them.
        assert_eq!(
            conflicts("a\na\na\nz\n", "a\na\nz\n", "a\na\na\ny\n").len(),
            1
        );
        // With a certain line in between nobody can mistake it.
        assert_eq!(
            merged("a\na\na\nm\nz\n", "a\na\nm\nz\n", "a\na\na\nm\ny\n"),
            "a\na\nm\ny\n"
        );
    }

    #[test]
    fn final_newlines_and_carriage_returns_stay_exact() {
        assert_eq!(merged("1\n2\n3", "0\n1\n2\n3", "1\n2\n3\n"), "0\n1\n2\n3\n");
        assert_eq!(merged("1\n2\n3\n", "0\n1\n2\n3\n", "1\n2\n3"), "0\n1\n2\n3");
        assert_eq!(
            merged("1\r\n2\r\n3\r\n", "1\r\n2\r\n3\r\n4\r\n", "x\r\n2\r\n3\r\n"),
            "x\r\n2\r\n3\r\n4\r\n"
        );
        assert_eq!(conflicts("1\n2", "1\n2\n3\n", "1\n2\n").len(), 1);
        assert_eq!(conflicts("1\n2\n", "1\n2\r\n", "1\n2").len(), 1);
    }

    #[test]
    fn binaries_merge_only_where_nothing_is_to_decide() {
        assert_eq!(merge3(b"\0a", b"\0b", b"\0c"), Merge::NotText);
        assert_eq!(
            merge3(b"\0a", b"\0b", b"\0a"),
            Merge::Clean(b"\0b".to_vec())
        );
        assert_eq!(merge3(b"a\n", b"\0", b"a\nb\n"), Merge::NotText);
    }

    #[test]
    fn texts_too_large_to_compare_are_one_conflict() {
        let base = "x\n".repeat(100_000);
        let (ours, theirs) = (format!("a\n{base}"), format!("{base}b\n"));
        let found = conflicts(&base, &ours, &theirs);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].base_lines, 0..100_000);
    }

    fn text() -> impl Strategy<Value = String> {
        (proptest::collection::vec("[abcd]", 0..14), any::<bool>()).prop_map(|(lines, ended)| {
            let end = if ended && !lines.is_empty() { "\n" } else { "" };
            lines.join("\n") + end
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_side_that_did_nothing_changes_nothing(
            base in proptest::collection::vec(any::<u8>(), 0..40),
            side in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            prop_assert_eq!(merge3(&base, &side, &base), Merge::Clean(side.clone()));
            prop_assert_eq!(merge3(&base, &base, &side), Merge::Clean(side.clone()));
            prop_assert_eq!(merge3(&base, &side, &side), Merge::Clean(side));
        }

        #[test]
        fn the_order_of_the_sides_does_not_matter(base in text(), ours in text(), theirs in text()) {
            let one = merge3(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
            let other = merge3(base.as_bytes(), theirs.as_bytes(), ours.as_bytes());
            match (one, other) {
                (Merge::Conflicting(one), Merge::Conflicting(other)) => {
                    let swapped: Vec<_> = other
                        .into_iter()
                        .map(|MergeConflict { base_lines, ours, theirs, base }| {
                            MergeConflict { base_lines, ours: theirs, theirs: ours, base }
                        })
                        .collect();
                    prop_assert_eq!(one, swapped);
                }
                (one, other) => prop_assert_eq!(one, other),
            }
        }

        #[test]
        fn conflicts_name_what_the_base_has_there(base in text(), ours in text(), theirs in text()) {
            let lines: Vec<_> = base.split_inclusive('\n').collect();
            if let Merge::Conflicting(found) = merge3(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()) {
                let mut from = 0;
                for conflict in found {
                    prop_assert!(conflict.base_lines.start >= from);
                    from = conflict.base_lines.end;
                    prop_assert_eq!(lines[conflict.base_lines].concat().into_bytes(), conflict.base);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn edits_apart_are_all_there(
            kinds in proptest::collection::vec(0_u8..7, 1..60),
            ended in any::<bool>(),
        ) {
            // Unique lines; each side changes, removes or extends some, never next to each other.
            let mut texts = [const { String::new() }; 4];
            for (number, kind) in kinds.iter().enumerate() {
                let plain = format!("fixed {number}\nline {number}\n");
                let edited = match kind % 3 {
                    0 => format!("fixed {number}\nchanged {number}\n"),
                    1 => format!("fixed {number}\n"),
                    _ => format!("fixed {number}\nline {number}\nadded {number}\nadded\n"),
                };
                let (ours, theirs) = (*kind < 3, (3..6).contains(kind));
                for (text, is_edited) in texts.iter_mut().zip([false, ours, theirs, ours || theirs]) {
                    text.push_str(if is_edited { &edited } else { &plain });
                }
            }
            let [base, ours, theirs, all] = texts.map(|text| text + if ended { "end\n" } else { "end" });
            prop_assert_eq!(merged(&base, &ours, &theirs), all);
        }
    }
}
