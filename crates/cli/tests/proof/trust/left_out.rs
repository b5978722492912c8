//! What somebody leaves out stays, and what goes with something else is told.

use std::fs;

use crate::world::{World, said};

/// Runs a line that must be refused, and gives what it says.
fn refused(world: &World, arguments: &[&str]) -> String {
    let output = world.run(arguments);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    said
}

#[test]
fn what_was_written_in_a_moved_directory_goes_back_with_it_by_any_of_its_names() {
    for line in [
        &["undo", "d"][..],
        &["undo", "@-1", "--only", "d"],
        &["undo", "@-1", "--only", "e"],
    ] {
        let world = World::new();
        fs::create_dir(world.path("d")).unwrap();
        world.file("d/f", "1");
        world.ok(&["mv", "d", "e"]);
        world.ok(&["write", "e/f", "--text", "2"]);
        let told = world.ok(line);
        assert!(!told.contains("independent"), "{line:?}: {told}");
        assert_eq!(world.read("d/f"), "1", "{line:?}: {told}");
        assert!(!world.path("e").exists(), "{line:?}");
        world.ok(&["redo"]);
        assert_eq!(world.read("e/f"), "2", "{line:?}");
        world.check_store();
    }
}

#[test]
fn what_is_left_out_of_a_moved_directory_keeps_it_where_it_is() {
    let world = World::new();
    fs::create_dir(world.path("d")).unwrap();
    world.ok(&["mv", "d", "e"]);
    world.ok(&["write", "e/n", "--text", "2"]);
    for line in [
        &["undo", "@-1", "--exclude", "e/n", "-n"][..],
        &["undo", "@-1", "--exclude", "e/n"],
    ] {
        let told = refused(&world, line);
        assert!(told.contains("only taken back as one"), "{told}");
        assert_eq!(world.read("e/n"), "2");
    }
}

#[test]
fn a_directory_that_holds_what_is_left_out_stays_by_force_too() {
    let world = World::new();
    world.ok(&["mkdir", "d"]);
    world.ok(&["write", "d/f", "--text", "1"]);
    for more in [&[][..], &["--force"], &["--force", "-n"]] {
        let line = [&["undo", "@-1", "--exclude", "d/f"][..], more].concat();
        refused(&world, &line);
        assert_eq!(world.read("d/f"), "1", "{line:?}");
    }
    world.check_store();
}

#[test]
fn a_file_does_not_come_back_over_a_directory_that_holds_what_is_left_out() {
    let world = World::new();
    world.file("f", "1");
    world.ok(&["run", "--", "sh", "-c", "rm f; mkdir f; echo y > f/b"]);
    for more in [&[][..], &["-n"], &["--force"], &["--partial"]] {
        let line = [&["undo", "--exclude", "f/b"][..], more].concat();
        refused(&world, &line);
        assert_eq!(world.read("f/b"), "y\n", "{line:?}");
    }
    world.ok(&["undo"]);
    assert_eq!(world.read("f"), "1");
    world.check_store();
}

#[test]
fn a_way_back_to_a_checkpoint_leaves_what_is_left_out() {
    let world = World::new();
    world.file("b", "1");
    world.ok(&["checkpoint", "k", "--roots", "."]);
    fs::remove_file(world.path("b")).unwrap();
    fs::create_dir(world.path("b")).unwrap();
    world.file("b/z", "mine");
    for more in [&[][..], &["-n"]] {
        let line = [&["rollback", "--to", "k", "--exclude", "b/z"][..], more].concat();
        let told = refused(&world, &line);
        assert!(
            told.contains("is a directory now, and holds what you left out"),
            "{told}"
        );
        assert!(told.contains("leave that name out as well"), "{told}");
        assert!(
            told.contains("or bring all of it back with `backout rollback --to k`"),
            "{told}"
        );
        assert_eq!(world.read("b/z"), "mine");
    }
    world.ok(&["rollback", "--to", "k"]);
    assert_eq!(world.read("b"), "1");
    world.ok(&["undo"]);
    assert_eq!(world.read("b/z"), "mine");
}

