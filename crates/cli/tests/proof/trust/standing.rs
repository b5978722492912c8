//! What a redo, a recovery or a word about them stands for: a hint means what it was printed for, and what an act did not
//! make is not taken back with it.

use super::newest;
use crate::world::{World, said};

/// Runs a shell command under `run`, and gives its id.
fn run(world: &World, line: &str) -> String {
    world.ok(&["run", "--", "sh", "-c", line]);
    newest(world, "run")
}

/// Everything that is said, on whichever stream and with whatever code.
fn told(world: &World, arguments: &[&str]) -> String {
    said(&world.run(arguments))
}

#[test]
fn the_hints_of_a_redo_of_one_operation_name_it_and_not_the_act_that_took_more() {
    let world = World::new();
    world.file("a", "1\n");
    world.file("y", "y\n");
    run(&world, "cp a c");
    let second = run(&world, "echo 2 >> c; echo z >> y");
    world.ok(&["undo", "@-1"]);
    let act = newest(&world, "undo");
    let refused = told(&world, &["redo", &second]);
    for flag in ["--dry-run --diff", "--partial", "--force"] {
        let hint = format!("`backout redo {second} {flag}`");
        assert!(refused.contains(&hint), "{hint}: {refused}");
    }
    let plan = told(&world, &["redo", &second, "--force", "-n"]);
    let hint = format!("do it with `backout redo {second} --force`");
    assert!(plan.contains(&hint), "{plan}");
    assert!(!refused.contains(&act) && !plan.contains(&act), "{plan}");
}

/// Runs a command that dies at a named point.
fn dies(world: &World, point: &str, arguments: &[&str]) {
    let output = world
        .command(arguments)
        .env("BACKOUT_CRASH_AT", point)
        .output()
        .unwrap();
    assert!(output.status.code().is_none(), "{}", said(&output));
}

#[test]
fn a_redo_without_a_name_names_what_a_recovery_took_back() {
    let world = World::new();
    world.file("f", "f\n");
    dies(
        &world,
        "engine.before-commit",
        &["write", "f", "--text", "x"],
    );
    world.ok(&["recover"]);
    let write = newest(&world, "write");
    let refused = world.fails(1, &["redo"]);
    let hint = format!("bring it back with `backout redo {write}`");
    assert!(refused.contains(&hint), "{refused}");
    let why = "what a recovery took back comes only by name:";
    assert!(refused.contains(why), "{refused}");
    world.ok(&["redo", &write]);
    assert_eq!(world.read("f"), "x");
}
