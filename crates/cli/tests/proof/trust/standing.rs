//! What a redo, a recovery or a word about them stands for: a hint means what it was printed for, and what an act did not
//! make is not taken back with it.

use super::{newest, to_and_fro};
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
    let plan = told(&world, &["redo", "--force", "-n"]);
    assert!(plan.contains("would not redo"), "{plan}");
    world.fails(1, &["redo", "--force"]);
}

#[test]
fn a_redo_leaves_the_directory_that_somebody_filled_and_so_does_its_undo() {
    for force in [&[][..], &["--force"]] {
        let world = World::new();
        world.file("q", "0\n");
        run(&world, "mkdir c; echo x > q");
        world.ok(&["undo"]);
        world.file("c/f", "F\n");
        let before = world.tree().without_times();
        let plan = told(&world, &[&["redo", "-n"], force].concat());
        let left = "c  will be left as it is: the directory is not empty: f";
        assert!(plan.contains(left), "{plan}");
        world.ok(&[&["redo"], force].concat());
        assert_eq!(world.read("q"), "x\n");
        // What the hint names takes back what the redo did.
        let redo = newest(&world, "redo");
        let plan = told(&world, &["undo", &redo, "-n"]);
        let hint = format!("do it with `backout undo {redo}`");
        assert!(plan.contains(&hint), "{plan}");
        world.ok(&["undo", &redo]);
        let now = world.tree().without_times();
        assert!(now == before, "{}", now.difference(&before));
        world.check_store();
    }
    // Where there is nothing else to bring back, the plan says that it would not.
    let world = World::new();
    world.ok(&["mkdir", "c"]);
    world.ok(&["undo"]);
    world.file("c/f", "F\n");
    let plan = told(&world, &["redo", "-n"]);
    assert!(plan.contains("would not redo 1 operation"), "{plan}");
    let refused = world.fails(1, &["redo"]);
    let id = newest(&world, "mkdir");
    let hint = format!("see how it stands with `backout show {id}`");
    assert!(refused.contains(&hint), "{refused}");
}

#[test]
fn a_plan_speaks_of_an_operation_once_whoever_holds_its_parts() {
    let world = World::new();
    world.file("a", "a\n");
    world.file("b", "b\n");
    let id = run(&world, "echo x > a; echo x > b");
    world.ok(&["undo", "a"]);
    world.ok(&["redo"]);
    let plan = world.ok(&["undo", &id, "-n"]);
    assert!(plan.contains("would undo 1 operation"), "{plan}");
    assert_eq!(plan.matches(&id).count(), 1, "{plan}");
}

#[test]
fn what_somebody_removed_after_an_undo_is_no_damage_after_the_redo() {
    let world = World::new();
    world.file("d/y", "4\n");
    let id = run(&world, "rm -rf d");
    world.ok(&["undo"]);
    std::fs::remove_dir_all(world.path("d")).unwrap();
    let plan = told(&world, &["redo", "-n"]);
    assert!(plan.contains("d    is so already"), "{plan}");
    assert!(plan.contains("d/y  will be left as it is"), "{plan}");
    let redone = world.ok(&["redo"]);
    assert!(redone.contains("d/y  left as it is"), "{redone}");
    world.check_store();
    // What was left is not to be had by another redo, and that is said of the operation that was named.
    let refused = world.fails(1, &["redo", &id]);
    assert!(
        refused.contains(&format!("{id} is not undone")),
        "{refused}"
    );
    world.ok(&["undo"]);
    world.check_store();
    // The same of a tree that went as one: there is nothing to do, and the plan says so.
    let world = World::new();
    world.file("d/y", "4\n");
    world.ok(&["rm", "-r", "d"]);
    world.ok(&["undo"]);
    std::fs::remove_dir_all(world.path("d")).unwrap();
    let plan = told(&world, &["redo", "-n"]);
    assert!(plan.contains("would not redo 1 operation"), "{plan}");
    let refused = world.fails(1, &["redo"]);
    assert!(refused.contains("next: "), "{refused}");
}

