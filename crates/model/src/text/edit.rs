//! Search and replace in a content, strict about which place is meant.
//!
//! - Without saying so nobody changes more than one place: [`Occurrence::Unique`] refuses when the
//!   search text is found twice, even overlapping itself.
//! - Matching is by exact bytes. A search that fails only by white space is refused too, but the error
//!   says where it nearly matched.

use serde::{Deserialize, Serialize};

use super::search::occurrences;

/// The largest content a replacement may produce, in bytes.
const RESULT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How many line numbers an ambiguous search reports.
const LINES_REPORTED_MAX: usize = 5;

/// Which of the places that match is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Occurrence {
    /// The only one; several are an error.
    Unique,
    /// All of them, from the left, without overlap.
    All,
    /// One of those that [`Occurrence::All`] would replace, counted from 1.
    Nth(usize),
}

/// Says why nothing was replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// There is nothing to search for.
    #[error("the search text is empty")]
    EmptySearch,
    /// The search text is nowhere in the content.
    #[error("the search text is not in the content{}", near_miss.map(hint).unwrap_or_default())]
    NotFound {
        /// A place that matches but for white space.
        near_miss: Option<NearMiss>,
    },
    /// The search text does not say which place is meant.
    #[error(
        "the search text is in the content {count} times, first in line {}",
        shown(lines)
    )]
    Ambiguous {
        /// How many places match, overlapping ones included.
        count: usize,
        /// The lines of the first few, counted from 1.
        lines: Vec<usize>,
    },
    /// There are fewer places than the wanted one, or the place 0 was wanted.
    #[error("there is no occurrence {wanted}: the search text is in the content {count} times")]
    NoSuchOccurrence {
        /// The place that was asked for, counted from 1.
        wanted: usize,
        /// How many there are, without overlap.
        count: usize,
    },
    /// The result would be larger than any file this is meant for.
    #[error("the result would be larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
    },
}

/// A place that would match if white space did not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NearMiss {
    /// The line where the place begins, counted from 1.
    pub line: usize,
    /// What has to be ignored for it to match.
    pub difference: Difference,
}

/// The white space by which a search failed, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// `\r\n` against `\n`.
    LineEnds,
    /// Blanks at the end of lines, or line breaks at the end of the search text.
    TrailingWhitespace,
    /// Blanks at the beginning of lines.
    Indentation,
}

/// Replaces `search` by `replacement`.
pub fn replace(
    content: &[u8],
    search: &[u8],
    replacement: &[u8],
    occurrence: Occurrence,
) -> Result<Vec<u8>, EditError> {
    if search.is_empty() {
        return Err(EditError::EmptySearch);
    }
    let count = places(content, search).count();
    if count == 0 {
        return Err(EditError::NotFound {
            near_miss: near_miss(content, search),
        });
    }
    let (skipped, replacements) = match occurrence {
        Occurrence::Unique => {
            refuse_ambiguous(content, search)?;
            (0, 1)
        }
        Occurrence::All => (0, count),
        Occurrence::Nth(wanted) if (1..=count).contains(&wanted) => (wanted - 1, 1),
        Occurrence::Nth(wanted) => return Err(EditError::NoSuchOccurrence { wanted, count }),
    };
    let added = replacement.len().checked_mul(replacements);
    let size = added.and_then(|added| added.checked_add(content.len()));
    if size.is_none_or(|size| size - replacements * search.len() > RESULT_BYTES_MAX) {
        return Err(EditError::TooLarge {
            limit_bytes: RESULT_BYTES_MAX,
        });
    }
    let mut edited = Vec::new();
    let mut from = 0;
    for place in places(content, search).skip(skipped).take(replacements) {
        edited.extend_from_slice(content.get(from..place).unwrap_or_default());
        edited.extend_from_slice(replacement);
        from = place + search.len();
    }
    edited.extend_from_slice(content.get(from..).unwrap_or_default());
    Ok(edited)
}

/// Walks over the places that match, from the left, without overlap.
fn places<'a>(content: &'a [u8], search: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let mut free_from = 0;
    occurrences(content, search).filter(move |place| {
        let is_free = *place >= free_from;
        if is_free {
            free_from = place + search.len();
        }
        is_free
    })
}

fn refuse_ambiguous(content: &[u8], search: &[u8]) -> Result<(), EditError> {
    let count = occurrences(content, search).count();
    if count == 1 {
        return Ok(());
    }
    let first = occurrences(content, search).take(LINES_REPORTED_MAX);
    Err(EditError::Ambiguous {
        count,
        lines: first.map(|place| line_at(content, place)).collect(),
    })
}

/// Gives the line of a place, counted from 1.
fn line_at(content: &[u8], place: usize) -> usize {
    1 + content
        .iter()
        .take(place)
        .filter(|byte| **byte == b'\n')
        .count()
}

fn near_miss(content: &[u8], search: &[u8]) -> Option<NearMiss> {
    [
        Difference::LineEnds,
        Difference::TrailingWhitespace,
        Difference::Indentation,
    ]
    .into_iter()
    .find_map(|difference| {
        let content = without(difference, content);
        let search = without(difference, search);
        let search = match difference {
            Difference::LineEnds => &search,
            Difference::TrailingWhitespace => search.trim_ascii_end(),
            Difference::Indentation => search.trim_ascii(),
        };
        let place = occurrences(&content, search).next()?;
        Some(NearMiss {
            line: line_at(&content, place),
            difference,
        })
    })
}

