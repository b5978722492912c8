//! What somebody saves, removes or dresses while a command runs is his, also where a call of the command on that name failed.

use std::os::unix::fs::PermissionsExt as _;

use super::{Running, newest, state_of};
use crate::world::{World, said};

/// What a command does with a name before and after somebody saves it by a rename. Each has calls on that name which fail, or do
/// nothing: `mv` asks first for a rename that replaces nothing.
const AROUND_A_SAVE: [(&str, &str); 7] = [
    ("echo r1 > t; mv t x", "echo r2 > x"),
    ("echo r1 > t; mv -f t x", "rm x"),
    (
        "echo r1 > t; mv t x; echo r2 > t; mv t x",
        "echo r3 > t; mv t x",
    ),
    ("echo r1 > x; mv -n k x", "echo r2 > x"),
    (
        "echo r1 > x; ln k x || mkdir x || ln -sT k x",
        "echo r2 > x",
    ),
    ("echo r1 > x; ln x y; mv x y; rm -f y", "echo r2 > x"),
    (
        "echo r1 > x; mv -T d x || rmdir x || cat k/k",
        "echo r2 > x",
    ),
];

#[test]
fn what_a_person_saves_by_a_rename_is_not_taken_for_a_call_of_the_command_that_failed() {
    for (first, rest) in AROUND_A_SAVE {
        let world = World::new();
        world.file("x", "x0\n");
        world.file("k", "k0\n");
        world.file("d/q", "q0\n");
        let running = Running::start(&world, &[], &format!("{{ {first}; }} 2>&1"), rest);
        world.file(".x", "person\n");
        std::fs::rename(world.path(".x"), world.path("x")).unwrap();
        let output = running.go_on(&world);
        assert!(output.status.success(), "{first}: {}", said(&output));
        let run = newest(&world, "run");
        let after = world.tree();
        let told = said(&output);
        assert!(
            told.contains("somebody else wrote `x` while it ran"),
            "{first}: {told}"
        );
        world.fails(1, &["undo", "-n"]);
        world.fails(1, &["undo"]);
        assert!(world.tree() == after, "{first}");
        world.fails(1, &["undo", &run, "--partial"]);
        assert_eq!(world.read("x"), "person\n", "{first}");
        world.ok(&["redo"]);
        world.ok(&["undo", &run, "--force"]);
        assert_eq!(world.read("x"), "x0\n", "{first}");
        world.check_store();
    }
}

#[test]
fn what_a_person_saves_last_is_a_conflict_although_a_call_before_it_failed() {
    let world = World::new();
    world.file("x", "x0\n");
    let running = Running::start(&world, &[], "echo r1 > t; mv t x", "true");
    world.file(".x", "person\n");
    std::fs::rename(world.path(".x"), world.path("x")).unwrap();
    assert!(running.go_on(&world).status.success());
    world.fails(1, &["undo", "-n"]);
    world.fails(1, &["undo"]);
    assert_eq!(world.read("x"), "person\n");
}

#[test]
fn a_directory_that_somebody_puts_where_the_command_could_not_stays_his() {
    let world = World::new();
    world.file("dd/q", "q0\n");
    for name in ["n", "e", "p"] {
        std::fs::create_dir(world.path(name)).unwrap();
    }
    world.file("p/mine", "person\n");
    let first = "mv -T n dd || mv -T n e";
    let running = Running::start(&world, &[], &format!("{{ {first}; }} 2>&1"), "true");
    std::fs::rename(world.path("p"), world.path("e")).unwrap();
    assert!(running.go_on(&world).status.success());
    world.run(&["undo"]);
    assert_eq!(world.read("e/mine"), "person\n");
}

#[test]
fn what_a_person_removes_and_dresses_is_seen_although_the_command_tried_it_in_vain() {
    let world = World::new();
    world.file("d/q", "q0\n");
    world.file("f", "f0\n");
    let first = "echo r1 > d/q; rmdir d || echo r1 >> f; chmod 600 f; chown 77 /proc/version f/f";
    let running = Running::start(&world, &[], &format!("{{ {first}; }} 2>&1; true"), "true");
    std::fs::remove_dir_all(world.path("d")).unwrap();
    std::fs::set_permissions(world.path("f"), std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(running.go_on(&world).status.success());
    let run = newest(&world, "run");
    assert_eq!(state_of(&world, &run, "d/q"), "conflict");
    assert_eq!(state_of(&world, &run, "f"), "conflict");
}
