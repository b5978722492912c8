//! Stories of trees that went and came as one, and in which somebody wrote since.

use std::fs;

use super::{Running, json, newest, outcomes};
use crate::world::{World, said};

/// A tree that was removed and came back as one. Gives the removal.
fn came_back() -> (World, String) {
    let world = World::new();
    world.file("d/y", "orig\n");
    world.ok(&["rm", "-r", "d"]);
    let removal = newest(&world, "remove");
    world.ok(&["undo"]);
    (world, removal)
}

/// The names in a brief difference.
fn names(world: &World, operation: &str) -> Vec<String> {
    let told = world.ok(&["diff", operation, "--name-only"]);
    told.lines().map(str::to_owned).collect()
}

#[test]
fn a_file_of_a_tree_that_came_back_is_restored_from_the_write_that_replaced_it() {
    let (world, removal) = came_back();
    world.ok(&["write", "d/y", "--text", "three\n"]);
    let told = world.ok(&["diff", &removal]);
    assert!(told.contains("-orig") && !told.contains("three"), "{told}");
    world.file("d/new", "n\n");
    assert_eq!(names(&world, &removal), ["d", "d/y"]);
    world.ok(&["restore", "d/y", "--from", &removal]);
    assert_eq!(world.read("d/y"), "orig\n");
    world.ok(&["rm", "d/y"]);
    world.ok(&["restore", "d", "--from", &removal]);
    assert_eq!(world.read("d/y"), "orig\n");
    assert_eq!(world.read("d/new"), "n\n");
    world.check_store();
}

#[test]
fn what_a_person_wrote_over_in_a_tree_that_came_back_is_not_called_restored() {
    let (world, removal) = came_back();
    world.file("d/y", "PERSON\n");
    let told = world.fails(1, &["restore", "d/y", "--from", &removal]);
    assert!(told.contains("not kept"), "{told}");
    assert_eq!(world.read("d/y"), "PERSON\n");
    assert!(!world.ok(&["diff", &removal]).contains("PERSON"));
    fs::remove_file(world.path("d/y")).unwrap();
    let told = world.fails(1, &["restore", "d/y", "--from", &removal]);
    assert!(told.contains("not kept"), "{told}");
    // And where nobody wrote, it is as asked.
    let (world, removal) = came_back();
    let told = world.ok(&["restore", "d/y", "--from", &removal]);
    assert!(told.contains("already as asked"), "{told}");
}

#[test]
fn a_new_directory_that_was_redone_is_restored_from_the_undo_and_from_the_redo() {
    for made in [
        &["write", "-p", "d/y", "--text", "made\n"][..],
        &["run", "--", "sh", "-c", "mkdir d; echo made > d/y"],
    ] {
        let world = World::new();
        world.ok(made);
        world.ok(&["undo"]);
        let undo = newest(&world, "undo");
        world.ok(&["redo"]);
        let redo = newest(&world, "redo");
        world.ok(&["write", "d/y", "--text", "later\n"]);
        world.ok(&["restore", "d/y", "--from", &undo]);
        assert_eq!(world.read("d/y"), "made\n", "{made:?}");
        world.ok(&["rm", "d/y"]);
        world.ok(&["restore", "d/y", "--from", &redo, "--after"]);
        assert_eq!(world.read("d/y"), "made\n", "{made:?}");
        world.check_store();
    }
}

#[test]
fn what_is_excluded_does_not_come_back_with_its_tree() {
    let world = World::new();
    for name in ["d/a", "d/keep", "d/s/b"] {
        world.file(name, "1\n");
    }
    world.ok(&["rm", "-r", "d"]);
    for choice in [
        ["--exclude", "d/keep"],
        ["--exclude", "d/s/**"],
        ["--only", "d/a"],
    ] {
        for dry in [&["undo", "-n"][..], &["undo"]] {
            let told = json(&world, 1, &[dry, &choice].concat());
            assert_eq!(told["code"], "inseparable", "{choice:?}: {told}");
            assert!(!world.path("d").exists(), "{choice:?}");
        }
    }
    world.ok(&["restore", "d/a", "--from", "@"]);
    assert_eq!(world.read("d/a"), "1\n");
    assert!(!world.path("d/keep").exists());
    world.check_store();
}

