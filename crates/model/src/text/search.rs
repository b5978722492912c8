//! All places where one sequence occurs in another, in linear time (Knuth, Morris and Pratt).
//!
//! Used for bytes (`edit`) and for lines (`patch`); neither may become slow on repetitive input.

use std::iter::Enumerate;
use std::slice::Iter;

/// Walks over the places where `pattern` occurs in `text`, overlapping ones included, from the left.
/// An empty pattern occurs nowhere.
pub(super) fn occurrences<'a, T: Eq>(text: &'a [T], pattern: &'a [T]) -> Occurrences<'a, T> {
    Occurrences {
        text: text.iter().enumerate(),
        pattern,
        borders: borders(pattern),
        matched: 0,
    }
}

/// The iterator of [`occurrences`].
#[derive(Debug)]
pub(super) struct Occurrences<'a, T> {
    text: Enumerate<Iter<'a, T>>,
    pattern: &'a [T],
    borders: Vec<usize>,
    matched: usize,
}

impl<T: Eq> Iterator for Occurrences<'_, T> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        for (index, item) in self.text.by_ref() {
            self.matched = extend(self.pattern, &self.borders, self.matched, item);
            if self.matched > 0 && self.matched == self.pattern.len() {
                self.matched = border(&self.borders, self.matched);
                return Some(index + 1 - self.pattern.len());
            }
        }
        None
    }
}

/// For each prefix of the pattern, the length of its longest proper prefix that is also its suffix.
fn borders<T: Eq>(pattern: &[T]) -> Vec<usize> {
    let mut borders = Vec::with_capacity(pattern.len());
    let mut matched = 0;
    for (index, item) in pattern.iter().enumerate() {
        if index > 0 {
            matched = extend(pattern, &borders, matched, item);
        }
        borders.push(matched);
    }
    borders
}

/// Says how much of the pattern is matched after one more item.
fn extend<T: Eq>(pattern: &[T], borders: &[usize], mut matched: usize, item: &T) -> usize {
    loop {
        if pattern.get(matched) == Some(item) {
            return matched + 1;
        }
        if matched == 0 {
            return 0;
        }
        matched = border(borders, matched);
    }
}

fn border(borders: &[usize], matched: usize) -> usize {
    borders.get(matched.wrapping_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn overlapping_places_are_all_found() {
        assert_eq!(occurrences(b"aaaa", b"aa").collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(occurrences(b"abc", b"").count(), 0);
        assert_eq!(occurrences(b"", b"a").count(), 0);
    }

    proptest! {
        #[test]
        fn it_finds_what_a_plain_search_finds(text in "[ab]{0,40}", pattern in "[ab]{1,6}") {
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            let plain: Vec<_> = (0..text.len()).filter(|at| text[*at..].starts_with(pattern)).collect();
            prop_assert_eq!(occurrences(text, pattern).collect::<Vec<_>>(), plain);
        }
    }
}
