//! Reading the hunks of one file: headers, counts, lines.

use super::parse::Lines;
use super::{Hunk, HunkLine, PatchError, PatchPath};

/// Reads all hunks that follow; none is fine here.
pub(super) fn read_all(lines: &mut Lines<'_>, file: &PatchPath) -> Result<Vec<Hunk>, PatchError> {
    let mut hunks = Vec::new();
    while lines.peek().is_some_and(|line| line.starts_with(b"@@ ")) {
        hunks.push(read(lines, file, hunks.len() + 1)?);
    }
    Ok(hunks)
}

/// Tells whether a line is a whole, correct hunk header.
pub(super) fn is_header(line: &[u8]) -> bool {
    Header::read(line).is_some()
}

fn read(lines: &mut Lines<'_>, file: &PatchPath, number: usize) -> Result<Hunk, PatchError> {
    let line = lines.number();
    let header = lines
        .next()
        .and_then(Header::read)
        .ok_or_else(|| PatchError::BadHunk {
            file: file.clone(),
            hunk: number,
            line,
        })?;
    let mut body = Body::default();
    while body.counts() != header.counts && body.take(lines, header.counts) {}
    if body.counts() == header.counts {
        body.take_end_mark(lines);
        body.count_surplus(lines);
    }
    if body.counts() != header.counts {
        return Err(PatchError::WrongCount {
            file: file.clone(),
            hunk: number,
            expected: header.counts,
            found: body.counts(),
        });
    }
    Ok(Hunk {
        old_start: header.old_start,
        new_start: header.new_start,
        lines: body.lines,
    })
}

#[derive(Debug, Clone, Copy)]
struct Header {
    old_start: usize,
    new_start: usize,
    counts: (usize, usize),
}

impl Header {
    /// Reads `@@ -1,2 +3,4 @@ anything`.
    fn read(line: &[u8]) -> Option<Self> {
        let end = line
            .windows(3)
            .skip(3)
            .position(|window| window == b" @@")?
            + 3;
        let ranges = std::str::from_utf8(line.get(..end)?.strip_prefix(b"@@ ")?).ok()?;
        let (old, new) = ranges.split_once(' ')?;
        let (old_start, old_count) = range(old.strip_prefix('-')?)?;
        let (new_start, new_count) = range(new.strip_prefix('+')?)?;
        Some(Self {
            old_start,
            new_start,
            counts: (old_count, new_count),
        })
    }
}

/// Reads `3,4` or `3`. Only a range without lines may begin at 0.
fn range(text: &str) -> Option<(usize, usize)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    let number = |text: &str| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<usize>().ok()).flatten()
    };
    let (start, count) = (number(start)?, number(count)?);
    (start > 0 || count == 0).then_some((start, count))
}

#[derive(Debug, Default)]
struct Body {
    lines: Vec<HunkLine>,
    old: usize,
    new: usize,
}

impl Body {
    const fn counts(&self) -> (usize, usize) {
        (self.old, self.new)
    }

    /// Takes one line, if it can belong to a hunk of these counts.
    fn take(&mut self, lines: &mut Lines<'_>, (old, new): (usize, usize)) -> bool {
        self.take_end_mark(lines);
        let Some(line) = lines.peek_whole() else {
            return false;
        };
        let (mark, text) = line.split_first().unwrap_or((&b' ', b"\n"));
        let mut text = text.to_vec();
        if !text.ends_with(b"\n") {
            text.push(b'\n'); // the patch was cut after its last line, the line is whole
        }
        let line = match mark {
            b' ' if self.old < old && self.new < new => HunkLine::Context(text),
            // Some editors strip the blank of an empty context line.
            b'\n' if self.old < old && self.new < new => HunkLine::Context(b"\n".to_vec()),
            b'\r' if text == b"\n" && self.old < old && self.new < new => {
                HunkLine::Context(b"\r\n".to_vec())
            }
            b'-' if self.old < old => HunkLine::Removed(text),
            b'+' if self.new < new => HunkLine::Added(text),
            _ => return false,
        };
        self.old += usize::from(!matches!(line, HunkLine::Added(_)));
        self.new += usize::from(!matches!(line, HunkLine::Removed(_)));
        self.lines.push(line);
        lines.next();
        true
    }

    /// Takes `\ No newline at end of file`, in any language, which is about the line before it.
    fn take_end_mark(&mut self, lines: &mut Lines<'_>) {
        if !lines.peek().is_some_and(|line| line.starts_with(b"\\ ")) {
            return;
        }
        if let Some(HunkLine::Context(line) | HunkLine::Removed(line) | HunkLine::Added(line)) =
            self.lines.last_mut()
            && line.ends_with(b"\n")
        {
            line.pop();
        }
        lines.next();
    }

    /// Counts lines that go on after the hunk should have ended, so that the mismatch is seen.
    fn count_surplus(&mut self, lines: &Lines<'_>) {
        for line in lines.rest_of_hunk() {
            self.old += usize::from(!line.starts_with(b"+"));
            self.new += usize::from(!line.starts_with(b"-"));
        }
    }
}
