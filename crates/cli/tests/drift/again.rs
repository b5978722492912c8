//! What was drift and is taken back to that is drift again; what was moved is looked at where it is.

use std::collections::BTreeSet;
use std::fs;

use crate::meddler::{rusqlite_free, shop};
use crate::world::{Drifted, World, texts};

fn names(world: &World, open: &[Drifted]) -> Vec<String> {
    let root = format!("{}/", world.root.display());
    let each = open.iter();
    each.map(|it| it.subject.replace(&root, "")).collect()
}

fn read(world: &World, name: &str) -> String {
    fs::read_to_string(world.path(name)).unwrap()
}

#[test]
fn what_lies_in_a_directory_that_was_moved_is_looked_at_where_it_is() {
    let world = World::new();
    fs::create_dir(world.path("w")).unwrap();
    world.write("w/f1", "1\n");
    world.put("w/app.toml", "port = 0\n");
    world.does(&["set", "w/app.toml", "port", "1"]);
    world.does(&["mv", "w", "w2"]);
    assert_eq!(world.sweep(), [], "nobody else was there");
    world.put("w2/f1", "hand\n");
    world.put("w2/app.toml", "port = 2\n");
    let found = world.sweep();
    assert_eq!(names(&world, &found), ["w2/app.toml", "w2/f1"]);
    let part = world.json(&["watch", "--once", "w2/f1"]);
    assert_eq!(part["open"].as_array().unwrap().len(), 1, "{part}");
    world.does(&["drift", "restore", "w2/f1"]);
    assert_eq!(read(&world, "w2/f1"), "1\n");
    world.put("w2/f1", "again\n");
    assert_eq!(world.sweep().len(), 2);
    world.does(&["drift", "accept", "w2/f1"]);
    assert_eq!(names(&world, &world.sweep()), ["w2/app.toml"]);
}

#[test]
fn what_lies_in_a_directory_that_was_moved_and_moved_back_is_looked_at_there() {
    let world = World::new();
    fs::create_dir(world.path("w")).unwrap();
    world.write("w/f1", "1\n");
    world.does(&["mv", "w", "w2"]);
    world.does(&["undo"]);
    assert_eq!(world.sweep(), [], "nobody else was there");
    world.put("w/f1", "hand\n");
    assert_eq!(names(&world, &world.sweep()), ["w/f1"]);
    world.put("w/f1", "1\n");
    world.does(&["redo"]);
    assert_eq!(world.sweep(), []);
    world.put("w2/f1", "hand\n");
    assert_eq!(names(&world, &world.sweep()), ["w2/f1"]);
    world.put("w2/f1", "1\n");
    // Somebody moves it back, and the undo finds that it is so.
    fs::rename(world.path("w2"), world.path("w")).unwrap();
    world.does(&["undo"]);
    assert_eq!(world.sweep(), []);
    world.put("w/f1", "hand\n");
    assert_eq!(names(&world, &world.sweep()), ["w/f1"]);
}

#[test]
fn a_watch_hears_what_happens_in_a_directory_that_was_moved() {
    let world = World::new();
    fs::create_dir_all(world.path("w/deep")).unwrap();
    world.write("w/deep/f1", "1\n");
    world.does(&["run", "--", "mv", "w", "w2"]);
    let mut watching = world.watch(&["--interval", "600"], &[]);
    world.put("w2/deep/f1", "hand\n");
    let expected = BTreeSet::from([world.path("w2/deep/f1")]);
    assert_eq!(watching.until_all(&expected), expected);
}

#[test]
fn rows_in_a_directory_that_was_moved_are_said_not_to_be_looked_at() {
    let world = World::new();
    fs::create_dir(world.path("w")).unwrap();
    shop(&world, "w/shop.db");
    world.does(&["mv", "w", "w2"]);
    let (_, said) = texts(&world.run(&["watch", "--once"]));
    assert!(
        said.contains("could not be looked at: a directory that holds it was moved since"),
        "{said}"
    );
}

#[test]
fn drift_that_was_restored_is_open_again_when_that_is_undone() {
    let world = World::new();
    world.put("f", "0\n");
    world.write("f", "1\n");
    world.put("f", "hand\n");
    assert_eq!(world.sweep().len(), 1);
    world.does(&["drift", "restore", "f"]);
    world.does(&["undo"]);
    assert_eq!(read(&world, "f"), "hand\n");
    assert_eq!(names(&world, &world.sweep()), ["f"]);
    world.does(&["redo"]);
    assert_eq!(world.sweep(), []);
    world.does(&["undo"]);
    assert_eq!(names(&world, &world.sweep()), ["f"]);
    world.does(&["drift", "accept", "f"]);
    assert_eq!(world.sweep(), []);
    world.put("f", "hand again\n");
    assert_eq!(names(&world, &world.sweep()), ["f"]);
}

#[test]
fn drift_of_keys_and_rows_and_new_names_is_open_again_too() {
    let world = World::new();
    world.put("app.toml", "port = 1\n");
    world.does(&["set", "app.toml", "port", "2"]);
    world.put("app.toml", "port = 3\n");
    shop(&world, "shop.db");
    assert!(rusqlite_free(&world, "UPDATE t SET v = 'x' WHERE id = 1"));
    world.does(&["mkdir", "d"]);
    world.put("d/new", "theirs\n");
    let found = names(&world, &world.sweep());
    assert_eq!(found.len(), 3, "{found:?}");
    for target in &found {
        world.does(&["drift", "restore", target]);
        assert_eq!(world.sweep().len(), 2, "{target}");
        world.does(&["undo"]);
        assert_eq!(names(&world, &world.sweep()), found, "{target}");
    }
}

#[test]
fn a_merge_that_is_undone_leaves_the_drift_open() {
    let world = World::new();
    world.put("m", "one\ntwo\nthree\n");
    world.write("m", "one\ntwo\nTHREE\n");
    world.put("m", "ONE\ntwo\nthree\n");
    assert_eq!(world.sweep().len(), 1);
    world.does(&["drift", "merge", "m"]);
    assert_eq!(read(&world, "m"), "ONE\ntwo\nTHREE\n");
    world.does(&["undo"]);
    assert_eq!(names(&world, &world.sweep()), ["m"]);
}

#[test]
fn what_was_written_over_drift_and_undone_leaves_the_drift_open() {
    let world = World::new();
    world.write("f", "1\n");
    world.put("f", "hand\n");
    assert_eq!(world.sweep().len(), 1);
    world.write("f", "2\n");
    assert_eq!(world.sweep(), []);
    world.does(&["undo"]);
    assert_eq!(names(&world, &world.sweep()), ["f"]);
}

#[test]
fn a_second_name_is_told_by_the_first() {
    let world = World::new();
    world.put("y", "2\n");
    world.does(&["ln", "y", "hl"]);
    world.does(&["run", "--", "sh", "-c", "echo z >> y"]);
    assert_eq!(world.sweep(), [], "it was recorded");
    world.does(&["run", "--", "touch", "y"]);
    assert_eq!(world.sweep(), []);
    let other = World::new();
    other.put("y", "2\n");
    other.does(&["ln", "y", "hl"]);
    let file = fs::File::open(other.path("y")).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    assert_eq!(other.sweep(), []);
    fs::remove_file(other.path("hl")).unwrap();
    other.put("hl", "3\n");
    let listed = texts(&other.run(&["watch", "--once"])).0;
    assert!(
        listed.contains("found:    a file of 2 other bytes"),
        "{listed}"
    );
}
