//! Stories of plans in which newer steps go first: what somebody did in between is foreseen as the undo would find it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::newest;
use crate::world::{World, said};

/// The plan says that it would not, and why; the undo says the same and changes nothing.
#[track_caller]
fn is_foreseen(world: &World, arguments: &[&str], why: &str) {
    let before = world.tree();
    let plan = world.run(&[arguments, &["-n"]].concat());
    assert_eq!(plan.status.code(), Some(1), "{}", said(&plan));
    assert!(said(&plan).contains(why), "{}", said(&plan));
    let told = world.fails(1, arguments);
    assert!(told.contains(why), "{told}");
    let now = world.tree();
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}

fn mode(world: &World, name: &str, mode: u32) {
    fs::set_permissions(world.path(name), fs::Permissions::from_mode(mode)).unwrap();
}

fn ran(world: &World, line: &str) -> String {
    let output = world.run(&["run", "--", "sh", "-c", line]);
    assert!(output.status.success(), "{}", said(&output));
    newest(world, "run")
}

#[test]
fn the_mode_that_somebody_gave_a_directory_is_foreseen_where_what_was_written_in_it_goes_first() {
    let world = World::new();
    world.ok(&["mkdir", "d"]);
    mode(&world, "d", 0o700);
    world.ok(&["write", "d/f", "--text", "ours"]);
    let made = newest(&world, "mkdir");
    is_foreseen(&world, &["undo", &made], "mode is 0700, was 0755");
}

