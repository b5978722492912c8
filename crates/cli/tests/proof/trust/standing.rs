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

#[test]
fn an_undo_that_died_before_its_first_step_and_is_kept_is_not_done() {
    for line in ["mkdir n; echo n > n/n; echo x >> f", "echo x >> f"] {
        let world = World::new();
        world.file("f", "f\n");
        let id = run(&world, line);
        dies(&world, "engine.armed", &["undo"]);
        world.file("f", "f\nx\nforeign\n");
        world.fails(1, &["recover"]);
        let undo = newest(&world, "undo");
        let kept = world.ok(&["recover", "--keep", &undo]);
        assert!(!kept.contains("undo with"), "{kept}");
        let not_done = "what is there is kept; nothing is as this undo was to make it, so it counts as not done";
        assert!(kept.contains(not_done), "{kept}");
        world.check_store();
        // It took nothing back, so there is nothing to take back of it.
        world.fails(1, &["undo", &undo, "--force"]);
        assert_eq!(world.read("f"), "f\nx\nforeign\n");
        // The command is in effect as ever.
        world.ok(&["undo", &id, "--force"]);
        assert_eq!(world.read("f"), "f\n");
        world.ok(&["redo"]);
        assert_eq!(world.read("f"), "f\nx\nforeign\n");
        world.check_store();
    }
}

#[test]
fn an_undo_that_is_kept_half_done_stands_for_what_it_did_and_no_more() {
    let world = World::new();
    world.file("d/x", "x\n");
    world.file("f", "f\n");
    world.file("g", "g\n");
    run(&world, "rm -r d; echo x >> f; echo y > n; echo h >> g");
    dies(&world, "file.swapped#3", &["undo"]);
    world.file("g", "foreign\n");
    world.fails(1, &["recover"]);
    let undo = newest(&world, "undo");
    let kept = world.ok(&["recover", "--keep", &undo]);
    let left = world.tree().without_times();
    let is_skipped = |name: &str| {
        let mut lines = kept.lines().map(str::trim_start);
        lines.any(|line| line.starts_with(name) && line.contains("skipped"))
    };
    assert!(is_skipped("g ") && !is_skipped("d "), "{kept}");
    let shown = world.ok(&["show", &undo]);
    assert!(
        shown.contains("g  not done when its process died"),
        "{shown}"
    );
    world.check_store();
    // Only what it did is taken back, without force, and comes again.
    world.ok(&["undo", &undo]);
    assert!(!world.path("d").exists());
    assert_eq!(world.read("g"), "foreign\n");
    world.check_store();
    world.ok(&["redo", &newest(&world, "redo")]);
    let now = world.tree().without_times();
    assert!(now == left, "{}", now.difference(&left));
    // What it may have replaced before somebody else did is to be had from it.
    world.ok(&["restore", "g", "--from", &undo]);
    assert_eq!(world.read("g"), "g\nh\n");
    world.check_store();
}

#[test]
fn force_is_not_advised_where_what_was_to_be_moved_is_gone() {
    let world = World::new();
    world.file("a", "1\n");
    run(&world, "mv a b");
    world.ok(&["undo"]);
    std::fs::remove_file(world.path("a")).unwrap();
    let refused = world.fails(1, &["redo"]);
    assert!(!refused.contains("--force"), "{refused}");
    let plan = world.ok(&["redo", "--force", "-n"]);
    assert!(plan.contains("would not redo"), "{plan}");
    world.fails(1, &["redo", "--force"]);
}
