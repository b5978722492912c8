//! What somebody put in the place of ours, with the same size and times, is not ours.

use std::fs::{self, File, FileTimes};
use std::time::{Duration, SystemTime};

use crate::world::{World, said};

/// Gives names the same old time, the last ones last.
fn alike(world: &World, names: &[&str]) {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    let times = FileTimes::new().set_accessed(then).set_modified(then);
    for name in names {
        let file = File::open(world.path(name)).unwrap();
        file.set_times(times).unwrap();
    }
}

/// Two files and two directories that nobody can tell apart but by what is in the files.
fn world() -> World {
    let world = World::new();
    for (name, content) in [("f", "1\n"), ("k", "2\n"), ("d/f", "1\n"), ("o/f", "2\n")] {
        world.file(name, content);
    }
    alike(&world, &["f", "k", "d/f", "o/f", "d", "o"]);
    world
}

/// Makes sure that nobody takes what is there for ours, and that nothing happens to it.
fn is_a_conflict(world: &World, command: &str, why: &str) {
    let before = world.tree();
    for arguments in [&[command][..], &[command, "-n"]] {
        let output = world.run(arguments);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(why), "{told}");
        let now = world.tree();
        assert!(now == before, "{}", now.difference(&before));
    }
}

#[test]
fn a_file_that_looks_like_the_one_that_was_moved_is_not_it() {
    let world = world();
    world.ok(&["mv", "f", "g"]);
    fs::rename(world.path("k"), world.path("g")).unwrap();
    is_a_conflict(&world, "undo", "`g` is now another file");
    world.ok(&["undo", "--force"]);
    assert_eq!(world.read("f"), "2\n");
    world.ok(&["redo"]);
    assert_eq!(world.read("g"), "2\n");
    world.check_store();
}

#[test]
fn a_directory_that_looks_like_the_one_that_was_moved_is_not_it() {
    let world = world();
    world.ok(&["mv", "d", "e"]);
    fs::remove_dir_all(world.path("e")).unwrap();
    fs::rename(world.path("o"), world.path("e")).unwrap();
    is_a_conflict(&world, "undo", "`e` is now another directory");
}

#[test]
fn a_directory_that_looks_like_the_one_that_came_back_is_not_removed_again() {
    let world = world();
    world.ok(&["rm", "-r", "d"]);
    world.ok(&["undo"]);
    fs::remove_dir_all(world.path("d")).unwrap();
    fs::rename(world.path("o"), world.path("d")).unwrap();
    is_a_conflict(&world, "redo", "it is another directory now");
}

#[test]
fn what_an_undo_made_anew_goes_on_as_what_was_moved() {
    let cases: [&[&[&str]]; 6] = [
        &[&["mv", "f", "g"], &["rm", "g"]],
        &[&["mv", "f", "g"], &["write", "g", "--text", "3\n"]],
        &[&["mv", "d", "e"], &["run", "--", "rm", "-r", "e"]],
        &[&["mv", "d/f", "d/g"], &["mv", "d", "k2"], &["rm", "k2/g"]],
        &[
            &["mv", "d/f", "d/g"],
            &["run", "--", "sh", "-c", "rm -r d; mkdir d"],
        ],
        &[
            &["mv", "f", "g"],
            &["mv", "g", "h"],
            &["run", "--", "sh", "-c", "rm h; echo 3 > h"],
        ],
    ];
    for calls in cases {
        let world = world();
        let before = world.tree().without_times();
        for call in calls {
            world.ok(call);
        }
        let after = world.tree().without_times();
        for _ in 0..2 {
            for _ in calls {
                world.ok(&["undo"]);
            }
            let now = world.tree().without_times();
            assert!(now == before, "{calls:?}: {}", now.difference(&before));
            for _ in calls {
                world.ok(&["redo"]);
            }
            let now = world.tree().without_times();
            assert!(now == after, "{calls:?}: {}", now.difference(&after));
        }
        for _ in calls {
            world.ok(&["undo"]);
        }
        world.check_store();
    }
}
