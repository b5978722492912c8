//! The edges of a hunk and of a name: a line too many or too few, the nearest of several places, every escape.

use super::super::name::read;
use super::*;

/// The lines that were found up to where a hunk of these counts goes astray.
fn found(counts: &str, body: &str) -> (usize, usize) {
    let text = format!("--- a/n\n+++ b/n\n@@ {counts} @@\n{body}");
    match parse(text.as_bytes()).unwrap_err() {
        PatchError::WrongCount { found, .. } => found,
        other @ (PatchError::Empty
        | PatchError::BadHeader { .. }
        | PatchError::Binary { .. }
        | PatchError::StrayHunk { .. }
        | PatchError::NoHunks { .. }
        | PatchError::BadHunk { .. }
        | PatchError::Mismatch { .. }
        | PatchError::Ambiguous { .. }
        | PatchError::NotAtEnd { .. }
        | PatchError::NotEmpty { .. }
        | PatchError::LeavesContent { .. }) => panic!("{other}"),
    }
}

#[test]
fn a_line_that_one_side_has_no_room_for_ends_the_hunk() {
    for context in [" x\n", "\n", "\r\n"] {
        let after_removed = format!("-a\n{context}+b\n+c\n");
        assert_eq!(found("-1 +1,2", &after_removed), (1, 0), "{context:?}");
        let after_added = format!("+a\n{context}-b\n-c\n");
        assert_eq!(found("-1,2 +1", &after_added), (0, 1), "{context:?}");
    }
    assert_eq!(found("-1,2 +1", "+a\n+b\n"), (0, 1));
    assert_eq!(found("-1 +1,2", "-a\n-b\n"), (1, 0));
    assert_eq!(found("-1 +1", "\rx\n"), (0, 0), "no empty line");
}

#[test]
fn lines_that_go_on_behind_a_hunk_are_counted() {
    assert_eq!(found("-1 +1", "-a\n+b\n+c\n"), (1, 2));
    assert_eq!(found("-1 +1", "-a\n+b\n-c\n"), (2, 1));
    assert_eq!(found("-1 +1", "-a\n+b\n c\n"), (2, 2));
    assert_eq!(found("-1 +1", "-a\n+b\n--- c\n"), (2, 1), "no names");
}

#[test]
fn an_empty_line_behind_a_hunk_is_no_part_of_it() {
    let text = "--- a/n\n+++ b/n\n@@ -1 +1 @@\n-a\n+b\n\n--- a/m\n+++ b/m\n@@ -1 +1 @@\n-a\n+b\n";
    let patch = parse(text.as_bytes()).unwrap();
    assert_eq!(patch.files.len(), 2);
}

#[test]
fn words_before_a_patch_that_speak_of_differences_are_only_words() {
    let text = format!("how the two differ\n{CHANGE}");
    assert_eq!(names(&one(&text)), (Some(&b"n"[..]), Some(&b"n"[..])));
}

#[test]
fn of_two_places_the_nearer_one_is_taken_also_if_it_comes_later() {
    let lines = |count: usize| "x\n".repeat(count);
    let content = format!("b\nc\nd\n{}b\nc\nd\n{}", lines(12), lines(9));
    let patch = CHANGE.replace("-2,3 +2,3", "-20,3 +20,3");
    let expected = format!("b\nc\nd\n{}b\nC\nd\n{}", lines(12), lines(9));
    assert_eq!(applied(&patch, &content).unwrap(), expected);
}

#[test]
fn a_later_hunk_is_looked_for_behind_the_first_one() {
    let second = "@@ -12,3 +12,3 @@\n b\n-c\n+D\n d\n";
    let patch = format!("{CHANGE}{second}");
    let filler = "x\n".repeat(9);
    let content = format!("a\nb\nc\nd\n{filler}b\nc\nd\n");
    let expected = format!("a\nb\nC\nd\n{filler}b\nD\nd\n");
    assert_eq!(applied(&patch, &content).unwrap(), expected);
}

#[test]
fn a_line_is_shown_as_it_is_but_for_what_nobody_sees() {
    let patch = "--- a/n\n+++ b/n\n@@ -1 +1 @@\n-caf\u{e9}\tx\u{1}\n+b\n";
    let said = applied(patch, "other\n").unwrap_err().to_string();
    assert!(said.contains("`caf\u{e9}\tx\\u{1}`"), "{said}");
}

#[test]
fn every_escape_of_git_is_read_and_written() {
    assert_eq!(
        read(b"\"x\\a\\b\\t\\n\\v\\f\\r\\\\\\\"\\001\"").unwrap(),
        b"x\x07\x08\t\n\x0b\x0c\r\\\"\x01"
    );
    assert_eq!(quoted_name(b"\xff"), b"\"\\377\"");
    assert_eq!(
        quoted_name("\u{e9}\"".as_bytes()),
        "\"\u{e9}\\\"\"".as_bytes()
    );
    assert_eq!(format!("{:?}", path("n\t")), "\"n\\t\"");
}