#[test]
fn a_part_that_goes_back_to_a_checkpoint_is_told_as_a_part() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.file(name, "1");
    }
    world.ok(&["checkpoint", "k", "--roots", "."]);
    for name in ["a", "b", "c"] {
        world.file(name, "2");
    }
    let told = world.ok(&["rollback", "--to", "k", "--only", "a"]);
    assert!(told.contains("brought a back to checkpoint k"), "{told}");
    let told = world.ok(&["rollback", "--to", "k", "--exclude", "c"]);
    assert!(told.contains("brought b back to checkpoint k"), "{told}");
    assert_eq!(
        [world.read("a"), world.read("b"), world.read("c")],
        ["1", "1", "2"]
    );
}

#[test]
fn what_is_in_a_restored_directory_and_was_not_there_then_is_told() {
    let world = World::new();
    fs::create_dir(world.path("d")).unwrap();
    world.file("d/a", "1");
    world.ok(&["rm", "-r", "d"]);
    fs::create_dir(world.path("d")).unwrap();
    world.file("d/p", "mine");
    let output = world.run(&["restore", "d", "--from", "@"]);
    let told = said(&output);
    assert!(output.status.success(), "{told}");
    assert!(
        told.contains("also holds what was not there then, and that stays: p"),
        "{told}"
    );
    assert_eq!(world.read("d/p"), "mine");
}

#[test]
fn rows_that_are_taken_back_first_leave_other_bytes_and_the_dry_run_says_so() {
    let world = World::new();
    let sql = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'a')";
    world.ok(&["sql", "--db", "s.db", "--create", sql]);
    world.ok(&["cp", "s.db", "c.db"]);
    world.ok(&["sql", "--db", "c.db", "UPDATE t SET v = 'q'"]);
    let why = "its rows are taken back first, and that leaves other bytes in the file";
    let foretold = refused(&world, &["undo", "@-1", "-n"]);
    assert!(foretold.contains(why), "{foretold}");
    let told = refused(&world, &["undo", "@-1"]);
    assert!(told.contains("--force"), "{told}");
    world.ok(&["undo", "@-1", "--force"]);
    assert!(!world.path("c.db").exists());
    world.ok(&["redo"]);
    let rows = world.ok(&["sql", "--db", "c.db", "SELECT v FROM t"]);
    assert!(rows.contains('q'), "{rows}");
}

#[test]
fn the_plan_of_a_part_knows_that_its_directory_is_a_file_now() {
    let world = World::new();
    world.file("d/s", "0\n");
    world.file("d/t", "0\n");
    // The command itself put a file there: that gives way, and both the plan and the undo say so.
    world.ok(&["run", "--", "sh", "-c", "rm -rf d; echo x > d"]);
    let planned = world.ok(&["undo", "d/s", "-n"]);
    assert!(planned.contains("d    will be as before"), "{planned}");
    let undone = world.ok(&["undo", "d/s"]);
    assert!(undone.contains("d    restored"), "{undone}");
    assert_eq!(world.read("d/s"), "0\n");
    world.ok(&["redo"]);
    assert_eq!(world.read("d"), "x\n");
    world.ok(&["undo"]);
    // A later command did: that is in the way, and both say so.
    world.ok(&["run", "--", "rm", "-rf", "d"]);
    world.ok(&["run", "--", "sh", "-c", "echo x > d"]);
    let why = "`d` is not a directory any more";
    let planned = refused(&world, &["undo", "d/s", "-n"]);
    assert!(planned.contains(why), "{planned}");
    let told = refused(&world, &["undo", "d/s"]);
    assert!(told.contains(why), "{told}");
    assert_eq!(world.read("d"), "x\n");
    world.check_store();
}

#[test]
fn what_lay_in_a_directory_that_is_a_file_now_does_not_hold_up_the_rest() {
    for in_place in ["echo f > d", "mkdir dd; ln -s dd d"] {
        let world = World::new();
        fs::create_dir(world.path("d")).unwrap();
        world.file("e", "0\n");
        let line = "echo 1 > e; mkdir d/l; echo 1 > d/l/x";
        world.ok(&["run", "--", "sh", "-c", line]);
        fs::remove_dir_all(world.path("d")).unwrap();
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", in_place]).current_dir(world.path(""));
        assert!(shell.status().unwrap().success());
        let planned = world.ok(&["undo", "e", "-n"]);
        assert!(planned.contains("e  will be as before"), "{planned}");
        world.ok(&["undo", "e"]);
        assert_eq!(world.read("e"), "0\n");
        world.check_store();
    }
}
