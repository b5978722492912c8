//! Which lines of two texts are certainly the same line.
//!
//! A merge that trusts one way to pair the lines of two texts may put a change in the wrong place. So
//! a pair counts here only if several readings agree on it:
//!
//! - every shortest edit script (`grid`);
//! - every shortest edit script without the lines that say little, which git leaves out as well;
//! - the readings that prefer rare lines, which people often find more natural.
//!
//! Pairs come in order and never cross. Fewer pairs only mean more conflicts.

use std::collections::HashMap;

use similar::{Algorithm, DiffTag, capture_diff_slices};

use super::grid;

/// The most edits between two texts for which shortest scripts are considered, at the price of 64 MiB
/// while it lasts. Lines that only one of the texts has are not counted.
const EDITS_MAX: usize = 4096;

/// The readings that prefer rare lines.
const BY_RARE_LINES: [Algorithm; 2] = [Algorithm::Histogram, Algorithm::Patience];

/// How many lines around a frequent one decide whether it says anything, in each direction.
const WINDOW_LINES: usize = 100;

/// A line that the other text has this often is frequent, however long that text is.
const FREQUENT_MAX: usize = 1024;

/// Frequent lines say little if fewer than one in this many lines around has a counterpart.
const TELLING_SHARE: usize = 4;

/// For each old line its new line, or nothing.
type Pairs = Vec<Option<usize>>;

/// A line with its place in the whole text.
#[derive(Debug, Clone, Copy)]
struct Placed {
    place: usize,
    number: usize,
}

/// Gives for each old line the new line it certainly is; no line is certain beyond [`EDITS_MAX`].
pub(super) fn certain_pairs(old: &[usize], new: &[usize]) -> Pairs {
    agreed_pairs(old, new, EDITS_MAX).unwrap_or_else(|| vec![None; old.len()])
}

fn agreed_pairs(old: &[usize], new: &[usize], edits_max: usize) -> Option<Pairs> {
    let mut pairs = vec![None; old.len()];
    of_all_shortest(&shared(old, new), &shared(new, old), edits_max, &mut pairs)?;
    let mut telling_pairs = vec![None; old.len()];
    of_all_shortest(
        &telling(old, new),
        &telling(new, old),
        edits_max,
        &mut telling_pairs,
    )?;
    agree(&mut pairs, &telling_pairs);
    for algorithm in BY_RARE_LINES {
        agree(&mut pairs, &of_one(algorithm, old, new));
    }
    Some(pairs)
}

/// Drops the pairs that another reading does not have.
fn agree(pairs: &mut Pairs, others: &[Option<usize>]) {
    for (pair, other) in pairs.iter_mut().zip(others) {
        *pair = pair.filter(|_| pair == other);
    }
}

/// Pairs a selection of the lines; gives up beyond `edits_max`.
fn of_all_shortest(
    old: &[Placed],
    new: &[Placed],
    edits_max: usize,
    pairs: &mut [Option<usize>],
) -> Option<()> {
    let old_numbers: Vec<_> = old.iter().map(|line| line.number).collect();
    let new_numbers: Vec<_> = new.iter().map(|line| line.number).collect();
    let selected = grid::pairs_of_all(&old_numbers, &new_numbers, edits_max)?;
    for (old, pair) in old.iter().zip(selected) {
        let new = pair.and_then(|index| new.get(index));
        *pairs.get_mut(old.place)? = new.map(|line| line.place);
    }
    Some(())
}

fn of_one(algorithm: Algorithm, old: &[usize], new: &[usize]) -> Pairs {
    let mut pairs = vec![None; old.len()];
    for op in capture_diff_slices(algorithm, old, new) {
        if op.tag() == DiffTag::Equal {
            let slots = pairs.get_mut(op.old_range()).unwrap_or_default();
            slots
                .iter_mut()
                .zip(op.new_range())
                .for_each(|(slot, new)| *slot = Some(new));
        }
    }
    pairs
}

/// Selects the lines that the other text has as well. No script can keep the rest, so leaving them
/// out changes no pair and saves edits.
fn shared(text: &[usize], other: &[usize]) -> Vec<Placed> {
    let counts = counts(other);
    placed(text)
        .filter(|line| counts.contains_key(&line.number))
        .collect()
}

fn placed(text: &[usize]) -> impl Iterator<Item = Placed> {
    text.iter().enumerate().map(|(place, number)| Placed {
        place,
        number: *number,
    })
}

