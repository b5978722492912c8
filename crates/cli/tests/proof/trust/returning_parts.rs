//! Parts of a directory that went and comes back by several undos and redos: each finds what the others left.

use serde_json::json;

use super::batches::batch;
use super::to_and_fro;
use crate::world::{World, said};

fn ran(world: &World, line: &str) {
    world.ok(&["run", "--", "sh", "-c", line]);
}

/// A directory with a file and a directory with a file, and a command that did something to them.
fn after_command(line: &str) -> World {
    let world = World::new();
    world.file("d/x", "x\n");
    world.file("d/s/q", "q\n");
    ran(&world, line);
    world
}

fn has_all(world: &World) {
    assert_eq!(world.read("d/x"), "x\n");
    assert_eq!(world.read("d/s/q"), "q\n");
}

const REMOVALS: [&str; 4] = [
    "rm -rf d",
    "rm -rf d; ln -s n d",
    "rm -rf d; echo f > d",
    "rm -rf d; mkdir e; echo z > e/z; mv e d",
];

#[test]
fn one_file_of_a_directory_comes_back_after_an_undo_and_a_redo() {
    for line in REMOVALS {
        let world = after_command(line);
        world.ok(&["undo"]);
        world.ok(&["redo"]);
        let undone = world.ok(&["undo", "@", "--only", "d/x"]);
        assert!(!undone.contains("failed"), "{line}: {undone}");
        assert_eq!(world.read("d/x"), "x\n", "{line}");
        assert!(!world.path("d/s/q").exists(), "{line}");
        world.ok(&["undo", "@"]);
        has_all(&world);
        world.check_store();
    }
}

#[test]
fn all_below_a_directory_comes_back_after_an_undo_and_a_redo() {
    for line in REMOVALS {
        let world = after_command(line);
        world.ok(&["undo"]);
        world.ok(&["redo"]);
        world.ok(&["undo", "@", "--only", "d/**"]);
        has_all(&world);
        world.ok(&["redo"]);
        world.ok(&["undo", "@"]);
        has_all(&world);
        world.check_store();
    }
}

#[test]
fn one_file_comes_back_after_a_redo_of_all_below_its_directory() {
    for line in ["rm -rf d", "rm -rf d; ln -s n d", "rm -rf d; echo f > d"] {
        let world = after_command(line);
        world.ok(&["undo"]);
        world.ok(&["redo", "--only", "d/**"]);
        assert!(!world.path("d/s").exists(), "{line}");
        world.ok(&["undo", "@", "--only", "d/s/q"]);
        assert_eq!(world.read("d/s/q"), "q\n", "{line}");
        assert!(!world.path("d/x").exists(), "{line}");
        world.ok(&["undo", "@"]);
        has_all(&world);
        world.check_store();
    }
}

#[test]
fn a_file_of_a_directory_that_a_task_removed_is_rolled_back_after_a_redo() {
    let world = World::new();
    world.file("d/x", "x\n");
    world.file("d/y", "y\n");
    world.ok(&["task", "begin", "t"]);
    world.ok(&["--task", "t", "run", "--", "rm", "-rf", "d"]);
    world.ok(&["--task", "t", "undo"]);
    world.ok(&["--task", "t", "redo"]);
    world.ok(&["rollback", "t", "--only", "d/x"]);
    assert_eq!(world.read("d/x"), "x\n");
    assert!(!world.path("d/y").exists());
    world.check_store();
}

#[test]
fn what_a_forced_redo_put_away_in_a_tree_is_refused_before_anything_is_touched() {
    let world = after_command("rm -rf d");
    world.ok(&["undo"]);
    world.file("d/p", "a person's\n");
    world.ok(&["redo", "--force"]);
    for arguments in [
        &["undo", "d/x"][..],
        &["undo", "@", "--only", "d/x", "--partial"],
    ] {
        let refused = world.fails(1, arguments);
        assert!(refused.contains("only taken back as one"), "{refused}");
        assert!(refused.contains("backout restore PATH --from"), "{refused}");
        assert!(!world.path("d").exists(), "{arguments:?}");
    }
    world.ok(&["undo", "@"]);
    has_all(&world);
    assert_eq!(world.read("d/p"), "a person's\n");
    world.check_store();
}

#[test]
fn a_directory_that_another_redo_took_comes_with_the_file_that_needs_it() {
    let world = World::new();
    world.file("d/a", "a\n");
    world.file("d/b", "b\n");
    let before = world.tree().without_times();
    ran(&world, "rm -rf d");
    world.ok(&["undo", "@", "--only", "d/a"]);
    world.ok(&["undo", "@"]);
    world.ok(&["redo"]);
    world.ok(&["redo"]);
    world.ok(&["undo", "d/b"]);
    assert_eq!(world.read("d/b"), "b\n");
    assert!(!world.path("d/a").exists());
    world.ok(&["undo", "@"]);
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}

