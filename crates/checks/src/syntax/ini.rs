//! INI in the wide sense: sections, `key = value` lines, comments, lines that go on.
//!
//! Readers differ in nearly everything. What is taken: `=` or `:`, keys without a value (MySQL, git), keys before the first
//! section (`.editorconfig`), keys and sections that stand twice (systemd adds them up), indented lines that go on,
//! and lines that end in a backslash. Wrong to all of them: a section header that does not close, a header without
//! a name, a line without a key, and a stray closing bracket.

use super::fault::{Fault, quote};
use crate::Finding;

pub(super) fn check(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut state = State::default();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if let Err(fault) = state.line(line.trim_end_matches(['\n', '\r']), offset) {
            findings.push(fault.finding(text));
        }
        offset += line.len();
        if findings.len() >= super::FINDINGS_MAX {
            break;
        }
    }
    findings
}

#[derive(Default)]
struct State {
    /// Whether the line before ends in a backslash.
    goes_on: bool,
    /// Whether there was a key that an indented line can go on with.
    has_key: bool,
}

impl State {
    fn line(&mut self, line: &str, offset: usize) -> Result<(), Fault> {
        let trimmed = line.trim();
        let indent = line.len() - line.trim_start().len();
        let at = offset + indent;
        let is_comment = trimmed.starts_with(['#', ';']);
        if self.goes_on {
            // systemd lets comments stand between lines that go on.
            self.goes_on = is_comment || line.ends_with('\\');
            return Ok(());
        }
        if trimmed.is_empty() || is_comment {
            return Ok(());
        }
        self.goes_on = line.ends_with('\\');
        let is_indented = indent > 0;
        if trimmed.starts_with('[') && !(is_indented && self.has_key && !trimmed.contains(']')) {
            if is_indented && self.has_key && header(trimmed, at).is_err() {
                return Ok(());
            }
            self.has_key = false;
            return header(trimmed, at);
        }
        if is_indented && self.has_key {
            return Ok(());
        }
        self.has_key = true;
        key(trimmed, at)
    }
}

/// Checks `[section]` or `[section "name"]`, with what may stand behind it.
fn header(line: &str, at: usize) -> Result<(), Fault> {
    let Some(end) = header_end(line) else {
        return Err(
            Fault::new(at, format!("the section {} is not closed", quote(line)))
                .mended_by("close it with `]`"),
        );
    };
    let name = line.get(1..end).unwrap_or_default();
    if name.trim().is_empty() {
        return Err(Fault::new(at, "a section has no name").mended_by("write `[name]`"));
    }
    let behind = line.get(end + 1..).unwrap_or_default();
    // A key may follow its section on the same line in git's config.
    if behind.trim_start().starts_with(']') {
        return Err(Fault::new(
            at + end + 1,
            format!("{} stands behind the section", quote(behind)),
        )
        .mended_by("remove it"));
    }
    Ok(())
}

/// Finds the bracket that closes a header. One in quotes does not; `[*.{a,[bc]}]` nests.
fn header_end(line: &str) -> Option<usize> {
    let (mut depth, mut in_quotes, mut escaped) = (0_usize, false, false);
    for (index, byte) in line.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_quotes = !in_quotes,
            b'[' if !in_quotes => depth += 1,
            b']' if !in_quotes => {
                depth -= 1;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    // Names with an odd quote or bracket are closed by the last bracket.
    line.rfind(']').filter(|end| {
        *end + 1 == line.len() && !line.get(1..*end).unwrap_or_default().contains('[')
    })
}

fn key(line: &str, at: usize) -> Result<(), Fault> {
    match line.find(['=', ':']) {
        Some(0) => {
            Err(Fault::new(at, "a key is needed before `=`").mended_by("write `key = value`"))
        }
        Some(_) => Ok(()),
        None => bare(line, at),
    }
}

/// Checks a line without `=`: a key without a value, a directive like `!includedir /etc/mysql/conf.d/`.
fn bare(line: &str, at: usize) -> Result<(), Fault> {
    let is_word = |c: char| c.is_alphanumeric() || "_-.*@/$%+".contains(c);
    let key = line.split_whitespace().next().unwrap_or_default();
    if line.starts_with("!include") || key.chars().all(is_word) && key == line {
        return Ok(());
    }
    let behind = line.get(key.len()..).unwrap_or_default().trim_start();
    if key.chars().all(is_word) && behind.starts_with(['#', ';']) {
        return Ok(());
    }
    let fault = Fault::new(
        at,
        format!("{} is neither a section nor `key = value`", quote(line)),
    );
    Err(if line.ends_with(']') {
        fault.mended_by("open the section with `[`")
    } else {
        fault.mended_by("add `=`, or make it a comment with `#`")
    })
}
