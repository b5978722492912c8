//! `undo`, `redo`: what comes back, what stays, what is in the way.

use crate::world::World;

/// A file written, then edited by somebody else.
fn drifted_world() -> World {
    let world = World::new().file("app.toml", "a = 1\nb = 2\nc = 3\n");
    world.did(["edit", "app.toml", "-s", "a = 1", "-r", "a = 9"]);
    world.put("app.toml", "a = 9\nb = 2\nc = 7\n");
    world
}

/// A file written three times, and another one in between.
fn chained_world() -> World {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "a", "--text", "2"]);
    world.did(["write", "b", "--text", "x"]);
    world.did(["write", "a", "--text", "3"]);
    world
}

#[test]
fn the_newest_operation_is_undone_and_redone() {
    let world = World::new().file("notes.txt", "keep me");
    world.did(["rm", "notes.txt"]);
    insta::assert_snapshot!(world.cli(["undo"]), @"");
    assert_eq!(world.text("notes.txt"), "keep me");
    insta::assert_snapshot!(world.cli(["redo"]), @"");
    assert!(!world.has("notes.txt"));
    insta::assert_snapshot!(world.cli(["log"]), @"");
}

#[test]
fn a_dry_run_shows_the_plan_and_changes_nothing() {
    let world = chained_world();
    insta::assert_snapshot!(world.cli(["undo", "--dry-run", "--committed", "@-2"]), @"");
    assert_eq!(world.text("a"), "3");
}

#[test]
fn an_undo_takes_what_was_built_on_it_and_leaves_the_rest() {
    let world = chained_world();
    insta::assert_snapshot!(world.cli(["undo", "--committed", "@-2"]), @"");
    assert_eq!((world.text("a"), world.text("b")), ("1".into(), "x".into()));
}

#[test]
fn the_chain_below_goes_too_when_asked_for() {
    let world = chained_world();
    insta::assert_snapshot!(world.cli(["undo", "--with-dependencies", "--committed", "@", "-n"]), @"");
}

#[test]
fn several_operations_are_undone_by_name() {
    let world = chained_world();
    insta::assert_snapshot!(world.cli(["undo", "@", "@-1"]), @"");
    assert_eq!(world.text("a"), "2");
    assert!(!world.has("b"));
}

#[test]
fn a_dry_run_tells_what_is_in_the_way_and_what_to_type() {
    insta::assert_snapshot!(drifted_world().cli(["undo", "--dry-run"]), @"");
}

#[test]
fn a_merge_takes_out_only_the_change() {
    let world = drifted_world();
    insta::assert_snapshot!(world.cli(["undo", "--merge", "--dry-run"]), @"");
    insta::assert_snapshot!(world.cli(["undo", "--merge"]), @"");
    assert_eq!(world.text("app.toml"), "a = 1\nb = 2\nc = 7\n");
}

#[test]
fn force_restores_and_keeps_what_was_overwritten() {
    let world = drifted_world();
    insta::assert_snapshot!(world.cli(["undo", "--force"]), @"");
    assert_eq!(world.text("app.toml"), "a = 1\nb = 2\nc = 3\n");
    world.did(["redo"]);
    assert_eq!(world.text("app.toml"), "a = 9\nb = 2\nc = 7\n");
}

#[test]
fn what_can_be_undone_is_undone_in_part_when_asked_for() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "b", "--text", "2"]);
    world.put("b", "somebody else's");
    insta::assert_snapshot!(world.cli(["undo", "--partial", "@", "@-1"]), @"");
    assert!(!world.has("a"));
    assert_eq!(world.text("b"), "somebody else's");
}

#[test]
fn a_redo_previews_too() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    world.did(["undo"]);
    insta::assert_snapshot!(world.cli(["redo", "--dry-run"]), @"");
}

#[test]
fn what_is_declared_to_depend_goes_too() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    world.did(["--depends-on", "@", "write", "b", "--text", "2"]);
    insta::assert_snapshot!(world.cli(["undo", "-n", "--committed", "@-1"]), @"");
}
