//! Lines of bytes, numbered so that equal lines have equal numbers.
//!
//! A line holds its own `\n`, so joining the lines of a text gives back the text, byte for byte.

use std::collections::HashMap;

/// The most bytes that one comparison looks at, all its texts together.
const BYTES_MAX: usize = 20_000_000;

/// The most lines that one comparison looks at, all its texts together.
const LINES_MAX: usize = 200_000;

/// Splits a text after each `\n`.
pub(super) fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Tells whether the texts of one comparison are more than it may look at.
pub(super) fn are_too_large(texts: &[&[u8]]) -> bool {
    let bytes = texts.iter().map(|text| text.len()).sum::<usize>();
    bytes > BYTES_MAX || texts.iter().map(|text| count(text)).sum::<usize>() > LINES_MAX
}

/// Counts the lines of a text, a last line without `\n` included.
pub(super) fn count(text: &[u8]) -> usize {
    text.split_inclusive(|byte| *byte == b'\n').count()
}

/// Gives equal lines the same number across all texts it has seen.
#[derive(Debug, Default)]
pub(super) struct Numbering<'a> {
    numbers: HashMap<&'a [u8], usize>,
}

impl<'a> Numbering<'a> {
    /// Numbers the lines of one more text.
    pub(super) fn of(&mut self, lines: &[&'a [u8]]) -> Vec<usize> {
        let mut numbered = Vec::with_capacity(lines.len());
        for line in lines {
            let next = self.numbers.len();
            numbered.push(*self.numbers.entry(line).or_insert(next));
        }
        numbered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_final_newline_makes_another_line() {
        let mut numbering = Numbering::default();
        assert_eq!(numbering.of(&split(b"a\nb\na")), [0, 1, 2]);
        assert_eq!(numbering.of(&split(b"b\na\na\r\n")), [1, 0, 3]);
        assert_eq!(split(b""), Vec::<&[u8]>::new());
        assert_eq!(count(b"a\n\nb"), 3);
    }

    #[test]
    fn limits_count_all_texts_together() {
        let many = vec![b'\n'; LINES_MAX / 2 + 1];
        assert!(!are_too_large(&[&many]));
        assert!(are_too_large(&[&many, &many]));
        assert!(are_too_large(&[&vec![b'a'; BYTES_MAX], b"b"]));
    }
}
