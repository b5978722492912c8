//! What changed between two contents, for people and for `patch`.
//!
//! The output is what `git diff` prints below its `diff --git` line. Binary contents and contents
//! beyond the limits of one comparison get a line that says so; nothing hangs on a strange file.
//!
//! Not here: colours, paging, word differences.

use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use super::lines::{self, Numbering};
use super::patch::quoted_name;

/// How far into a content [`is_text`] looks.
const SNIFF_BYTES: usize = 8 * 1024;

/// One byte in this many may be a control character that texts do not use.
const CONTROL_SHARE: usize = 16;

/// How many lines a change added and removed; a changed line counts once on each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiffStat {
    /// Lines that are only in the content after.
    pub added: usize,
    /// Lines that are only in the content before.
    pub removed: usize,
}

/// Tells whether a content can be treated as lines: its first 8 KiB hold no NUL and hardly any other
/// control character. Any encoding that keeps ASCII passes, valid UTF-8 or not.
pub fn is_text(bytes: &[u8]) -> bool {
    let sniffed = || bytes.iter().take(SNIFF_BYTES);
    let is_odd = |byte: &u8| !matches!(byte, 0x07..=0x0d | 0x1b | 0x20..=0x7e | 0x80..);
    let odd = sniffed().filter(|byte| is_odd(byte)).count();
    !sniffed().any(|byte| *byte == 0) && odd * CONTROL_SHARE <= sniffed().count()
}

/// Writes a unified diff with `context` lines around each change; nothing when the contents are equal.
///
/// Names are written as given (say `a/x` and `b/x`, or `/dev/null`), quoted as git does where they
/// hold control characters. Bytes that are not UTF-8 are shown as `U+FFFD`; a diff that will be
/// applied again comes from [`unified_bytes`]. Binary contents give one line with their sizes.
pub fn unified(
    before: &[u8],
    after: &[u8],
    old_name: impl AsRef<[u8]>,
    new_name: impl AsRef<[u8]>,
    context: usize,
) -> String {
    let diff = unified_bytes(before, after, old_name, new_name, context);
    String::from_utf8(diff)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Writes what [`unified`] writes, with every byte of the lines as it is.
pub fn unified_bytes(
    before: &[u8],
    after: &[u8],
    old_name: impl AsRef<[u8]>,
    new_name: impl AsRef<[u8]>,
    context: usize,
) -> Vec<u8> {
    if before == after {
        return Vec::new();
    }
    if !is_text(before) || !is_text(after) {
        return summary("Binary files differ", before, after);
    }
    if lines::are_too_large(&[before, after]) {
        return summary(
            "Files differ and are too large to compare by line",
            before,
            after,
        );
    }
    let (old, new) = (lines::split(before), lines::split(after));
    let context = context.min(old.len() + new.len());
    let mut out = Vec::new();
    push_name(&mut out, "---", old_name.as_ref());
    push_name(&mut out, "+++", new_name.as_ref());
    for group in group_diff_ops(changes(&old, &new), context) {
        push_hunk(&mut out, &old, &new, &group);
    }
    out
}

/// Counts changed lines. `None` for binary contents and for contents too large to compare.
pub fn stat(before: &[u8], after: &[u8]) -> Option<DiffStat> {
    if !is_text(before) || !is_text(after) {
        return None;
    }
    if before == after {
        return Some(DiffStat::default());
    }
    if lines::are_too_large(&[before, after]) {
        return None;
    }
    let mut stat = DiffStat::default();
    for op in changes(&lines::split(before), &lines::split(after)) {
        if op.tag() != DiffTag::Equal {
            stat.added += op.new_range().len();
            stat.removed += op.old_range().len();
        }
    }
    Some(stat)
}

fn summary(what: &str, before: &[u8], after: &[u8]) -> Vec<u8> {
    format!("{what} ({} bytes -> {} bytes)\n", before.len(), after.len()).into_bytes()
}

/// Compares line by line. The algorithm bounds its own work on difficult input, as git's does.
fn changes(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffOp> {
    let mut numbering = Numbering::default();
    capture_diff_slices(Algorithm::Myers, &numbering.of(old), &numbering.of(new))
}

/// Writes a header line. Like git it ends a name that holds a space with a tab, so that no reader
/// takes the rest for a time stamp.
fn push_name(out: &mut Vec<u8>, mark: &str, name: &[u8]) {
    out.extend_from_slice(mark.as_bytes());
    out.push(b' ');
    out.extend_from_slice(header_name(name).as_bytes());
    out.push(b'\n');
}

/// Writes a name as it stands after `---` or `+++`: quoted where it has to be, and ended by a tab if it has blanks.
pub fn header_name(name: &[u8]) -> String {
    let mut quoted = String::from_utf8_lossy(&quoted_name(name)).into_owned();
    if name.contains(&b' ') {
        quoted.push('\t');
    }
    quoted
}

fn push_hunk(out: &mut Vec<u8>, old: &[&[u8]], new: &[&[u8]], group: &[DiffOp]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return;
    };
    let old_lines = span(first.old_range().start, last.old_range().end);
    let new_lines = span(first.new_range().start, last.new_range().end);
    out.extend_from_slice(format!("@@ -{old_lines} +{new_lines} @@\n").as_bytes());
    for op in group {
        let removed = old.get(op.old_range()).unwrap_or_default();
        let added = new.get(op.new_range()).unwrap_or_default();
        if op.tag() == DiffTag::Equal {
            push_lines(out, b' ', removed);
        } else {
            push_lines(out, b'-', removed);
            push_lines(out, b'+', added);
        }
    }
}

/// Writes a range of lines as hunk headers have it: counted from 1, and an empty range is named by
/// the line before it.
fn span(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    }
}

