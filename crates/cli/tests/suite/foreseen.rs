//! A plan shows what the act will meet.

use crate::world::World;

/// A file that was edited as a whole, then by a key, then by a person.
fn edited_twice() -> World {
    let world = World::new().file("f.json", "{\"a\":1,\"b\":2,\"c\":3}\n");
    world.did(["edit", "f.json", "--search", "1", "--replace", "10"]);
    world.did(["set", "f.json", "b", "9"]);
    world.put("f.json", "{\"a\":10,\"b\":9,\"c\":33}\n");
    world
}

#[test]
fn a_plan_sees_the_conflict_of_an_edit_below_a_key() {
    let world = edited_twice();
    insta::assert_snapshot!(world.cli(["undo", "@-1", "-n"]), @"
    would not undo 2 operations, newest first:
      3c6ef372  set b in f.json  depends on 9e3779b9: writes a part of its target
                f.json:b  will be as before
      9e3779b9  edit f.json
                f.json  conflict: content changed since (21 -> 22 bytes)
    hint: do the rest with `backout undo 9e3779b9 --partial`
    hint: do it anyway, keeping what is there now, with `backout undo 9e3779b9 --force`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["undo", "@-1"]), @"
    error: nothing was undone
      why: `f.json`: content changed since (21 -> 22 bytes)
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: do the rest with `backout undo 9e3779b9 --partial`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["undo", "@-1", "--merge", "-n"]), @"
    would not undo 2 operations, newest first:
      3c6ef372  set b in f.json  depends on 9e3779b9: writes a part of its target
                f.json:b  will be as before
      9e3779b9  edit f.json
                f.json  conflict: content changed since (21 -> 22 bytes); the changes overlap at line 1
    hint: do the rest with `backout undo 9e3779b9 --merge --partial`
    hint: do it anyway, keeping what is there now, with `backout undo 9e3779b9 --force`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["undo", "@-1", "--merge"]), @"
    error: nothing was undone
      why: `f.json`: content changed since (21 -> 22 bytes); the changes overlap at line 1
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --merge --dry-run --diff`
      next: do the rest with `backout undo 9e3779b9 --merge --partial`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    assert_eq!(world.text("f.json"), "{\"a\":10,\"b\":9,\"c\":33}\n");
    world.did(["undo", "@-1", "--force"]);
    assert_eq!(world.text("f.json"), "{\"a\":1,\"b\":2,\"c\":3}\n");
}

#[test]
fn a_plan_sees_that_an_edit_below_a_key_merges() {
    let before = "a: 1\nx: 0\nb: 2\ny: 0\nc: 3\n";
    let world = World::new().file("f.yaml", before);
    world.did(["edit", "f.yaml", "--search", "1", "--replace", "10"]);
    world.did(["set", "f.yaml", "b", "9"]);
    world.put("f.yaml", "a: 10\nx: 0\nb: 9\ny: 0\nc: 33\n");
    insta::assert_snapshot!(world.cli(["undo", "@-1", "-n"]), @"
    would not undo 2 operations, newest first:
      3c6ef372  set b in f.yaml  depends on 9e3779b9: writes a part of its target
                f.yaml:b  will be as before
      9e3779b9  edit f.yaml
                f.yaml  conflict: content changed since (26 -> 27 bytes)
    hint: take out only this change with `backout undo 9e3779b9 --merge`
    hint: do the rest with `backout undo 9e3779b9 --partial`
    hint: do it anyway, keeping what is there now, with `backout undo 9e3779b9 --force`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["undo", "@-1", "--merge", "-n"]), @"
    would undo 2 operations, newest first:
      3c6ef372  set b in f.yaml  depends on 9e3779b9: writes a part of its target
                f.yaml:b  will be as before
      9e3779b9  edit f.yaml
                f.yaml  merges: only this change is taken out
    hint: do it with `backout undo 9e3779b9 --merge`
    ");
    world.did(["undo", "@-1", "--merge"]);
    assert_eq!(world.text("f.yaml"), "a: 1\nx: 0\nb: 2\ny: 0\nc: 33\n");
}

#[test]
fn a_plan_of_an_edit_below_a_key_that_nobody_touched_is_clean() {
    let world = edited_twice();
    world.put("f.json", "{\"a\":10,\"b\":9,\"c\":3}\n");
    assert_eq!(world.cli(["undo", "@-1", "-n"]).code, 0);
    world.did(["undo", "@-1"]);
    assert_eq!(world.text("f.json"), "{\"a\":1,\"b\":2,\"c\":3}\n");
}

#[test]
fn a_plan_down_to_a_checkpoint_sees_it_too() {
    let world = World::new().file("f.json", "{\"a\":1,\"b\":2,\"c\":3}\n");
    world.did(["checkpoint", "C"]);
    world.did(["edit", "f.json", "--search", "1", "--replace", "10"]);
    world.did(["set", "f.json", "b", "9"]);
    world.put("f.json", "{\"a\":10,\"b\":9,\"c\":33}\n");
    assert_eq!(world.cli(["rollback", "--to", "C", "-n"]).code, 1);
    assert_eq!(world.cli(["rollback", "--to", "C"]).code, 1);
}

/// A change that says nothing of the content does not mind that a key came and went since.
#[test]
fn a_key_set_after_a_change_of_the_mode_or_a_move_goes_first_and_both_come_back() {
    use std::os::unix::fs::PermissionsExt as _;
    let rows: [(&[&str], &str, u32); 3] = [
        (&["chmod", "600", "a.toml"], "a.toml", 0o600),
        (&["mv", "a.toml", "b.toml"], "b.toml", 0o644),
        (&["run", "--", "chmod", "600", "a.toml"], "a.toml", 0o600),
    ];
    for (first, name, mode) in rows {
        let world = World::new().file("a.toml", "k = 1\n");
        let before = |world: &World, name: &str| {
            let file = std::fs::metadata(world.path(name)).unwrap();
            (world.text(name), file.permissions().mode() & 0o777)
        };
        let was = before(&world, "a.toml");
        let ran = world.run(&mut world.command(first));
        assert_eq!(ran.code, 0, "{ran}");
        world.did(["set", name, "k", "5"]);
        let planned = world.cli(["undo", "@-1", "-n"]);
        assert_eq!(planned.code, 0, "{first:?}: {planned}");
        world.did(["undo", "@-1"]);
        assert_eq!(before(&world, "a.toml"), was, "{first:?}");
        world.did(["redo"]);
        assert_eq!(
            before(&world, name),
            ("k = 5\n".to_owned(), mode),
            "{first:?}"
        );
        world.did(["undo", "@-1"]);
        assert_eq!(before(&world, "a.toml"), was, "{first:?}");
    }
}

#[test]
fn what_was_set_and_then_moved_comes_back_and_is_moved_again() {
    let world = World::new().file("a.toml", "k = 1\n");
    world.did(["set", "a.toml", "k", "5"]);
    world.did(["mv", "a.toml", "b"]);
    world.did(["undo", "@-1"]);
    assert_eq!(
        (world.text("a.toml").as_str(), world.has("b")),
        ("k = 1\n", false)
    );
    world.did(["redo"]);
    assert_eq!(
        (world.text("b").as_str(), world.has("a.toml")),
        ("k = 5\n", false)
    );
}