#[test]
fn what_is_excluded_is_not_taken_away_by_force_with_its_directory() {
    let world = World::new();
    world.ok(&["write", "-p", "e/z", "--text", "hi"]);
    for force in [&[][..], &["--force"]] {
        for dry in [
            &["undo", "-n", "--exclude", "e/z"][..],
            &["undo", "--exclude", "e/z"],
        ] {
            let output = world.run(&[dry, force].concat());
            assert_eq!(
                output.status.code(),
                Some(1),
                "{dry:?} {force:?}: {}",
                said(&output)
            );
            assert_eq!(world.read("e/z"), "hi");
        }
    }
    world.ok(&["undo"]);
    assert!(!world.path("e").exists());
    world.check_store();

    // What else is in its directory goes, and the directory stays.
    let world = World::new();
    let line = "mkdir d; echo 1 > d/a; echo 2 > d/keep";
    world.ok(&["run", "--", "sh", "-c", line]);
    world.ok(&["undo", "-n", "--exclude", "d/keep"]);
    world.ok(&["undo", "--exclude", "d/keep"]);
    assert_eq!(world.tree().names(), ["", "d", "d/keep"]);
    world.ok(&["undo"]);
    assert!(!world.path("d").exists());
    world.check_store();
}

#[test]
fn a_drifted_file_in_a_directory_that_was_redone_does_not_hold_the_others() {
    let world = World::new();
    world.ok(&[
        "run",
        "--",
        "sh",
        "-c",
        "mkdir d; echo 1 > d/a; echo 1 > d/b",
    ]);
    let run = newest(&world, "run");
    world.ok(&["undo"]);
    world.ok(&["redo"]);
    world.file("d/a", "P\n");
    assert_eq!(super::state_of(&world, &run, "d/b"), "comes-back");
    let partly = json(&world, 1, &["undo", "--partial"]);
    let told = outcomes(&world, &partly);
    assert!(
        told.contains(&("d/b".to_owned(), "restored".to_owned())),
        "{told:?}"
    );
    assert!(!world.path("d/b").exists());
    assert_eq!(world.read("d/a"), "P\n");
    world.ok(&["undo", &run, "--force"]);
    assert!(!world.path("d").exists());
    world.ok(&["redo"]);
    assert_eq!(world.read("d/a"), "P\n");
    world.check_store();
}

#[test]
fn a_dry_run_sees_what_somebody_wrote_in_a_directory_that_was_redone_below_a_later_write() {
    let world = World::new();
    world.ok(&["write", "-p", "d/x", "--text", "1"]);
    let write = newest(&world, "write");
    world.ok(&["undo"]);
    world.ok(&["redo"]);
    world.file("d/x", "P");
    world.ok(&["write", "d/y", "--text", "y"]);
    for dry in [&["undo", "-n"][..], &["undo"]] {
        let output = world.run(&[dry, &[&write]].concat());
        assert_eq!(output.status.code(), Some(1), "{dry:?}: {}", said(&output));
        assert_eq!(
            (world.read("d/x"), world.read("d/y")),
            ("P".to_owned(), "y".to_owned())
        );
    }
}

