//! Stories of what lies above something without having been written after it: a redo brought it back later. And of what is
//! taken back for the sake of a redo.

use std::fs;

use super::{json, newest, to_and_fro};
use crate::world::{World, said};

/// The operation of the newest act that ended so, by the beginning of its id.
fn ids(world: &World, verb: &str) -> Vec<String> {
    let log = world.json(&["log", "-n", "100"]);
    let operations = log["operations"].as_array().unwrap().iter();
    let found = operations.filter(|op| op["verb"] == verb);
    found
        .map(|op| op["id"].as_str().unwrap()[..8].to_owned())
        .collect()
}

fn status_of(world: &World, id: &str) -> String {
    let shown = world.json(&["show", id]);
    shown["operation"]["status"].as_str().unwrap().to_owned()
}

/// A directory in a directory, undone in two steps, and a write that makes the outer one again.
fn inner_and_outer() -> (World, String) {
    let world = World::new();
    world.ok(&["mkdir", "-p", "e/z"]);
    world.ok(&["undo", "e/z"]);
    let inner = newest(&world, "undo");
    world.ok(&["undo"]);
    world.ok(&["write", "-p", "e/x", "--text", "hi"]);
    (world, inner)
}

#[test]
fn a_directory_comes_back_inside_of_one_that_was_made_anew() {
    for partial in [&[][..], &["--partial"]] {
        let (world, inner) = inner_and_outer();
        let plan = world.ok(&[&["redo", "-n", &inner], partial].concat());
        assert!(plan.contains("would redo 1 operation"), "{plan}");
        world.ok(&[&["redo", &inner], partial].concat());
        assert_eq!(world.tree().names(), ["", "e", "e/x", "e/z"]);
        assert_eq!(status_of(&world, &newest(&world, "write")), "committed");
        world.ok(&["undo", &newest(&world, "redo")]);
        assert_eq!(world.tree().names(), ["", "e", "e/x"]);
        world.check_store();
    }
}

#[test]
fn what_came_back_into_a_directory_goes_with_the_write_that_made_it() {
    let (world, inner) = inner_and_outer();
    world.ok(&["redo", &inner]);
    let write = newest(&world, "write");
    let plan = world.ok(&["undo", "-n", &write]);
    assert!(plan.contains("writes inside its directory"), "{plan}");
    world.ok(&["undo", &write]);
    assert_eq!(world.tree().names(), [""]);
    let made = newest(&world, "mkdir");
    assert_eq!(status_of(&world, &made), "undone");
    world.ok(&["redo"]);
    assert_eq!(world.tree().names(), ["", "e", "e/x", "e/z"]);
    world.check_store();
}

/// Two writes that make the same name, both undone, and the first redone. Gives both.
fn first_came_back(names: [&str; 2]) -> (World, [String; 2]) {
    let world = World::new();
    let mut made = Vec::new();
    for name in names {
        world.ok(&["write", "-p", name, "--text", name]);
        made.push(newest(&world, "write"));
        world.ok(&["undo"]);
    }
    world.ok(&["redo", &made[0]]);
    (world, made.try_into().unwrap())
}

#[test]
fn a_redo_over_what_another_redo_brought_takes_that_back_and_says_so() {
    for force in [&[][..], &["--force"]] {
        for names in [["d/b", "d/a"], ["f", "f"]] {
            let (world, [first, second]) = first_came_back(names);
            let plan = world.ok(&[&["redo", "-n", &second], force].concat());
            assert!(plan.contains(&format!("{first}  undo")), "{plan}");
            let told = world.ok(&[&["redo", &second], force].concat());
            assert!(told.contains(&format!("undid {first}")), "{told}");
            // What is gone is not called in effect.
            assert_eq!(status_of(&world, &first), "undone", "{names:?}");
            assert_eq!(status_of(&world, &second), "committed", "{names:?}");
            assert_eq!(world.read(names[1]), names[1]);
            assert_eq!(world.path(names[0]).exists(), names[0] == names[1]);
            // And the act is one: it goes and comes as a whole.
            world.ok(&["undo", &ids(&world, "undo")[0]]);
            assert_eq!(world.read(names[0]), names[0]);
            assert_eq!(status_of(&world, &first), "committed", "{names:?}");
            world.check_store();
        }
    }
}

