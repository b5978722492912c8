//! Stories of what somebody does between an act and its way back, and of the commands that are named for it.

use std::fs;
use std::os::unix::fs::symlink;

use super::{json, newest};
use crate::world::{World, said};

/// Lets a command die when all that it does to files is done.
fn dies(world: &World, arguments: &[&str]) {
    let mut command = world.command(arguments);
    let output = command.env("BACKOUT_CRASH_AT", "file.applied").output();
    assert!(!output.unwrap().status.success());
}

/// Puts a file into a directory that a dead undo or redo brought, and takes that act back by force.
fn rolled_back_by_force(world: &World, verb: &str) -> String {
    world.file("d/y", "theirs\n");
    let doubt = said(&world.run(&["recover"]));
    assert!(doubt.contains("in-doubt"), "{doubt}");
    let dead = newest(world, verb);
    let told = world.ok(&["recover", "--rollback", &dead, "--force"]);
    assert!(!world.path("d").exists(), "{told}");
    world.check_store();
    told
}

#[test]
fn what_a_dead_undo_had_brought_back_can_be_undone_again_also_if_somebody_wrote_beside_it() {
    let world = World::new();
    world.file("f", "f\n");
    world.file("d/x", "x\n");
    let before = world.tree().without_times();
    world.ok(&["run", "--", "sh", "-c", "echo x >> f; rm -r d"]);
    let run = newest(&world, "run");
    dies(&world, &["undo"]);
    let told = rolled_back_by_force(&world, "undo");
    assert!(told.contains(&format!("backout undo {run}")), "{told}");
    world.ok(&["undo", &run]);
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
    let recovery = newest(&world, "recover");
    world.ok(&["restore", "d", "--from", &recovery]);
    assert_eq!(world.read("d/y"), "theirs\n");
    world.check_store();
}

#[test]
fn what_a_dead_redo_had_brought_back_can_be_redone_also_if_somebody_wrote_in_it() {
    let world = World::new();
    world.ok(&["run", "--", "sh", "-c", "mkdir d; echo x > d/x"]);
    let run = newest(&world, "run");
    world.ok(&["undo"]);
    dies(&world, &["redo"]);
    let told = rolled_back_by_force(&world, "redo");
    assert!(told.contains(&format!("backout redo {run}")), "{told}");
    let told = world.ok(&["redo", &run]);
    assert!(told.contains("changed after it was kept"), "{told}");
    assert_eq!(
        (world.read("d/x"), world.read("d/y")),
        ("x\n".into(), "theirs\n".into())
    );
    world.check_store();
}

#[test]
fn a_tree_that_a_dead_undo_took_out_of_its_slot_is_no_damage_whoever_wrote_in_it() {
    let world = World::new();
    world.file("d/x", "x\n");
    world.ok(&["rm", "-r", "d"]);
    // The redo holds it from now on.
    world.ok(&["undo"]);
    world.ok(&["redo"]);
    dies(&world, &["undo"]);
    world.file("d/x", "theirs\n");
    let doubt = said(&world.run(&["recover"]));
    assert!(doubt.contains("in-doubt"), "{doubt}");
    world.ok(&["verify"]);
    let dead = newest(&world, "undo");
    let told = world.ok(&["recover", "--keep", &dead]);
    let wanted = "d  restored but for one thing: what is in it changed since";
    assert!(told.contains(wanted), "{told}");
    world.ok(&["verify"]);
    // The directory is back, and their text in it is not taken away without a word.
    json(&world, 1, &["redo"]);
    world.ok(&["redo", "--force"]);
    assert!(!world.path("d").exists());
    world.ok(&["undo"]);
    assert_eq!(world.read("d/x"), "theirs\n");
    world.check_store();
}

#[test]
fn what_a_dead_undo_brought_and_somebody_removed_is_not_called_as_if_nothing_happened() {
    let world = World::new();
    world.file("d/x", "x\n");
    world.ok(&["rm", "-r", "d"]);
    dies(&world, &["undo"]);
    std::fs::remove_dir_all(world.path("d")).unwrap();
    let told = world.ok(&["recover"]);
    let wanted = "d  restored but for one thing: somebody removed it since";
    assert!(told.contains(wanted), "{told}");
    assert!(!told.contains("nothing changed"), "{told}");
    // Nobody offers to bring back what nobody has.
    world.ok(&["verify"]);
    json(&world, 1, &["undo"]);
    assert!(!world.path("d").exists());
    world.check_store();
}