#[test]
fn what_a_removed_tree_has_is_found_by_the_name_of_a_file_in_it() {
    let world = World::new();
    world.ok(&["run", "--", "sh", "-c", "mkdir q; echo five > q/f"]);
    let run = newest(&world, "run");
    world.ok(&["rm", "-r", "q"]);
    let removal = newest(&world, "remove");
    let log = world.json(&["log", "q/f"]);
    let ids: Vec<&str> = log["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["id"].as_str().unwrap()[..8])
        .collect();
    assert_eq!(ids, [removal.as_str(), run.as_str()]);
    // A directory that was made has nothing to say of what others put there.
    assert_eq!(
        world.json(&["log", "q/other"])["operations"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    world.ok(&["restore", "q/f", "--from", &run, "--after"]);
    assert_eq!(world.read("q/f"), "five\n");
    world.check_store();
}

#[test]
fn a_directory_that_became_a_link_leads_nobody_to_the_command_he_typed() {
    let world = World::new();
    world.file("real/f", "R\n");
    world.file("d/f", "one\n");
    world.ok(&["write", "d/f", "--text", "2\n"]);
    fs::rename(world.path("d"), world.path("d.old")).unwrap();
    std::os::unix::fs::symlink("real", world.path("d")).unwrap();
    let told = world.fails(1, &["undo", "d/f"]);
    assert!(!told.contains("the same file"), "{told}");
    assert!(!told.contains("backout undo d/f"), "{told}");
    assert_eq!(world.read("real/f"), "R\n");
}

/// Both the dry run and the act are refused, and nothing happens.
fn is_refused(world: &World, arguments: &[&str]) {
    let before = world.tree();
    for dry in [&["-n"][..], &[]] {
        let output = world.run(&[arguments, dry].concat());
        let told = said(&output);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{arguments:?} {dry:?}: {told}"
        );
        let now = world.tree();
        assert!(now == before, "{arguments:?}: {}", now.difference(&before));
    }
}

#[test]
fn a_dry_run_sees_that_somebody_has_a_directory_where_a_tree_comes_back() {
    let world = World::new();
    world.file("d/a", "1\n");
    world.file("d/s/b", "2\n");
    world.ok(&["rm", "-r", "d"]);
    let removal = newest(&world, "remove");
    world.file("d/a", "P\n");
    world.ok(&["restore", "d/s", "--from", &removal]);
    is_refused(&world, &["undo", &removal]);

    let world = World::new();
    world.ok(&["write", "-p", "d/y", "--text", "Y"]);
    let write = newest(&world, "write");
    world.ok(&["undo"]);
    world.file("d/x", "x\n");
    fs::create_dir(world.path("e")).unwrap();
    world.ok(&["mv", "d/x", "e/x"]);
    is_refused(&world, &["redo", &write]);
}

#[test]
fn a_dry_run_sees_that_what_a_person_wrote_while_a_command_ran_does_not_merge() {
    let world = World::new();
    world.file("a", "1\n2\n3\n");
    let running = Running::start(&world, &[], "echo A >> a", "echo A2 >> a");
    let text = world.read("a") + "PERSON\n";
    world.file("a", &text);
    let output = running.go_on(&world);
    assert!(output.status.success(), "{}", said(&output));
    is_refused(&world, &["undo", "--merge"]);
}

#[test]
fn a_redo_of_a_forced_undo_of_a_new_directory_is_taken_back_by_the_name_it_gives() {
    let world = World::new();
    world.ok(&["write", "-p", "e/z", "--text", "t2"]);
    world.file("e/z", "n\n");
    world.ok(&["undo", "--force"]);
    for _ in 0..2 {
        world.ok(&["redo"]);
        assert_eq!(world.read("e/z"), "n\n");
        // Without a name it is in conflict, as it was before.
        is_refused(&world, &["undo"]);
        let redo = newest(&world, "redo");
        world.ok(&["undo", "-n", &redo]);
        world.ok(&["undo", &redo]);
        assert!(!world.path("e").exists());
    }
    world.check_store();
}

#[test]
fn nobody_is_said_to_have_removed_what_a_redo_brought_back() {
    let world = World::new();
    world.file("d/x", "x\n");
    world.ok(&["run", "--", "sh", "-c", "mv d e; echo y > e/y"]);
    world.file("e/y", "PERSON\n");
    world.ok(&["undo", "--force"]);
    world.ok(&["redo"]);
    for arguments in [&["undo", "-n"][..], &["undo"]] {
        let output = world.run(arguments);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("content changed since"), "{told}");
        assert!(!told.contains("removed it"), "{told}");
    }
    assert_eq!(world.read("e/y"), "PERSON\n");
}

#[test]
fn of_a_large_tree_that_came_back_it_is_said_that_it_may_have_changed() {
    let world = World::new();
    for number in 0..=1000 {
        world.file(&format!("d/{number}"), "orig\n");
    }
    world.ok(&["rm", "-r", "d"]);
    let removal = newest(&world, "remove");
    world.ok(&["undo"]);
    world.file("d/7", "PERSON\n");
    let told = world.fails(1, &["restore", "d/7", "--from", &removal]);
    assert!(
        told.contains("its directory came and went as one, and `"),
        "{told}"
    );
    assert!(told.contains("` may have changed since"), "{told}");
    assert_eq!(world.read("d/7"), "PERSON\n");
}
