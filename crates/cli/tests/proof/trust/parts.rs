//! A part of an operation, by path; the rest stays undoable.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::{json, newest, outcomes};
use crate::world::{World, said};

/// A command that changed five files of two directories, and a history file that drifted since.
fn afternoon() -> World {
    let world = World::new();
    for name in ["src/a", "src/b", "doc/a", ".history", "gone/x"] {
        world.file(name, "old\n");
    }
    let line =
        "for f in src/a src/b doc/a .history; do echo new > $f; done; rm -r gone; echo n > src/n";
    world.ok(&["run", "--", "sh", "-c", line]);
    world.file(".history", "new\ntyped since\n");
    world
}

#[test]
fn a_drifted_file_does_not_hold_the_rest_hostage() {
    let world = afternoon();
    let refused = json(&world, 1, &["undo"]);
    assert_eq!(refused["code"], "conflict");
    world.ok(&["undo", "--exclude", ".history"]);
    assert_eq!(world.read("src/a"), "old\n");
    assert_eq!(world.read("gone/x"), "old\n");
    assert!(!world.path("src/n").exists());
    assert_eq!(world.read(".history"), "new\ntyped since\n");
    // The rest is still there to be undone.
    let run = newest(&world, "run");
    assert_eq!(json(&world, 1, &["undo", &run])["code"], "conflict");
    world.ok(&["undo", &run, "--force"]);
    assert_eq!(world.read(".history"), "old\n");
    assert_eq!(json(&world, 1, &["undo", &run])["code"], "already-undone");
    world.check_store();
}

#[test]
fn only_what_matches_is_undone_and_redone() {
    let world = afternoon();
    let run = newest(&world, "run");
    let undone = world.json(&["undo", &run, "--only", "src/**"]);
    let mut names: Vec<String> = outcomes(&world, &undone)
        .into_iter()
        .map(|it| it.0)
        .collect();
    names.sort();
    assert_eq!(names, ["src/a", "src/b", "src/n"]);
    assert_eq!(
        (world.read("src/a"), world.read("doc/a")),
        ("old\n".to_owned(), "new\n".to_owned())
    );
    world.ok(&["redo", &run, "--only", "src/b"]);
    assert_eq!(
        (world.read("src/a"), world.read("src/b")),
        ("old\n".to_owned(), "new\n".to_owned())
    );
    world.ok(&["undo", &run, "--exclude", ".history"]);
    assert_eq!(
        (world.read("src/b"), world.read("doc/a")),
        ("old\n".to_owned(), "old\n".to_owned())
    );
    world.check_store();
}

