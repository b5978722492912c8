//! Applying the hunks of one file to its content.

use super::{FilePatch, Hunk, HunkLine, PatchError};
use crate::text::lines::split;
use crate::text::search::occurrences;

/// How much of a line an error shows, in characters.
const SHOWN_CHARS_MAX: usize = 120;

/// Applies a patch of one file to its content; a file that is created has none.
///
/// A hunk goes where its header says, moved as far as the hunk before it was. If it does not match
/// there, it goes to the nearest place that matches whole, after the hunk before it. A hunk without
/// context before or after its change was made at that edge of the file and moves only to that edge,
/// so one without any context does not move. A patch without hunks gives back the content.
pub fn apply(file: &FilePatch, content: &[u8]) -> Result<Vec<u8>, PatchError> {
    if file.old.is_none() && !content.is_empty() {
        return Err(PatchError::NotEmpty { file: file.name() });
    }
    let lines = split(content);
    let mut out = Output {
        file,
        hunk: 1,
        content: Vec::with_capacity(content.len()),
        lines: 0,
    };
    let mut done = 0;
    let mut moved = 0_isize;
    for (hunk, number) in file.hunks.iter().zip(1..) {
        out.hunk = number;
        let old: Vec<_> = hunk.old_lines().collect();
        let told = told_place(hunk, old.len());
        let place = Search {
            file,
            number,
            hunk,
            lines: &lines,
            from: done,
            old: &old,
        }
        .place(told.saturating_add_signed(moved))?;
        moved = place.cast_signed().wrapping_sub(told.cast_signed());
        out.push(lines.get(done..place).unwrap_or_default().iter().copied())?;
        out.push(hunk.new_lines())?;
        done = place + old.len();
    }
    out.push(lines.get(done..).unwrap_or_default().iter().copied())?;
    if file.new.is_none() && !out.content.is_empty() {
        return Err(PatchError::LeavesContent { file: file.name() });
    }
    Ok(out.content)
}

/// Gives the line, counted from 0, before which a hunk begins according to its header.
fn told_place(hunk: &Hunk, old_count: usize) -> usize {
    if old_count == 0 {
        hunk.old_start
    } else {
        hunk.old_start.saturating_sub(1)
    }
}

/// The content that is being built.
struct Output<'a> {
    file: &'a FilePatch,
    hunk: usize,
    content: Vec<u8>,
    lines: usize,
}

impl Output<'_> {
    /// Adds lines; refuses to add one to a line that has no end.
    fn push<'l>(&mut self, lines: impl Iterator<Item = &'l [u8]>) -> Result<(), PatchError> {
        for line in lines {
            self.lines += 1;
            if self.content.last().is_some_and(|byte| *byte != b'\n') {
                return Err(PatchError::NotAtEnd {
                    file: self.file.name(),
                    hunk: self.hunk,
                    line: self.lines,
                });
            }
            self.content.extend_from_slice(line);
        }
        Ok(())
    }
}

/// The question where one hunk goes.
struct Search<'a> {
    file: &'a FilePatch,
    number: usize,
    hunk: &'a Hunk,
    lines: &'a [&'a [u8]],
    /// The first line that no earlier hunk has used.
    from: usize,
    old: &'a [&'a [u8]],
}

impl Search<'_> {
    fn place(&self, expected: usize) -> Result<usize, PatchError> {
        let is_free = expected >= self.from;
        if is_free
            && self
                .lines
                .get(expected..)
                .is_some_and(|rest| rest.starts_with(self.old))
        {
            return Ok(expected);
        }
        let free = self.lines.get(self.from..).unwrap_or_default();
        let mut nearest: Option<(usize, usize)> = None;
        let places = occurrences(free, self.old).map(|place| place + self.from);
        for place in places.filter(|place| self.may_move_to(*place)) {
            let distance = place.abs_diff(expected);
            match nearest {
                Some((best, first)) if best == distance => {
                    return Err(self.ambiguous(first, place));
                }
                Some((best, _)) if best < distance => break,
                Some(_) | None => nearest = Some((distance, place)),
            }
        }
        nearest
            .map(|(_, place)| place)
            .ok_or_else(|| self.mismatch(expected))
    }

    fn may_move_to(&self, place: usize) -> bool {
        let is_context = |line: Option<&HunkLine>| matches!(line, Some(HunkLine::Context(_)));
        (place == 0 || is_context(self.hunk.lines.first()))
            && (place + self.old.len() == self.lines.len() || is_context(self.hunk.lines.last()))
    }

    fn ambiguous(&self, first: usize, second: usize) -> PatchError {
        PatchError::Ambiguous {
            file: self.file.name(),
            hunk: self.number,
            first: first + 1,
            second: second + 1,
        }
    }

    /// Tells the first difference at the expected place.
    fn mismatch(&self, expected: usize) -> PatchError {
        let expected = expected.max(self.from);
        let there = self.lines.get(expected..).unwrap_or_default();
        let same = there
            .iter()
            .zip(self.old)
            .take_while(|(there, old)| there == old)
            .count();
        let wanted = self.old.get(same).copied().unwrap_or_default();
        PatchError::Mismatch {
            file: self.file.name(),
            hunk: self.number,
            line: expected.saturating_add(same).saturating_add(1),
            expected: shown(wanted),
            found: there.get(same).map(|line| shown(line)),
        }
    }
}

/// Shows a line in an error: its beginning, with whatever else tells it from a line that looks alike.
fn shown(line: &[u8]) -> String {
    let body = line.strip_suffix(b"\n");
    let text = String::from_utf8_lossy(body.unwrap_or(line));
    let mut shown = String::new();
    for character in text.chars().take(SHOWN_CHARS_MAX) {
        if character.is_control() && character != '\t' {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    if body.is_none() && !line.is_empty() {
        shown.push_str(" (no newline)");
    }
    shown
}