/// Leaves out the white space that a difference ignores. The number of lines stays the same.
fn without(difference: Difference, text: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        kept.extend_from_slice(match difference {
            Difference::LineEnds => body.strip_suffix(b"\r").unwrap_or(body),
            Difference::TrailingWhitespace => body.trim_ascii_end(),
            Difference::Indentation => body.trim_ascii(),
        });
        if line.len() > body.len() {
            kept.push(b'\n');
        }
    }
    kept
}

fn hint(near_miss: NearMiss) -> String {
    let ignored = match near_miss.difference {
        Difference::LineEnds => "line ends",
        Difference::TrailingWhitespace => "trailing white space",
        Difference::Indentation => "indentation",
    };
    format!(
        "; line {} differs from it only in {ignored}",
        near_miss.line
    )
}

fn shown(lines: &[usize]) -> String {
    lines
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edit(content: &str, search: &str, occurrence: Occurrence) -> Result<String, EditError> {
        let edited = replace(content.as_bytes(), search.as_bytes(), b"NEW", occurrence)?;
        Ok(String::from_utf8(edited).unwrap())
    }

    #[test]
    fn a_unique_place_is_replaced() {
        assert_eq!(
            edit("one two", "two", Occurrence::Unique).unwrap(),
            "one NEW"
        );
        let same = replace(b"a", b"a", b"a", Occurrence::Unique).unwrap();
        assert_eq!(same, b"a");
    }

    #[test]
    fn two_places_are_refused_with_their_lines() {
        let error = edit("x\ny\nx\n", "x", Occurrence::Unique).unwrap_err();
        assert_eq!(
            error,
            EditError::Ambiguous {
                count: 2,
                lines: vec![1, 3]
            }
        );
        insta::assert_snapshot!(error, @"the search text is in the content 2 times, first in line 1, 3");
        let many = edit(&"x\n".repeat(9), "x", Occurrence::Unique).unwrap_err();
        assert_eq!(
            many,
            EditError::Ambiguous {
                count: 9,
                lines: vec![1, 2, 3, 4, 5]
            }
        );
    }

    #[test]
    fn a_search_that_overlaps_itself_is_not_unique() {
        let error = edit("aaa", "aa", Occurrence::Unique).unwrap_err();
        assert_eq!(
            error,
            EditError::Ambiguous {
                count: 2,
                lines: vec![1, 1]
            }
        );
        assert_eq!(edit("aaa", "aa", Occurrence::All).unwrap(), "NEWa");
    }

    #[test]
    fn all_and_nth_count_from_the_left() {
        let edited = replace(b"x x x", b"x", b"yy", Occurrence::All).unwrap();
        assert_eq!(edited, b"yy yy yy");
        assert_eq!(edit("x x x", "x", Occurrence::Nth(2)).unwrap(), "x NEW x");
        for wanted in [0, 4, usize::MAX] {
            let error = edit("x x x", "x", Occurrence::Nth(wanted)).unwrap_err();
            assert_eq!(error, EditError::NoSuchOccurrence { wanted, count: 3 });
        }
    }

    #[test]
    fn nothing_to_search_for_is_refused() {
        assert_eq!(
            edit("x", "", Occurrence::All).unwrap_err(),
            EditError::EmptySearch
        );
        let missing = EditError::NotFound { near_miss: None };
        assert_eq!(edit("x", "y", Occurrence::All).unwrap_err(), missing);
        assert_eq!(edit("x", " \n ", Occurrence::All).unwrap_err(), missing);
    }

    #[test]
    fn a_near_miss_says_what_differs_and_where() {
        let near = |content: &str, search: &str| match edit(content, search, Occurrence::Unique) {
            Err(EditError::NotFound {
                near_miss: Some(miss),
            }) => (miss.line, miss.difference),
            other => panic!("{other:?}"),
        };
        assert_eq!(near("0\r\na\r\nb\r\n", "a\nb\n"), (2, Difference::LineEnds));
        assert_eq!(
            near("0\na  \nb\n", "a\nb"),
            (2, Difference::TrailingWhitespace)
        );
        assert_eq!(
            near("0\na\nb", "a\nb\n"),
            (2, Difference::TrailingWhitespace)
        );
        assert_eq!(
            near("0\n\tif a {\n\t\tb\n", "    if a {\n        b\n"),
            (2, Difference::Indentation)
        );
        let error = edit("a\r\nb", "a\nb", Occurrence::Unique).unwrap_err();
        insta::assert_snapshot!(
            error,
            @"the search text is not in the content; line 1 differs from it only in line ends"
        );
    }

    #[test]
    fn a_result_beyond_the_limit_is_refused_before_it_is_built() {
        let (content, replacement) = (vec![b'a'; 1 << 16], vec![b'b'; 1 << 16]);
        let error = replace(&content, b"a", &replacement, Occurrence::All).unwrap_err();
        assert_eq!(
            error,
            EditError::TooLarge {
                limit_bytes: RESULT_BYTES_MAX
            }
        );
    }

    proptest! {
        #[test]
        fn all_replaces_what_str_replace_does(content in "[ab\n]{0,30}", search in "[ab]{1,3}", with in "[abc]{0,3}") {
            match replace(content.as_bytes(), search.as_bytes(), with.as_bytes(), Occurrence::All) {
                Ok(edited) => prop_assert_eq!(edited, content.replace(&search, &with).into_bytes()),
                Err(error) => prop_assert!(!content.contains(&search), "{}", error),
            }
        }
    }
}