/// What somebody does in the directory that a command made as `e` and that is called `g` now.
type Meddling = (fn(&World), &'static str);

#[test]
fn what_somebody_did_in_a_directory_that_was_moved_is_foreseen() {
    let meddling: [Meddling; 6] = [
        (
            |world| world.file("g/k", "theirs"),
            "somebody else changed it since",
        ),
        (
            |world| world.file("g/new", "theirs"),
            "the directory is not empty: new",
        ),
        (
            |world| world.file("g/in/new", "theirs"),
            "the directory is not empty: new",
        ),
        (|world| mode(world, "g", 0o700), "mode is 0700, was 0755"),
        (|world| mode(world, "g/k", 0o600), "mode is 0600, was 0644"),
        (
            |world| world.file("g/gone", "theirs"),
            "the directory is not empty: gone",
        ),
    ];
    for (meddle, why) in meddling {
        let world = World::new();
        let line = "mkdir -p e/in; echo 1 > e/k; echo 2 > e/gone; rm e/gone";
        let made = ran(&world, line);
        world.ok(&["mv", "e", "g"]);
        let plan = world.ok(&["undo", &made, "-n"]);
        assert!(plan.contains("would undo 2 operations"), "{plan}");
        meddle(&world);
        is_foreseen(&world, &["undo", &made], why);
    }
}

#[test]
fn who_moves_a_directory_to_and_fro_changes_nothing_in_it() {
    let world = World::new();
    let before = world.tree().without_times();
    let made = ran(&world, "mkdir e; echo 1 > e/k");
    world.ok(&["mv", "e", "g"]);
    world.ok(&["mv", "g", "h"]);
    world.ok(&["chmod", "600", "h/k"]);
    world.ok(&["undo", &made, "-n"]);
    world.ok(&["undo", &made]);
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}

#[test]
fn a_place_that_somebody_made_anew_is_foreseen_where_its_directory_moved() {
    let world = World::new();
    world.file("p/a", "1\n");
    let gone = ran(&world, "mv p/a p/b; rm p/b");
    world.ok(&["mv", "p", "q"]);
    world.file("q/a", "theirs\n");
    is_foreseen(&world, &["undo", &gone], "somebody else made it since");
}

#[test]
fn what_has_no_directory_to_come_back_to_is_foreseen() {
    let world = World::new();
    world.file("d/k/a", "1\n");
    let moved = ran(&world, "mv d/k e");
    world.ok(&["chmod", "700", "e"]);
    fs::remove_dir(world.path("d")).unwrap();
    is_foreseen(&world, &["undo", &moved], "its directory `d` is gone");
}

#[test]
fn other_bytes_of_the_same_number_in_a_file_that_was_moved_are_foreseen() {
    let world = World::new();
    world.file("a", "1\n");
    world.ok(&["mv", "a", "b"]);
    let moved = newest(&world, "move");
    world.file("b", "2\n");
    world.ok(&["rm", "b"]);
    is_foreseen(
        &world,
        &["undo", &moved],
        "somebody else changed it before ",
    );
}

#[test]
fn edits_that_do_not_merge_because_of_what_somebody_wrote_between_them_are_foreseen() {
    let world = World::new();
    let text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    world.file("f", text);
    world.ok(&["edit", "f", "-s", "2", "-r", "two"]);
    let first = newest(&world, "edit");
    world.file("f", &text.replace('2', "zwei"));
    world.ok(&["edit", "f", "-s", "zwei", "-r", "deux"]);
    is_foreseen(
        &world,
        &["undo", &first, "--merge"],
        "the changes overlap at line 2",
    );
    // What they wrote elsewhere stays.
    let world = World::new();
    world.file("f", text);
    world.ok(&["edit", "f", "-s", "2", "-r", "two"]);
    let first = newest(&world, "edit");
    world.file("f", &text.replace('2', "two").replace('8', "acht"));
    world.ok(&["edit", "f", "-s", "two", "-r", "deux"]);
    let plan = world.ok(&["undo", &first, "--merge", "-n"]);
    assert!(plan.contains("merges"), "{plan}");
    world.ok(&["undo", &first, "--merge"]);
    assert_eq!(world.read("f"), text.replace('8', "acht"));
    world.check_store();
}

#[test]
fn a_redo_that_would_find_done_what_nobody_could_take_back_takes_nothing_back_for_it() {
    for removed in ["d", "d/s"] {
        let world = World::new();
        world.file("d/s/f", "1");
        world.ok(&["rm", "-r", "d/s"]);
        world.ok(&["undo"]);
        let undo = newest(&world, "undo");
        fs::remove_dir_all(world.path(removed)).unwrap();
        world.ok(&["write", "-p", "d/s/x", "--text", "later"]);
        let why = "somebody else removed it before ";
        is_foreseen(&world, &["redo", &undo], why);
        is_foreseen(&world, &["redo", &undo, "--force"], why);
        for dry in [&["-n"][..], &[]] {
            let output = world.run(&[&["redo", &undo, "--partial"], dry].concat());
            assert_eq!(output.status.code(), Some(1), "{}", said(&output));
            assert_eq!(world.read("d/s/x"), "later");
        }
        world.ok(&["undo"]);
        assert!(!world.path("d/s/x").exists());
        world.check_store();
    }
}

#[test]
fn a_file_that_somebody_removed_between_two_writes_is_foreseen_not_to_merge() {
    let world = World::new();
    world.file("a", "0");
    world.ok(&["write", "a", "--text", "1"]);
    let first = newest(&world, "write");
    fs::remove_file(world.path("a")).unwrap();
    world.ok(&["write", "a", "--text", "2"]);
    is_foreseen(
        &world,
        &["undo", &first, "--merge"],
        "somebody else removed it before ",
    );
    let plan = world.run(&["undo", &first, "--merge", "--partial", "-n"]);
    assert_eq!(plan.status.code(), Some(1), "{}", said(&plan));
    world.fails(1, &["undo", &first, "--merge", "--partial"]);
    assert!(!world.path("a").exists());
    world.check_store();
}

#[test]
fn a_directory_in_which_something_has_to_stay_is_foreseen_to_stay() {
    let why = "the directory is not empty: x";
    for is_one in [true, false] {
        let world = World::new();
        let made = if is_one {
            ran(&world, "mkdir d; echo x > d/x")
        } else {
            world.ok(&["mkdir", "d"]);
            world.ok(&["write", "d/x", "--text", "x"]);
            newest(&world, "mkdir")
        };
        world.file("d/x", "somebody's");
        is_foreseen(&world, &["undo", &made], why);
        is_foreseen(&world, &["undo", &made, "--partial"], why);
        let told = said(&world.run(&["undo", &made, "-n"]));
        assert!(!told.contains("--partial"), "{told}");
    }
    // What else there is to do can be done.
    let world = World::new();
    let made = ran(&world, "mkdir d; echo x > d/x; echo y > y");
    world.file("d/x", "somebody's");
    let told = said(&world.run(&["undo", &made, "-n"]));
    assert!(told.contains(why) && told.contains("--partial"), "{told}");
    world.fails(1, &["undo", &made, "--partial"]);
    assert_eq!(world.read("d/x"), "somebody's");
    assert!(!world.path("y").exists());
    world.check_store();
}

#[test]
fn nothing_is_left_to_do_below_an_edit_that_stays() {
    let world = World::new();
    world.file("f", "0");
    world.ok(&["write", "f", "--text", "1"]);
    let first = newest(&world, "write");
    world.ok(&["write", "f", "--text", "2"]);
    world.file("f", "somebody's");
    let told = said(&world.run(&["undo", &first, "-n"]));
    assert!(!told.contains("--partial"), "{told}");
    let told = world.fails(1, &["undo", &first]);
    assert!(!told.contains("--partial"), "{told}");
    is_foreseen(&world, &["undo", &first, "--partial"], "changed");
}