fn counts(text: &[usize]) -> HashMap<usize, usize> {
    let mut counts = HashMap::new();
    for number in text {
        *counts.entry(*number).or_insert(0) += 1;
    }
    counts
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frequency {
    Never,
    Some,
    Often,
}

/// Selects the lines that say something: not those that the other text has often when nearly all
/// lines around have no counterpart, such as the blank lines of a block that was rewritten. What both
/// texts begin and end with is always selected.
fn telling(text: &[usize], other: &[usize]) -> Vec<Placed> {
    let same = |(one, other): &(&usize, &usize)| one == other;
    let prefix = text.iter().zip(other).take_while(same).count();
    let rest = text.len().min(other.len()) - prefix;
    let suffix = text
        .iter()
        .rev()
        .zip(other.iter().rev())
        .take(rest)
        .take_while(same)
        .count();
    let middle_len = text.len() - prefix - suffix;
    let counts = counts(other);
    let often = frequent_from(text.len());
    let frequencies: Vec<_> = text
        .iter()
        .skip(prefix)
        .take(middle_len)
        .map(|number| match counts.get(number) {
            None => Frequency::Never,
            Some(count) if *count < often => Frequency::Some,
            Some(_) => Frequency::Often,
        })
        .collect();
    let is_selected = |line: &Placed| match line.place.checked_sub(prefix) {
        Some(index) if index < middle_len => is_telling(&frequencies, index),
        Some(_) | None => true,
    };
    placed(text).filter(is_selected).collect()
}

fn is_telling(frequencies: &[Frequency], index: usize) -> bool {
    let (before, from) = frequencies.split_at_checked(index).unwrap_or_default();
    let Some((frequency, after)) = from.split_first() else {
        return false;
    };
    match frequency {
        Frequency::Never => false,
        Frequency::Some => true,
        Frequency::Often => {
            let (never_before, often_before) = around(before.iter().rev());
            let (never_after, often_after) = around(after.iter());
            let often = often_before + often_after + 2;
            let all = often + never_before + never_after;
            never_before == 0 || never_after == 0 || often * TELLING_SHARE >= all
        }
    }
}

/// Counts the lines next to a frequent one that have no counterpart and those that are frequent too,
/// up to the first that is neither.
fn around<'a>(frequencies: impl Iterator<Item = &'a Frequency>) -> (usize, usize) {
    let (mut never, mut often) = (0, 0);
    for frequency in frequencies.take(WINDOW_LINES) {
        match frequency {
            Frequency::Never => never += 1,
            Frequency::Often => often += 1,
            Frequency::Some => break,
        }
    }
    (never, often)
}

/// Says how often the other text must have a line for it to be frequent: about the square root of
/// the length.
fn frequent_from(len: usize) -> usize {
    let bits = usize::BITS - len.leading_zeros();
    1_usize
        .checked_shl(bits.div_ceil(2))
        .map_or(FREQUENT_MAX, |often| often.min(FREQUENT_MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_that_only_one_text_has_are_in_nobodys_way() {
        assert_eq!(
            certain_pairs(&[1, 7, 2], &[8, 1, 2, 9]),
            [Some(1), None, Some(2)]
        );
    }

    #[test]
    fn a_frequent_line_amid_rewritten_ones_says_nothing() {
        let old: Vec<_> = (0..60)
            .map(|line| if line % 5 == 2 { 0 } else { 100 + line })
            .collect();
        let new: Vec<_> = (0..60)
            .map(|line| if line % 5 == 2 { 0 } else { 200 + line })
            .collect();
        assert!(
            grid::pairs_of_all(&old, &new, 200)
                .unwrap()
                .contains(&Some(2))
        );
        assert!(certain_pairs(&old, &new).iter().all(Option::is_none));
    }

    #[test]
    fn nothing_is_certain_where_the_scripts_are_too_many_to_consider() {
        assert!(agreed_pairs(&[1, 2, 3], &[2, 3, 1], 2).is_some());
        assert_eq!(agreed_pairs(&[1, 2, 3], &[3, 2, 1], 2), None);
    }

    #[test]
    fn a_line_is_frequent_from_about_the_square_root_on() {
        assert_eq!(
            [0, 1, 3, 4, 16, 100].map(frequent_from),
            [1, 2, 2, 4, 8, 16]
        );
        assert_eq!(frequent_from(usize::MAX), FREQUENT_MAX);
    }

    proptest! {
        #[test]
        fn pairs_are_equal_lines_in_order(
            old in proptest::collection::vec(0_usize..6, 0..40),
            new in proptest::collection::vec(0_usize..6, 0..40),
        ) {
            let pairs = certain_pairs(&old, &new);
            prop_assert_eq!(pairs.len(), old.len());
            let mut from = 0;
            for (i, j) in pairs.into_iter().enumerate().filter_map(|(i, j)| Some((i, j?))) {
                prop_assert_eq!(old[i], new[j]);
                prop_assert!(j >= from);
                from = j + 1;
            }
        }

        #[test]
        fn equal_texts_are_paired_whole(text in proptest::collection::vec(0_usize..4, 0..40)) {
            let whole: Vec<_> = (0..text.len()).map(Some).collect();
            prop_assert_eq!(certain_pairs(&text, &text), whole);
        }
    }
}