#[test]
fn a_path_is_taken_back_to_before_its_newest_operation_or_to_a_moment() {
    let world = World::new();
    world.file("f", "0\n");
    world.ok(&["write", "f", "--text", "1\n"]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    world.ok(&["write", "f", "--text", "2\n"]);
    world.ok(&["write", "other", "--text", "x\n"]);
    world.ok(&["write", "f", "--text", "3\n"]);
    world.ok(&["undo", "f"]);
    assert_eq!(world.read("f"), "2\n");
    world.ok(&["undo", "f"]);
    assert_eq!(world.read("f"), "1\n");
    world.ok(&["redo"]);
    world.ok(&["redo", &newest_undone(&world)]);
    assert_eq!(world.read("f"), "3\n");
    world.ok(&["undo", "f", "--at", "1s ago"]);
    assert_eq!(world.read("f"), "1\n");
    assert_eq!(world.read("other"), "x\n");
    let told = world.fails(1, &["undo", "nothing-here"]);
    assert!(told.contains("backout log"), "{told}");
    world.check_store();
}

/// The newest write that is undone.
fn newest_undone(world: &World) -> String {
    let log = world.json(&["log", "-n", "100"]);
    let operations = log["operations"].as_array().unwrap();
    let is_it = |op: &&serde_json::Value| op["verb"] == "write" && op["status"] == "undone";
    let found = operations.iter().find(is_it).unwrap();
    found["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_path_is_restored_from_an_operation_whatever_came_after_it() {
    let world = World::new();
    world.file("d/a", "a0\n");
    world.file("d/b", "b0\n");
    world.ok(&["rm", "-r", "d"]);
    let removal = newest(&world, "remove");
    world.ok(&["restore", "d/a", "--from", &removal]);
    assert_eq!(
        (world.read("d/a").as_str(), world.path("d/b").exists()),
        ("a0\n", false)
    );
    world.file("d/a", "person\n");
    world.ok(&["restore", "d/a", "--from", &removal]);
    assert_eq!(world.read("d/a"), "a0\n");
    world.ok(&["undo"]);
    assert_eq!(world.read("d/a"), "person\n");
    world.ok(&["restore", "d", "--from", &removal]);
    assert_eq!(
        (world.read("d/a"), world.read("d/b")),
        ("a0\n".to_owned(), "b0\n".to_owned())
    );
    let told = world.fails(1, &["restore", "elsewhere", "--from", &removal]);
    assert!(told.contains("did not touch it"), "{told}");
    world.check_store();
}

#[test]
fn what_is_left_out_of_a_trial_stays_in_it() {
    let world = World::new();
    world.file("src/a", "a\n");
    world.file("src/b", "b\n");
    let tried = world.run(&["try", "--", "sh", "-c", "echo A > src/a; echo B > src/b"]);
    if said(&tried).contains("cannot") {
        return;
    }
    let trials = world.json(&["try", "--list"]);
    let id = trials["trials"][0]["id"].as_str().unwrap().to_owned();
    let told = said(&world.run(&["try", "--apply", &id, "--exclude", "src/a"]));
    assert!(told.contains("1 change left out"), "{told}");
    assert_eq!(
        (world.read("src/a"), world.read("src/b")),
        ("a\n".to_owned(), "B\n".to_owned())
    );
    let trials = world.json(&["try", "--list"]);
    let changes = trials["trials"][0]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{trials}");
    world.ok(&["try", "--apply", &id]);
    assert_eq!(world.read("src/a"), "A\n");
    assert_eq!(
        world.json(&["try", "--list"])["trials"],
        serde_json::json!([])
    );
    world.ok(&["undo"]);
    world.ok(&["undo"]);
    assert_eq!(
        (world.read("src/a"), world.read("src/b")),
        ("a\n".to_owned(), "b\n".to_owned())
    );
}

#[test]
fn the_rest_of_a_trial_brings_the_new_directory_that_was_undone_with_the_part() {
    let world = World::new();
    world.file("a", "1\n");
    let before = world.tree().without_times();
    let line = "mkdir -p n/m; echo x > n/m/x; echo y > n/m/y; chmod 700 n; echo 2 > a";
    world.ok(&["try", "--apply", "--only", "n/m/x", "--", "sh", "-c", line]);
    world.ok(&["undo"]);
    assert!(!world.path("n").exists());
    world.ok(&["try", "--apply", "--only", "n/m/y"]);
    let names = world.tree().names();
    assert_eq!(names, ["", "a", "n", "n/m", "n/m/y"]);
    assert_eq!(world.tree().mode_of("n"), Some(0o700));
    world.ok(&["try", "--apply"]);
    assert_eq!(world.read("a"), "2\n");
    world.ok(&["undo"]);
    world.ok(&["undo"]);
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}

#[test]
fn a_user_tries_to_remove_a_file_that_he_may_not_read() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown};
    let world = World::new().of_user(1000);
    for (name, owner) in [("s", 0), ("m", 1000)] {
        world.file(name, "secret\n");
        chown(world.path(name), Some(owner), Some(owner)).unwrap();
        set_permissions(world.path(name), Permissions::from_mode(0o200)).unwrap();
    }
    let before = world.tree();
    for name in ["s", "m"] {
        let tried = said(&world.run(&["try", "--", "rm", "-f", name]));
        assert!(tried.contains("1 deleted"), "{tried}");
        assert!(world.tree() == before);
        world.ok(&["try", "--apply"]);
        assert!(!world.path(name).exists());
        world.ok(&["undo"]);
        let now = world.tree();
        assert!(now == before, "{}", now.difference(&before));
    }
    world.check_store();
}

