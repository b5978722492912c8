//! Stories of promises: a plan that foretold what the act refused, a word that alone was not enough, a name that led nowhere.

use std::fs;

use super::{json, newest, state_of, to_and_fro};
use crate::world::{World, said};

/// Finds the command that stands behind some words, as a shell reads it, without the name of the program.
#[track_caller]
pub(super) fn named(told: &str, words: &str) -> Vec<String> {
    let line = told.lines().find(|line| line.contains(words));
    let line = line.unwrap_or_else(|| panic!("{words}: {told}"));
    let command = line.split('`').find_map(|it| it.strip_prefix("backout "));
    let words = command.unwrap().split(' ');
    words.map(|word| word.replace('\'', "")).collect()
}

/// Does what is advised, and sees that it works.
#[track_caller]
pub(super) fn obey(world: &World, agent: &[&str], told: &str, words: &str) -> String {
    let command = named(told, words);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    said_ok(world, &[agent, &command].concat())
}

#[track_caller]
fn said_ok(world: &World, arguments: &[&str]) -> String {
    let output = world.run(arguments);
    let told = said(&output);
    assert!(output.status.success(), "{arguments:?}: {told}");
    told
}

fn status_of(world: &World, id: &str) -> String {
    let shown = world.json(&["show", id]);
    shown["operation"]["status"].as_str().unwrap().to_owned()
}

#[test]
fn a_dry_run_sees_that_the_old_name_of_a_move_is_taken_where_a_newer_step_goes_first() {
    for taken in ["file", "directory"] {
        let world = World::new();
        world.file("e", "moved\n");
        fs::create_dir(world.path("d")).unwrap();
        world.ok(&["mv", "e", "d/e"]);
        let moved = newest(&world, "move");
        world.ok(&["chmod", "600", "d/e"]);
        let plan = world.ok(&["undo", &moved, "-n"]);
        assert!(plan.contains("would undo 2 operations"), "{plan}");
        match taken {
            "file" => fs::write(world.path("e"), "somebody's\n").unwrap(),
            _ => fs::create_dir(world.path("e")).unwrap(),
        }
        let plan = said(&world.run(&["undo", &moved, "-n"]));
        assert!(plan.contains("would not undo"), "{plan}");
        assert!(plan.contains("somebody else made it since"), "{plan}");
        let before = world.tree();
        world.fails(1, &["undo", &moved]);
        assert!(world.tree() == before);
        if taken == "file" {
            assert_eq!(world.read("e"), "somebody's\n");
            obey(&world, &[], &plan, "do it anyway");
            assert_eq!(world.read("e"), "moved\n");
            world.ok(&["redo"]);
            assert_eq!(world.read("e"), "somebody's\n");
        }
        world.check_store();
    }
}

#[test]
fn a_trial_that_is_shown_says_what_somebody_changed_meanwhile() {
    let world = World::new();
    world.file("a", "a\n");
    world.file("b", "b\n");
    world.file("m", "m\n");
    let script = "echo more >> a; echo more >> b; mv m n; echo new > c";
    said_ok(&world, &["try", "--", "sh", "-c", script]);
    let shown = world.ok(&["try", "--show"]);
    assert!(!shown.contains("somebody else"), "{shown}");
    // What our own operations changed and took back is as it was.
    world.ok(&["write", "a", "--text", "ours"]);
    let shown = world.ok(&["try", "--show"]);
    assert!(
        shown.contains("somebody else changed it meanwhile"),
        "{shown}"
    );
    world.ok(&["undo"]);
    let shown = world.ok(&["try", "--show"]);
    assert!(!shown.contains("somebody else"), "{shown}");
    fs::write(world.path("b"), "theirs\n").unwrap();
    fs::write(world.path("c"), "theirs too\n").unwrap();
    fs::write(world.path("m"), "and theirs\n").unwrap();
    let shown = world.json(&["try", "--show"]);
    let all = shown["changes"].as_array().unwrap().iter();
    let changed = all.filter(|it| it["is_conflict"] == true);
    let changed = changed.map(|it| it["path"].as_str().unwrap().rsplit('/').next().unwrap());
    assert_eq!(changed.collect::<Vec<_>>(), ["b", "c", "m"]);
    let told = world.fails(1, &["try", "--apply"]);
    assert!(told.contains('b') && told.contains('c'), "{told}");
    world.ok(&["try", "--apply", "--only", "a"]);
    assert_eq!(world.read("a"), "a\nmore\n");
    world.check_store();
}

#[test]
fn the_undo_that_a_redo_of_two_parts_names_takes_both_back() {
    let world = World::new();
    world.ok(&["write", "-p", "d/s", "--text", "hi"]);
    let write = newest(&world, "write");
    world.ok(&["undo", "d/s"]);
    world.ok(&["redo"]);
    // A redo brought the file, and the write itself made the directory.
    world.ok(&["undo", &write]);
    assert_eq!(world.tree().names(), [""]);
    let told = said_ok(&world, &["redo"]);
    assert_eq!(world.tree().names(), ["", "d", "d/s"]);
    obey(&world, &[], &told, "take this back with");
    assert_eq!(world.tree().names(), [""]);
    world.ok(&["redo"]);
    assert_eq!(world.read("d/s"), "hi");
    world.check_store();
}

#[test]
fn the_undo_of_a_path_in_a_directory_that_moved_is_named_by_the_name_that_was_written() {
    let world = World::new();
    fs::create_dir(world.path("e")).unwrap();
    world.ok(&["write", "e/x", "--text", "1"]);
    world.ok(&["mv", "e", "f"]);
    let told = said_ok(&world, &["undo", "f/x", "-n"]);
    obey(&world, &[], &told, "do it with");
    assert_eq!(world.tree().names(), ["", "e"]);
    world.check_store();
}