fn push_lines(out: &mut Vec<u8>, mark: u8, lines: &[&[u8]]) {
    for line in lines {
        out.push(mark);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_in_the_middle_is_shown_with_its_context() {
        insta::assert_snapshot!(
            unified(b"1\n2\n3\n4\n5\n6\n", b"1\n2\n3\nfour\n5\n6\n", "a/n", "b/n", 1),
            @"
        --- a/n
        +++ b/n
        @@ -3,3 +3,3 @@
         3
        -4
        +four
         5
        "
        );
    }

    #[test]
    fn a_missing_final_newline_is_told() {
        insta::assert_snapshot!(unified(b"a\nb", b"a\nb\n", "a/n", "b/n", 3), @r"
        --- a/n
        +++ b/n
        @@ -1,2 +1,2 @@
         a
        -b
        \ No newline at end of file
        +b
        ");
    }

    #[test]
    fn a_new_file_starts_at_line_zero() {
        insta::assert_snapshot!(unified(b"", b"a\n", "/dev/null", "b/n", 3), @"
        --- /dev/null
        +++ b/n
        @@ -0,0 +1 @@
        +a
        ");
    }

    #[test]
    fn names_that_would_break_the_header_are_quoted() {
        let diff = unified(b"", b"a\n", "a/with space", "b/tab\tquote\"", 3);
        assert!(
            diff.starts_with("--- a/with space\t\n+++ \"b/tab\\tquote\\\"\"\n"),
            "{diff}"
        );
    }

    #[test]
    fn binaries_get_one_line() {
        assert_eq!(
            unified(b"\0............", &[0; 40], "a", "b", 3),
            "Binary files differ (13 bytes -> 40 bytes)\n"
        );
        assert_eq!(stat(b"\0", b"a"), None);
    }

    #[test]
    fn too_much_is_said_rather_than_compared() {
        let large = vec![b'\n'; 200_001];
        let diff = unified(b"a\n", &large, "a", "b", 3);
        assert_eq!(
            diff,
            "Files differ and are too large to compare by line (2 bytes -> 200001 bytes)\n"
        );
        assert_eq!(stat(b"a\n", &large), None);
    }

    #[test]
    fn equal_contents_have_no_diff() {
        assert_eq!(unified(b"a\n", b"a\n", "a", "b", usize::MAX), "");
        assert_eq!(stat(b"a\n", b"a\n"), Some(DiffStat::default()));
        assert_eq!(
            stat(b"a\nb\n", b"a\nc\nd\n"),
            Some(DiffStat {
                added: 2,
                removed: 1
            })
        );
    }

    #[test]
    fn encodings_that_keep_ascii_are_text() {
        assert!(is_text(b""));
        assert!(is_text("naïve \u{1b}[1m\n".as_bytes()));
        assert!(is_text(b"na\xefve\r\n"));
        assert!(!is_text(b"a\0b"));
        assert!(!is_text(b"\x01\x02\x03\x04 some"));
        assert_eq!(
            unified(b"\xef\n", b"", "a", "b", 3),
            "--- a\n+++ b\n@@ -1 +0,0 @@\n-\u{fffd}\n"
        );
    }

    #[test]
    fn any_context_is_accepted() {
        let all = unified(b"1\n2\n3\n", b"1\n2\nx\n", "a", "b", usize::MAX);
        assert!(all.contains("@@ -1,3 +1,3 @@"), "{all}");
        let none = unified(b"1\n2\n3\n", b"1\n2\nx\n", "a", "b", 0);
        assert!(none.contains("@@ -3 +3 @@"), "{none}");
    }
}