#[test]
fn a_directory_is_empty_when_the_newer_undo_of_what_is_in_it_is_redone_first() {
    let world = after_command("rm -rf d; echo F > d");
    world.ok(&["undo", "@", "--exclude", "d/s"]);
    world.ok(&["undo", "@"]);
    has_all(&world);
    world.ok(&["redo", "@"]);
    assert_eq!(world.read("d"), "F\n");
    world.ok(&["undo", "@"]);
    has_all(&world);
    world.check_store();
}

#[test]
fn a_directory_that_one_redo_took_is_there_for_the_file_that_another_took() {
    let world = after_command("rm -rf d; mkdir d; echo N > d/x; echo M > d/m");
    world.ok(&["undo", "@"]);
    world.ok(&["redo", "--only", "d/s/**"]);
    world.ok(&["redo"]);
    world.ok(&["undo", "@"]);
    has_all(&world);
    assert!(!world.path("d/m").exists());
    world.check_store();
}

#[test]
fn directories_that_were_swapped_are_swapped_again_in_parts() {
    let world = World::new();
    world.file("d/a", "a\n");
    world.file("d/s/q", "q\n");
    world.file("e/z", "z\n");
    ran(&world, "mv d t; mv e d; mv t e");
    world.ok(&["undo", "@", "--only", "d/s/**"]);
    world.ok(&["undo", "@"]);
    has_swapped(&world, "d", "e");
    world.ok(&["redo", "@", "--only", "d/**"]);
    has_swapped(&world, "e", "d");
    world.check_store();
}

fn has_swapped(world: &World, first: &str, second: &str) {
    assert_eq!(world.read(&format!("{first}/a")), "a\n");
    assert_eq!(world.read(&format!("{first}/s/q")), "q\n");
    assert_eq!(world.read(&format!("{second}/z")), "z\n");
}

#[test]
fn a_file_is_redone_in_a_directory_that_another_undo_took() {
    let world = World::new();
    ran(&world, "mkdir d; echo a > d/a; echo b > d/b");
    let after = world.tree().without_times();
    world.ok(&["undo", "@", "--only", "d/b"]);
    world.ok(&["undo", "@"]);
    assert!(!world.path("d").exists());
    world.ok(&["redo", "@", "--only", "d/b"]);
    assert_eq!(world.read("d/b"), "b\n");
    assert!(!world.path("d/a").exists());
    world.ok(&["redo", "@"]);
    let now = world.tree().without_times();
    assert!(now == after, "{}", now.difference(&after));
    world.ok(&["undo", "@"]);
    assert!(!world.path("d").exists());
    world.check_store();
}

#[test]
fn a_redo_by_its_name_is_undone_with_the_directory_that_another_redo_took() {
    let world = World::new();
    world.file("d/a", "a\n");
    world.file("d/b", "b\n");
    ran(&world, "rm -rf d");
    world.ok(&["undo", "@", "--only", "d/a"]);
    world.ok(&["undo", "@"]);
    world.ok(&["redo"]);
    let first = super::newest(&world, "redo");
    world.ok(&["redo"]);
    world.ok(&["undo", &first]);
    assert_eq!(world.read("d/b"), "b\n");
    assert!(!world.path("d/a").exists());
    world.ok(&["undo", "@"]);
    assert_eq!(world.read("d/a"), "a\n");
    world.check_store();
}

#[test]
fn a_directory_made_anew_in_a_batch_goes_after_what_was_written_in_it() {
    let world = World::new();
    world.file("d/x", "x\n");
    let before = world.tree().without_times();
    let changes = [
        json!({"remove": {"path": "d", "recursive": true}}),
        json!({"write": {"path": "d/x", "text": "n", "parents": true}}),
    ];
    let done = batch(&world, &changes);
    assert!(done.status.success(), "{}", said(&done));
    world.ok(&["write", "d/z", "--text", "5"]);
    world.ok(&["undo", "@-1"]);
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
    world.ok(&["redo"]);
    assert_eq!(
        (world.read("d/x"), world.read("d/z")),
        ("n".into(), "5".into())
    );
    to_and_fro(&world, &before);
}

