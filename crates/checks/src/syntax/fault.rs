//! What a reader stumbles over, before it is known on which line that is.

use crate::{Finding, Place};

/// The longest part of a text that is quoted, in characters.
const QUOTE_CHARS_MAX: usize = 40;

/// Something wrong at a byte of the text.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    at: usize,
    found: String,
    remedy: Option<String>,
}

impl Fault {
    /// Says what was found at a byte.
    pub(super) fn new(at: usize, found: impl Into<String>) -> Self {
        Self {
            at,
            found: found.into(),
            remedy: None,
        }
    }

    /// Adds what would mend it.
    pub(super) fn mended_by(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Something was opened and the text ended before it was closed.
    pub(super) fn unclosed(text: &str, opened: usize, what: &str, closer: &str) -> Self {
        let place = Place::of(text, opened);
        Self::new(
            text.len(),
            format!("the text ends, but {what} of {place} is not closed"),
        )
        .mended_by(format!("close it with `{closer}`"))
    }

    /// Nesting is over the limit.
    pub(super) fn too_deep(at: usize) -> Self {
        let limit = super::DEPTH_MAX;
        Self::new(at, format!("is nested deeper than {limit}")).mended_by("nest less")
    }

    /// Finds the line and the column.
    pub(super) fn finding(self, text: &str) -> Finding {
        let finding = Finding::new(self.found).at(Place::of(text, self.at));
        match self.remedy {
            Some(remedy) => finding.mended_by(remedy),
            None => finding,
        }
    }
}

/// A short part of a text, fit to be shown on one line.
pub(super) fn quote(part: &str) -> String {
    let mut shown = String::from("`");
    for (index, character) in part.chars().enumerate() {
        if index == QUOTE_CHARS_MAX {
            shown.push('…');
            break;
        }
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            other if other.is_control() => shown.extend(other.escape_unicode()),
            other => shown.push(other),
        }
    }
    shown.push('`');
    shown
}

/// What stands at a byte, in words.
pub(super) fn standing_at(text: &str, at: usize) -> String {
    match text.get(at..).and_then(|rest| rest.chars().next()) {
        None => "the end of the text".to_owned(),
        Some('\n' | '\r') => "the end of the line".to_owned(),
        Some(character) => quote(character.encode_utf8(&mut [0; 4])),
    }
}