#[test]
fn a_removed_tree_comes_back_after_a_redo_also_if_a_file_in_it_was_written_by_another_name() {
    let world = World::new();
    world.file("a", "1\n");
    world.file("d/x", "x\n");
    fs::hard_link(world.path("a"), world.path("d/z")).unwrap();
    world.ok(&["rm", "-r", "d"]);
    world.ok(&["undo"]);
    world.ok(&["redo"]);
    world.ok(&["run", "--", "sh", "-c", "echo 2 >> a"]);
    let told = world.ok(&["undo", "@-1"]);
    assert!(told.contains("d  restored"), "{told}");
    assert_eq!(
        (world.read("d/x"), world.read("d/z")),
        ("x\n".into(), "1\n2\n".into())
    );
    world.ok(&["redo"]);
    assert!(!world.path("d").exists());
    world.check_store();
}

#[test]
fn a_mode_is_not_given_to_something_else_that_has_the_name_not_even_by_force() {
    for is_link in [true, false] {
        let world = World::new();
        world.file("x", "3\n");
        world.ok(&["run", "--", "chmod", "600", "x"]);
        world.ok(&["undo"]);
        fs::remove_file(world.path("x")).unwrap();
        if is_link {
            symlink("x2", world.path("x")).unwrap();
        } else {
            fs::create_dir(world.path("x")).unwrap();
        }
        let before = world.tree();
        for arguments in [&["redo"][..], &["redo", "--force"]] {
            let planned: Vec<&str> = [arguments, &["-n"]].concat();
            assert_eq!(json(&world, 1, &planned)["is_executable"], false);
            let refused = world.fails(1, arguments);
            assert!(refused.contains("now, was a file"), "{refused}");
            assert!(!refused.contains("do it anyway"), "{refused}");
            assert!(
                world.tree() == before,
                "{}",
                world.tree().difference(&before)
            );
        }
    }
}

#[test]
fn a_directory_that_a_redo_had_to_make_goes_with_what_it_was_made_for_if_nobody_uses_it() {
    for is_used in [false, true] {
        let world = World::new();
        world.file("b", "1\n");
        fs::create_dir(world.path("d")).unwrap();
        world.ok(&["mv", "b", "d/b"]);
        world.ok(&["undo"]);
        fs::remove_dir(world.path("d")).unwrap();
        world.ok(&["redo", "--force"]);
        if is_used {
            world.file("d/theirs", "2\n");
        }
        let redo = newest(&world, "redo");
        let told = world.ok(&["undo", &redo]);
        assert_eq!(world.read("b"), "1\n");
        assert_eq!(world.path("d").exists(), is_used, "{told}");
        assert_eq!(told.contains("is gone again"), !is_used, "{told}");
        world.ok(&["redo"]);
        assert_eq!(world.read("d/b"), "1\n");
        world.check_store();
    }
}

#[test]
fn a_file_whose_directory_was_moved_is_undone_by_its_path_with_the_move() {
    // By the name that it had and by the one that it has.
    let stories = [(false, "d/y"), (false, "c/y"), (true, "d/y"), (true, "c/y")];
    for (is_made, name) in stories {
        let world = World::new();
        if is_made {
            world.ok(&["run", "--", "sh", "-c", "mkdir d; echo 1 > d/y"]);
        } else {
            world.file("d/y", "1\n");
            world.ok(&["write", "d/y", "--text", "2"]);
        }
        world.ok(&["mv", "d", "c"]);
        let moved = world.tree().without_times();
        let plan = world.json(&["undo", name, "-n"]);
        assert_eq!(plan["is_executable"], true, "{plan}");
        world.ok(&["undo", name]);
        assert!(world.path("d").exists() && !world.path("c").exists());
        assert_eq!(world.path("d/y").exists(), !is_made);
        world.ok(&["redo"]);
        let now = world.tree().without_times();
        assert!(now == moved, "{}", now.difference(&moved));
        world.check_store();
    }
}

