//! An ordinary user in directories that are not his own, or that were closed before.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};

use crate::world::{World, said};

const USER: u32 = 12345;

/// A world in a directory like `/tmp`: everybody may write it, and nobody owns it.
fn in_anybodys_directory() -> World {
    let world = World::new().of_user(USER);
    world.file("mine", "before\n");
    chown(world.path("mine"), Some(USER), Some(USER)).unwrap();
    chown(world.path(""), Some(0), Some(0)).unwrap();
    fs::set_permissions(world.path(""), Permissions::from_mode(0o1777)).unwrap();
    world
}

#[test]
fn times_of_a_directory_that_are_not_ours_to_set_are_left() {
    let world = in_anybodys_directory();
    let before = world.tree().without_directory_times();
    world.ok(&["run", "--", "sh", "-c", "echo new > new; rm mine"]);
    let output = world.run(&["undo"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("times"), "{}", said(&output));
    assert!(world.tree().without_directory_times() == before);
    world.ok(&["redo"]);
    assert!(!world.path("mine").exists() && world.path("new").exists());
    world.ok(&["undo"]);
    world.fails(
        3,
        &[
            "run",
            "--on-failure",
            "rollback",
            "--",
            "sh",
            "-c",
            "echo new > new; rm mine; exit 3",
        ],
    );
    assert!(world.tree().without_directory_times() == before);
    world.ok(&["write", "new", "--text", "x"]);
    world.ok(&["undo"]);
    assert!(world.tree().without_directory_times() == before);
    world.check_store();
}

#[test]
fn a_directory_that_was_closed_before_is_closed_again() {
    let world = World::new().of_user(USER);
    for line in [
        "chmod 755 e; echo n > e/n",
        "chmod 755 e; rm e/old",
        "chmod 755 e; mv e/old e/other; echo more >> e/other",
        "chmod 755 e; mv e/old .",
        "chmod 755 e e/f; echo n > e/f/n",
    ] {
        for directory in ["e/f", "e"] {
            fs::create_dir_all(world.path(directory)).unwrap();
        }
        world.file("e/old", "old\n");
        for name in ["e", "e/f", "e/old"] {
            chown(world.path(name), Some(USER), Some(USER)).unwrap();
        }
        for directory in ["e/f", "e"] {
            fs::set_permissions(world.path(directory), Permissions::from_mode(0o555)).unwrap();
        }
        super::there_and_back(&world, line);
        fs::remove_dir_all(world.path("e")).unwrap();
    }
}

#[test]
fn what_a_command_closed_to_its_own_user_keeps_nobody_else_waiting() {
    let world = World::new().of_user(USER);
    let output = world.run(&["run", "--", "sh", "-c", "echo x > new; chmod 000 new"]);
    assert!(!output.status.success(), "{}", said(&output));
    // It cannot be looked at; other work goes on, and what it did is not forgotten.
    world.ok(&["write", "other", "--text", "x"]);
    world.ok(&["undo"]);
    assert!(!world.path("other").exists());
    fs::set_permissions(world.path("new"), Permissions::from_mode(0o600)).unwrap();
    world.ok(&["recover"]);
    world.ok(&["undo", "--force"]);
    assert!(!world.path("new").exists());
    world.check_store();
}
