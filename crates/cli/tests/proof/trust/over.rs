//! A redo by force over what somebody wrote after the undo: what it replaced, and what it put away, come back.

use std::fs;

use serde_json::json;

use super::batches::batch;
use super::newest;
use crate::world::{Tree, World};

/// A change of the world.
type Doing = Box<dyn Fn(&World)>;

fn call(words: &'static [&'static str]) -> Doing {
    Box::new(|world| drop(world.ok(words)))
}

fn append(name: &'static str) -> Doing {
    Box::new(move |world| world.file(name, &(world.read(name) + "P\n")))
}

fn write(name: &'static str) -> Doing {
    Box::new(move |world| world.file(name, "mine\n"))
}

fn make_directory(name: &'static str) -> Doing {
    Box::new(move |world| fs::create_dir(world.path(name)).unwrap())
}

fn in_a_batch() -> Doing {
    Box::new(|world| {
        let remove = json!({"remove": {"path": "d", "recursive": true}});
        let other = json!({"remove": {"path": "s"}});
        assert!(batch(world, &[remove, other]).status.success());
    })
}

/// A file that is kept as an inode, and not as bytes; one to move over it; and a directory.
fn world() -> World {
    let world = World::new();
    world.file("big", &"1".repeat(200_000));
    world.file("s", "s\n");
    world.file("d/f", "1\n");
    world
}

/// Takes back a change over what somebody `made` of it, by force, edits what came back, and does it again by force. Gives what
/// that replaced.
fn redone_by_force(world: &World, change: &Doing, made: &Doing, edit: &Doing) -> Tree {
    change(world);
    made(world);
    world.ok(&["undo", "--force"]);
    edit(world);
    let theirs = world.tree().without_times();
    world.ok(&["redo", "--force"]);
    world.check_store();
    theirs
}

#[test]
fn an_undo_after_a_forced_redo_brings_back_the_text_that_the_redo_replaced() {
    let cases = [
        (call(&["rm", "-r", "d"]), make_directory("d"), append("d/f")),
        (
            call(&["run", "--", "rm", "-r", "d"]),
            make_directory("d"),
            append("d/f"),
        ),
        (in_a_batch(), make_directory("d"), append("d/f")),
        (call(&["rm", "big"]), write("big"), append("big")),
        (
            call(&["mv", "-f", "s", "big"]),
            append("big"),
            append("big"),
        ),
    ];
    for (number, (change, made, edit)) in cases.iter().enumerate() {
        let world = world();
        let theirs = redone_by_force(&world, change, made, edit);
        let redone = world.tree().without_times();
        for (word, wanted) in [("undo", &theirs), ("redo", &redone), ("undo", &theirs)] {
            world.ok(&[word]);
            let now = world.tree().without_times();
            assert!(
                now == *wanted,
                "{number} {word}: {}",
                now.difference(wanted)
            );
            world.check_store();
        }
    }
}

#[test]
fn a_repair_does_not_take_what_a_forced_redo_names() {
    let world = world();
    let (change, made) = (call(&["rm", "-r", "d"]), make_directory("d"));
    let theirs = redone_by_force(&world, &change, &made, &append("d/f"));
    let redo = newest(&world, "redo");
    world.ok(&["doctor", "--repair"]);
    world.ok(&["undo", &redo]);
    let now = world.tree().without_times();
    assert!(now == theirs, "{}", now.difference(&theirs));
    world.check_store();
}

/// A move that is undone by force over a directory that somebody made, and then that one is another.
fn moved_and_made_again() -> (World, String) {
    let world = World::new();
    world.file("d/f", "1\n");
    world.ok(&["mv", "d", "e"]);
    world.file("d/new", "mine\n");
    world.ok(&["undo", "--force"]);
    fs::rename(world.path("d"), world.path("k")).unwrap();
    fs::create_dir(world.path("d")).unwrap();
    fs::remove_dir_all(world.path("k")).unwrap();
    let undo = newest(&world, "undo");
    (world, undo)
}

#[test]
fn a_redo_of_a_move_makes_room_for_what_comes_by_moving_whatever_is_there() {
    for word in ["--force", "--merge"] {
        let (world, undo) = moved_and_made_again();
        let before = world.tree().without_times();
        let refused = world.fails(1, &["redo"]);
        assert!(
            refused.contains(&format!("backout redo {undo} {word}`")),
            "{refused}"
        );
        world.ok(&["redo", &undo, word, "-n"]);
        let told = world.ok(&["redo", &undo, word]);
        assert_eq!(world.read("d/new"), "mine\n", "{told}");
        assert!(world.path("e").is_dir(), "{told}");
        world.check_store();
        world.ok(&["undo", &newest(&world, "redo")]);
        let now = world.tree().without_times();
        assert!(now == before, "{word}: {}", now.difference(&before));
        world.check_store();
    }
}

#[test]
fn nobody_is_told_to_restore_what_an_operation_removed_beside_what_is_there() {
    let world = world();
    world.ok(&["rm", "-r", "d"]);
    fs::create_dir(world.path("d")).unwrap();
    world.ok(&["undo", "--force"]);
    append("d/f")(&world);
    let moved = moved_and_made_again().0;
    for world in [world, moved] {
        let refused = world.fails(1, &["redo"]);
        assert!(!refused.contains("beside what is there"), "{refused}");
        assert!(refused.contains("do it anyway with"), "{refused}");
    }
}