#[test]
fn a_redo_that_has_to_take_later_work_back_does_nothing_if_somebody_wrote_in_between() {
    for remove in [&["rm", "e"][..], &["run", "--", "rm", "e"]] {
        for before in [None, Some("0\n")] {
            let world = World::new();
            if let Some(before) = before {
                world.file("e", before);
            }
            world.ok(&["write", "e", "--text", "1\n"]);
            world.ok(&["undo"]);
            world.file("e", "F\n");
            world.ok(remove);
            let log = world.operations();
            let plan = told(&world, &["redo", "-n"]);
            assert!(plan.contains("would not redo 2 operations"), "{plan}");
            let refused = world.fails(1, &["redo"]);
            assert!(refused.contains("nothing was redone"), "{refused}");
            assert!(!world.path("e").exists());
            assert_eq!(world.operations(), log);
            world.check_store();
        }
    }
}

#[test]
fn a_tree_that_came_back_as_one_is_removed_again_whoever_removed_it_since() {
    let removals = [&["rm", "-r", "d"][..], &["run", "--", "rm", "-r", "d"]];
    for first in removals {
        for second in removals {
            let world = World::new();
            world.file("d/e", "0\n");
            let before = world.tree().without_times();
            world.ok(first);
            let verb = if *first == *removals[0] {
                "remove"
            } else {
                "run"
            };
            let id = newest(&world, verb);
            world.ok(&["undo"]);
            world.ok(second);
            let plan = told(&world, &["redo", "-n"]);
            assert!(plan.contains("would redo 2 operations"), "{plan}");
            world.ok(&["redo"]);
            assert!(!world.path("d").exists());
            world.ok(&["undo", &id]);
            let now = world.tree().without_times();
            assert!(now == before, "{}", now.difference(&before));
            world.check_store();
        }
    }
}

#[test]
fn names_of_one_file_that_go_and_come_one_by_one_stay_names_of_one_file() {
    let world = World::new();
    world.file("z", "z\n");
    std::fs::hard_link(world.path("z"), world.path("z2")).unwrap();
    let before = world.tree().without_times();
    run(&world, "mv z w; ln w s; echo more >> w");
    let after = world.tree().without_times();
    for _ in 0..2 {
        world.ok(&["undo", "w"]);
        world.ok(&["undo", "z"]);
        let now = world.tree().without_times();
        assert!(now == before, "{}", now.difference(&before));
        world.ok(&["redo"]);
        world.ok(&["redo"]);
        let now = world.tree().without_times();
        assert!(now == after, "{}", now.difference(&after));
        world.check_store();
    }
    world.ok(&["undo", &newest(&world, "run")]);
    world.ok(&["redo"]);
    to_and_fro(&world, &before);
}

#[test]
fn a_write_that_was_taken_back_does_not_stand_in_the_way_of_a_trial() {
    let world = World::new();
    world.file("big", &"x".repeat(100_000));
    world.file("t/small", "1\n");
    world.file("t/deep/large", &"y".repeat(100_000));
    let before = world.tree();
    world.ok(&["try", "--", "sh", "-c", "echo more >> big; rm -r t"]);
    for name in ["big", "t/small", "t/deep/large"] {
        world.ok(&["write", name, "--text", "z"]);
    }
    let refused = world.fails(1, &["try", "--apply"]);
    assert!(
        refused.contains("big") && refused.contains('t'),
        "{refused}"
    );
    for _ in 0..3 {
        world.ok(&["undo"]);
    }
    world.ok(&["try", "--apply"]);
    assert!(world.read("big").ends_with("more\n"));
    assert!(!world.path("t").exists());
    world.ok(&["undo"]);
    assert_eq!(before.difference(&world.tree()), "");
    // What somebody else wrote since is theirs.
    world.ok(&["try", "--", "rm", "-r", "t"]);
    world.ok(&["write", "t/small", "--text", "z"]);
    world.ok(&["undo"]);
    std::fs::write(world.path("t/small"), "2\n").unwrap();
    world.fails(1, &["try", "--apply"]);
}
