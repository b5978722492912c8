//! Modes of what moved: an undo of a move looks at them as it looks at bytes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::{newest, to_and_fro};
use crate::world::World;

fn mode(world: &World, name: &str) -> u32 {
    fs::metadata(world.path(name)).unwrap().permissions().mode() & 0o7777
}

fn chmod(world: &World, name: &str, mode: u32) {
    fs::set_permissions(world.path(name), fs::Permissions::from_mode(mode)).unwrap();
}

/// What moves a file, and under which name it is then.
const MOVES: [(&[&str], &str); 4] = [
    (&["mv", "f", "g"], "g"),
    (&["run", "--", "mv", "f", "g"], "g"),
    (&["run", "--", "sh", "-c", "mv f d/f; mv d e"], "e/f"),
    (&["run", "--capture", "scan", "--", "mv", "f", "g"], "g"),
];

#[test]
fn a_mode_that_somebody_gave_a_file_that_moved_is_a_conflict_and_stays_with_merge() {
    for (by, name) in MOVES {
        let world = World::new();
        world.file("f", "1\n");
        world.file("d/k", "k\n");
        chmod(&world, "f", 0o644);
        world.ok(by);
        chmod(&world, name, 0o600);
        let before = world.tree();
        world.fails(1, &["undo", "-n"]);
        let told = world.fails(1, &["undo"]);
        assert!(told.contains("mode is 0600, was 0644"), "{by:?}: {told}");
        assert!(world.tree() == before, "{by:?}");
        if by.contains(&"scan") {
            continue;
        }
        let told = world.ok(&["undo", "--merge"]);
        assert!(told.contains("merged"), "{by:?}: {told}");
        assert_eq!((world.read("f"), mode(&world, "f")), ("1\n".into(), 0o600));
        world.ok(&["redo"]);
        assert_eq!(mode(&world, name), 0o600, "{by:?}");
        world.check_store();
    }
}

#[test]
fn a_mode_that_somebody_gave_a_file_that_an_undo_moved_is_a_conflict_for_the_redo() {
    let world = World::new();
    world.file("f", "1\n");
    chmod(&world, "f", 0o644);
    world.ok(&["mv", "f", "g"]);
    world.ok(&["undo"]);
    chmod(&world, "f", 0o755);
    let before = world.tree();
    let told = world.fails(1, &["redo"]);
    assert!(told.contains("mode is 0755, was 0644"), "{told}");
    assert!(world.tree() == before);
    world.ok(&["redo", "--force"]);
    assert_eq!(mode(&world, "g"), 0o755);
    world.ok(&["undo"]);
    assert!(world.tree().without_times() == before.without_times());
}

#[test]
fn modes_that_the_same_command_gave_are_nobody_elses() {
    let lines = [
        "mv f g; chmod 600 g",
        "chmod 600 f; mv f g",
        "mv f d/f; mv d e; chmod 700 e; chmod 755 e/f",
        "mv d e; chmod 700 e",
        "mv d/k d/l; mv d e; chmod 600 e/l; mkdir d; mv e/l d/k",
        "ln f h; mv f g; chmod 600 h",
        "mv f g; echo more >> g; chmod 600 g",
    ];
    for line in lines {
        let world = World::new();
        world.file("f", "1\n");
        world.file("d/k", "k\n");
        let before = world.tree().without_times();
        world.ok(&["run", "--", "sh", "-c", line]);
        world.ok(&["undo"]);
        assert!(world.tree().without_times() == before, "{line}");
        world.ok(&["redo"]);
        to_and_fro(&world, &before);
    }
}

#[test]
fn a_mode_that_a_later_operation_gave_goes_back_with_it() {
    for (by, name) in &MOVES[..3] {
        let world = World::new();
        world.file("f", "1\n");
        world.file("d/k", "k\n");
        let before = world.tree().without_times();
        world.ok(by);
        let moved = newest(&world, if by[0] == "mv" { "move" } else { "run" });
        world.ok(&["chmod", "600", name]);
        world.ok(&["undo", &moved, "-n"]);
        world.ok(&["undo", &moved]);
        assert!(world.tree().without_times() == before, "{by:?}");
        world.ok(&["redo"]);
        to_and_fro(&world, &before);
    }
}