#[test]
fn a_removal_that_a_forced_undo_went_over_is_a_conflict_again_after_a_redo() {
    let world = World::new();
    world.file("f", "1\n");
    world.file("g", "1\n");
    ran(&world, "echo n >> f; echo n >> g");
    std::fs::remove_file(world.path("f")).unwrap();
    let refused = world.fails(1, &["undo", "@"]);
    assert!(refused.contains("`f`: it is gone"), "{refused}");
    let planned = world.ok(&["undo", "@", "--force", "-n"]);
    assert!(
        planned.contains("f  will be overwritten: it is gone"),
        "{planned}"
    );
    let forced = world.ok(&["undo", "@", "--force"]);
    assert!(
        forced.contains("f  restored over a later change: it is gone"),
        "{forced}"
    );
    world.ok(&["redo"]);
    assert!(!world.path("f").exists());
    let refused = world.fails(1, &["undo", "@"]);
    assert!(refused.contains("`f`: it is gone"), "{refused}");
    world.check_store();
}

#[test]
fn a_move_that_is_forced_back_merges_with_what_was_written_since() {
    let world = World::new();
    world.file("a", "a\n");
    world.ok(&["mv", "a", "b"]);
    world.file("b", "a\nP\n");
    let planned = world.ok(&["undo", "--force", "-n"]);
    assert!(
        planned.contains("a  merges: only this change is taken out"),
        "{planned}"
    );
    let forced = world.ok(&["undo", "--force"]);
    assert!(forced.contains("a  merged"), "{forced}");
    assert_eq!(world.read("a"), "a\nP\n");
    world.ok(&["redo"]);
    assert_eq!(world.read("b"), "a\nP\n");
    world.check_store();
}

#[test]
fn the_undo_of_a_moved_directory_notes_what_was_written_in_it() {
    let world = World::new();
    world.file("d/a", "a\n");
    world.file("d/s/b", "b\n");
    world.ok(&["mv", "d", "e"]);
    world.ok(&["write", "e/s/b", "--text", "ours\n"]);
    let whole = world.ok(&["undo", "@-1"]);
    assert!(!whole.contains("after the move"), "{whole}");
    world.ok(&["redo", "@-1"]);
    world.file("e/a", "a person's\n");
    let undone = world.ok(&["undo", "@-1"]);
    assert!(
        undone.contains("what is in `d` was changed after the move, at `a`, and stays so"),
        "{undone}"
    );
    assert_eq!(world.read("d/a"), "a person's\n");
    world.check_store();
}

#[test]
fn the_undo_of_a_command_that_moved_a_directory_notes_what_was_written_in_it() {
    let world = World::new();
    world.file("d/a", "a\n");
    world.file("d/s/b", "b\n");
    world.ok(&["run", "--", "mv", "d", "e"]);
    let whole = world.ok(&["undo"]);
    assert!(!whole.contains("after the move"), "{whole}");
    let again = world.ok(&["redo"]);
    assert!(!again.contains("after the move"), "{again}");
    world.ok(&["undo"]);
    world.ok(&["run", "--", "sh", "-c", "mv d e; touch -d 2001-01-01 ."]);
    world.ok(&["write", "e/s/b", "--text", "ours\n"]);
    let whole = world.ok(&["undo", "@-1"]);
    assert!(!whole.contains("after the move"), "{whole}");
    world.ok(&["run", "--", "mv", "d", "e"]);
    world.file("e/a", "a person's\n");
    let undone = world.ok(&["undo"]);
    assert!(
        undone.contains("what is in `d` was changed after the move, at `a`, and stays so"),
        "{undone}"
    );
    assert_eq!(world.read("d/a"), "a person's\n");
    world.check_store();
}

#[test]
fn what_was_written_in_a_directory_that_was_moved_away_later_goes_after_the_move() {
    let world = World::new();
    for directory in ["d", "k"] {
        std::fs::create_dir(world.path(directory)).unwrap();
        world.file(&format!("{directory}/z"), "1\n");
    }
    world.ok(&["run", "--", "sh", "-c", "echo 2 > d/z"]);
    world.ok(&["run", "--", "sh", "-c", "mv d x; mv k d"]);
    world.ok(&["undo", "@-1"]);
    assert_eq!(
        (world.read("d/z"), world.read("k/z")),
        ("1\n".into(), "1\n".into())
    );
    assert!(!world.path("x").exists());
    world.ok(&["redo"]);
    assert_eq!(
        (world.read("x/z"), world.read("d/z")),
        ("2\n".into(), "1\n".into())
    );
    world.check_store();
    // Also of a task, whose directory went there and back.
    let world = World::new();
    for directory in ["d", "e"] {
        std::fs::create_dir(world.path(directory)).unwrap();
    }
    world.ok(&["task", "begin", "t"]);
    for line in ["echo 2 > d/z", "mv d e", "mv e d"] {
        world.ok(&["--task", "t", "run", "--", "sh", "-c", line]);
    }
    world.ok(&["rollback", "t"]);
    assert!(world.path("d").is_dir() && world.path("e").is_dir());
    assert!(!world.path("d/z").exists());
}
