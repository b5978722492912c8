//! Stories of what was brought back: by which name it goes and comes again, and which way.

use std::fs;

use super::newest;
use super::promised::{named, obey};
use crate::world::{World, said};

/// The act that an undo or a redo says it was.
#[track_caller]
fn act(told: &str) -> String {
    named(told, "take this back with")[1].clone()
}

fn both(world: &World, arguments: &[&str]) -> String {
    let output = world.run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    said(&output)
}

#[test]
fn a_redo_of_a_forced_undo_is_taken_back_by_its_name_also_where_an_older_redo_holds_the_file() {
    let world = World::new();
    world.file("d/f", "A");
    world.ok(&["write", "d/f", "--text", "B"]);
    world.ok(&["undo"]);
    world.ok(&["redo"]);
    fs::remove_dir_all(world.path("d")).unwrap();
    world.ok(&["undo", "--force"]);
    assert_eq!(world.read("d/f"), "A");
    for _ in 0..2 {
        let told = both(&world, &["redo"]);
        assert!(!world.path("d").exists());
        world.ok(&["undo", &act(&told), "-n"]);
        obey(&world, &[], &told, "take this back with");
        assert_eq!(world.read("d/f"), "A");
        world.check_store();
    }
}

#[test]
fn the_hint_of_a_plan_to_take_back_a_redone_part_means_that_part() {
    let world = World::new();
    world.ok(&["run", "--", "sh", "-c", "echo 1 > f; echo 1 > g"]);
    world.ok(&["undo", "f"]);
    world.ok(&["redo"]);
    let told = both(&world, &["undo", "-n"]);
    obey(&world, &[], &told, "do it with");
    assert!(!world.path("f").exists() && world.path("g").exists());

    let world = World::new();
    world.file("z", "z\n");
    world.ok(&["run", "--", "sh", "-c", "echo zz > z; echo y > y"]);
    world.file("z", "somebody's\n");
    world.ok(&["undo", "y"]);
    world.ok(&["redo"]);
    let told = both(&world, &["undo", "--force", "-n"]);
    obey(&world, &[], &told, "do it with");
    assert!(!world.path("y").exists());
    assert_eq!(world.read("z"), "somebody's\n");
    world.check_store();
}

#[test]
fn the_hint_of_a_plan_to_bring_back_an_undo_that_went_both_ways_is_done() {
    let world = World::new();
    world.file("f", "1\n");
    world.ok(&["run", "--", "sh", "-c", "echo 2 >> f"]);
    let undone = both(&world, &["undo"]);
    world.ok(&["run", "--", "sh", "-c", "echo 3 >> f"]);
    world.ok(&["undo", &act(&undone)]);
    assert_eq!(world.read("f"), "1\n2\n");
    let told = both(&world, &["redo", "-n"]);
    assert!(told.contains("would redo 2 operations"), "{told}");
    obey(&world, &[], &told, "do it with");
    assert_eq!(world.read("f"), "1\n3\n");
    world.check_store();
}

#[test]
fn what_a_redo_could_only_undo_in_part_is_to_be_undone_again() {
    let world = World::new();
    world.file("f", "1\n");
    world.file("g", "1\n");
    world.ok(&["run", "--", "sh", "-c", "echo 2 >> f"]);
    let first = newest(&world, "run");
    world.ok(&["undo"]);
    world.ok(&["run", "--", "sh", "-c", "echo 3 >> f; echo 3 >> g"]);
    world.file("g", "1\n3\nsomebody's\n");
    let told = said(&world.run(&["redo", &first, "--partial"]));
    assert_eq!(world.read("f"), "1\n2\n", "{told}");
    world.file("g", "1\n3\n");
    obey(&world, &[], &told, "put right what stands in the way");
    assert_eq!(
        (world.read("f"), world.read("g")),
        ("1\n2\n".into(), "1\n".into())
    );
    world.check_store();
}

#[test]
fn an_undo_that_was_brought_back_is_not_undone_again_by_a_second_redo() {
    let world = World::new();
    world.file("a", "1");
    world.ok(&["write", "a", "--text", "2"]);
    let write = newest(&world, "write");
    let undo = act(&both(&world, &["undo"]));
    world.ok(&["redo"]);
    for arguments in [&["redo", &undo, "-n"][..], &["redo", &undo]] {
        let told = world.fails(1, arguments);
        assert!(told.contains("taken back before"), "{told}");
        assert_eq!(world.read("a"), "2");
    }
    let told = world.fails(1, &["redo", &undo]);
    let undone = obey(&world, &[], &told, "take that back with");
    assert_eq!(world.read("a"), "1");
    // An undo of the undo is asked for as an undo, and its redo is not asked for twice either.
    let back = act(&both(&world, &["undo", &act(&undone)]));
    assert_eq!(world.read("a"), "2");
    world.ok(&["redo", &back]);
    assert_eq!(world.read("a"), "1");
    world.fails(1, &["redo", &back]);
    assert_eq!(world.read("a"), "1");
    world.ok(&["redo", &write]);
    assert_eq!(world.read("a"), "2");
    world.check_store();
}

#[test]
fn what_is_left_of_an_undo_comes_back_by_its_name() {
    let world = World::new();
    world.ok(&["write", "a", "--text", "A"]);
    let first = newest(&world, "write");
    world.ok(&["write", "b", "--text", "B"]);
    let second = newest(&world, "write");
    let undo = act(&both(&world, &["undo", &first, &second]));
    world.ok(&["redo", &second]);
    assert!(world.path("b").exists() && !world.path("a").exists());
    world.ok(&["redo", &undo]);
    assert!(world.path("b").exists() && world.path("a").exists());
    world.fails(1, &["redo", &undo]);
    assert!(world.path("b").exists() && world.path("a").exists());
    world.check_store();
}

#[test]
fn what_an_agent_brought_back_of_others_is_called_that() {
    let world = World::new();
    world.file("a", "0");
    world.ok(&["--agent", "x", "write", "a", "--text", "1"]);
    let write = newest(&world, "write");
    world.ok(&["--agent", "x", "undo"]);
    world.ok(&["--agent", "y", "redo", &write]);
    let plan = world.ok(&["--agent", "y", "undo", "-n"]);
    assert!(plan.contains("(what y brought back below .)"), "{plan}");
    let told = world.ok(&["--agent", "y", "undo"]);
    assert!(told.contains("(what y brought back below .)"), "{told}");
    assert_eq!(world.read("a"), "0");
    world.ok(&["--agent", "y", "write", "b", "--text", "1"]);
    let told = world.ok(&["--agent", "y", "undo"]);
    assert!(told.contains("(the newest of y below .)"), "{told}");
}
