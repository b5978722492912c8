//! What commands did themselves is no drift, however they moved, replaced and linked things.

use std::fs;

use crate::world::{Drifted, World};

fn names(world: &World, open: &[Drifted]) -> Vec<String> {
    let root = format!("{}/", world.root.display());
    let each = open.iter();
    each.map(|it| format!("{} {}", it.kind, it.subject.replace(&root, "")))
        .collect()
}

fn sh(world: &World, line: &str) {
    world.does(&["run", "--", "sh", "-c", line]);
}

#[test]
fn what_a_command_moved_into_the_place_of_a_directory_is_not_added() {
    for line in [
        "rm -rf d; mv e d",
        "mv d/s/g g; rm -rf d; mv e d",
        "rm -rf d/s; mv e d/s",
    ] {
        let world = World::new();
        for name in ["d/s/g", "d/f", "e/s/g", "e/f", "e/s/only"] {
            world.put(name, name);
        }
        world.write("e/s/g", "recorded");
        sh(&world, line);
        assert_eq!(names(&world, &world.sweep()), [""; 0], "{line}");
        let at = if line.ends_with("d/s") { "d/s/" } else { "d/" };
        world.put(&format!("{at}s/g"), "hand\n");
        let expected = [format!("changed {at}s/g")];
        assert_eq!(names(&world, &world.sweep()), expected, "{line}");
        world.put(&format!("{at}s/g"), "recorded");
        assert_eq!(names(&world, &world.sweep()), [""; 0], "{line}");
        world.does(&["undo"]);
        assert_eq!(names(&world, &world.sweep()), [""; 0], "{line}, undone");
        world.does(&["redo"]);
        assert_eq!(names(&world, &world.sweep()), [""; 0], "{line}, redone");
    }
}

#[test]
fn a_file_that_commands_wrote_by_two_names_is_as_recorded() {
    for (first, second) in [("a", "b"), ("b", "a")] {
        let world = World::new();
        world.put("a", "0\n");
        fs::hard_link(world.path("a"), world.path("b")).unwrap();
        sh(&world, &format!("echo 1 >> {first}"));
        sh(&world, &format!("echo 2 >> {second}"));
        assert_eq!(names(&world, &world.sweep()), [""; 0], "{first}, {second}");
        sh(&world, &format!("echo 3 >> {first}"));
        assert_eq!(names(&world, &world.sweep()), [""; 0], "{first} again");
        world.does(&["undo"]);
        assert_eq!(names(&world, &world.sweep()), [""; 0], "undone");
        let mut file = fs::File::options()
            .append(true)
            .open(world.path("a"))
            .unwrap();
        std::io::Write::write_all(&mut file, b"hand\n").unwrap();
        assert_eq!(world.sweep().len(), 1, "{first}, {second}");
    }
}

#[test]
fn a_look_at_one_name_knows_what_was_written_by_another() {
    let world = World::new();
    world.put("a", "0\n");
    fs::hard_link(world.path("a"), world.path("b")).unwrap();
    sh(&world, "echo 1 >> a");
    sh(&world, "echo 2 >> b; chmod 600 b");
    for name in ["a", "b"] {
        let report = world.json(&["watch", "--once", name]);
        assert_eq!(report["open"].as_array().unwrap().len(), 0, "{report}");
    }
    // Somebody makes another file of it: that is no second name.
    fs::remove_file(world.path("a")).unwrap();
    world.put("a", "0\n1\n2\n");
    assert_eq!(names(&world, &world.sweep()), ["changed a"]);
}

#[test]
fn a_name_that_others_made_a_second_one_of_another_file_is_drift() {
    let world = World::new();
    world.write("b", "mine\n");
    world.write("a", "other\n");
    fs::remove_file(world.path("b")).unwrap();
    fs::hard_link(world.path("a"), world.path("b")).unwrap();
    assert_eq!(names(&world, &world.sweep()), ["changed b"]);
}

#[test]
fn a_directory_that_was_moved_and_replaced_is_as_recorded() {
    for lines in [
        &["mv d k", "rm -rf k; mkdir k; echo 1 > k/new"][..],
        &["mv d k; mkdir d; echo 1 > d/f"],
        &["mv d k", "mv k old; mkdir k"],
        &["mv d k", "rm -rf k; mv e k"],
        &["mv d k", "mv k t; mv e k; mv t e"],
        &["mv d k", "cp -a k k2; rm -rf k; mv k2 k"],
        &["mv d k", "mv k t; mv e k; mv t e", "mv k l"],
    ] {
        let world = World::new();
        world.put("d/f", "0\n");
        world.put("e/f", "1\n");
        for line in lines {
            sh(&world, line);
            assert_eq!(names(&world, &world.sweep()), [""; 0], "{lines:?}");
        }
        for line in lines {
            world.does(&["undo"]);
            assert_eq!(names(&world, &world.sweep()), [""; 0], "{line} undone");
        }
    }
}

#[test]
fn a_directory_that_others_replaced_after_a_move_is_drift() {
    let world = World::new();
    world.put("d/f", "0\n");
    sh(&world, "mv d k");
    fs::rename(world.path("k"), world.path("away")).unwrap();
    fs::create_dir(world.path("k")).unwrap();
    assert_eq!(names(&world, &world.sweep()), ["changed k"]);
}
