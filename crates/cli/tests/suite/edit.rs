//! `edit`: search and replace, and patches.

use crate::world::World;

const PATCH: &str = "\
--- a/one.txt
+++ b/one.txt
@@ -1,2 +1,2 @@
 a
-b
+B
--- /dev/null
+++ b/two.txt
@@ -0,0 +1 @@
+new
";

#[test]
fn a_unique_text_is_replaced() {
    let world = World::new().file("app.toml", "port = 80\nhost = \"a\"\n");
    insta::assert_snapshot!(world.cli(["edit", "app.toml", "--search", "port = 80", "--replace", "port = 8080"]), @"edited app.toml  (9e3779b9, undo with `backout undo 9e3779b9`)");
    assert_eq!(world.text("app.toml"), "port = 8080\nhost = \"a\"\n");
}

#[test]
fn one_or_all_of_several_places_are_replaced_when_asked_for() {
    let world = World::new().file("a", "x x x");
    world.did(["edit", "a", "-s", "x", "-r", "y", "--nth", "2"]);
    assert_eq!(world.text("a"), "x y x");
    world.did(["edit", "a", "-s", "x", "-r", "", "--all"]);
    assert_eq!(world.text("a"), " y ");
}

#[test]
fn texts_may_come_from_files() {
    let world = World::new()
        .file("a", "old\n")
        .file("s", "old\n")
        .file("r", "new\n");
    world.did(["edit", "a", "--search-file", "s", "--replace-file", "r"]);
    assert_eq!(world.text("a"), "new\n");
}

#[test]
fn a_text_that_is_there_twice_is_refused() {
    let world = World::new().file("a", "x\nx\n");
    insta::assert_snapshot!(world.cli(["edit", "a", "-s", "x", "-r", "y"]), @r"
    error: `a` cannot be edited
      why: the search text is in the content 2 times, first in line 1, 2
      next: give more of the surrounding text, or `--all`, or `--nth N`
    [exit code 1]
    ");
}

#[test]
fn a_text_that_is_not_there_is_refused_with_what_comes_near() {
    let world = World::new().file("a", "    one();\n    two();\n");
    insta::assert_snapshot!(world.cli(["edit", "a", "-s", "one();\ntwo();", "-r", "y"]), @r"
    error: `a` cannot be edited
      why: the search text is not in the content; line 1 differs from it only in indentation
      next: look at the file and give the text exactly as it is there
    [exit code 1]
    ");
}

#[test]
fn an_edit_without_a_search_says_what_is_missing() {
    let world = World::new().file("a", "x");
    insta::assert_snapshot!(world.cli(["edit", "a", "--replace", "y"]), @r"
    error: `--search` is missing
      next: give `--search TEXT` or `--search-file FILE`
      next: or apply a patch with `--patch FILE`
    [exit code 2]
    ");
}

#[test]
fn a_patch_of_several_files_is_one_operation() {
    let world = World::new().file("one.txt", "a\nb\n");
    insta::assert_snapshot!(world.piped(PATCH.as_bytes(), ["edit", "--patch", "-"]), @"applied the patch in .  (9e3779b9, undo with `backout undo 9e3779b9`)");
    assert_eq!(
        (world.text("one.txt"), world.text("two.txt")),
        ("a\nB\n".into(), "new\n".into())
    );
    world.did(["undo"]);
    assert_eq!(world.text("one.txt"), "a\nb\n");
    assert!(!world.has("two.txt"));
}

#[test]
fn a_patch_starts_at_its_base() {
    let world = World::new().file("sub/one.txt", "a\nb\n").file("p", PATCH);
    world.did(["edit", "--patch", "p", "--base", "sub"]);
    assert_eq!(world.text("sub/two.txt"), "new\n");
}

#[test]
fn a_patch_that_does_not_fit_changes_nothing() {
    let world = World::new().file("one.txt", "other\n").file("p", PATCH);
    insta::assert_snapshot!(world.cli(["edit", "--patch", "p"]), @r"
    error: the patch cannot be applied
      why: hunk 1 of `one.txt` does not apply: line 1 should be `a` but is `other`
      next: make the patch anew against the files as they are
    [exit code 1]
    ");
    assert!(!world.has("two.txt"));
}