/// Ann's write of two files, bob's on top of one of them, and somebody's text over that.
fn of_two_agents() -> (World, String) {
    let world = World::new();
    let script = "printf a > f; printf a > g";
    world.ok(&["--agent", "ann", "run", "--", "sh", "-c", script]);
    let anns = newest(&world, "run");
    world.ok(&["--agent", "bob", "write", "f", "--text", "b"]);
    world.file("f", "somebody's");
    (world, anns)
}

#[test]
fn where_a_conflict_meets_another_agents_work_every_word_that_is_needed_is_named() {
    let ann = ["--agent", "ann"];
    for dry in [true, false] {
        for words in ["do it anyway", "do the rest"] {
            let (world, anns) = of_two_agents();
            let undo = ["--agent", "ann", "undo", &anns];
            let asked = if dry { &["-n"][..] } else { &[] };
            let told = said(&world.run(&[&undo[..], asked].concat()));
            assert!(told.contains("content changed since"), "{told}");
            let command = named(&told, words);
            assert!(command.iter().any(|it| it == "--others"), "{told}");
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            let output = world.run(&[&ann[..], &command].concat());
            let done = said(&output);
            if words == "do it anyway" {
                assert!(output.status.success(), "{command:?}: {done}");
                assert_eq!(world.tree().names(), [""]);
                world.ok(&["--agent", "ann", "redo"]);
            } else {
                assert!(
                    done.contains("was left as it is") || done.contains("were left"),
                    "{done}"
                );
                assert!(!world.path("g").exists(), "{done}");
            }
            assert_eq!(world.read("f"), "somebody's");
            world.check_store();
        }
    }
}

#[test]
fn a_name_that_begins_with_a_dash_is_named_so_that_it_can_be_typed() {
    let world = World::new();
    world.ok(&["write", "./-n", "--text", "one"]);
    world.ok(&["write", "./-n", "--text", "two"]);
    let write = newest(&world, "write");
    fs::write(world.path("-n"), "somebody's").unwrap();
    let told = world.fails(1, &["undo", "./-n"]);
    assert!(told.contains("`./-n`: content changed since"), "{told}");
    obey(&world, &[], &told, "do it anyway");
    assert_eq!(world.read("-n"), "one");
    world.ok(&["redo"]);
    // What the reader typed is said again as it can be typed.
    let told = said(&world.run(&["undo", "--only", "./-n", "--", "-n"]));
    assert!(
        told.contains("undo './-n'") || told.contains("undo ./-n"),
        "{told}"
    );
    obey(&world, &[], &told, "do it anyway");
    assert_eq!(world.read("-n"), "one");
    assert_eq!(status_of(&world, &write), "undone");
}

#[test]
fn an_undo_after_a_redo_of_a_part_takes_back_that_part() {
    let world = World::new();
    for name in ["a", "b"] {
        world.file(name, "old");
    }
    world.ok(&["run", "--", "sh", "-c", "printf new > a; printf new > b"]);
    let run = newest(&world, "run");
    world.ok(&["undo", "a"]);
    let before = world.tree().without_times();
    world.ok(&["redo"]);
    assert_eq!(
        (world.read("a"), world.read("b")),
        ("new".to_owned(), "new".to_owned())
    );
    let plan = world.ok(&["undo", "-n"]);
    assert!(!plan.contains("  b  "), "{plan}");
    to_and_fro(&world, &before);
    assert_eq!(state_of(&world, &run, "b"), "comes-back");
    // All that is in effect was brought by one redo: then it is the whole.
    world.ok(&["undo", &run]);
    world.ok(&["redo"]);
    world.ok(&["undo"]);
    assert_eq!(
        (world.read("a"), world.read("b")),
        ("old".to_owned(), "old".to_owned())
    );
    world.check_store();
}

#[test]
fn a_forced_redo_below_a_later_write_that_came_back_takes_that_along() {
    let world = World::new();
    world.file("f", "zero");
    world.ok(&["write", "f", "--text", "one"]);
    let first = newest(&world, "write");
    world.ok(&["write", "f", "--text", "two"]);
    let second = newest(&world, "write");
    world.ok(&["undo", &first]);
    world.ok(&["redo", &second, "--force"]);
    assert_eq!(world.read("f"), "two");
    let before = world.tree().without_times();
    let plan = world.ok(&["redo", &first, "--force", "-n"]);
    assert!(
        plan.contains(&format!("{second}  undo")) || plan.contains(&second),
        "{plan}"
    );
    world.ok(&["redo", &first, "--force"]);
    assert_eq!(world.read("f"), "one");
    // What is gone is not called in effect.
    assert_eq!(status_of(&world, &second), "undone");
    assert_eq!(status_of(&world, &first), "committed");
    to_and_fro(&world, &before);
}

#[test]
fn a_forced_undo_of_a_new_key_takes_the_tables_along_that_it_had_made() {
    for (name, text) in [
        ("a.toml", "top = 1\n"),
        ("a.json", "{\n  \"top\": 1\n}\n"),
        ("a.yaml", "top: 1\n"),
        ("a.ini", "[top]\nx = 1\n"),
    ] {
        let world = World::new();
        world.file(name, text);
        let key = if name == "a.ini" {
            "s.port"
        } else {
            "s.web.port"
        };
        world.ok(&["set", name, key, "81"]);
        let changed = world.read(name).replace("81", "92");
        fs::write(world.path(name), &changed).unwrap();
        assert_eq!(json(&world, 1, &["undo"])["code"], "conflict");
        world.ok(&["undo", "--force"]);
        assert_eq!(world.read(name), text, "{name}");
        world.ok(&["redo"]);
        assert_eq!(world.read(name), changed, "{name}");
        // A remark of somebody's keeps its table.
        world.check_store();
    }
}
