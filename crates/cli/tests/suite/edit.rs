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
    insta::assert_snapshot!(world.cli(["edit", "app.toml", "--search", "port = 80", "--replace", "port = 8080"]), @"");
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
    insta::assert_snapshot!(world.cli(["edit", "a", "-s", "x", "-r", "y"]), @"");
}

#[test]
fn a_text_that_is_not_there_is_refused_with_what_comes_near() {
    let world = World::new().file("a", "let  total = 1;\n");
    insta::assert_snapshot!(world.cli(["edit", "a", "-s", "let total = 1;", "-r", "y"]), @"");
}

#[test]
fn an_edit_without_a_search_says_what_is_missing() {
    let world = World::new().file("a", "x");
    insta::assert_snapshot!(world.cli(["edit", "a", "--replace", "y"]), @"");
}

#[test]
fn a_patch_of_several_files_is_one_operation() {
    let world = World::new().file("one.txt", "a\nb\n");
    insta::assert_snapshot!(world.piped(PATCH.as_bytes(), ["edit", "--patch", "-"]), @"");
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
    insta::assert_snapshot!(world.cli(["edit", "--patch", "p"]), @"");
    assert!(!world.has("two.txt"));
}
