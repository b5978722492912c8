//! What a patch says, and what it does to a content.

mod edges;

use proptest::prelude::*;

use super::*;
use crate::text::{unified, unified_bytes};

fn one(text: &str) -> FilePatch {
    let mut patch = parse(text.as_bytes()).unwrap();
    assert_eq!(patch.files.len(), 1);
    patch.files.remove(0)
}

fn refused(text: &str) -> String {
    parse(text.as_bytes()).unwrap_err().to_string()
}

fn applied(patch: &str, content: &str) -> Result<String, PatchError> {
    apply(&one(patch), content.as_bytes()).map(|content| String::from_utf8(content).unwrap())
}

fn names(file: &FilePatch) -> (Option<&[u8]>, Option<&[u8]>) {
    (
        file.old.as_ref().map(PatchPath::as_bytes),
        file.new.as_ref().map(PatchPath::as_bytes),
    )
}

fn path(name: &str) -> PatchPath {
    PatchPath::from_bytes(name.into())
}

const CHANGE: &str = "--- a/n\n+++ b/n\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n";

#[test]
fn every_kind_of_git_header_is_understood() {
    let patch = parse(include_bytes!("git.patch")).unwrap();
    let shown: Vec<_> = patch
        .files
        .iter()
        .map(|file| {
            let name = |path: &Option<PatchPath>| path.as_ref().map(ToString::to_string);
            let mode = |mode: Option<FileMode>| mode.map(|mode| format!("{:o}", mode.bits()));
            format!(
                "{:?} -> {:?}, {:?}, {:?} -> {:?}, {} hunks",
                name(&file.old),
                name(&file.new),
                file.moved,
                mode(file.old_mode),
                mode(file.new_mode),
                file.hunks.len()
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
        None -> Some("b/n"), None, None -> Some("100644"), 1 hunks
        Some("café") -> Some("café"), None, Some("100644") -> Some("100644"), 1 hunks
        Some("changed") -> Some("changed"), None, Some("100644") -> Some("100644"), 1 hunks
        Some("copied") -> Some("copied"), None, Some("100644") -> Some("100644"), 1 hunks
        Some("copied") -> Some("copy"), Some(Copied), Some("100644") -> Some("100644"), 1 hunks
        Some("gone") -> None, None, Some("100644") -> None, 1 hunks
        Some("link") -> Some("link"), None, Some("120000") -> Some("120000"), 1 hunks
        None -> Some("made file"), None, None -> Some("100755"), 1 hunks
        Some("gone-empty") -> Some("made-empty"), Some(Renamed), None -> None, 0 hunks
        Some("old name") -> Some("new name"), Some(Renamed), Some("100644") -> Some("100644"), 1 hunks
        Some("script") -> Some("script"), None, Some("100644") -> Some("100755"), 0 hunks
        Some("tab\there") -> Some("tab\there"), None, Some("100644") -> Some("100644"), 1 hunks
        Some("gone-empty") -> None, None, Some("100644") -> None, 0 hunks
        None -> Some("made-empty"), None, None -> Some("100644"), 0 hunks
    "#);
}

#[test]
fn plain_diffs_and_text_around_them_are_understood() {
    let text = format!(
        "Subject: x\n\n---\n n | 2 +-\n\nIndex: n\n=====\n--- n\t2024-01-01 00:00:00\n+++ n\t2024-01-02\n{}-- \n2.47.3\n",
        "@@ -1 +1 @@ fn x()\n-a\n+b\n"
    );
    assert_eq!(names(&one(&text)), (Some(&b"n"[..]), Some(&b"n"[..])));
    assert_eq!(applied(&text, "a\n").unwrap(), "b\n");
}

#[test]
fn a_directory_called_b_is_no_prefix_where_git_says_so() {
    let text =
        "diff --git b/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n";
    let file = one(text);
    assert_eq!(names(&file), (None, Some(&b"b/n"[..])));
    assert!(file.new_mode.unwrap().is_executable());
}

#[test]
fn broken_patches_are_refused_with_their_place() {
    let head = "--- a/n\n+++ b/n\n";
    let cases = [
        refused(""),
        refused("just text\n"),
        refused("--- \"a/n\n+++ b/n\n@@ -1 +1 @@\n-a\n+b\n"),
        refused("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n"),
        refused("diff --git a/x b/y\nindex 1..2\n"),
        refused("diff --git a/x b/x\nold mode 10x\n"),
        refused("diff --git a/x b/x\nrename to y\n"),
        refused(
            "diff --git a/x b/x\nnew file mode 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        ),
        refused("@@ -1 +1 @@\n-a\n+b\n"),
        refused(head),
        refused(&format!("{head}@@@ -1 -1 +1 @@@\n")),
        refused(&format!("{head}@@ -1 +1\n-a\n+b\n")),
        refused(&format!("{head}@@ -0,1 +1 @@\n-a\n+b\n")),
        refused(&format!("{head}@@ -99999999999999999999 +1 @@\n-a\n+b\n")),
        refused(&format!("{head}@@ -1,2 +1 @@\n-a\n+b\n")),
        refused(&format!("{head}@@ -1 +1 @@\n-a\n+b\n+c\n")),
        refused(&format!("{head}@@ -1 +1 @@\n-a\n-b\n+c\n")),
        refused(&format!("{head}@@ -1,2 +1,2 @@\n-a\n?\n+c\n")),
        refused("diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 1\n"),
        refused("diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n"),
        refused("diff --git a/x b/x\nindex 1..2 100644\n"),
        refused("Binary files differ (12 bytes -> 40 bytes)\n"),
    ];
    insta::assert_snapshot!(cases.join("\n"), @"
        the text holds no patch of any file
        the text holds no patch of any file
        line 1 of the patch is a broken file header
        line 1 of the patch is a broken file header
        line 1 of the patch is a broken file header
        line 2 of the patch is a broken file header
        line 2 of the patch is a broken file header
        line 1 of the patch is a broken file header
        the hunk in line 1 of the patch belongs to no file
        `n` has a header but no hunks
        `n` has a header but no hunks
        hunk 1 of `n` has a broken header in line 3 of the patch
        hunk 1 of `n` has a broken header in line 3 of the patch
        hunk 1 of `n` has a broken header in line 3 of the patch
        hunk 1 of `n` promises 2 old and 1 new lines but has 1 and 1
        hunk 1 of `n` promises 1 old and 1 new lines but has 1 and 2
        hunk 1 of `n` promises 1 old and 1 new lines but has 1 and 0
        hunk 1 of `n` promises 2 old and 2 new lines but has 1 and 0
        line 3 of the patch changes a binary file, `x`
        line 3 of the patch changes a binary file, `x`
        `x` has a header but no hunks
        line 1 of the patch changes a binary file
    ");
}

#[test]
fn a_hunk_applies_where_it_says() {
    assert_eq!(
        applied(CHANGE, "a\nb\nc\nd\ne\n").unwrap(),
        "a\nb\nC\nd\ne\n"
    );
}

#[test]
fn a_hunk_that_moved_is_found_at_the_nearest_place() {
    assert_eq!(
        applied(CHANGE, "0\n0\na\nb\nc\nd\n").unwrap(),
        "0\n0\na\nb\nC\nd\n"
    );
    assert_eq!(applied(CHANGE, "b\nc\nd\n").unwrap(), "b\nC\nd\n");
    let near_and_far = "0\n0\nb\nc\nd\n0\n0\nb\nc\nd\n";
    assert_eq!(
        applied(CHANGE, near_and_far).unwrap(),
        near_and_far.replacen('c', "C", 1)
    );
}

#[test]
fn a_hunk_that_fits_two_places_equally_is_refused() {
    let patch = CHANGE.replace("-2,3", "-4,3");
    let error = applied(&patch, "b\nc\nd\n0\n0\n0\nb\nc\nd\n").unwrap_err();
    assert_eq!(
        error,
        PatchError::Ambiguous {
            file: path("n"),
            hunk: 1,
            first: 1,
            second: 7
        }
    );
}

#[test]
fn later_hunks_move_with_the_first_and_stay_behind_it() {
    let hunk = |line: u8| format!("@@ -{line},3 +{line},3 @@\n b\n-c\n+C\n d\n");
    let patch = format!("--- a/n\n+++ b/n\n{}{}", hunk(2), hunk(6));
    let twice = "b\nc\nd\nx\nb\nc\nd\n";
    let moved = format!("0\n0\n0\n{twice}b\nc\nd\n");
    assert_eq!(
        applied(&patch, &moved).unwrap(),
        moved.replacen('c', "C", 2)
    );
    let error = applied(&patch, "a\nb\nc\nd\n").unwrap_err();
    insta::assert_snapshot!(
        error,
        @"hunk 2 of `n` does not apply: line 6 should be `b` but the file ends before it"
    );
}

#[test]
fn a_hunk_at_an_edge_moves_only_to_that_edge() {
    let end = "--- a/n\n+++ b/n\n@@ -2,2 +2,3 @@\n a\n b\n+c\n";
    assert_eq!(
        applied(end, "x\nx\nx\na\nb\n").unwrap(),
        "x\nx\nx\na\nb\nc\n"
    );
    assert!(matches!(
        applied(end, "x\nx\na\nb\ny\n"),
        Err(PatchError::Mismatch { .. })
    ));
    assert_eq!(applied(end, "x\na\nb\ny\n").unwrap(), "x\na\nb\nc\ny\n");
    let start = "--- a/n\n+++ b/n\n@@ -1 +1,2 @@\n+0\n a\n";
    assert!(matches!(
        applied(start, "x\na\n"),
        Err(PatchError::Mismatch { .. })
    ));
    let bare = "--- a/n\n+++ b/n\n@@ -1 +1 @@\n-a\n+b\n";
    assert!(matches!(
        applied(bare, "x\na\n"),
        Err(PatchError::Mismatch { .. })
    ));
}

#[test]
fn a_hunk_that_does_not_fit_tells_the_first_difference() {
    let error = applied(CHANGE, "a\nb\nother\nd\n").unwrap_err();
    assert_eq!(
        error,
        PatchError::Mismatch {
            file: path("n"),
            hunk: 1,
            line: 3,
            expected: "c".to_owned(),
            found: Some("other".to_owned()),
        }
    );
    insta::assert_snapshot!(error, @"hunk 1 of `n` does not apply: line 3 should be `c` but is `other`");
    insta::assert_snapshot!(applied(CHANGE, "a\r\nb\r\nc\r\nd\r\n").unwrap_err(), @r#"hunk 1 of `n` does not apply: line 2 should be `b` but is `b\r`"#);
}

#[test]
fn a_missing_final_newline_is_exact() {
    let patch = "--- a/n\n+++ b/n\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n";
    assert_eq!(applied(patch, "a").unwrap(), "b\n");
    insta::assert_snapshot!(applied(patch, "a\n").unwrap_err(), @"hunk 1 of `n` does not apply: line 1 should be `a (no newline)` but is `a`");
    let patch = "--- a/n\n+++ b/n\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n";
    assert_eq!(applied(patch, "a\n").unwrap(), "b");
    let error = applied(patch, "a\nmore\n").unwrap_err();
    assert_eq!(
        error,
        PatchError::NotAtEnd {
            file: path("n"),
            hunk: 1,
            line: 2
        }
    );
    let patch = "--- a/n\n+++ b/n\n@@ -1,0 +2 @@\n+b\n";
    let error = applied(patch, "a").unwrap_err();
    assert_eq!(
        error,
        PatchError::NotAtEnd {
            file: path("n"),
            hunk: 1,
            line: 2
        }
    );
}

#[test]
fn what_editors_do_to_patches_is_forgiven_only_where_it_is_clear() {
    // The blank of an empty context line is stripped, and the last newline is missing.
    let patch = "--- a/n\n+++ b/n\n@@ -1,3 +1,3 @@\n a\n\n-c\n+d";
    assert_eq!(applied(patch, "a\n\nc\n").unwrap(), "a\n\nd\n");
    // A patch of a file with carriage returns keeps them in its lines.
    let patch = "--- a/n\n+++ b/n\n@@ -1,2 +1,2 @@\n\r\n-c\r\n+d\r\n";
    assert_eq!(applied(patch, "\r\nc\r\n").unwrap(), "\r\nd\r\n");
}

#[test]
fn creation_and_deletion_are_all_or_nothing() {
    let created = "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n";
    assert_eq!(applied(created, "").unwrap(), "a\n");
    assert_eq!(
        applied(created, "x\n"),
        Err(PatchError::NotEmpty { file: path("n") })
    );
    let deleted = "--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
    assert_eq!(applied(deleted, "a\n").unwrap(), "");
    assert_eq!(
        applied(deleted, "a\nb\n"),
        Err(PatchError::LeavesContent { file: path("n") })
    );
}

#[test]
fn a_rename_alone_changes_no_content() {
    let text = "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n";
    assert_eq!(one(text).moved, Some(Moved::Renamed));
    assert_eq!(applied(text, "a").unwrap(), "a");
}

fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![4 => "[ab]?", 1 => "[-+ @\\\\]{1,4}[a-c]?", 1 => "\\PC{0,3}\r?"];
    (proptest::collection::vec(line, 0..30), any::<bool>()).prop_map(|(lines, ended)| {
        let end = if ended && !lines.is_empty() { "\n" } else { "" };
        lines.join("\n") + end
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn applying_a_diff_gives_the_other_text(
        before in text(), after in text(), context in 0_usize..5,
    ) {
        prop_assume!(before != after);
        let diff = unified(before.as_bytes(), after.as_bytes(), "a/n", "b/n", context);
        prop_assert_eq!(applied(&diff, &before).unwrap(), after.clone());
        let diff = unified(before.as_bytes(), after.as_bytes(), "n", "n", usize::MAX);
        prop_assert_eq!(applied(&diff, &before).unwrap(), after);
    }

    #[test]
    fn bytes_that_are_no_utf8_survive(
        before in proptest::collection::vec(0x80_u8.., 1..20), after in "[ab\n]{1,20}",
    ) {
        let diff = unified_bytes(&before, after.as_bytes(), "a/n", "b/n", 3);
        let patch = parse(&diff).unwrap();
        prop_assert_eq!(apply(&patch.files[0], &before).unwrap(), after.as_bytes());
        let diff = unified_bytes(after.as_bytes(), &before, "a/n", "b/n", 3);
        prop_assert_eq!(apply(&parse(&diff).unwrap().files[0], after.as_bytes()).unwrap(), before);
    }

    #[test]
    fn any_name_comes_back(name in "\\PC{1,8}|[a-z \t\n\"\\\\]{1,8}") {
        let diff = unified(b"", b"a\n", "/dev/null", format!("b/{name}"), 3);
        let file = one(&diff);
        prop_assert_eq!(names(&file), (None, Some(name.as_bytes())));
    }

    #[test]
    fn no_text_makes_it_panic(
        lines in proptest::collection::vec(
            prop_oneof![
                Just("diff --git a/x b/x"), Just("--- a/x"), Just("+++ b/x"), Just("--- /dev/null"),
                Just("@@ -1,2 +1,2 @@"), Just("@@ -1 +1 @@"), Just("@@ -0,0 +1 @@"), Just("@@ -9 +9 @@ x"),
                Just(" a"), Just("-a"), Just("+b"), Just(""), Just("\\ No newline"), Just("rename from x"),
                Just("rename to y"), Just("new file mode 100644"), Just("deleted file mode 1"), Just("index 1..2 7"),
            ],
            0..12,
        ),
        content in "[ab\n]{0,8}",
    ) {
        if let Ok(patch) = parse(lines.join("\n").as_bytes()) {
            for file in &patch.files {
                let _outcome = apply(file, content.as_bytes());
            }
        }
    }
}