#[test]
fn a_lone_write_needs_no_word_for_its_dependents_and_a_committed_task_does() {
    let world = World::new();
    world.ok(&["write", "a", "--text", "1"]);
    let first = newest(&world, "write");
    world.ok(&["write", "a", "--text", "2"]);
    world.ok(&["undo", &first]);
    assert!(!world.path("a").exists());
    world.ok(&["redo"]);
    world.ok(&["task", "begin", "t"]);
    world.ok(&["--task", "t", "write", "a", "--text", "3"]);
    world.ok(&["commit", "t"]);
    assert_eq!(json(&world, 1, &["undo", &first])["code"], "needs-word");
    assert_eq!(world.read("a"), "3");
    world.ok(&["undo", &first, "--committed"]);
    assert!(!world.path("a").exists());
}

#[test]
fn an_undo_without_a_name_stays_below_this_directory_and_with_this_agent() {
    let world = World::new();
    std::fs::create_dir(world.path("here")).unwrap();
    let below = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        let output = command.current_dir(world.path("here")).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    below(&["--agent", "a", "write", "mine", "--text", "1"]);
    below(&["--agent", "b", "write", "theirs", "--text", "2"]);
    world.ok(&["--agent", "a", "write", "outside", "--text", "3"]);
    // A command that changed nothing is in the log, and not in the way of an undo.
    below(&["--agent", "a", "run", "--", "true"]);
    let told = below(&["--agent", "a", "undo"]);
    assert!(told.contains("the newest of a below ."), "{told}");
    assert!(!world.path("here/mine").exists());
    assert!(world.path("here/theirs").exists() && world.path("outside").exists());
    below(&["--agent", "a", "undo", "--everywhere"]);
    assert!(!world.path("outside").exists());
}

#[test]
fn one_file_of_a_removed_directory_comes_back_with_the_directory_and_without_the_others() {
    let world = World::new();
    world.file("d/x", "x\n");
    world.file("d/y", "y\n");
    world.ok(&["run", "--", "rm", "-rf", "d"]);
    world.ok(&["undo", "d/y"]);
    assert_eq!(world.read("d/y"), "y\n");
    assert!(!world.path("d/x").exists());
    // The other is still to be had.
    world.ok(&["undo", "d/x"]);
    assert_eq!(
        (world.read("d/x"), world.read("d/y")),
        ("x\n".to_owned(), "y\n".to_owned())
    );
    world.check_store();
}

#[test]
fn a_move_done_again_in_part_never_replaces_what_it_reports_as_a_conflict() {
    let world = World::new();
    world.file("b", "b0\n");
    world.file("d/x", "x0\n");
    world.ok(&["write", "b", "--text", "written\n"]);
    let write = newest(&world, "write");
    world.ok(&["undo"]);
    world.ok(&["mv", "--force", "d/x", "b"]);
    let moved = newest(&world, "move");
    world.ok(&["redo", "--committed", &write]);
    assert_eq!(world.read("b") + &world.read("d/x"), "written\nx0\n");
    world.fails(1, &["redo", "--partial", &moved]);
    assert_eq!(world.read("b") + &world.read("d/x"), "written\nx0\n");
    world.check_store();
}

