//! Stores that earlier programs made: they are opened, brought over if they must be, checked, and undone.
//!
//! Each is made by `fixtures/make-store.sh` and unpacked where it was made, since paths are part of what it holds. The one of
//! format 1, whose program is no more, is undone in `trust::telling`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::world::{World, said};

/// Where the store of this format was made.
const HOME: &str = "/tmp/backout-format-2";

/// So many deaths in one migration are more than there are crash points.
const DEATHS_MAX: usize = 100;

fn unpack(archive: &[u8], scratch: &Path, into: &Path) {
    let packed = scratch.join("store.tar.gz");
    fs::write(&packed, archive).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["--no-same-owner", "-xzpf"]).arg(packed);
    assert!(tar.arg("-C").arg(into).status().unwrap().success());
}

/// Runs a command on a store in `home`, which must succeed, and gives what it said.
fn run(world: &World, home: &Path, arguments: &[&str]) -> String {
    let output = command(world, home, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn command(world: &World, home: &Path, arguments: &[&str]) -> Command {
    let mut command = world.command(arguments);
    let state = home.join("state");
    command
        .current_dir(home.join("work"))
        .env("BACKOUT_STATE_DIR", state);
    command
}

fn json(world: &World, home: &Path, arguments: &[&str]) -> serde_json::Value {
    let mut all = vec!["--json"];
    all.extend(arguments);
    serde_json::from_str(&run(world, home, &all)).unwrap()
}

#[test]
fn a_store_that_todays_program_made_is_opened_verified_and_undone() {
    let world = World::new();
    let home = Path::new(HOME);
    if home.exists() {
        fs::remove_dir_all(home).unwrap();
    }
    let archive = include_bytes!("fixtures/format-2.tar.gz");
    unpack(archive, &world.scratch(""), Path::new("/tmp"));
    // An archive gives inodes other numbers: what was kept whole is there, and was copied.
    let verified = || {
        let output = command(&world, home, &["--json", "verify"]).output();
        let verified: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        assert_eq!(verified["findings"], serde_json::json!([]), "{verified}");
        verified
    };
    let found = verified();
    assert_eq!(found["changed"].as_array().unwrap().len(), 2, "{found}");
    let undoable = found["undoable"].as_array().unwrap();
    assert_eq!(undoable.len(), 8, "{found}");
    let tasks = json(&world, home, &["task", "list"]);
    assert_eq!(tasks["tasks"][0]["status"], "committed", "{tasks}");
    let points = json(&world, home, &["checkpoint", "--list"]);
    assert_eq!(points["checkpoints"][0]["state"]["step"], 7, "{points}");
    let text = |text: &str| Some(text.to_owned());
    let is = || {
        let names = [
            "a",
            "app.toml",
            "b",
            "c",
            "doc/x",
            "large",
            "late",
            "made",
            "notes",
            "task-file",
        ];
        names.map(|name| fs::read_to_string(home.join("work").join(name)).ok())
    };
    let as_found = is();
    // To the checkpoint first, then one by one by name: all that stands goes.
    run(&world, home, &["rollback", "--to", "before", "--others"]);
    assert!(!home.join("work/late").exists());
    run(&world, home, &["redo"]);
    assert_eq!(is(), as_found);
    let mut arguments = vec!["undo", "--committed", "--others", "--force"];
    arguments.extend(undoable.iter().map(|id| id.as_str().unwrap()));
    run(&world, home, &arguments);
    let large = "a line of a large file\n".repeat(9000);
    let before = [
        text("one\n"),
        text("# the port\nport = 8080\nhost = \"a\"\n"),
        text("two\n"),
        text("three\n"),
        text("text\n"),
        large.get(..200_000).and_then(text),
        None,
        None,
        text("note\n"),
        None,
    ];
    assert_eq!(is(), before);
    run(&world, home, &["redo"]);
    assert_eq!(is(), as_found);
    let now = verified();
    assert_eq!(now["undoable"].as_array().unwrap().len(), 8, "{now}");
    fs::remove_dir_all(home).unwrap();
}

/// A store of format 1 in a place of its own. Nothing is undone there.
fn of_format_1(world: &World, name: &str) -> PathBuf {
    let place = world.scratch(name);
    fs::create_dir(&place).unwrap();
    let archive = include_bytes!("fixtures/format-1.tar.gz");
    unpack(archive, &world.scratch(""), &place);
    place.join("backout-format-1")
}

/// All that can be asked of a store: what happened, what stands, and that it is sound.
fn told(world: &World, home: &Path) -> [serde_json::Value; 3] {
    [&["log", "-n", "100"][..], &["task", "list"], &["verify"]]
        .map(|arguments| json(world, home, arguments))
}

fn format_of_copy(home: &Path) -> i64 {
    let copy = home.join("state/journal.sqlite.format-1");
    let copy = rusqlite::Connection::open(copy).unwrap();
    let sound: String = copy
        .pragma_query_value(None, "integrity_check", |row| row.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
    copy.pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

#[test]
fn a_migration_that_dies_anywhere_goes_on_and_ends_as_one_that_did_not() {
    let world = World::new();
    let whole = of_format_1(&world, "whole");
    let expected = told(&world, &whole);
    assert_eq!(expected[2]["findings"], serde_json::json!([]));
    let mut points = Vec::new();
    for number in 1..DEATHS_MAX {
        let home = of_format_1(&world, &number.to_string());
        let mut doomed = command(&world, &home, &["log"]);
        let died = doomed
            .env("BACKOUT_CRASH_AT", number.to_string())
            .output()
            .unwrap();
        if died.status.success() {
            break;
        }
        points.push(number);
        assert_eq!(
            told(&world, &home),
            expected,
            "died at crash point {number}"
        );
        assert_eq!(format_of_copy(&home), 1, "it is kept whole");
    }
    assert!(points.len() >= 4, "{points:?}");
    for named in ["store.copying", "store.copied", "store.migrated"] {
        let home = of_format_1(&world, named);
        let mut doomed = command(&world, &home, &["log"]);
        let died = doomed.env("BACKOUT_CRASH_AT", named).output().unwrap();
        assert!(!died.status.success(), "{}", said(&died));
        assert_eq!(told(&world, &home), expected, "died at {named}");
    }
}
