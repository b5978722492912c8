//! `--merge` of what a command wrote: it takes the command's lines out and leaves everybody else's.

use std::fs;

use super::newest;
use crate::world::World;

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

/// How commands change the second line: in place, by a new file, and as a comparison of directories sees it.
const WAYS: [&[&str]; 3] = [
    &[
        "run",
        "--",
        "sh",
        "-c",
        "printf 'one\\nTWO\\nthree\\nfour\\nfive\\nsix\\nseven\\n' > f",
    ],
    &["run", "--", "sed", "-i", "s/two/TWO/", "f"],
    &[
        "run",
        "--capture",
        "scan",
        "--",
        "sed",
        "-i",
        "s/two/TWO/",
        "f",
    ],
];

#[test]
fn what_a_person_added_after_a_command_stays_when_the_command_is_merged_out() {
    for by in WAYS {
        let world = World::new();
        world.file("f", TEXT);
        world.ok(by);
        let run = newest(&world, "run");
        world.file("f", &world.read("f").replace("six", "SIX"));
        world.fails(1, &["undo"]);
        world.ok(&["undo", "--merge", "-n"]);
        let told = world.ok(&["undo", "--merge"]);
        assert!(told.contains("merged"), "{by:?}: {told}");
        assert_eq!(world.read("f"), TEXT.replace("six", "SIX"), "{by:?}");
        world.ok(&["redo"]);
        let both = TEXT.replace("two", "TWO").replace("six", "SIX");
        assert_eq!(world.read("f"), both, "{by:?}");
        let told = world.ok(&["diff", &run]);
        assert!(told.contains("+TWO") && !told.contains("SIX"), "{told}");
        world.check_store();
    }
}

#[test]
fn a_later_write_that_merges_out_stays_where_the_command_is_taken_back() {
    let world = World::new();
    world.file("f", TEXT);
    world.ok(&["run", "--", "sed", "-i", "s/two/TWO/", "f"]);
    let run = newest(&world, "run");
    world.ok(&["edit", "f", "--search", "six", "--replace", "SIX"]);
    world.ok(&["undo", &run, "--merge"]);
    assert_eq!(world.read("f"), TEXT.replace("six", "SIX"));
    world.check_store();
}

#[test]
fn what_a_command_left_is_restored_after_a_person_wrote_over_it() {
    let world = World::new();
    world.file("f", TEXT);
    world.ok(&["run", "--", "sed", "-i", "s/two/TWO/", "f"]);
    let run = newest(&world, "run");
    world.file("f", "mine\n");
    world.ok(&["restore", "f", "--from", &run, "--after"]);
    assert_eq!(world.read("f"), TEXT.replace("two", "TWO"));
    world.ok(&["undo"]);
    assert_eq!(world.read("f"), "mine\n");
}

#[test]
fn of_what_is_no_text_or_large_a_command_keeps_only_what_was_there() {
    let large = "line\n".repeat(20_000);
    for (text, change) in [("a\0b\n", "echo c >> f"), (&large, "echo c >> f")] {
        let world = World::new();
        world.file("f", text);
        world.ok(&["run", "--", "sh", "-c", change]);
        let mut with = fs::read(world.path("f")).unwrap();
        with.extend(b"mine\n");
        fs::write(world.path("f"), &with).unwrap();
        let told = world.fails(1, &["undo", "--merge"]);
        assert!(told.contains("are not both at hand"), "{told}");
        assert_eq!(fs::read(world.path("f")).unwrap(), with);
    }
}
