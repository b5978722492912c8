//! What a redo brought back below something that had stayed: a merge had taken it out from under that.

use crate::world::World;

/// A move that was taken out below a write of the file, and brought back.
fn moved_below_a_write() -> World {
    let world = World::new().file("a", "1\n2\n3\n");
    world.did(["mv", "a", "b"]);
    world.did(["write", "b", "--text", "1\n2\n3\n4\n"]);
    world.did(["undo", "@-1", "--merge"]);
    assert_eq!(
        (world.text("a").as_str(), world.has("b")),
        ("1\n2\n3\n4\n", false)
    );
    world.did(["redo"]);
    assert_eq!(
        (world.text("b").as_str(), world.has("a")),
        ("1\n2\n3\n4\n", false)
    );
    world
}

#[test]
fn the_undo_that_a_redo_names_takes_exactly_that_redo_back() {
    let world = moved_below_a_write();
    let redo = world.newest_id();
    insta::assert_snapshot!(world.cli(["undo", &redo]), @"
    undid 9e3779b9  move a to b
      a  restored
      b  gone, as before
    hint: take this back with `backout redo 53845412`
    ");
    assert_eq!(
        (world.text("a").as_str(), world.has("b")),
        ("1\n2\n3\n4\n", false)
    );
    world.did(["redo"]);
    assert_eq!(
        (world.text("b").as_str(), world.has("a")),
        ("1\n2\n3\n4\n", false)
    );
}

#[test]
fn what_was_built_on_a_move_that_came_back_below_it_goes_first() {
    let world = moved_below_a_write();
    insta::assert_snapshot!(world.cli(["undo"]), @"
    undid 3c6ef372  write b  (the newest below .)
      b  taken back
    undid 9e3779b9  move a to b
      a  restored
      b  gone, as before
    hint: take this back with `backout redo 53845412`
    ");
    assert_eq!(
        (world.text("a").as_str(), world.has("b")),
        ("1\n2\n3\n", false)
    );
}
