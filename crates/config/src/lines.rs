//! Lines of a text: where they begin and end, how they are indented, and which line end the text uses.
//!
//! All positions are byte offsets. A position that is no place in the text gives an empty answer and never panics.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A place in a text, as people count: both from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// From 1.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// The part of the text in this range; nothing if the range is not in it.
pub(crate) fn cut(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

/// What follows a position.
pub(crate) fn rest(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

pub(crate) fn byte(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

pub(crate) fn place(text: &str, at: usize) -> Position {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = cut(text, 0..at);
    let before = before.strip_prefix(BOM).unwrap_or(before);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default();
    Position {
        line,
        column: column.chars().count() + 1,
    }
}

/// What some programs put before the text.
pub(crate) const BOM: char = '\u{feff}';

/// Where the text begins, behind a byte order mark.
pub(crate) fn text_start(text: &str) -> usize {
    if text.starts_with(BOM) {
        BOM.len_utf8()
    } else {
        0
    }
}

pub(crate) fn line_start(text: &str, at: usize) -> usize {
    match cut(text, 0..at).rfind('\n') {
        Some(newline) => newline + 1,
        None => text_start(text).min(at),
    }
}

/// Where the line's text ends, before its line end.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    let line = rest(text, at);
    let line = line.split('\n').next().unwrap_or_default();
    let length = line.strip_suffix('\r').unwrap_or(line).len();
    at + length
}

/// Where the next line begins, or the end of the text.
pub(crate) fn next_line(text: &str, at: usize) -> usize {
    match rest(text, at).find('\n') {
        Some(newline) => at + newline + 1,
        None => text.len(),
    }
}

/// The line end of the first line; `\n` if there is none.
pub(crate) fn line_break(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if at > 0 && byte(text, at - 1) == Some(b'\r') => "\r\n",
        Some(_) | None => "\n",
    }
}

/// The blanks at the start of the line that holds a position.
pub(crate) fn indent(text: &str, at: usize) -> &str {
    let start = line_start(text, at);
    let line = cut(text, start..line_end(text, start));
    let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
    cut(line, 0..blanks)
}

/// Whether only blanks stand before a position in its line.
pub(crate) fn begins_line(text: &str, at: usize) -> bool {
    is_blank(cut(text, line_start(text, at)..at))
}

pub(crate) fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// The position behind the blanks that stand here.
pub(crate) fn skip_blanks(text: &str, at: usize) -> usize {
    let here = rest(text, at);
    at + here.len() - here.trim_start_matches([' ', '\t']).len()
}
