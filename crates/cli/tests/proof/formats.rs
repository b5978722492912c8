//! Stores that earlier programs made: they are opened, brought over if they must be, checked, and undone.
//!
//! Each is made by `fixtures/make-store.sh` and unpacked where it was made, since paths are part of what it holds. The one of
//! format 1, whose program is no more, is undone in `trust::telling`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::world::{World, said};

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

/// Unpacks a store where it was made. It is gone when this is dropped.
struct Unpacked(PathBuf);

impl Unpacked {
    fn new(world: &World, name: &str, archive: &[u8]) -> Self {
        let home = Path::new("/tmp").join(name);
        if home.exists() {
            fs::remove_dir_all(&home).unwrap();
        }
        unpack(archive, &world.scratch(""), Path::new("/tmp"));
        Self(home)
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// Checks a store. An archive gives inodes other numbers: what was kept whole is there, and was copied.
fn verified(world: &World, home: &Path) -> Vec<String> {
    let output = command(world, home, &["--json", "verify"]).output();
    let verified: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(verified["findings"], serde_json::json!([]), "{verified}");
    let undoable = verified["undoable"].as_array().unwrap().iter();
    undoable.map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// What every store of the script holds.
const NAMES: [&str; 10] = [
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

fn texts(home: &Path) -> [Option<String>; 10] {
    NAMES.map(|name| fs::read_to_string(home.join("work").join(name)).ok())
}

/// Opens, checks, rolls back, undoes and redoes a store with `undoable` operations that stand.
fn is_opened_verified_and_undone(world: &World, home: &Path, undoable: usize) {
    let output = command(world, home, &["--json", "verify"]).output();
    let found: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(found["changed"].as_array().unwrap().len(), 2, "{found}");
    let ids = verified(world, home);
    assert_eq!(ids.len(), undoable, "{ids:?}");
    let tasks = json(world, home, &["task", "list"]);
    assert_eq!(tasks["tasks"][0]["status"], "committed", "{tasks}");
    let points = json(world, home, &["checkpoint", "--list"]);
    assert_eq!(points["checkpoints"][0]["state"]["step"], 7, "{points}");
    let as_found = texts(home);
    // To the checkpoint first, then one by one by name: all that stands goes.
    run(world, home, &["rollback", "--to", "before", "--others"]);
    assert!(!home.join("work/late").exists());
    run(world, home, &["redo"]);
    assert_eq!(texts(home), as_found);
    let mut arguments = vec!["undo", "--committed", "--others", "--force"];
    arguments.extend(ids.iter().map(String::as_str));
    run(world, home, &arguments);
    let text = |text: &str| Some(text.to_owned());
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
    assert_eq!(texts(home), before);
    run(world, home, &["redo"]);
    assert_eq!(texts(home), as_found);
    assert_eq!(verified(world, home).len(), undoable);
}

#[test]
fn a_store_of_format_2_is_opened_verified_and_undone() {
    let world = World::new();
    let archive = include_bytes!("fixtures/format-2.tar.gz");
    let store = Unpacked::new(&world, "backout-format-2", archive);
    is_opened_verified_and_undone(&world, &store.0, 8);
}

#[test]
fn a_store_of_format_3_is_opened_verified_and_undone() {
    let world = World::new();
    let archive = include_bytes!("fixtures/format-3.tar.gz");
    let store = Unpacked::new(&world, "backout-format-3", archive);
    let home = &store.0;
    is_opened_verified_and_undone(&world, home, 10);
    // A key stays taken.
    let call = ["--once", "call-1", "write", "once", "--text", "once\n"];
    let refused = said(&command(&world, home, &call).output().unwrap());
    let why = "of an older program, and what was asked then cannot be compared";
    assert!(refused.contains(why), "{refused}");
    what_waits_is_what_was_proposed(&world, home);
}

#[test]
fn a_store_of_format_4_is_opened_verified_and_undone() {
    let world = World::new();
    let archive = include_bytes!("fixtures/format-4.tar.gz");
    let store = Unpacked::new(&world, "backout-format-4", archive);
    let home = &store.0;
    is_opened_verified_and_undone(&world, home, 10);
    // Undos of then do not say what set them off; those of now do.
    let log = json(&world, home, &["log", "-n", "100"]);
    let undos = log["operations"].as_array().unwrap().iter();
    let undos: Vec<_> = undos.filter(|op| op["verb"] == "undo").collect();
    assert!(undos.iter().any(|undo| undo.get("trigger").is_none()));
    let newest = undos.first().unwrap();
    assert_eq!(newest["trigger"]["kind"], "user-request", "{newest}");
    let failed = json(&world, home, &["failed"]);
    assert_eq!(failed["failed"], serde_json::json!([]));
    assert!(home.join("state/journal.sqlite.format-4").exists());
    // The same call again is answered, and writes nothing.
    let call = ["--once", "call-1", "write", "once", "--text", "once\n"];
    assert_eq!(json(&world, home, &call)["is_again"], true);
    what_waits_is_what_was_proposed(&world, home);
}

#[test]
fn a_store_of_format_6_is_opened_verified_and_undone() {
    let world = World::new();
    let archive = include_bytes!("fixtures/format-6.tar.gz");
    let store = Unpacked::new(&world, "backout-format-6", archive);
    let home = &store.0;
    is_opened_verified_and_undone(&world, home, 10);
    assert!(home.join("state/journal.sqlite.format-6").exists());
    what_waits_is_what_was_proposed(&world, home);
}

/// What was proposed then is approved now.
fn what_waits_is_what_was_proposed(world: &World, home: &Path) {
    let waiting = json(world, home, &["pending"]);
    let [proposal] = waiting["proposals"].as_array().unwrap().as_slice() else {
        panic!("{waiting}")
    };
    let id = proposal["id"].as_str().unwrap();
    run(world, home, &["approve", id]);
    let asked = |name: &str| fs::read_to_string(home.join("work/asked-").with_file_name(name));
    assert_eq!(asked("asked-waits").unwrap(), "waits\n");
    run(world, home, &["undo", "--committed", "--others", id]);
    assert!(asked("asked-waits").is_err() && asked("asked-rejected").is_err());
    assert_eq!(asked("asked-approved").unwrap(), "approved\n");
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
