//! What a diff and a restore say of contents that they cannot show or do not have. The files themselves stay as they are.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::world::World;

#[test]
fn what_is_too_large_or_not_kept_is_not_shown() {
    let world = World::new();
    world.did(["run", "--", "sh", "-c", "head -c 9000000 /dev/zero >large"]);
    insta::assert_snapshot!(world.unmoved(["diff"]), @r"
    created large
      file, mode 0644, owner root:root, 8.5 MiB
      content not shown: too large to show
    ");
    world.did(["run", "--", "sh", "-c", "head -c 100000 /dev/zero >f"]);
    fs::remove_file(world.path("f")).unwrap();
    insta::assert_snapshot!(world.unmoved(["diff"]), @r"
    created f
      file, mode 0644, owner root:root, 97.6 KiB
      content not shown: its bytes are not kept, or not any more
    ");
    insta::assert_snapshot!(world.unmoved(["restore", "f", "--from", "@", "--after"]), @r"
    error: `f` cannot be restored
      why: its bytes are not kept, or not any more
      next: see which operations wrote it with `backout log f`
    [exit code 1]
    ");
}

#[test]
fn of_what_was_only_dressed_otherwise_only_the_dress_comes_back() {
    let world = World::new().file("a", "1").file("b", "1");
    world.did(["run", "--", "sh", "-c", "rm a; chmod 600 b"]);
    world.put("b", "mine");
    insta::assert_snapshot!(world.cli(["restore", "a", "b", "--from", "@"]), @r"
    restored a and 1 more to what they were before 9e3779b9  (3c6ef372, undo with `backout undo 3c6ef372`)
    note: only mode, owner and attributes of `b` were restored: what was in it is not kept
    ");
    let mode = fs::metadata(world.path("b")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    assert_eq!(
        (world.text("a"), world.text("b")),
        ("1".to_owned(), "mine".to_owned())
    );
}

#[test]
fn what_was_let_go_is_told_to_programs() {
    let world = World::new().file("f", "1");
    world.did(["write", "f", "--text", "2"]);
    world.did(["gc", "--keep", "0s", "--keep-at-least", "0s"]);
    let ran = world.unmoved(["verify", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(said["not_undoable"][0]["why"], "its images were let go");
}

#[test]
fn what_is_too_much_is_shown_by_parts() {
    let world = World::new();
    let line = "for i in 0 1 2 3 4 5 6 7 8 9; do yes 1234567 | head -c 7000000 >f$i; done";
    world.did(["run", "--", "sh", "-c", line]);
    let all = world.unmoved(["diff"]);
    let more =
        "content not shown: there is too much to show all of it; name a part with `--only`\n";
    assert!(all.out.contains(more), "{all}");
    let part = world.unmoved(["diff", "--only", "f9"]);
    assert!(
        part.out.contains("f9") && !part.out.contains(more),
        "{part}"
    );
}