#[test]
fn another_agents_work_that_a_redo_brought_back_needs_a_word() {
    let world = World::new();
    world.ok(&["--agent", "bob", "write", "-p", "d/b", "--text", "b"]);
    let bobs = newest(&world, "write");
    world.ok(&["--agent", "bob", "undo"]);
    world.ok(&["--agent", "ann", "write", "-p", "d/a", "--text", "a"]);
    let anns = newest(&world, "write");
    world.ok(&["--agent", "ann", "undo"]);
    world.ok(&["--agent", "bob", "redo"]);
    for force in [&[][..], &["--force"]] {
        let redo = [&["--agent", "ann", "redo", &anns], force].concat();
        let told = json(&world, 1, &redo);
        assert_eq!(told["code"], "needs-word", "{told}");
        assert_eq!(world.read("d/b"), "b");
    }
    world.ok(&["--agent", "ann", "redo", &anns, "--others"]);
    assert_eq!(status_of(&world, &bobs), "undone");
    world.check_store();
}

#[test]
fn nothing_is_taken_back_for_a_redo_that_does_not_happen() {
    let world = World::new();
    world.ok(&["write", "-p", "d/a", "--text", "A"]);
    let first = newest(&world, "write");
    world.ok(&["undo"]);
    fs::create_dir(world.path("d")).unwrap();
    world.ok(&["write", "d/b", "--text", "B"]);
    let told = world.fails(1, &["redo", &first]);
    assert!(!told.contains("--partial"), "{told}");
    let plan = said(&world.run(&["redo", "-n", &first]));
    assert!(!plan.contains("--partial"), "{plan}");
    for dry in [&["-n"][..], &[]] {
        let output = world.run(&[&["redo", &first, "--partial"], dry].concat());
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert_eq!(world.read("d/b"), "B");
    }
    assert_eq!(status_of(&world, &newest(&world, "write")), "committed");
    // The ways that are named work.
    assert!(told.contains("--force"), "{told}");
    world.ok(&["redo", &first, "--force"]);
    assert_eq!(world.read("d/a"), "A");
    world.ok(&["undo"]);
    assert_eq!(world.read("d/b"), "B");
    world.check_store();
}

#[test]
fn what_a_command_did_before_a_call_inside_of_it_failed_goes_after_the_rest_of_it() {
    let world = World::new();
    world.file("d/f", "d\n");
    world.file("e/f", "e\n");
    let before = world.tree().without_times();
    let program = env!("CARGO_BIN_EXE_backout");
    let line = format!("rm -rf d; {program} mv d k 2> /dev/null; mv e d");
    world.ok(&["run", "--", "sh", "-c", &line]);
    let plan = world.json(&["undo", "-n"]);
    assert_eq!(plan["is_executable"], true, "{plan}");
    to_and_fro(&world, &before);
}

#[test]
fn a_file_of_two_names_that_a_call_inside_removed_comes_back_with_both() {
    let world = World::new();
    world.file("d/a", "0\n");
    std::fs::hard_link(world.path("d/a"), world.path("l")).unwrap();
    let before = world.tree().without_times();
    let program = env!("CARGO_BIN_EXE_backout");
    let line = format!("echo 1 >> d/a; {program} rm -r d");
    world.ok(&["run", "--", "sh", "-c", &line]);
    assert_eq!(world.read("l"), "0\n1\n");
    to_and_fro(&world, &before);
}

#[test]
fn a_redo_over_a_file_in_a_directory_that_the_command_moves_is_taken_back_by_the_name_it_gives() {
    let world = World::new();
    world.file("d/x", "1\n");
    world.ok(&["run", "--", "sh", "-c", "mv d t; echo 2 > t/n"]);
    world.ok(&["undo"]);
    world.file("d/n", "theirs\n");
    let before = world.tree().without_times();
    world.fails(1, &["redo"]);
    world.ok(&["redo", "--force"]);
    assert_eq!(world.tree().names(), ["", "t", "t/n", "t/x"]);
    world.ok(&["undo", &newest(&world, "redo")]);
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
    world.ok(&["redo", "--force"]);
    assert_eq!(world.read("t/n"), "2\n");
    to_and_fro(&world, &before);
}

#[test]
fn a_forced_redo_that_had_to_undo_a_move_is_taken_back_and_done_again() {
    let world = World::new();
    world.file("a", "1\n");
    fs::create_dir(world.path("d")).unwrap();
    world.ok(&["run", "--", "sh", "-c", "echo 2 > a"]);
    world.ok(&["undo"]);
    world.ok(&["mv", "a", "d/a"]);
    fs::write(world.path("d/a"), "1\ntheirs\n").unwrap();
    let before = world.tree().without_times();
    world.ok(&["redo", "--force"]);
    assert_eq!(world.tree().names(), ["", "a", "d"]);
    assert_eq!(world.read("a"), "2\n");
    for _ in 0..2 {
        world.ok(&["undo"]);
        let now = world.tree().without_times();
        assert!(now == before, "{}", now.difference(&before));
        world.ok(&["redo", "--force"]);
        assert_eq!(world.read("a"), "2\n");
        assert_eq!(world.tree().names(), ["", "a", "d"]);
    }
    world.check_store();
}