#[test]
fn a_path_whose_name_another_moved_to_comes_back_with_all_that_moved() {
    let world = World::new();
    for name in ["a", "b", "d/y"] {
        world.file(name, &format!("{name} before\n"));
    }
    let first = r#"{"move": {"from": "a", "to": "d/y", "replace": true}}"#;
    let second = r#"{"move": {"from": "b", "to": "a"}}"#;
    world.file(
        "moves.json",
        &format!(r#"{{"changes": [{first}, {second}]}}"#),
    );
    let before = world.tree().without_times();
    world.ok(&["batch", "moves.json"]);
    world.ok(&["undo", "b"]);
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}

#[test]
fn a_name_that_went_away_with_its_directory_and_was_written_anew_comes_back_with_the_directory() {
    let world = World::new();
    world.file("d/x", "x0\n");
    world.file("d/y", "y0\n");
    let line = "mv d e; mkdir d; echo y1 > d/y; echo z1 > d/z; mkdir c";
    world.ok(&["run", "--", "sh", "-c", line]);
    // What is only in the new directory goes by itself.
    world.ok(&["undo", "d/z"]);
    assert!(!world.path("d/z").exists());
    assert_eq!(world.read("d/y"), "y1\n");
    world.ok(&["redo"]);
    let after = world.tree().without_times();
    world.ok(&["undo", "d/y"]);
    let there = |name: &str| world.path(name).exists();
    assert_eq!(
        (world.read("d/x"), world.read("d/y")),
        ("x0\n".into(), "y0\n".into())
    );
    assert!(there("c") && !there("e") && !there("d/z"));
    world.ok(&["redo"]);
    let now = world.tree().without_times();
    assert!(now == after, "{}", now.difference(&after));
    world.check_store();
}

#[test]
fn what_was_built_on_the_other_name_of_a_move_goes_with_it_and_comes_again() {
    let world = World::new();
    world.file("b", "b0\n");
    let before = world.tree().without_times();
    world.ok(&["mv", "b", "c"]);
    let moved = newest(&world, "move");
    world.ok(&["write", "b", "--text", "b1\n"]);
    world.ok(&["restore", "b", "--from", &moved, "--after"]);
    let after = world.tree().without_times();
    // The file goes back to a name that others wrote and removed since.
    let undone = world.json(&["undo", "c"]);
    assert_eq!(undone["steps"].as_array().unwrap().len(), 3, "{undone}");
    for (word, wanted) in [("redo", &after), ("undo", &before), ("redo", &after)] {
        world.ok(&[word]);
        let now = world.tree().without_times();
        assert!(now == *wanted, "{word}: {}", now.difference(wanted));
    }
    world.check_store();
}

#[test]
fn what_stands_where_a_move_cannot_come_back_to_stays_there() {
    let world = World::new();
    world.file("a", "a0\n");
    world.file("b", "b0\n");
    world.file("c", "c0\n");
    world.ok(&["run", "--", "sh", "-c", "mv c a; echo b1 > b"]);
    world.ok(&["undo"]);
    std::fs::remove_file(world.path("c")).unwrap();
    // What was to come over `a` is gone: without it, nothing makes `a` go.
    let redone = json(&world, 1, &["redo", "--partial"]);
    let mut said = outcomes(&world, &redone);
    said.sort();
    let told = |name: &str, word: &str| (name.to_owned(), word.to_owned());
    assert_eq!(
        said,
        [
            told("a", "conflict"),
            told("b", "restored"),
            told("c", "conflict")
        ]
    );
    assert_eq!(
        (world.read("a"), world.read("b")),
        ("a0\n".into(), "b1\n".into())
    );
    json(&world, 1, &["redo", "--force"]);
    assert_eq!(world.read("a"), "a0\n");
    world.check_store();
}

#[test]
fn a_path_that_is_no_text_is_undone_and_named_like_any_other() {
    let world = World::new();
    let name = OsStr::from_bytes(b"caf\xe9");
    let (there, other) = (world.path("").join(name), world.path("other"));
    let write = |path: &Path, text: &str| std::fs::write(path, text).unwrap();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    write(&there, "0\n");
    write(&other, "0\n");
    let line = "for f in *; do echo 1 > $f; done";
    world.ok(&["run", "--", "sh", "-c", line]);
    let run = newest(&world, "run");
    let told = |arguments: &[&str], last: &OsStr| {
        let output = world.command(arguments).arg(last).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    };
    // By its path, and back.
    told(&["undo"], name);
    assert_eq!((read(&there), read(&other)), ("0\n".into(), "1\n".into()));
    world.ok(&["redo"]);
    // By `--only`, which the hint of a preview says so that a shell reads it.
    let hint = told(&["undo", &run, "-n", "--only"], name);
    assert!(hint.contains("--only $'caf\\xe9'"), "{hint}");
    told(&["undo", &run, "--only"], name);
    assert_eq!((read(&there), read(&other)), ("0\n".into(), "1\n".into()));
    told(&["redo", "--only"], name);
    told(&["undo", &run, "--exclude"], name);
    assert_eq!((read(&there), read(&other)), ("1\n".into(), "0\n".into()));
    world.check_store();
}