#[test]
fn what_came_before_a_step_that_died_is_told_and_its_way_back_too() {
    let world = World::new();
    world.ok(&["checkpoint", "c"]);
    for name in ["f1", "f2", "f3"] {
        world.file(name, "0\n");
        world.ok(&["write", name, "--text", "1"]);
    }
    let mut rollback = world.command(&["rollback", "--to", "c"]);
    let output = rollback.env("BACKOUT_CRASH_AT", "file.applied#2").output();
    assert!(!output.unwrap().status.success());
    let told = world.ok(&["recover"]);
    assert_eq!(
        (world.read("f2"), world.read("f3")),
        ("1".into(), "0\n".into())
    );
    assert!(
        told.contains(
            "the undo of 3 operations was left half-way: its process died after 1 of them"
        ),
        "{told}"
    );
    let log = world.json(&["log"]);
    let operations = log["operations"].as_array().unwrap();
    let first = operations
        .iter()
        .find(|op| op["status"] == "committed" && op["verb"] == "undo");
    let first = first.unwrap()["id"].as_str().unwrap()[..8].to_owned();
    assert!(told.contains(&format!("backout redo {first}")), "{told}");
    world.ok(&["redo", &first]);
    assert_eq!(world.read("f3"), "1");
    world.check_store();
}

#[test]
fn a_redo_that_came_after_a_later_operation_is_taken_back_without_it() {
    let world = World::new();
    world.file("y", "4\n");
    world.ok(&["run", "--", "mkdir", "c"]);
    world.ok(&["run", "--", "sh", "-c", "rmdir c; rm y"]);
    let second = newest(&world, "run");
    world.ok(&["undo"]);
    world.ok(&["undo"]);
    world.ok(&["redo", &second]);
    let before = world.tree().without_times();
    world.ok(&["redo"]);
    let redo = newest(&world, "redo");
    world.ok(&["undo", &redo]);
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));

    let world = World::new();
    world.file("f", "0\n");
    world.ok(&["write", "f", "--text", "11"]);
    world.ok(&["write", "f", "--text", "222"]);
    let second = newest(&world, "write");
    world.ok(&["undo"]);
    world.ok(&["undo"]);
    world.ok(&["redo", &second, "--force"]);
    assert_eq!(world.read("f"), "222");
    world.ok(&["redo", "--force"]);
    assert_eq!(world.read("f"), "11");
    // It had to take the later one back, and that belongs to it.
    world.ok(&["undo"]);
    assert_eq!(world.read("f"), "222");
    world.check_store();
}

#[test]
fn an_undo_that_found_nothing_to_do_names_no_way_back() {
    let world = World::new();
    world.ok(&["run", "--", "sh", "-c", "echo 1 > n"]);
    fs::remove_file(world.path("n")).unwrap();
    let told = said(&world.run(&["undo"]));
    assert!(told.contains("already as before"), "{told}");
    assert!(!told.contains("take this back"), "{told}");
}

#[test]
fn a_file_of_two_names_that_an_undo_swaps_with_a_directory_is_one_file_after_each_death() {
    let line = "mv e t; mv b e; mv t b; ln e l";
    let mut deaths = 0;
    for point in 1.. {
        let world = World::new();
        world.file("e/x", "1\n");
        world.file("b", "file\n");
        let before = world.tree().without_times();
        world.ok(&["run", "--", "sh", "-c", line]);
        let after = world.tree().without_times();
        let mut undo = world.command(&["undo"]);
        let undone = undo.env("BACKOUT_CRASH_AT", point.to_string()).output();
        if undone.unwrap().status.success() {
            break;
        }
        deaths += 1;
        let told = world.ok(&["recover"]);
        let now = world.tree().without_times();
        // What died last was all done.
        if now != before {
            let difference = now.difference(&after);
            assert!(now == after, "{point}: {difference}\n{told}");
            world.ok(&["undo"]);
            let now = world.tree().without_times();
            assert!(now == before, "{point}: {}", now.difference(&before));
        }
        world.ok(&["redo"]);
        let now = world.tree().without_times();
        assert!(now == after, "{point}: {}", now.difference(&after));
        world.check_store();
    }
    assert!(deaths > 10, "{deaths}");
}
