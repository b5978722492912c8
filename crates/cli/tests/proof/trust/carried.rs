//! What is in a directory that moved since: it goes back by its name as it does with its operation.

use std::fs;

use super::{newest, to_and_fro};
use crate::world::World;

/// A command moves a file into a directory, which moves; then its place is taken.
fn with_its_place_taken(by: &[&str]) -> (World, String) {
    let world = World::new();
    world.file("f", "1\n");
    world.file("d/k", "k\n");
    world.ok(&["run", "--", "sh", "-c", "mv f d/f"]);
    let moved = newest(&world, "run");
    world.ok(&["run", "--", "mv", "d", "e"]);
    for line in by {
        world.ok(&["run", "--", "sh", "-c", line]);
    }
    (world, moved)
}

#[test]
fn a_file_comes_out_of_a_directory_whose_place_was_taken_as_its_operation_does() {
    let cases: [&[&str]; 5] = [
        &["mkdir d"],
        &["mkdir d; echo 2 > d/n", "mv d x"],
        &["mkdir d", "echo 2 > d/n"],
        &["mkdir d", "echo 2 > d/n", "mv d x", "mkdir d; echo 3 > d/n"],
        &["mkdir d; cp e/f d/f"],
    ];
    for by in cases {
        let (world, moved) = with_its_place_taken(by);
        let now = world.tree().without_times();
        world.ok(&["undo", &moved]);
        let before = world.tree().without_times();
        world.ok(&["redo"]);
        assert!(world.tree().without_times() == now, "{by:?}");
        world.ok(&["undo", "f", "-n"]);
        world.ok(&["undo", "f"]);
        assert_eq!(world.read("f"), "1\n", "{by:?}");
        assert_eq!(world.tree().names(), before.names(), "{by:?}");
        world.ok(&["redo"]);
        assert!(world.tree().without_times() == now, "{by:?}");
        to_and_fro(&world, &before);
    }
}

#[test]
fn what_a_person_put_in_the_place_stays() {
    let (world, _) = with_its_place_taken(&[]);
    fs::create_dir(world.path("d")).unwrap();
    let before = world.tree();
    let told = world.fails(1, &["undo", "f"]);
    assert!(told.contains("`d` exists again"), "{told}");
    assert!(world.tree() == before);
}
